"""A reader of server-sent events over a plain socket, as fast or as slow as a test wants."""

import json
import socket
from types import TracebackType
from typing import Any, NamedTuple

from tests.daemon.daemons import Daemon


class Sent(NamedTuple):
    id: int | None
    event: str
    data: Any


class Stream:
    """An open stream."""

    def __init__(
        self, live: Daemon, query: str = "", *, token: str | None = None, last: int | None = None
    ) -> None:
        self._socket = socket.socket()
        self._socket.settimeout(60)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)  # what is not read soon fills up
        self._socket.connect(("127.0.0.1", live.port))
        lines = [
            f"GET /v1/events{query} HTTP/1.1",
            "Host: localhost",
            f"Authorization: Bearer {token or live.token}",
        ]
        if last is not None:
            lines.append(f"Last-Event-ID: {last}")
        self._socket.sendall("\r\n".join((*lines, "", "")).encode())
        self._left = self._blocks = b""
        self.head = self._until(b"\r\n\r\n").decode()
        self.comments: list[str] = []

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def begun(self) -> "Stream":
        """Past the first comment: from now on nothing is missed."""
        while not self.comments:
            self._block()
        return self

    def next(self) -> Sent:
        """The next event, comments kept aside."""
        while (found := self._block()) is None:
            pass
        return found

    def comment(self) -> str:
        before = len(self.comments)
        while len(self.comments) == before:
            self._block()
        return self.comments[-1]

    def _block(self) -> Sent | None:
        fields: dict[str, str] = {}
        for line in self._text().splitlines():
            name, _, value = line.partition(": ")
            if line.startswith(":"):
                self.comments.append(line.removeprefix(":").strip())
            elif line:
                fields[name] = value
        if "event" not in fields:
            return None
        number = int(fields["id"]) if "id" in fields else None
        return Sent(number, fields["event"], json.loads(fields["data"]))

    def _text(self) -> str:
        """One block of the stream; a chunk holds one or several of them."""
        while b"\n\n" not in self._blocks:
            size = int(self._until(b"\r\n"), 16)
            if size == 0:
                raise EOFError
            while len(self._left) < size + 2:
                self._more()
            self._blocks += self._left[:size]
            self._left = self._left[size + 2 :]
        block, _, self._blocks = self._blocks.partition(b"\n\n")
        return block.decode()

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._left:
            self._more()
        found, _, self._left = self._left.partition(mark)
        return found

    def _more(self) -> None:
        more = self._socket.recv(65536)
        if not more:
            raise EOFError
        self._left += more
