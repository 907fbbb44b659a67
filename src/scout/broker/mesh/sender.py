"""Sending the outbox to one node: in order within a conversation, several conversations at once.

A row is published as often as it takes: the other node takes an envelope id once. So nothing is recorded
before the server is called. What the server has is recorded in one commit for all rows of a batch, and a row
ends only with the receipt of the other node, because the server may lose what it has acknowledged.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from scout.base.refusal import Refused
from scout.base.time import Time
from scout.broker.mesh import outbox
from scout.broker.mesh.envelopes import MeshIdentity, build_envelope
from scout.broker.transaction import admission
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.model.flight import FlightError, build_error
from scout.model.mesh.outbox import OutboxEntry
from scout.model.node import Node, NodeState
from scout.ports.mesh import MeshDown, MeshLink
from scout.store.ledger import Ledger

T = TypeVar("T")
_LOG = logging.getLogger("scout.mesh")
_AT_ONCE = 200  # rows of one batch
_PAUSE = 1.0  # seconds before another attempt while the server is out of reach
_LONGEST = 30.0  # seconds between two looks at the outbox


class EnvelopeBroker(Protocol):
    """The broker as a sender needs it."""

    services: Services

    async def read(self, work: Callable[[Ledger], T]) -> T: ...
    async def as_system(self, work: Callable[[Transaction], T]) -> T: ...


class _Ready(NamedTuple):
    """A row and its signed envelope; None: what the row tells about is gone."""

    entry: OutboxEntry
    data: bytes | None


class NodeSender:
    """Publishes the rows of one node until it is cancelled."""

    def __init__(self, broker: EnvelopeBroker, link: MeshLink, identity: MeshIdentity, node_id: str) -> None:
        self._broker = broker
        self._services = broker.services
        self._link = link
        self._identity = identity
        self._node_id = node_id
        self._news = asyncio.Event()

    def wake(self) -> None:
        """Look at the outbox now: a row was queued, or the node or the connection is back."""
        self._news.set()

    async def run(self) -> None:
        while True:
            self._news.clear()
            try:
                while await self._publish_some():
                    pass
                await self._retry_late()
                pause = await self._find_pause()
            except MeshDown as down:
                _LOG.info("node %s: %s", self._node_id, down.reason)
                pause = _PAUSE
            await self._rest(pause)

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return

    # -- one batch ---------------------------------------------------------------------------------

    async def _publish_some(self) -> bool:
        """Publish the next rows; whether there may be more."""
        ready = await self._broker.read(self._load)
        if not ready:
            return False
        lines: dict[str, list[_Ready]] = {}
        for one in ready:
            lines.setdefault(one.entry.conversation_id or one.entry.id, []).append(one)
        sent: list[str] = []
        problems = await asyncio.gather(*(self._publish_line(line, sent) for line in lines.values()))
        gone = [one.entry.id for one in ready if one.data is None]
        await self._broker.as_system(lambda tx: _record_batch(tx, sent, gone))
        for problem in problems:
            if problem is not None:
                raise problem
        return True

    def _load(self, ledger: Ledger) -> list[_Ready]:
        """Return the next rows with their envelopes, signed."""
        tx = open_reading(self._services, ledger)
        rows = tx.ledger.many(OutboxEntry, "outbox_due", node=self._node_id, after="", limit=_AT_ONCE)
        return [self._build(tx, row) for row in rows]

    def _build(self, tx: Transaction, entry: OutboxEntry) -> _Ready:
        values = {"node": entry.node_id, "conversation": entry.conversation_id, "before": entry.id}
        before = tx.ledger.one(OutboxEntry, "outbox_before", **values) if entry.conversation_id else None
        envelope = build_envelope(tx, self._identity, entry, before.id if before else None)
        return _Ready(entry, self._identity.sign(envelope) if envelope is not None else None)

    async def _publish_line(self, line: list[_Ready], sent: list[str]) -> MeshDown | None:
        """Publish the rows of one conversation, in order; the first that fails stops those behind it."""
        for one in line:
            if one.data is None:
                continue
            try:
                await self._link.publish(self._node_id, one.entry.id, one.data)
            except MeshDown as down:
                return down
            except Refused as refusal:  # it does not fit
                await self._give_up(one.entry.id, build_error(refusal.diagnostic))
            else:
                sent.append(one.entry.id)
        return None

    async def _give_up(self, ident: str, error: FlightError) -> None:
        await self._broker.as_system(lambda tx: outbox.refuse_entry(tx, ident, error))

    # -- late receipts -----------------------------------------------------------------------------

    async def _retry_late(self) -> None:
        """Publish again what a node that answers has not confirmed; the server keeps the rest for it."""
        now = self._services.clock.now()
        if not await self._broker.read(lambda ledger: self._has_late(ledger, now)):
            return
        await self._broker.as_system(lambda tx: outbox.retry_unanswered(tx, self._node_id, tx.now))
        self._news.set()

    def _has_late(self, ledger: Ledger, now: Time) -> bool:
        node = ledger.get(Node, self._node_id)
        if node is None or node.state is not NodeState.ONLINE:
            return False
        late = ledger.many(OutboxEntry, "outbox_unanswered", node=self._node_id, now=int(now), limit=1)
        return bool(late)

    async def _find_pause(self) -> float:
        """Return the seconds until a receipt is late."""
        at = await self._broker.read(lambda ledger: ledger.value("outbox_next", node=self._node_id))
        if at is None:
            return _LONGEST
        return min(max(Time(at).since(self._services.clock.now()), 0.05), _LONGEST)


def _record_batch(tx: Transaction, sent: list[str], gone: list[str]) -> None:
    outbox.record_forwarded(tx, sent)
    for ident in gone:
        entry = tx.get(OutboxEntry, ident)
        if entry is not None:
            outbox.drop_entry(tx, entry, "what it told about is gone")


def open_reading(services: Services, ledger: Ledger) -> Transaction:
    """Return a transaction that only reads, as the broker."""
    system = admission.admit_system(services)
    return Transaction(services, ledger, system.actor, system.caller)
