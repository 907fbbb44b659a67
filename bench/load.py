"""A small HTTP load: prepared requests over a number of connections, each waiting for its answer."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle


@dataclass(frozen=True)
class Result:
    """Answers per second, and how long one took, in milliseconds."""

    rate: float
    p50: float
    p99: float
    failed: int


def request(method: str, path: str, token: str, body: bytes = b"") -> bytes:
    """One HTTP/1.1 request as bytes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}\r\n".encode() + body


class Connection(asyncio.Protocol):
    """Sends the next request when the answer to the last one is complete."""

    def __init__(self, requests: Sequence[bytes], until: float) -> None:
        self.requests = cycle(requests)
        self.until = until
        self.times: list[float] = []
        self.failed = 0
        self.first_failure = b""
        self.buffer = b""
        self.began = 0.0
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._send()

    def _send(self) -> None:
        self.began = time.perf_counter()
        if self.began >= self.until:
            self.transport.close()
            return
        self.transport.write(next(self.requests))

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if len(rest) < size:
            return
        self.times.append(time.perf_counter() - self.began)
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            self.failed += 1
            self.first_failure = self.first_failure or rest[:300]
        self.buffer = rest[size:]
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)


async def run(socket: str, requests: Sequence[Sequence[bytes]], seconds: float) -> Result:
    """One connection for each list of requests, for this long."""
    loop = asyncio.get_running_loop()
    until = time.perf_counter() + seconds
    made = [
        await loop.create_unix_connection(lambda one=one: Connection(one, until), socket) for one in requests
    ]
    connections = [protocol for _, protocol in made]
    await asyncio.gather(*(one.over for one in connections))
    return result_of(connections, seconds)


def result_of(connections: Sequence[Connection], seconds: float) -> Result:
    """What all of them measured together."""
    times = sorted(taken for one in connections for taken in one.times)
    failed = sum(one.failed for one in connections)
    if failed:
        print("first failure:", next(one.first_failure for one in connections if one.failed))
    return Result(
        rate=len(times) / seconds,
        p50=statistics.median(times) * 1000,
        p99=times[int(len(times) * 0.99)] * 1000,
        failed=failed,
    )
