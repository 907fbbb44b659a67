"""Sending the outbox to one node: in order, and many rows in one signed bundle.

A row is published as often as it takes: the other node takes an envelope id once. So nothing is recorded
before the server is called. A row ends only with the receipt of the other node, because the server may lose
what it has acknowledged.

The receipt mostly comes within milliseconds and tells more than the acknowledgement of the server. So that a
row is published is kept in memory first, and recorded only if the receipt is not there soon. While receipts
of the node come in, it is busy and not away: its rows wait longer before they are recorded. A daemon that
ends meanwhile publishes the row again.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from scout.base.codec import encode
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.broker.mesh import outbox
from scout.broker.mesh.envelopes import MeshIdentity, Senders, build_envelope
from scout.broker.transaction import admission
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.model.flight import FlightError, build_error
from scout.model.mesh.envelope import BUNDLES, EnvelopeKind
from scout.model.mesh.outbox import OPEN, OutboxEntry
from scout.model.node import Node, NodeState
from scout.policy.mesh.bundles import split_into_bundles
from scout.ports.mesh import MeshDown, MeshLink
from scout.store.ledger import Ledger

T = TypeVar("T")
_LOG = logging.getLogger("scout.mesh")
_FILE = EnvelopeKind.FILE
_FEW, _MANY = 8, 200  # rows of one look, on the event loop and on another thread
_SOON = 0.25  # seconds in which a receipt is expected, before it is recorded that a row is published
_BUSY = 10.0  # the same at most, while receipts for other rows come in
_PAUSE = 1.0  # seconds before another attempt while the server is out of reach
_LONGEST = 30.0  # seconds between two looks at the outbox


class EnvelopeBroker(Protocol):
    """The broker as a sender needs it."""

    services: Services

    def glance(self) -> Ledger: ...
    async def read(self, work: Callable[[Ledger], T]) -> T: ...
    async def as_system(self, work: Callable[[Transaction], T]) -> T: ...


class _Parcel(NamedTuple):
    """Rows with their signed envelopes, as they are published together."""

    rows: Sequence[OutboxEntry]
    data: bytes

    @property
    def name(self) -> str:
        """Its id on the server, which stores one of the same rows and attempts only once."""
        if len(self.rows) == 1:
            return f"{self.rows[0].id}.{self.rows[0].attempts}"
        parts = ",".join(f"{one.id}.{one.attempts}" for one in self.rows)
        return hashlib.sha256(parts.encode()).hexdigest()


class _Look(NamedTuple):
    """The outbox of the node as it is now.

    `gone`: rows whose records are gone. `more`: there may be more rows. `late_at`: when the next receipt of a
    node that answers is late.
    """

    parcels: Sequence[_Parcel]
    gone: Sequence[str]
    more: bool
    last: str
    late_at: Time | None


class NodeSender:
    """Publishes the rows of one node until it is cancelled."""

    def __init__(self, broker: EnvelopeBroker, link: MeshLink, identity: MeshIdentity, node_id: str) -> None:
        self._broker = broker
        self._services = broker.services
        self._link = link
        self._identity = identity
        self._node_id = node_id
        self._news = asyncio.Event()
        self._last = ""  # rows up to here were looked at
        self._published: dict[str, float] = {}  # rows without a receipt, and when they were published
        self._answered = self._took = 0.0  # when the last receipt came, and after how many seconds

    def wake(self) -> None:
        """Look at the outbox now: a row was queued, or the node or the connection is back."""
        self._news.set()

    def end(self, ident: str) -> None:
        """A row has its receipt, or is no longer needed."""
        self._answered = self._services.clock.monotonic()
        self._took = self._answered - self._published.get(ident, self._answered)
        self._forget(ident)

    def _forget(self, ident: str) -> None:
        self._published.pop(ident, None)
        self._services.published.discard(ident)

    async def run(self) -> None:
        try:
            while True:
                self._news.clear()
                try:
                    pause = await self._send()
                except MeshDown as down:
                    _LOG.info("node %s: %s", self._node_id, down.reason)
                    self._last, pause = "", _PAUSE
                await self._rest(pause)
        finally:
            self._services.published.difference_update(self._published)

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            self._last = ""  # look at every row again

    async def _send(self) -> float:
        """Publish what is due; return the seconds until something else is."""
        look = await self._look_again()
        self._last = look.last
        if look.gone:
            await self._broker.as_system(lambda tx: _drop_rows(tx, look.gone))
        await self._publish(look.parcels)
        recorded, retried = await self._record_published(), await self._retry_late(look.late_at)
        if look.more or recorded or retried:
            self._news.set()  # look again
        return self._find_pause(look.late_at)

    # -- reading -----------------------------------------------------------------------------------

    async def _look_again(self) -> _Look:
        """Return the outbox as it is now. A few rows are read at once, many on another thread."""
        known = frozenset(self._published)
        look = self._look(self._broker.glance(), known, _FEW)
        if not look.more:
            return look
        return await self._broker.read(lambda ledger: self._look(ledger, known, _MANY))

    def _look(self, ledger: Ledger, known: frozenset[str], limit: int) -> _Look:
        """Return the next rows with their envelopes, signed; without those that are known to be published.

        If there are many or pieces of files, and `limit` is small, none of them is built.
        """
        tx = open_reading(self._services, ledger)
        limit += 0 if self._last else len(known)
        found = ledger.many(OutboxEntry, "outbox_due", node=self._node_id, after=self._last, limit=limit)
        # A piece of a file is read from disk, and never on the event loop.
        whole = limit >= _MANY or (len(found) < limit and all(one.kind is not _FILE for one in found))
        rows = [one for one in found if one.id not in known] if whole else []
        built = self._build(tx, rows)
        gone = [row.id for row, body in zip(rows, built, strict=True) if body is None]
        ready = [(row, body) for row, body in zip(rows, built, strict=True) if body is not None]
        last = found[-1].id if found else self._last
        more = len(found) == limit or not whole
        return _Look(self._pack(ready), gone, more, last, self._find_late(ledger))

    def _build(self, tx: Transaction, rows: Sequence[OutboxEntry]) -> list[bytes | None]:
        """Return the encoded envelope of each row; None: what the row tells about is gone."""
        senders: Senders = {}
        before = self._find_before(tx, rows)
        built = (build_envelope(tx, self._identity, row, before.get(row.id), senders) for row in rows)
        return [encode(one) if one is not None else None for one in built]

    def _find_before(self, tx: Transaction, rows: Sequence[OutboxEntry]) -> dict[str, str]:
        """Return the last open envelope of its conversation before each row, with one query for all."""
        wanted = {row.id: row.conversation_id for row in rows if row.conversation_id is not None}
        if not wanted:
            return {}
        return dict(tx.ledger.rows("outbox_before", node=self._node_id, rows=json.dumps(wanted)))

    def _pack(self, ready: Sequence[tuple[OutboxEntry, bytes]]) -> list[_Parcel]:
        """Sign the envelopes: in bundles if the node can read them."""
        if self._services.node_formats.get(self._node_id, 1) >= BUNDLES:
            parts = split_into_bundles([len(body) for _, body in ready])
        else:
            parts = [range(place, place + 1) for place in range(len(ready))]
        packed = ([ready[place] for place in part] for part in parts)
        return [
            _Parcel([row for row, _ in part], self._identity.sign_bodies([body for _, body in part]))
            for part in packed
        ]

    def _find_late(self, ledger: Ledger) -> Time | None:
        node = ledger.get(Node, self._node_id)
        if node is None or node.state is not NodeState.ONLINE:
            return None  # the server keeps the envelopes for it
        return outbox.find_late(
            ledger, self._node_id, self._services.clock.now(), self._services.rules.back_off
        )

    # -- publishing --------------------------------------------------------------------------------

    async def _publish(self, parcels: Sequence[_Parcel]) -> None:
        """Publish the parcels in order, without waiting for the server between them."""
        problems = await asyncio.gather(*map(self._publish_parcel, parcels))
        for problem in problems:
            if problem is not None:
                raise problem

    async def _publish_parcel(self, parcel: _Parcel) -> MeshDown | None:
        idents = [one.id for one in parcel.rows]
        self._published.update(dict.fromkeys(idents, self._services.clock.monotonic()))
        try:
            await self._link.publish(self._node_id, parcel.name, parcel.data)
        except MeshDown as down:
            self._forget_all(idents)
            return down
        except Refused as refusal:  # it does not fit
            self._forget_all(idents)
            for ident in idents:
                await self._give_up(ident, build_error(refusal.diagnostic))
        # A receipt may have come before the acknowledgement of the server.
        self._services.published.update(one for one in idents if one in self._published)
        return None

    def _forget_all(self, idents: Sequence[str]) -> None:
        for ident in idents:
            self._forget(ident)

    async def _give_up(self, ident: str, error: FlightError) -> None:
        await self._broker.as_system(lambda tx: outbox.refuse_entry(tx, ident, error))

    # -- late receipts -----------------------------------------------------------------------------

    async def _record_published(self) -> bool:
        """Record that the server has the rows whose receipts did not come soon; whether there are some."""
        now = self._services.clock.monotonic()
        late = [ident for ident, since in self._published.items() if self._find_late_at(since) <= now]
        if late:
            await self._broker.as_system(lambda tx: outbox.record_forwarded(tx, late))
            self._forget_all(late)
        return bool(late)

    def _find_late_at(self, published: float) -> float:
        """Return when the receipt of a row that was published at a moment is late."""
        return min(max(published, self._answered) + max(_SOON, 2 * self._took), published + _BUSY)

    async def _retry_late(self, late_at: Time | None) -> bool:
        """Queue again what a node that answers has not confirmed; whether there was something."""
        if late_at is None or late_at > self._services.clock.now():
            return False
        self._last = ""
        return bool(await self._broker.as_system(self._retry))

    def _retry(self, tx: Transaction) -> int:
        return outbox.retry_unanswered(tx, self._node_id, tx.now)

    def _find_pause(self, late_at: Time | None) -> float:
        """Return the seconds until a receipt is late, or a published row is recorded."""
        pauses = [_LONGEST]
        if self._published:
            oldest = min(self._published.values())
            pauses.append(self._find_late_at(oldest) - self._services.clock.monotonic())
        if late_at is not None:
            pauses.append(late_at.since(self._services.clock.now()))
        return max(min(pauses), 0.01)


def _drop_rows(tx: Transaction, idents: Sequence[str]) -> None:
    for ident in idents:
        entry = tx.get(OutboxEntry, ident)
        if entry is not None and entry.state in OPEN:
            outbox.drop_entry(tx, entry, "what it told about is gone")


def open_reading(services: Services, ledger: Ledger) -> Transaction:
    """Return a transaction that only reads, as the broker."""
    system = admission.admit_system(services)
    return Transaction(services, ledger, system.actor, system.caller)
