"""`Scout`: the asynchronous client."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TypeVar

import httpx2
from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.client.environment import Environment, NoToken, build_headers, get_current_directory
from scout.client.http import quote
from scout.client.sse import SseEvent, SseParser
from scout.client.verbs import Verbs
from scout.client.wire import decode_refusal, decode_response, encode_request, report_lost, report_no_daemon
from scout.model.events.envelope import Event
from scout.model.events.event_types import read_event
from scout.model.problems.request import Busy, Unauthenticated
from scout.protocol.log import Watch
from scout.protocol.request import Request

T = TypeVar("T")
_PAUSES = (0.05, 0.2, 0.8)  # seconds before a request is repeated after a lost connection
_STREAM_PAUSES = (*_PAUSES, 2.0, 5.0)
_PATIENCE = 75.0  # seconds: longer than any long poll


def _ignore(is_open: bool) -> None:
    """Nobody wants to know whether the stream is open."""


class Scout(Verbs):
    """Scout as the owner of the token sees it. Refusals are raised as `scout.base.refusal.Refused`.

    Without arguments it finds the daemon as the command line does: `SCOUT_URL`, else the socket
    (`SCOUT_SOCKET`, or the one in the data folder). The credential is `SCOUT_TOKEN`, else the token of the
    enrolled session, else the operator's token file, which is never used inside a harness session. With
    `home` only that folder counts.

    A request is repeated when the connection breaks. Nothing is done twice, because every write carries an
    idempotency key.
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        token: str | None = None,
        act_as: str | None = None,
        home: str | os.PathLike[str] | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        self._environment = Environment(os.environ, os.fspath(home) if home is not None else None)
        socket = "" if url else self._environment.address.socket
        self._url = url or self._environment.address.name
        self._token = token
        self._act_as = act_as
        self._directory = os.fspath(directory) if directory is not None else get_current_directory()
        self._http = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(uds=socket or None),
            base_url="http://localhost" if socket else self._url,
            timeout=httpx2.Timeout(_PATIENCE, connect=5.0),
        )

    async def __aenter__(self) -> "Scout":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def call(self, request: Request[T]) -> T:
        """Make any request of `scout.protocol` and return its typed result."""
        given: str | None = getattr(request, "idempotency_key", None)
        headers = {**self._build_headers(), "Accept": "application/json"}
        if type(request).writes:
            headers["Idempotency-Key"] = quote(given or secrets.token_hex(16))
        status, body = await self._exchange(*encode_request(request), headers)
        return decode_response(request, status, body)

    async def _exchange(
        self, method: str, target: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        pauses = iter(_PAUSES)
        while True:
            try:
                answer = await self._http.request(method, target, content=body, headers=headers)
            except httpx2.TransportError as error:
                pause = next(pauses, None)
                if pause is None:
                    raise self._report_broken(error) from None
                await asyncio.sleep(pause)
            else:
                return answer.status_code, answer.content

    async def watch(
        self, request: Watch | None = None, *, on_change: Callable[[bool], None] | None = None
    ) -> AsyncIterator[Event]:
        """Yield the events of the log as they are committed, each once and in order.

        After a lost connection the stream resumes where it broke. It ends only when the caller stops, or when
        the daemon refuses or stays unreachable. `on_change` is called with True when the stream is open, and
        with False when it is lost.
        """
        report = on_change or _ignore
        wish = request or Watch()
        last, failures = "" if wish.after is None else str(wish.after), 0
        while True:
            try:
                async for event in self._read_stream(replace(wish, after=None), last, report):
                    failures = 0
                    if event.type == "dropped":
                        why = decode_refusal(0, event.data.encode())
                        break
                    last = event.id or last
                    yield read_event(event.data)
                else:
                    why = Refused(Busy(reason="the stream ended"))
            except httpx2.TransportError as error:
                why = Refused(Busy(reason=f"the stream broke: {error or type(error).__name__}"))
            report(False)
            if failures >= len(_STREAM_PAUSES):
                raise why
            await asyncio.sleep(_STREAM_PAUSES[failures])
            failures += 1

    async def _read_stream(
        self, request: Watch, last: str, report: Callable[[bool], None]
    ) -> AsyncIterator[SseEvent]:
        headers = {**self._build_headers(), "Accept": "text/event-stream"}
        if last:
            headers["Last-Event-ID"] = last
        parser = SseParser()
        async with self._http.stream("GET", encode_request(request)[1], headers=headers) as answer:
            if answer.status_code >= 400:
                raise decode_refusal(answer.status_code, await answer.aread())
            report(True)
            async for line in answer.aiter_lines():
                if event := parser.feed(line):
                    yield event

    def _build_headers(self) -> dict[str, str]:
        try:
            self._token = self._token or self._environment.find_token()
        except NoToken as missing:
            raise Refused(Unauthenticated(reason=missing.reason, needs=missing.needs)) from None
        return {
            **build_headers(self._token, self._act_as, self._directory),
            "Content-Type": "application/json",
        }

    def _report_broken(self, error: httpx2.TransportError) -> Refused:
        is_away = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
        report = report_no_daemon if is_away else report_lost
        return report(self._url, str(error) or type(error).__name__)
