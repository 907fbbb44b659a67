"""HTTP itself: uvicorn's protocol, with a bound on the head of a request and our form of refusal."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from scout.api.answer import problem
from scout.base.refusal import BadRequest

__all__ = ["Protocol"]

_HEAD_LIMIT = 64 * 1024


class Protocol(HttpToolsProtocol):
    """The parser takes a head of any size; this one does not."""

    _head = 0

    def on_message_begin(self) -> None:
        self._head = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison] (uvicorn says None is no cycle, and begins with None)
            self.transport.close()  # an answer is under way: a second one would be read as part of it
            return
        answer = problem(BadRequest(problem="this is not HTTP, or its head is too large"))
        lines = [b"HTTP/1.1 400 Bad Request", b"connection: close", b"content-length: %d" % len(answer.body)]
        lines += [b"%b: %b" % header for header in answer.headers]
        self.transport.write(b"\r\n".join((*lines, b"", answer.body)))
        self.transport.close()

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > _HEAD_LIMIT:
            raise ValueError("the head of the request is too large")
