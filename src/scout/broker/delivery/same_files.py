"""Flights that changed the same file in one work tree at the same time: each agent learns of the other.

The snapshots before and after a flight say which files changed. They do not say which program changed a file,
so a file that changed while two flights ran counts for both, unless a program says before each edit which
file it is about to change: then a change that one of two such programs announced is its own.
"""

import asyncio
import logging
from collections.abc import Sequence

from scout.base.ids import derive_id
from scout.base.time import Time
from scout.broker.routing import posts
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import ReadLedger, Transaction, WriteAsBroker
from scout.model.conversation import Message, MessageKind
from scout.model.events.envelope import Metadata
from scout.model.flight import Flight
from scout.model.session import Session
from scout.policy.reservation import tell_same_files
from scout.ports import SnapshotPeriod, Snapshots
from scout.store.ledger import Ledger

_LOG = logging.getLogger("scout.same_files")
_FLIGHTS = 200  # maximum flights whose periods are compared
_OVERLAPS = 20  # maximum flights whose files are compared
_RECENT = 3600.0  # seconds before a start that are looked at again


class SameFiles:
    """Compares flights that have ended. `write` runs a function of a Transaction as the broker."""

    def __init__(
        self,
        services: Services,
        write: WriteAsBroker,
        read: ReadLedger,
    ) -> None:
        self._services = services
        self._write = write
        self._read = read

    async def compare(self, session_id: str, flight_id: str) -> None:
        """Compare a flight, once its last snapshot is taken, with those that ended since it began."""
        snapshots = self._services.snapshots
        if snapshots is None:
            return
        period = await asyncio.to_thread(snapshots.period, session_id, flight_id)
        if period is None or period.ended is None:
            return
        began = Time(int(period.began * 1e6))
        found: list[Flight] = await self._read(lambda ledger: _find_ended(ledger, began))
        own = next((one for one in found if one.id == flight_id), None)
        if own is None:  # it continues, with another turn
            return
        others = [one for one in found if one.id != flight_id]
        pairs = await asyncio.to_thread(_find_same, snapshots, period, own, others)
        for other, files in pairs:
            await self._write(lambda tx, o=other, f=files: tell_both(tx, own, o, f, period.directory))

    async def compare_recent(self) -> None:
        """Compare the flights that ended shortly before a start: an earlier broker may not have done it."""
        snapshots, clock = self._services.snapshots, self._services.clock
        if snapshots is None:
            return
        since = clock.now().plus(-_RECENT)
        found: list[Flight] = await self._read(lambda ledger: _find_ended(ledger, since))
        taken = 0
        for flight in reversed(found):
            period = await asyncio.to_thread(snapshots.period, flight.session_id or "", flight.id)
            if period is not None and period.ended is None and taken < _OVERLAPS:
                taken += 1
                await asyncio.to_thread(snapshots.after, flight.session_id or "", flight.id)
            if period is not None:
                await self.compare(flight.session_id or "", flight.id)


def _find_ended(ledger: Ledger, since: Time) -> list[Flight]:
    """Return the flights of sessions that ended since a time, newest first."""
    ended = ledger.many(Flight, "flights_finished_since", since=int(since), limit=_FLIGHTS)
    return [one for one in ended if one.session_id is not None]


def _find_same(
    snapshots: Snapshots, period: SnapshotPeriod, own: Flight, others: Sequence[Flight]
) -> list[tuple[Flight, tuple[str, ...]]]:
    """Return the flights that overlapped, each with the files that changed in both."""
    overlapping: list[Flight] = []
    for other in others:
        theirs = snapshots.period(other.session_id or "", other.id)
        if theirs is not None and period.overlaps(theirs) and _ran_together(own, period, other, theirs):
            overlapping.append(other)
    if not overlapping:
        return []
    mine = snapshots.files(own.session_id or "", own.id)
    pairs = [(one, mine & snapshots.files(one.session_id or "", one.id)) for one in overlapping[:_OVERLAPS]]
    return [(one, tuple(sorted(files))) for one, files in pairs if files]


def _ran_together(one: Flight, period: SnapshotPeriod, other: Flight, theirs: SnapshotPeriod) -> bool:
    """Whether each flight began before the other ended. The last snapshot may be taken long after the end."""
    ends = [flight.finished_at for flight in (one, other)]
    began = [Time(int(seen.began * 1e6)) for seen in (theirs, period)]
    return all(end is not None and start < end for start, end in zip(began, ends, strict=True))


def tell_both(tx: Transaction, one: Flight, other: Flight, files: tuple[str, ...], root: str) -> None:
    """Tell both agents, each once; the id of a message follows from the two flights."""
    shared = tuple(file for file in files if not _is_announced(tx, f"{root}/{file}", one, other))
    if shared:
        _tell(tx, one, other, shared, root)
        _tell(tx, other, one, shared, root)


def _is_announced(tx: Transaction, path: str, one: Flight, other: Flight) -> bool:
    """Whether both programs announce their edits, and only one of them announced this file."""
    known = [_list_announced_files(tx, flight) for flight in (one, other)]
    return None not in known and sum(path in (files or ()) for files in known) == 1


def _list_announced_files(tx: Transaction, flight: Flight) -> set[str] | None:
    """Return the files that a flight's session announced; None for a program that announces nothing."""
    session = tx.get(Session, flight.session_id)
    harness = tx.services.harnesses.get(session.harness) if session else None
    if harness is None or not harness.capabilities.announces_edits:
        return None
    return tx.services.announced.get(flight.session_id or "", set())


def _tell(tx: Transaction, to: Flight, about: Flight, files: tuple[str, ...], root: str) -> None:
    ident = derive_id("msg", "same files", to.id, about.id)
    if tx.get(Message, ident) is not None:
        return
    conversation = posts.ensure_direct_conversation(tx, tx.services.system_agent, to.target)
    message = posts.post_message(
        tx,
        conversation.id,
        tell_same_files(files, tx.address(about.target), about.id, root),
        sender=tx.services.system_agent,
        kind=MessageKind.STATUS,
        message_id=ident,
        metadata=Metadata(target_agents=(to.target,)),
    )
    posts.create_delivery(
        tx, message, to.target, rule="notice", reason="another flight changed the same files"
    )
