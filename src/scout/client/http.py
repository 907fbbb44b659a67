"""HTTP to the daemon: one request per connection, over the unix socket or TCP.

It imports only small parts of the standard library, because every warm command loads it.
"""

from __future__ import annotations

import json
import socket

TYPE_CHECKING = False  # `typing` itself would cost more than the rest of this file
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, BinaryIO

    from scout.client.sse import SseEvent

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

_SILENCE = 3.0  # seconds without an answer before `silent` is called


class Lost(Exception):  # noqa: N818 (a fact about the connection)
    """The connection ended before the response was complete."""


class DaemonAddress:
    """Where a daemon listens: a socket file, or a host and port."""

    __slots__ = ("host", "port", "socket", "tls")

    def __init__(self, *, socket: str = "", host: str = "", port: int = 0, tls: bool = False) -> None:
        self.socket, self.host, self.port, self.tls = socket, host, port, tls

    @classmethod
    def of_url(cls, url: str) -> DaemonAddress:
        """Return the address in an http or https URL. Its path is ignored."""
        scheme, _, rest = url.partition("://")
        host, _, port = rest.partition("/")[0].rpartition(":")
        if scheme not in ("http", "https") or not host or not port.isdecimal():
            raise ValueError(f"'{url}' is not a URL of the form http://HOST:PORT")
        return cls(host=host.strip("[]"), port=int(port), tls=scheme == "https")

    @property
    def name(self) -> str:
        return self.socket or f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    def connect(self, timeout: float) -> socket.socket:
        """Open a connection. An OSError means that nothing listens there."""
        if not self.socket:
            return self._connect_tcp(timeout)
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.settimeout(timeout)
        try:
            line.connect(self.socket)
        except OSError:
            line.close()
            raise
        return line

    def _connect_tcp(self, timeout: float) -> socket.socket:
        line = socket.create_connection((self.host, self.port), timeout)
        if not self.tls:
            return line
        import ssl  # noqa: PLC0415 (loaded for https alone)

        return ssl.create_default_context().wrap_socket(line, server_hostname=self.host)


class HttpResponse:
    """A response: status, headers by lower-case name, and body."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    def decode(self) -> Any:
        """Return the JSON value of the body; None if it is empty or not JSON."""
        return decode_json(self.body)


def decode_json(data: bytes) -> Any:
    """Return a JSON value; None if the data is empty or not JSON."""
    try:
        return json.loads(data) if data else None
    except ValueError:
        return None


def is_object(value: Any) -> bool:
    """Whether a decoded JSON value is an object."""
    return isinstance(value, dict)


def to_object(value: Any) -> dict[str, Any]:
    """Return a decoded JSON value if it is an object, else an empty object."""
    found: Any = value if is_object(value) else {}
    return found


def build_target(route: str, parameters: Mapping[str, Any]) -> tuple[str, str, bytes]:
    """Return method, target and body: names in the route's path, the rest as query (GET) or JSON."""
    method, _, path = route.partition(" ")
    rest = {name: value for name, value in parameters.items() if value is not None}
    for name in list(rest):
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", quote(str(rest.pop(name))))
    if method != "GET":
        return method, path, json.dumps(rest).encode()
    pairs = [f"{quote(name)}={quote(text)}" for name, value in rest.items() for text in _list_texts(value)]
    return method, f"{path}?{'&'.join(pairs)}" if pairs else path, b""


def _list_texts(value: Any) -> list[str]:
    values: list[Any] = [*value] if type(value) in (list, tuple) else [value]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in values]


def quote(text: str) -> str:
    """Percent-encode a text for one part of a path, a query or a header."""
    return "".join(
        chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape")
    )


def exchange(
    address: DaemonAddress,
    method: str,
    target: str,
    headers: dict[str, str],
    body: bytes = b"",
    *,
    timeout: float,
    silent: Callable[[], None] = lambda: None,
) -> HttpResponse:
    """Send a request and read the whole response. `Lost` is raised if the connection breaks in between.

    `silent` is called once if no response begins within a few seconds; it may raise.
    """
    with address.connect(timeout) as line:
        try:
            line.sendall(_build_request(address, method, target, headers, body))
            if address.socket and not _is_answered_soon(line, timeout):
                silent()
            with line.makefile("rb") as answer:
                status, got = _read_head(answer)
                return HttpResponse(status, got, b"".join(_read_body(answer, got)))
        except (OSError, ValueError) as error:
            raise Lost(str(error) or type(error).__name__) from None


def open_stream(
    address: DaemonAddress,
    target: str,
    headers: dict[str, str],
    timeout: float,
    *,
    method: str = "GET",
    body: bytes = b"",
    opened: Callable[[socket.socket], None] = lambda _: None,
) -> Iterator[HttpResponse | SseEvent]:
    """Yield the response first (with its body, unless it is a stream), then the stream's events.

    `opened` receives the connection, so that another thread can end it.
    """
    from scout.client.sse import read_events  # noqa: PLC0415 (most commands follow no stream)

    with address.connect(timeout) as line:
        opened(line)
        try:
            line.sendall(_build_request(address, method, target, headers, body))
            with line.makefile("rb") as answer:
                status, got = _read_head(answer)
                streams = got.get("content-type", "").startswith("text/event-stream")
                yield HttpResponse(status, got, b"" if streams else b"".join(_read_body(answer, got)))
                yield from read_events(_read_body(answer, got)) if streams else ()
        except (OSError, ValueError) as error:
            raise Lost(str(error) or type(error).__name__) from None


def _build_request(
    address: DaemonAddress, method: str, target: str, headers: dict[str, str], body: bytes
) -> bytes:
    host = f"{address.host}:{address.port}" if address.host else "localhost"
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body or method != "GET":
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _is_answered_soon(line: socket.socket, timeout: float) -> bool:
    """Whether a response begins soon. Nothing of it is consumed."""
    line.settimeout(min(_SILENCE, timeout))
    try:
        line.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return False
    finally:
        line.settimeout(timeout)
    return True


def _read_head(answer: BinaryIO) -> tuple[int, dict[str, str]]:
    first = answer.readline().split(None, 2)
    if len(first) < 2:
        raise Lost("no answer")
    headers: dict[str, str] = {}
    while (line := answer.readline()) not in (b"\r\n", b"\n"):
        if not line:
            raise Lost("incomplete response")
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(first[1]), headers


def _read_body(answer: BinaryIO, headers: dict[str, str]) -> Iterator[bytes]:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        yield from _read_chunks(answer)
    elif "content-length" in headers:
        length = int(headers["content-length"])
        data = answer.read(length)
        if len(data) < length:
            raise Lost("incomplete response")
        yield data
    else:
        yield answer.read()


def _read_chunks(answer: BinaryIO) -> Iterator[bytes]:
    while size := int(answer.readline().partition(b";")[0].strip() or b"-1", 16):
        data = answer.read(size) if size > 0 else b""
        if not data or len(data) < size:
            raise Lost("incomplete response")
        answer.readline()
        yield data
