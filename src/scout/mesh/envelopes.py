"""Receives the envelopes of this node. The server forgets one after the broker has stored it."""

import asyncio
import logging

import msgspec

from scout.mesh.connection import Connection
from scout.mesh.names import CONSUMER
from scout.mesh.pull import Pulled, Puller
from scout.ports.mesh import MeshInlet

_LOG = logging.getLogger("scout.mesh")
_BATCH = 256
_AT_ONCE = 128  # so that they share a commit of the store
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 5.0  # seconds until an envelope is offered again


async def receive_envelopes(connection: Connection, stream: str, inlet: MeshInlet) -> None:
    """Hand over envelopes, in the order of the stream, until cancelled."""
    slots = asyncio.Semaphore(_AT_ONCE)
    async with asyncio.TaskGroup() as tasks, Puller(connection, stream, CONSUMER, _BATCH) as puller:
        while True:
            for message in await puller.next():
                await slots.acquire()
                tasks.create_task(_hand_over(connection, message, inlet, slots))


async def _hand_over(
    connection: Connection, message: Pulled, inlet: MeshInlet, slots: asyncio.Semaphore
) -> None:
    try:
        verdict = await _offer(message, inlet)
    finally:
        slots.release()
    await connection.publish(message.ack, verdict)


async def _offer(message: Pulled, inlet: MeshInlet) -> bytes:
    """Return what the server is told about a message: stored, or offer it again."""
    try:
        taken = await inlet.take_envelope(message.data)
    except Exception:  # noqa: BLE001 (whatever one envelope causes, the next ones must arrive)
        _LOG.exception("an envelope on %s could not be stored", message.subject)
        taken = False
    return b"+ACK" if taken else _build_delay(message.delivered)


def _build_delay(delivered: int) -> bytes:
    seconds = min(_FIRST_DELAY * 2 ** min(delivered - 1, 10), _LONGEST_DELAY)
    return b"-NAK " + msgspec.json.encode({"delay": int(seconds * 1_000_000_000)})
