"""The exchange of envelopes with the other nodes: a sender for each, and the intake of what they send."""

import asyncio
import logging

from scout.broker.mesh import outbox
from scout.broker.mesh.envelopes import MeshIdentity, build_receipt
from scout.broker.mesh.intake import Intake, IntakeBroker
from scout.broker.mesh.sender import NodeSender, open_reading
from scout.broker.transaction.streams import Subscriptions
from scout.model.events.directory import NodeEvent
from scout.model.events.envelope import Event
from scout.model.events.mesh import EnvelopeQueued
from scout.model.mesh.envelope import ReceiptPayload
from scout.ports.mesh import MeshDown, MeshLink

_LOG = logging.getLogger("scout.mesh")
_LOOK = 30.0  # seconds between two looks for expired envelopes
_WAITING = 10_000  # receipts that wait to be sent; further ones are asked for again


class EnvelopeExchange:
    """Exists while this node is in a mesh; `run` it, and hand it what the connection receives."""

    def __init__(self, broker: IntakeBroker, link: MeshLink, identity: MeshIdentity) -> None:
        self._broker = broker
        self._link = link
        self._identity = identity
        self._senders: dict[str, tuple[NodeSender, asyncio.Task[None]]] = {}
        self._receipts = asyncio.Queue[tuple[str, ReceiptPayload]](_WAITING)
        self._intake = Intake(broker, identity, self._answer)
        self._due = asyncio.Event()

    async def run(self) -> None:
        """Send what is queued and expire what is old, until cancelled."""
        for (node_id,) in await self._broker.read(lambda ledger: ledger.rows("outbox_nodes", after="")):
            self.wake(node_id)
        answering = asyncio.get_running_loop().create_task(self._send_receipts())
        try:
            while True:
                self._due.clear()
                await self._broker.as_system(outbox.expire_entries)
                await self._wait()
        finally:
            answering.cancel()
            tasks = [answering, *(task for _, task in self._senders.values())]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._senders.clear()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(_LOOK):
                await self._due.wait()
        except TimeoutError:
            return

    async def take(self, data: bytes) -> bool:
        """Take a signed envelope; False: an earlier one is missing, and it is offered again."""
        return await self._intake.take(data)

    # -- sending -----------------------------------------------------------------------------------

    def wake(self, node_id: str) -> None:
        """Look at the outbox of a node now."""
        known = self._senders.get(node_id)
        if known is None or known[1].done():
            sender = NodeSender(self._broker, self._link, self._identity, node_id)
            task = asyncio.get_running_loop().create_task(sender.run())
            known = self._senders[node_id] = sender, task
        known[0].wake()

    def wake_all(self) -> None:
        """Look at everything now: the connection is back, or the clock was moved."""
        self._due.set()
        for sender, _ in self._senders.values():
            sender.wake()

    def subscriptions(self) -> Subscriptions:
        """Return what this listens to."""
        return ((self._on_queued, (EnvelopeQueued,)), (self._on_node, (NodeEvent,)))

    def _on_queued(self, event: Event) -> None:
        self.wake(event.payload.record.node_id)

    def _on_node(self, event: Event) -> None:
        known = self._senders.get(event.target.id)
        if known is not None:
            known[0].wake()

    # -- receipts ----------------------------------------------------------------------------------

    def _answer(self, node_id: str, receipt: ReceiptPayload) -> None:
        """Send a receipt soon. One that is lost is sent again when the envelope comes again."""
        if not self._receipts.full():
            self._receipts.put_nowait((node_id, receipt))

    async def _send_receipts(self) -> None:
        while True:
            node_id, receipt = await self._receipts.get()
            tx = open_reading(self._broker.services, self._broker.glance())
            envelope = build_receipt(tx, self._identity, node_id, receipt)
            try:
                await self._link.publish(node_id, envelope.id, self._identity.sign(envelope))
            except MeshDown as down:
                _LOG.info("receipt to node %s: %s", node_id, down.reason)
