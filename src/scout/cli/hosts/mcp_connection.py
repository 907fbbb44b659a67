"""The connection of one host to the daemon's /mcp: its credential, its protocol session, how to reconnect."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import threading
import time

from scout.cli.connection.text import note
from scout.cli.hosts.host_session import HostSession, NotEnrolled, Refusal
from scout.client.environment import build_headers
from scout.client.http import HttpResponse, Lost, open_stream, quote, to_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from scout.client.sse import SseEvent

    Message = dict[str, Any]

_PATH = "/mcp"
_VERSION = "io.modelcontextprotocol/protocolVersion"
_NAMES = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0)  # seconds between retries while a daemon is replaced
_TRIES = 3
_LONG = 3600.0  # seconds of silence; the daemon sends keep-alives far more often


class Broken(Exception):  # noqa: N818 (a fact about the connection)
    """The connection ended after the request was sent, so the request may have been executed."""


class ConnectionGone(Exception):  # noqa: N818 (the same)
    """No daemon answers, or the daemon refuses."""


class _Unknown(Exception):  # noqa: N818 (the same)
    """The protocol session or the credential is no longer valid."""

    def __init__(self, answer: HttpResponse) -> None:
        super().__init__(_describe_failure(answer))
        self.refused = answer.status == 401


class McpConnection:
    """The connection for all requests. `heard` gets every message that comes back."""

    def __init__(self, host: HostSession) -> None:
        self.heard: Callable[[Any], None] = lambda _: None
        self._host = host
        self._session: dict[str, Any] = {}
        self._renewing = threading.Lock()
        self._generation = 0
        self._protocol_session: str | None = None
        self._version: str | None = None
        self._hello: Message | None = None
        self._followed: dict[str, Message] = {}
        self._lines: dict[Any, socket.socket] = {}
        self._cut: set[Any] = set()

    # -- messages ----------------------------------------------------------------------------------

    def ask(self, message: Message, *, again: bool) -> None:
        """Send a request; `heard` gets its answer and all messages before it. `again`: safe to repeat."""
        if message["method"] == "initialize":
            return self._greet(message)
        self._remember(message)
        problem = ""
        for _ in range(_TRIES):
            generation = self._generation
            try:
                return self._send_message(message)
            except _Unknown as unknown:
                problem = str(unknown)
                self._renew(generation, refused=unknown.refused)
            except Broken as broken:
                if message["id"] in self._cut:
                    return self._cut.discard(message["id"])  # a cancelled request needs no answer
                if not again:
                    raise
                problem = str(broken)
        raise ConnectionGone(f"Scout does not answer: {problem}")

    def tell(self, message: Message) -> None:
        """Send a message that has no answer."""
        generation = self._generation
        try:
            self._send_message(message)
        except _Unknown as unknown:
            if "method" in message:  # an answer to an ended session is dropped
                self._renew(generation, refused=unknown.refused)
                self._send_message(message)

    def hang_up(self, ident: Any) -> bool:
        """Cancel a request of the sessionless protocol by closing its connection."""
        line = self._lines.get(ident)
        if line is None or self._protocol_session is not None:
            return False
        self._cut.add(ident)
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)
        return True

    def close(self) -> None:
        """End the protocol session; also end the session itself if no hook reports it."""
        with contextlib.suppress(ConnectionGone, Broken, NotEnrolled, _Unknown):
            if self._protocol_session is not None:
                list(self._exchange("DELETE", None))
        session = self._session
        if session.get("sessionId") and not session.get("native"):
            with contextlib.suppress(NotEnrolled):
                self._host.forget(session)
                self._host.report(session, "session_end")

    def beat(self, *, working: bool) -> None:
        """Send a heartbeat while the session works, or if it can be woken while idle."""
        kept = self._host.find_kept_here() or self._session
        if not kept.get("endpointId") or not (working or kept.get("working") or kept.get("hasDoor")):
            return
        with contextlib.suppress(NotEnrolled):
            target = f"/v1/endpoints/{quote(kept['endpointId'])}/heartbeat"
            self._host.call(kept["token"], "POST", target, {})

    # -- the protocol session ----------------------------------------------------------------------

    def _greet(self, message: Message) -> None:
        """Send `initialize` and keep it, to repeat it to a replaced daemon."""
        problem = ""
        with self._renewing:
            self._hello, self._protocol_session, self._version = message, None, None
            for _ in range(_TRIES):
                try:
                    return self._send_message(message)
                except _Unknown as unknown:
                    problem = str(unknown)
                    self._identify(refused=True)
                except Broken as broken:
                    problem = str(broken)
        raise ConnectionGone(f"Scout does not know this session: {problem}")

    def _renew(self, generation: int, *, refused: bool) -> None:
        """Identify and initialize again, once for all threads that lost the session."""
        with self._renewing:
            if generation != self._generation:
                return
            self._identify(refused=refused)
            self._generation += 1
            if self._hello is None or self._protocol_session is None:
                return
            self._protocol_session, self._version = None, None
            said: list[Any] = []
            hello = {**self._hello, "id": f"scout-relay-{self._generation}"}
            self._send_message(hello, said.append)
            self._send_message({"jsonrpc": "2.0", "method": "notifications/initialized"})
            for number, follow in enumerate(list(self._followed.values())):
                self._send_message({**follow, "id": f"scout-relay-{self._generation}-{number}"}, said.append)

    def _remember(self, message: Message) -> None:
        """Remember subscriptions, to repeat them in a new session."""
        uri = str(to_object(message.get("params")).get("uri", ""))
        if message["method"] == "resources/subscribe":
            self._followed[uri] = message
        elif message["method"] == "resources/unsubscribe":
            self._followed.pop(uri, None)

    def _listen(self, generation: int) -> None:
        """Read messages that the daemon sends on its own, as long as this protocol session lasts."""
        while generation == self._generation and self._protocol_session is not None:
            try:
                for message in self._exchange("GET", None):
                    self.heard(message)
            except (ConnectionGone, NotEnrolled, _Unknown):
                return  # no such stream, or the next request will report it
            except Broken:
                pass
            time.sleep(_PAUSES[4])

    # -- the credential ----------------------------------------------------------------------------

    def _get_token(self) -> str:
        """Return the token that Scout gave to a program it started, else that of the enrolled session."""
        own = self._host.environment.given_token
        if own:
            return own
        if not self._session:
            self._identify(refused=False)
        return str(self._session["token"])

    def _identify(self, *, refused: bool) -> None:
        """Find the session of this process: the one that a hook stored, else enrol a new one.

        `refused`: its credential has expired, so a new one is needed.
        """
        if self._host.environment.given_token:
            return
        kept = self._host.find_kept_here()
        if kept is not None and not (refused and kept.get("token") == self._session.get("token")):
            self._session = kept
            return
        if self._session and not refused:
            return
        here = os.getcwd()  # noqa: PTH109 (one look, no object)
        self._session = self._host.enrol(here, kept.get("native") if kept else None)

    # -- one exchange ------------------------------------------------------------------------------

    def _send_message(self, message: Message, heard: Callable[[Any], None] | None = None) -> None:
        for answer in self._exchange("POST", message):
            self._store_session(message, answer)
            (heard or self.heard)(answer)

    def _store_session(self, message: Message, answer: Any) -> None:
        """Record the negotiated version, then listen for messages that the daemon sends on its own."""
        if message.get("method") != "initialize" or answer.get("id") != message["id"]:
            return
        self._version = to_object(answer.get("result")).get("protocolVersion")
        if self._protocol_session is not None:
            threading.Thread(target=self._listen, args=(self._generation,), daemon=True).start()

    def _exchange(self, method: str, message: Message | None) -> Iterator[Any]:
        """Send a message and yield every message that comes back."""
        ident = message.get("id") if message and "method" in message else None
        body = b"" if message is None else json.dumps(message).encode()
        parts = self._open_connection(method, message, body, ident)
        try:
            for part in parts:
                if isinstance(part, HttpResponse):
                    yield from self._handle_status(part, message, ident)
                elif part.data.strip():
                    yield json.loads(part.data)
        except Lost as lost:
            raise Broken(str(lost)) from None
        finally:
            self._lines.pop(ident, None)

    def _open_connection(
        self, method: str, message: Message | None, body: bytes, ident: Any
    ) -> Iterator[HttpResponse | SseEvent]:
        """Open a connection, retrying for as long as a daemon takes to be replaced."""

        def keep_connection(line: socket.socket) -> None:
            if ident is not None:
                self._lines[ident] = line

        problem = ""
        for number, pause in enumerate((*_PAUSES, None)):
            try:
                headers = self._build_headers(message)
                parts = open_stream(
                    self._host.address,
                    _PATH,
                    headers,
                    _LONG,
                    method=method,
                    body=body,
                    opened=keep_connection,
                )
                first = next(parts)
            except (OSError, NotEnrolled) as error:
                problem = str(error)
                if pause is None or isinstance(error, Refusal):
                    break
                if number == 0:
                    self._start()
                time.sleep(pause)
                continue
            return _join_streams(first, parts)
        raise ConnectionGone(problem)

    def _build_headers(self, message: Message | None) -> dict[str, str]:
        accept = "text/event-stream" if message is None else "application/json, text/event-stream"
        told = {**build_headers(self._get_token()), "Accept": accept}
        meta = _get_meta(message)
        if _VERSION in meta:
            told["MCP-Protocol-Version"] = str(meta[_VERSION])
            told.update(_build_mirrored_headers(message or {}))
            return told
        if self._protocol_session is not None:
            told["Mcp-Session-Id"] = self._protocol_session
        if self._version is not None:
            told["MCP-Protocol-Version"] = self._version
        return told

    def _handle_status(self, answer: HttpResponse, message: Message | None, ident: Any) -> Iterator[Any]:
        """Handle the status; yield the answer if it is not a stream."""
        if answer.status == 401 or (answer.status == 404 and self._protocol_session is not None):
            raise _Unknown(answer)
        if message and message.get("method") == "initialize" and answer.status < 400:
            self._protocol_session = answer.headers.get("mcp-session-id")
        told = to_object(answer.decode())
        if told.get("jsonrpc"):
            yield {**told, "id": ident} if told.get("id") is None and "error" in told else told
        elif answer.status >= 400:
            raise ConnectionGone(_describe_failure(answer))

    def _start(self) -> None:
        """Start the daemon, unless autostart is off: a host acts for a person."""
        environ = self._host.environ
        if not self._host.where.autostart or environ.get("SCOUT_TOKEN") or environ.get("SCOUT_URL"):
            return
        from scout.daemon.start import NotStarted, start

        try:
            running, began = start(self._host.where.home, environ=environ)
        except NotStarted as problem:
            raise ConnectionGone(f"the daemon did not start: {problem}") from None
        if began:
            note(f"scout: started the daemon (pid {running.pid}, {running.url})")


def _join_streams(
    first: HttpResponse | SseEvent, rest: Iterator[HttpResponse | SseEvent]
) -> Iterator[HttpResponse | SseEvent]:
    yield first
    yield from rest


def _get_meta(message: Message | None) -> dict[str, Any]:
    return to_object(to_object((message or {}).get("params")).get("_meta"))


def _build_mirrored_headers(message: Message) -> dict[str, str]:
    """Return the headers that repeat method and name of a request in the sessionless protocol."""
    method = str(message.get("method", ""))
    told = {"Mcp-Method": method}
    if method in _NAMES:
        told["Mcp-Name"] = _encode_header(str(message.get("params", {}).get(_NAMES[method], "")))
    return told


def _encode_header(text: str) -> str:
    """Encode a text for use in a header."""
    if text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _describe_failure(answer: HttpResponse) -> str:
    told = to_object(answer.decode())
    words = told.get("message") or told.get("error")
    return f"{words or 'the daemon answered'} ({answer.status})"
