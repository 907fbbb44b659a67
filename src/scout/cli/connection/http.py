"""HTTP as the command line needs it: one request per connection, over the unix socket or TCP.

Only the standard library's small parts: this is on the path of every warm command.
"""

from __future__ import annotations

import socket

TYPE_CHECKING = False  # `typing` itself would cost more than the rest of this file
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

_SILENCE = 3.0  # seconds without an answer, after which somebody looks whether the daemon is well


class Lost(Exception):  # noqa: N818 (a fact about the connection)
    """The connection ended before the answer was complete."""


class DaemonAddress:
    """Where a daemon listens: a socket file, or a host and port."""

    __slots__ = ("host", "port", "socket", "tls")

    def __init__(self, *, socket: str = "", host: str = "", port: int = 0, tls: bool = False) -> None:
        self.socket, self.host, self.port, self.tls = socket, host, port, tls

    @classmethod
    def of_url(cls, url: str) -> DaemonAddress:
        """The place of an http or https URL; its path is ignored."""
        scheme, _, rest = url.partition("://")
        host, _, port = rest.partition("/")[0].rpartition(":")
        if scheme not in ("http", "https") or not host or not port.isdecimal():
            raise ValueError(f"'{url}' is no URL of the form http://HOST:PORT")
        return cls(host=host.strip("[]"), port=int(port), tls=scheme == "https")

    @property
    def name(self) -> str:
        return self.socket or f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    def connect(self, timeout: float) -> socket.socket:
        """An open connection; an OSError when nobody listens."""
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
        import ssl

        return ssl.create_default_context().wrap_socket(line, server_hostname=self.host)


class HttpResponse:
    """What came back."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body


def quote(text: str) -> str:
    """Percent-encoded, nothing left out: for one part of a path, a query or a header."""
    return "".join(
        chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape")
    )


def exchange(
    place: DaemonAddress,
    method: str,
    target: str,
    headers: dict[str, str],
    body: bytes = b"",
    *,
    timeout: float,
    silent: Callable[[], None] = lambda: None,
) -> HttpResponse:
    """One request and its whole answer; `Lost` when the connection breaks in between.

    `silent` is called once when nothing has come back for a while; it may raise.
    """
    with place.connect(timeout) as line:
        try:
            line.sendall(_request(place, method, target, headers, body))
            if place.socket and not _speaks(line, timeout):
                silent()
            with line.makefile("rb") as answer:
                status, got = _head(answer)
                return HttpResponse(status, got, b"".join(_body(answer, got)))
        except (OSError, ValueError) as error:
            raise Lost(str(error) or type(error).__name__) from None


def stream(
    place: DaemonAddress,
    target: str,
    headers: dict[str, str],
    timeout: float,
    *,
    method: str = "GET",
    body: bytes = b"",
    held: Callable[[socket.socket], None] = lambda _: None,
) -> Iterator[HttpResponse | str]:
    """The head of the answer first (its body too, unless it is a stream), then the stream's lines.

    `held` is given the connection, so that another thread can end it.
    """
    with place.connect(timeout) as line:
        held(line)
        try:
            line.sendall(_request(place, method, target, headers, body))
            with line.makefile("rb") as answer:
                status, got = _head(answer)
                streams = got.get("content-type", "").startswith("text/event-stream")
                yield HttpResponse(status, got, b"" if streams else b"".join(_body(answer, got)))
                yield from _lines(_body(answer, got)) if streams else ()
        except (OSError, ValueError) as error:
            raise Lost(str(error) or type(error).__name__) from None


def _request(place: DaemonAddress, method: str, target: str, headers: dict[str, str], body: bytes) -> bytes:
    host = f"{place.host}:{place.port}" if place.host else "localhost"
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body or method != "GET":
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _speaks(line: socket.socket, timeout: float) -> bool:
    """Whether an answer begins soon; nothing of it is taken."""
    line.settimeout(min(_SILENCE, timeout))
    try:
        line.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return False
    finally:
        line.settimeout(timeout)
    return True


def _head(answer: BinaryIO) -> tuple[int, dict[str, str]]:
    first = answer.readline().split(None, 2)
    if len(first) < 2:
        raise Lost("no answer")
    headers: dict[str, str] = {}
    while (line := answer.readline()) not in (b"\r\n", b"\n"):
        if not line:
            raise Lost("half an answer")
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(first[1]), headers


def _body(answer: BinaryIO, headers: dict[str, str]) -> Iterator[bytes]:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        yield from _chunks(answer)
    elif "content-length" in headers:
        length = int(headers["content-length"])
        data = answer.read(length)
        if len(data) < length:
            raise Lost("half an answer")
        yield data
    else:
        yield answer.read()


def _chunks(answer: BinaryIO) -> Iterator[bytes]:
    while size := int(answer.readline().partition(b";")[0].strip() or b"-1", 16):
        data = answer.read(size) if size > 0 else b""
        if not data or len(data) < size:
            raise Lost("half an answer")
        answer.readline()
        yield data


def _lines(chunks: Iterator[bytes]) -> Iterator[str]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.rstrip(b"\r").decode("utf-8", "replace")
