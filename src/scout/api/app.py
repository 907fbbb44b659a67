"""The ASGI application: one request, one response, with the same records and refusals as every surface."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Collection, Mapping
from typing import Any

from scout.api.asgi import (
    JSON,
    AsgiSend,
    BrowserSurface,
    Gone,
    Headers,
    Mount,
    OpenSurface,
    Receive,
    Response,
    Scope,
    WatchedResponse,
)
from scout.api.docs_page import build_page
from scout.api.encoders import encode_result
from scout.api.guard import Guard, read_headers
from scout.api.metrics import render_metrics
from scout.api.openapi import build_response
from scout.api.requests import WrongMedia, read, read_body, wait_for_disconnect
from scout.api.responses import build_internal_error, build_problem, get_exchange, send_response
from scout.api.routes import RouteMatch, Routes, WrongMethod
from scout.api.stream import Frames, follow
from scout.base.codec import encode
from scout.base.outside import decode_text
from scout.base.refusal import BadRequest, Diagnostic, Refused
from scout.model.problems.request import Busy, Unauthenticated
from scout.protocol.log import Watch
from scout.protocol.request import Request
from scout.protocol.scout import Admission, Credential, Gate, Scout

_LOG = logging.getLogger("scout.api")
_SHORT = 64 * 1024  # bytes of a body that are decoded on the event loop
_API = b"/v1/"  # the page has no path there
_DESCRIPTIONS = frozenset({b"/openapi.json", b"/docs"})


class Application:
    """Scout as an ASGI application. `stop` ends its streams and long polls with a reason."""

    def __init__(
        self,
        door: Gate,
        *,
        version: str,
        comment: float,
        counters: Callable[[], Mapping[str, float]],
        hosts: Collection[str] = (),
        mounts: Collection[Mount] = (),
        open_surfaces: Collection[OpenSurface] = (),
        page: BrowserSurface | None = None,
    ) -> None:
        self._door = door
        self._version = version
        self._headers: Headers = (*JSON, (b"scout-version", version.encode()))  # only for admitted callers
        self._comment = comment
        self._counters = counters
        self._guard = Guard(hosts)
        self._mounts = tuple(mounts)
        self._open_surfaces = tuple(open_surfaces)
        self._page = page
        self._routes = Routes()
        self._frames = Frames()
        self._stopping: asyncio.Future[Diagnostic] | None = None
        self._tally = {"requests": 0, "refusals": 0, "faults": 0, "streams": 0}
        self._open: dict[bytes, Callable[[], Response]] = {
            b"/health": lambda: Response(encode({"status": "ok", "version": version})),
            b"/metrics": self._build_metrics,
            b"/openapi.json": lambda: build_response(version),
            b"/docs": lambda: build_page(version),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: AsgiSend) -> None:
        assert scope["type"] == "http", scope["type"]
        self._tally["requests"] += 1
        try:
            answer = await self._answer(scope, receive, send)
        except Refused as refused:
            answer = self._count_refusal(build_problem(refused.diagnostic))
        except WrongMethod as wrong:
            allow = (b"allow", ", ".join(wrong.allowed).encode())
            answer = self._count_refusal(build_problem(wrong.diagnostic, 405, (allow,)))
        except WrongMedia as wrong:
            answer = self._count_refusal(build_problem(wrong.diagnostic, 415))
        except (Gone, ConnectionError):
            return
        except Exception as error:  # noqa: BLE001 (every internal error is answered and logged)
            answer = self._build_fault(scope["method"], scope["raw_path"], error)
        if answer is not None:
            await send_response(answer, send, get_exchange(scope))

    def count_requests(self) -> int:
        """Return how many requests were made so far."""
        return self._tally["requests"]

    def stop(self) -> None:
        """End streams and long polls with the reason that the daemon is stopping."""
        stopping = self._get_stopping()
        if not stopping.done():
            stopping.set_result(Busy(reason="the daemon is stopping"))
        for mount in self._mounts:
            mount.stop()

    async def _answer(self, scope: Scope, receive: Receive, send: AsgiSend) -> Response | None:
        headers = read_headers(scope)
        method, path = scope["method"], scope["raw_path"]
        page = self._page
        if page is not None and not path.startswith(_API) and page.answers(path, headers):
            self._guard.check(scope, headers, is_visit=page.is_visit(method, headers))
            await page(scope, headers, send)
            return None
        self._guard.check(scope, headers)
        if path in self._open:
            if method not in {"GET", "HEAD"}:
                raise WrongMethod(method, ("GET", "HEAD"))
            # Building the description of all operations is slow the first time: keep it off the event loop.
            return await asyncio.to_thread(self._open[path]) if path in _DESCRIPTIONS else self._open[path]()
        for surface in self._open_surfaces:
            if method in {"GET", "HEAD"} and surface.paths.fullmatch(path):
                return await surface.show(path, headers)
        for mount in self._mounts:
            if mount.paths.fullmatch(path):
                return await self._run_mounted(mount, self._read_credential(headers), scope, receive, send)
        found = self._routes.find(method, path)
        scout = await self._door.admit(self._read_credential(headers))
        if found.route.request is Watch:
            await self._stream(scout, _watch(found, scope, headers), receive, send)
            return None
        body = await read_body(receive, headers, found.route.limit) if found.route.has_body else b""
        named = headers.get(b"idempotency-key"), headers.get(b"traceparent")
        words = (found, scope["query_string"], body, *named)
        request = read(*words) if len(body) <= _SHORT else await asyncio.to_thread(read, *words)
        if getattr(request, "wait", 0):
            result = await self._wait(scout, request, scope, receive)
        else:
            result = await scout.call(request)
        return Response(encode_result(result), request.status, self._headers)

    def _read_credential(self, headers: dict[bytes, bytes]) -> Credential:
        """Return the credential of a request: its token, else the session of a browser."""
        credential = _read_credential(headers)
        if credential.secret is None and self._page is not None and b"cookie" in headers:
            return self._page.read_credential(headers) or credential
        return credential

    async def _run_mounted(
        self, mount: Mount, credential: Credential, scope: Scope, receive: Receive, send: AsgiSend
    ) -> Response | None:
        """Run a mounted surface. The request ends when its credential ends, even during a stream."""
        scout = await self._door.admit(credential)
        watched = WatchedResponse(send)
        working = asyncio.ensure_future(mount(scout, scope, receive, watched))
        ending = asyncio.ensure_future(scout.credential_ended())
        try:
            await asyncio.wait({working, ending}, return_when="FIRST_COMPLETED")
            if working.done():
                working.result()
                return None
        finally:
            working.cancel()
            ending.cancel()
        await asyncio.gather(working, return_exceptions=True)
        if watched.started:
            await watched.finish()
            return None
        raise Refused(Unauthenticated(reason="the token is no longer valid", needs=("another token",)))

    async def _wait(self, scout: Scout, request: Request[Any], scope: Scope, receive: Receive) -> object:
        """Return the result of a long poll; it ends early if the client disconnects or the daemon stops.

        It runs in the task of its request, which is cancelled in these cases: no other task waits beside it.
        """
        task, stopping = asyncio.current_task(), self._get_stopping()
        assert task is not None
        ends: list[asyncio.Future[Any] | None] = []

        def end(reason: "asyncio.Future[Any] | None" = None) -> None:
            ends.append(reason)
            task.cancel()

        stopping.add_done_callback(end)
        forget = _watch_disconnect(scope, receive, end)
        try:
            return await scout.call(request)
        except asyncio.CancelledError:
            if not ends or task.uncancel() > 0:
                raise
            if ends[0] is stopping:
                raise Refused(stopping.result()) from None
            raise Gone from None
        finally:
            stopping.remove_done_callback(end)
            forget()

    async def _stream(self, scout: Admission, request: Watch, receive: Receive, send: AsgiSend) -> None:
        self._tally["streams"] += 1
        try:
            await follow(
                lambda wake: scout.follow(request, wake),
                send,
                receive,
                frames=self._frames,
                comment=self._comment,
                stopping=self._get_stopping(),
                fault=lambda error: self._build_fault("GET", b"/v1/events", error),
            )
        finally:
            self._tally["streams"] -= 1

    def _get_stopping(self) -> "asyncio.Future[Diagnostic]":
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_future()
        return self._stopping

    def list_counters(self) -> dict[str, float]:
        """Return the counters of this application and of the broker."""
        own = {
            "http_requests_total": self._tally["requests"],
            "http_refusals_total": self._tally["refusals"],
            "http_faults_total": self._tally["faults"],
            "http_streams": self._tally["streams"],
        }
        return {**own, **self._counters()}

    def _build_metrics(self) -> Response:
        return render_metrics(self.list_counters())

    def _count_refusal(self, answer: Response) -> Response:
        self._tally["refusals"] += 1
        return answer

    def _build_fault(self, method: str, path: bytes, error: Exception) -> Response:
        self._tally["faults"] += 1
        reference = f"err_{secrets.token_hex(6)}"
        _LOG.error("%s: %s %s", reference, method, path.decode("latin-1"), exc_info=error)
        return build_internal_error(reference)


def _watch_disconnect(scope: Scope, receive: Receive, end: Callable[[], None]) -> Callable[[], object]:
    """Call `end` when the client disconnects; return the function that stops watching."""
    exchange = get_exchange(scope)
    if exchange is not None:
        exchange.on_disconnect(end)
        return lambda: exchange.on_disconnect(None)
    gone = asyncio.ensure_future(wait_for_disconnect(receive))
    gone.add_done_callback(lambda _: None if gone.cancelled() else end())
    return gone.cancel


def _read_credential(headers: dict[bytes, bytes]) -> Credential:
    scheme, _, secret = headers.get(b"authorization", b"").partition(b" ")
    return Credential(
        secret=secret.strip().decode("latin-1") or None if scheme.lower() == b"bearer" else None,
        act_as=_read_header(headers, b"scout-as"),
        directory=_read_header(headers, b"scout-directory"),
    )


def _read_header(headers: dict[bytes, bytes], name: bytes) -> str | None:
    """Return the value of a header; an empty value is refused, not treated as absent."""
    raw = headers.get(name)
    if raw is not None and not 1 <= len(raw) <= 4096:
        raise Refused(BadRequest(problem="expected a header of 1 to 4096 bytes", field=name.decode()))
    return None if raw is None else decode_text(raw, name.decode())


def _watch(found: RouteMatch, scope: Scope, headers: dict[bytes, bytes]) -> Watch:
    """Return the stream request. `Last-Event-ID` overrides the `after` parameter."""
    if scope["method"] == "HEAD":
        raise WrongMethod("HEAD", ("GET",))
    query, seen = scope["query_string"], headers.get(b"last-event-id")
    if seen:
        others = [part for part in query.split(b"&") if part and part.partition(b"=")[0] != b"after"]
        query = b"&".join((*others, b"after=" + seen))
    request = read(found, query, b"", None)
    assert isinstance(request, Watch)
    return request
