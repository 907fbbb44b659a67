"""A server on a real socket that answers as told and then hangs up: what a broken daemon looks like."""

import contextlib
import socket
import threading
from collections.abc import Generator
from pathlib import Path


@contextlib.contextmanager
def listening(path: Path, *answers: bytes) -> Generator[list[bytes]]:
    """A server on a socket file that gives each connection its answer and closes it; what it was sent."""
    got: list[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()
        server.settimeout(5)

        def run() -> None:
            for answer in answers:
                line, _ = server.accept()
                with line:
                    got.append(_read_request(line))
                    line.sendall(answer)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield got
        finally:
            thread.join()
            path.unlink()


def _read_request(line: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += line.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [
        int(part.split(b":")[1]) for part in head.lower().split(b"\r\n") if part.startswith(b"content-length")
    ]
    while lengths and len(body) < lengths[0]:
        body += line.recv(65536)
    return head + b"\r\n\r\n" + body


def answer(body: bytes, status: int = 200, *headers: bytes) -> bytes:
    """A whole answer."""
    lines = [b"HTTP/1.1 %d Said" % status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def events(*frames: bytes) -> bytes:
    """The beginning of an event stream, which then breaks."""
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(frame), frame) for frame in frames)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + chunks
