"""Pulls messages of a consumer: the server sends as many as were asked for, as soon as they are there."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from scout.mesh.connection import Connection
from scout.mesh.names import API
from scout.ports.mesh import MeshDown

_EXPIRES = 5  # seconds that the server keeps a request
_SILENCE = 7.0  # seconds without anything: the request was lost, with the server that had it
_HEARTBEAT, _EXPIRED = "100", "408"


class Pulled:
    """One message with its place in the stream. `pending`: how many the consumer still has after it."""

    __slots__ = ("ack", "data", "delivered", "headers", "pending", "sequence", "subject")

    def __init__(self, message: Msg) -> None:
        self.subject = message.subject
        self.data = message.data
        self.headers: Mapping[str, str] = message.headers or {}
        self.ack = message.reply
        words = message.reply.split(".")
        at = 4 if len(words) == 9 else 6  # a longer form names a domain and an account
        self.delivered = int(words[at])
        self.sequence = int(words[at + 1])
        self.pending = int(words[at + 4])


class Puller:
    """Keeps between half a batch and a whole one requested, so that memory is bounded and nothing waits."""

    def __init__(self, connection: Connection, stream: str, consumer: str, batch: int) -> None:
        self._connection = connection
        self._subject = f"{API}.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._batch = batch
        self._requested = 0
        self._ready = list[Pulled]()
        self._arrived = asyncio.Event()
        self._failed: MeshDown | None = None
        self._inbox = connection.client.new_inbox()
        self._subscription: Subscription | None = None

    async def __aenter__(self) -> Self:
        self._subscription = await self._connection.subscribe(self._inbox, self._take)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._subscription is not None:
            await self._connection.unsubscribe(self._subscription)

    async def next(self) -> list[Pulled]:
        """Return the messages that have arrived, at least one."""
        while True:
            if self._failed is not None:
                raise self._failed
            if self._requested <= self._batch // 2:
                await self._request(self._batch - self._requested)
            if self._ready:
                found, self._ready = self._ready, []
                return found
            await self._wait()

    async def _wait(self) -> None:
        self._arrived.clear()
        try:
            async with asyncio.timeout(_SILENCE):
                await self._arrived.wait()
        except TimeoutError:
            self._requested = 0

    async def _request(self, count: int) -> None:
        self._requested += count
        request = {"batch": count, "expires": _EXPIRES * 1_000_000_000}
        await self._connection.publish(self._subject, msgspec.json.encode(request), self._inbox)

    async def _take(self, message: Msg) -> None:
        headers = message.headers or {}
        status = headers.get("Status")
        if status is None:
            self._requested -= 1
            self._ready.append(Pulled(message))
        elif status == _EXPIRED:
            unused = int(headers.get("Nats-Pending-Messages", self._requested))
            self._requested = max(0, self._requested - unused)
        elif status != _HEARTBEAT:
            self._failed = MeshDown(f"the server stopped delivering: {headers.get('Description', status)}")
        self._arrived.set()
