"""Reads and writes the keys of the directory: first all that there are, then every change."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from scout.mesh.connection import Connection
from scout.mesh.names import get_bucket_stream
from scout.mesh.pull import Pulled, Puller
from scout.mesh.streams import check_response
from scout.ports.mesh import MeshDown

_BATCH = 1000
_AT_ONCE = 100  # keys that are written before the first one is acknowledged
_INACTIVE = 60_000_000_000  # nanoseconds until the server forgets a consumer that nobody reads
_MARKER_LIVES = 90 * 86_400  # seconds: a node that was away for longer may still list a removed agent


class KeyChange(NamedTuple):
    """A key without the name of its bucket, and its new value; None: it was deleted or has expired."""

    key: str
    value: bytes | None


Take = Callable[[Sequence[KeyChange]], Awaitable[None]]


class BucketPosition:
    """How far a bucket was read, at one run of one server: another may have lost or made a bucket anew."""

    def __init__(self) -> None:
        self.sequence = 0
        self.server = ""

    def belong_to(self, server: str) -> None:
        """Begin again if another server, or another run of it, has the bucket now."""
        if self.server != server:
            self.server, self.sequence = server, 0


async def watch_bucket(
    connection: Connection,
    bucket: str,
    reader: str,
    take: Take,
    *,
    position: BucketPosition,
    synced: asyncio.Event,
) -> None:
    """Hand over all keys, set `synced`, then hand over changes until cancelled.

    Reading resumes after `position`. The consumer has the name of the node that reads: it may make, read and
    delete only this one.
    """
    position.belong_to(connection.server_id)
    try:
        if not await _make_consumer(connection, bucket, reader, position):
            synced.set()
        async with Puller(connection, get_bucket_stream(bucket), reader, _BATCH) as puller:
            await _hand_over(puller, len(f"$KV.{bucket}."), take, position, synced)
    except MeshDown:  # not the loss of the connection, which cancels this: the bucket itself may be gone
        position.sequence = 0
        raise


async def _hand_over(
    puller: Puller, skip: int, take: Take, position: BucketPosition, synced: asyncio.Event
) -> None:
    while True:
        found = await puller.next()
        await take([KeyChange(one.subject[skip:], _read_value(one)) for one in found])
        position.sequence = max(position.sequence, found[-1].sequence)
        if not found[-1].pending:
            synced.set()


async def put_key(connection: Connection, subject: str, data: bytes, *, lives: float | None = None) -> None:
    """Write a key. `lives`: seconds until it expires; the server counts whole seconds."""
    headers = {} if lives is None else {"Nats-TTL": f"{max(1, math.ceil(lives))}s"}
    await connection.store(subject, data, headers)


async def put_keys(connection: Connection, keys: Iterable[tuple[str, bytes | None]]) -> None:
    """Write many keys; None deletes one."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def put(subject: str, data: bytes | None) -> None:
        deleted = {"KV-Operation": "DEL", "Nats-TTL": f"{_MARKER_LIVES}s"}
        try:
            await connection.store(subject, data or b"", deleted if data is None else {})
        finally:
            slots.release()

    writing = list[asyncio.Task[None]]()
    try:
        for subject, data in keys:
            await slots.acquire()
            writing.append(asyncio.create_task(put(subject, data)))
        await asyncio.gather(*writing)
    finally:
        for one in writing:
            one.cancel()


async def _make_consumer(connection: Connection, bucket: str, name: str, position: BucketPosition) -> int:
    """Make the consumer again, and return how many keys it has to read."""
    stream = get_bucket_stream(bucket)
    check_response(await connection.call(f"CONSUMER.DELETE.{stream}.{name}"), missing=True)
    config = {
        "name": name,
        "ack_policy": "none",
        "deliver_policy": "last_per_subject",
        "filter_subjects": [f"$KV.{bucket}.>"],
        "inactive_threshold": _INACTIVE,
        "mem_storage": True,
        "replay_policy": "instant",
    }
    if position.sequence:
        config |= {"deliver_policy": "by_start_sequence", "opt_start_seq": position.sequence + 1}
    request = {"stream_name": stream, "config": config}
    response = check_response(await connection.call(f"CONSUMER.CREATE.{stream}.{name}", request))
    return int(response["num_pending"])


def _read_value(message: Pulled) -> bytes | None:
    gone = "KV-Operation" in message.headers or "Nats-Marker-Reason" in message.headers
    return None if gone else message.data
