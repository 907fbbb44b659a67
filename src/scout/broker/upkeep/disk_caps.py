"""Keeping the runs and pictures of sessions within the room that they may take on the disk."""

import asyncio
import logging

from scout.broker.delivery.dispatcher import Dispatching
from scout.model.delivery import Delivery, DeliveryState
from scout.model.flight import Flight
from scout.model.session import SESSION, Session, SessionState
from scout.policy.disk import StoredFolder, choose_removals
from scout.ports import SessionFolders
from scout.store.ledger import LAST, Ledger

_LOG = logging.getLogger("scout.housekeeping")
_MANY = 1000
_REST = 20  # times as long as a look takes, nobody looks again
_PANE = "pane"  # the one folder that a session needs until it has ended


class DiskCaps:
    """Looks when turns have run since the last look, and for a small part of the time only."""

    def __init__(self, broker: Dispatching) -> None:
        self._broker = broker
        self._looked_at: tuple[int, int] | None = None
        self._not_before = 0.0

    async def check(self) -> None:
        """Remove what is too much, if there may be something new."""
        clock = self._broker.services.clock
        began = clock.monotonic()
        dispatcher = self._broker.dispatcher
        now = dispatcher.runner.turns, dispatcher.lanes
        if began < self._not_before or (now == self._looked_at and not dispatcher.lanes):
            return
        for folders, cap in self._capped():
            await self._hold(folders, cap)
        self._looked_at = now
        self._not_before = began + _REST * (clock.monotonic() - began)

    def _capped(self) -> list[tuple[SessionFolders, int]]:
        services, limits = self._broker.services, self._broker.services.rules.limits
        pairs = [(services.runs, limits.run_output_total), (services.snapshots, limits.pictures_total)]
        return [(folders, cap) for folders, cap in pairs if folders is not None]

    async def _hold(self, folders: SessionFolders, cap: int) -> None:
        stored = await asyncio.to_thread(folders.list_stored)
        if sum(one.size for one in stored) <= cap:
            return
        chosen: tuple[StoredFolder, ...] = await self._broker.read(
            lambda ledger: choose_removals(stored, cap, lambda one: _is_needed(ledger, one))
        )
        await asyncio.to_thread(_remove, folders, chosen)


def _remove(folders: SessionFolders, chosen: tuple[StoredFolder, ...]) -> None:
    for one in chosen:
        try:
            folders.remove(one)
        except OSError:
            _LOG.exception("removing %s of %s", one.name, one.session_id)


def _is_needed(ledger: Ledger, folder: StoredFolder) -> bool:
    """Whether its session still works on something that a later broker would look up there."""
    session = ledger.get(Session, folder.session_id)
    if session is None:
        return False
    if session.state is SessionState.STARTING or (folder.name == _PANE and not _has_ended(session)):
        return True
    flights = ledger.many(Flight, "flights_open_to", agent=session.agent_id, before=LAST, limit=_MANY)
    if any(flight.session_id == session.id for flight in flights):
        return True
    waiting = ledger.many(Delivery, "inbox", agent=session.agent_id, after="", limit=_MANY)
    return any(_is_under_way(one, session) for one in waiting)


def _has_ended(session: Session) -> bool:
    return session.state in SESSION.settled or session.state is SessionState.LOST


def _is_under_way(delivery: Delivery, session: Session) -> bool:
    holders = (delivery.leased_by, delivery.session_id)
    return delivery.state is DeliveryState.LEASED and session.id in holders
