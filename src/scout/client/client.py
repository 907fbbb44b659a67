"""`Scout`: the asynchronous client."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import TypeVar
from urllib.parse import quote

import httpx2

from scout.base.refusal import Refused
from scout.client.session import in_session
from scout.client.stream import events
from scout.client.verbs import Verbs
from scout.client.wire import Sent, lost, no_daemon, read_answer, refusal, sent
from scout.model.events.envelope import Event
from scout.model.problems.request import Unauthenticated
from scout.protocol.overview import Watch
from scout.protocol.request import Request
from scout.settings.where import find

__all__ = ["Scout"]

T = TypeVar("T")
_PAUSES = (0.05, 0.2, 0.8)  # before a request is made again after a lost connection
_PATIENCE = 75.0  # seconds: longer than any long poll


class Scout(Verbs):
    """A view of Scout, as whoever the token stands for. Refusals are raised as `scout.base.refusal.Refused`.

    Without arguments it finds the daemon as the command line does: `SCOUT_URL`, else the socket
    (`SCOUT_SOCKET`, or the one in the data folder); `SCOUT_TOKEN`, else the operator's token file,
    which is never used inside a harness session. With `home` only that folder counts.

    Requests that read, and writes (which always carry an idempotency key), are made again when the
    connection breaks: nothing is done twice.
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
        environ = {**os.environ, **({"SCOUT_HOME": os.fspath(home)} if home is not None else {})}
        where = find(environ)
        url = url or (environ.get("SCOUT_URL") if home is None else None)
        socket = None if url else (environ.get("SCOUT_SOCKET") if home is None else None) or where.socket
        self._where = url or str(socket)
        self._token = token or (environ.get("SCOUT_TOKEN") if home is None else None)
        self._session = in_session(environ)
        self._token_file = Path(where.token_file)
        self._act_as = act_as
        self._directory = os.fspath(directory) if directory is not None else str(Path.cwd())
        self._http = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(uds=socket),
            base_url=url or "http://localhost",
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
        """The answer to any request of `scout.protocol`, in its own type."""
        given: str | None = getattr(request, "idempotency_key", None)
        headers = self._headers()
        if type(request).writes:
            headers["Idempotency-Key"] = quote(given or secrets.token_hex(16), safe="")
        status, body = await self._exchange(sent(request), headers)
        return read_answer(request, status, body)

    async def _exchange(self, out: Sent, headers: dict[str, str]) -> tuple[int, bytes]:
        pauses = iter(_PAUSES)
        headers = {**headers, "Accept": "application/json"}
        while True:
            try:
                answer = await self._http.request(out.method, out.target, content=out.body, headers=headers)
            except httpx2.TransportError as error:
                pause = next(pauses, None)
                if pause is None:
                    raise self._broken(error) from None
                await asyncio.sleep(pause)
            else:
                return answer.status_code, answer.content

    def watch(self, request: Watch | None = None) -> AsyncIterator[Event]:
        """The facts of the log as they are committed; a lost connection is taken up where it broke."""
        return events(self._stream, request or Watch())

    async def _stream(self, request: Watch, last: int | None) -> AsyncIterator[str]:
        headers = {**self._headers(), "Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        async with self._http.stream("GET", sent(request).target, headers=headers) as answer:
            if answer.status_code >= 400:
                raise refusal(answer.status_code, await answer.aread())
            async for line in answer.aiter_lines():
                yield line

    def _headers(self) -> dict[str, str]:
        told = {
            "Authorization": f"Bearer {self._secret()}",
            "Content-Type": "application/json",
            "Scout-Directory": quote(self._directory, safe=""),
        }
        return told | ({"Scout-As": quote(self._act_as, safe="")} if self._act_as else {})

    def _secret(self) -> str:
        if self._token is None and self._session is not None:
            reason = f"{self._session} says that this runs inside a harness session"
            raise Refused(Unauthenticated(reason=reason, needs=("SCOUT_TOKEN of the session",)))
        if self._token is None:
            try:
                self._token = self._token_file.read_text("utf-8").strip()
            except OSError as error:
                reason = f"{self._token_file} cannot be read ({error.strerror})"
                raise Refused(Unauthenticated(reason=reason, needs=("SCOUT_TOKEN",))) from None
        return self._token

    def _broken(self, error: httpx2.TransportError) -> Refused:
        told = no_daemon if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout) else lost
        return told(self._where, str(error) or type(error).__name__)
