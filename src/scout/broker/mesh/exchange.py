"""The exchange of envelopes with the other nodes: a sender for each, and the intake of what they send."""

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from scout.base.time import Time
from scout.broker.mesh import outbox
from scout.broker.mesh.envelopes import MeshIdentity, build_receipt
from scout.broker.mesh.intake import Intake, IntakeBroker
from scout.broker.mesh.sender import NodeSender, open_reading
from scout.broker.transaction.streams import Subscriptions
from scout.broker.transaction.transaction import Transaction
from scout.model.events.directory import NodeEvent
from scout.model.events.envelope import Event
from scout.model.events.mesh import (
    EnvelopeAccepted,
    EnvelopeDelivered,
    EnvelopeExpired,
    EnvelopeQueued,
    EnvelopeRefused,
    EnvelopesForgotten,
    ForgottenEnvelopes,
)
from scout.model.flight import Flight
from scout.model.mesh.envelope import BUNDLES, EnvelopeKind, ReceiptPayload
from scout.ports.mesh import MeshDown, MeshLink
from scout.store.ledger import Ledger

_LOG = logging.getLogger("scout.mesh")
_LOOK = 30.0  # seconds between two looks for expired envelopes
_SOME = 1000  # ids that are forgotten at once
_MARGIN = 7 * 86_400.0  # seconds: a clock of another node may be wrong, and receipts may be late
_PAUSE = 0.2  # seconds between two attempts to send a receipt
_WAITING = 10_000  # receipts that wait to be sent; further ones are asked for again
_TOGETHER = 200  # receipts of one envelope
_SETTLE = 0.02  # seconds in which a flight may reach its next state, so that both travel together
_GATHER = 0.01  # seconds in which receipts gather: an answer that comes meanwhile confirms its ask as well
_ENDED = (EnvelopeAccepted, EnvelopeDelivered, EnvelopeRefused, EnvelopeExpired)


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
        self._running = False

    async def run(self) -> None:
        """Send what is queued and expire what is old, until cancelled."""
        self._running = True
        answering = asyncio.get_running_loop().create_task(self._send_receipts())
        try:
            for (node_id,) in await self._broker.read(lambda ledger: ledger.rows("outbox_nodes", after="")):
                self.wake(node_id)
            while True:
                self._due.clear()
                await self._broker.as_system(outbox.expire_entries)
                await self._forget_old()
                await self._wait()
        finally:
            self._running = False
            answering.cancel()
            tasks = [answering, *(task for _, task in self._senders.values())]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._senders.clear()

    async def _forget_old(self) -> None:
        now, lives = self._broker.services.clock.now(), self._broker.services.rules.periods.queue_expiry
        if await self._broker.read(lambda ledger: find_forgettable(ledger, now, lives)):
            await self._broker.as_system(forget_old)

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
        if not self._running:
            return  # everything is looked at when it starts
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
        return (
            (self._on_queued, (EnvelopeQueued,)),
            (self._on_ended, _ENDED),
            (self._on_node, (NodeEvent,)),
        )

    def _on_queued(self, event: Event) -> None:
        """Publish a row now. A state that a flight soon leaves waits a moment for the next one."""
        entry = event.payload.record
        if entry.kind is EnvelopeKind.FLIGHT and not self._has_ended(entry.subject):
            asyncio.get_running_loop().call_later(_SETTLE, self.wake, entry.node_id)
        else:
            self.wake(entry.node_id)

    def _has_ended(self, flight_id: str) -> bool:
        flight = self._broker.glance().get(Flight, flight_id)
        return flight is None or flight.finished_at is not None

    def _on_ended(self, event: Event) -> None:
        known = self._senders.get(event.payload.record.node_id)
        if known is not None:
            known[0].end(event.payload.record.id)

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
            waiting = [await self._receipts.get()]
            await asyncio.sleep(_GATHER)
            while not self._receipts.empty():
                waiting.append(self._receipts.get_nowait())
            for node_id in dict.fromkeys(to for to, _ in waiting):
                receipts = [receipt for to, receipt in waiting if to == node_id]
                for part in self._split_receipts(node_id, receipts):
                    await self._send_receipt(node_id, part)

    def _split_receipts(
        self, node_id: str, receipts: Sequence[ReceiptPayload]
    ) -> Iterator[Sequence[ReceiptPayload]]:
        """Yield the receipts of each envelope: many if the node can read that."""
        bundles = self._broker.services.node_formats.get(node_id, 1) >= BUNDLES
        step = _TOGETHER if bundles else 1
        for first in range(0, len(receipts), step):
            yield receipts[first : first + step]

    async def _send_receipt(self, node_id: str, receipts: Sequence[ReceiptPayload]) -> None:
        """Send receipts as soon as there is a connection; the sender asks again for one that is lost."""
        tx = open_reading(self._broker.services, self._broker.glance())
        envelope = build_receipt(tx, self._identity, node_id, receipts)
        data = self._identity.sign(envelope)
        while True:
            try:
                await self._link.publish(node_id, envelope.id, data)
            except MeshDown as down:
                _LOG.info("receipt to node %s: %s", node_id, down.reason)
                if not self._link.status.connected:
                    await asyncio.sleep(_PAUSE)
                    continue
            return


# -- ids of envelopes that came ---------------------------------------------------------------------------


def find_forgettable(ledger: Ledger, now: Time, lives: float) -> int | None:
    """Return the event before which envelopes are older than any repetition; None: there are none.

    `lives`: how long an envelope waits in the outbox of its node.
    """
    cutoff = now.plus(-lives - _MARGIN)
    oldest = [seq for (seq,) in ledger.rows("envelopes_oldest", limit=_SOME)]
    count = bisect_left(oldest, cutoff, key=lambda seq: _read_time(ledger, seq))
    return oldest[count - 1] + 1 if count else None


def _read_time(ledger: Ledger, seq: int) -> Time:
    event = ledger.log.get(seq)
    return event.time if event is not None else Time(0)


def forget_old(tx: Transaction) -> None:
    """Forget the oldest envelopes that no node can repeat any more."""
    before = find_forgettable(tx.ledger, tx.now, tx.rules.periods.queue_expiry)
    if before is not None:
        tx.append(EnvelopesForgotten, tx.services.node_id, ForgottenEnvelopes(before=before))
