"""Recovery after a restart: the reachability of every held session is unknown until it is checked."""

import asyncio
import logging
from contextlib import suppress

from scout.broker.delivery.dispatcher import Dispatcher
from scout.broker.delivery.lanes import get_session_lane
from scout.broker.effects import session_end
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction, WriteAsBroker
from scout.model.endpoint import ENDPOINT, Endpoint, EndpointState
from scout.model.events.presence import SessionUpdated
from scout.model.problems.session import Layer
from scout.model.session import Session, SessionClass, SessionState, check_class
from scout.ports import Harness

_LOG = logging.getLogger("scout.sessions")
_MANY = 10_000
_LOOK = 10.0  # seconds for one check
_AT_ONCE = 8


class RestartRecovery:
    """Checks each session once, in its lane: before its next turn, without delaying startup."""

    def __init__(
        self,
        services: Services,
        write: WriteAsBroker,
        dispatcher: Dispatcher,
    ) -> None:
        self._services = services
        self._write = write
        self._dispatcher = dispatcher
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def begin(self) -> None:
        """Mark the reachability of every held session as unknown, then check each."""
        await self._stop_unknown()
        await self._write(_end_unstarted)
        found: list[Session] = await self._write(_mark_unknown)
        for session in found:
            self._dispatcher.enqueue(get_session_lane(session), session.id, self._look)

    async def _stop_unknown(self) -> None:
        """Stop kept programs whose session no record has: the database was lost, or an older one restored.

        Their credentials ended with the records, and the next program of the agent must find its folder free.
        Panes stay, because a person may look at them.
        """
        runs = self._services.runs
        running = await asyncio.to_thread(runs.list_kept) if runs is not None else ()
        unknown: list[str] = await self._write(
            lambda tx: [one for one in running if tx.get(Session, one) is None]
        )
        await asyncio.gather(*(self._stop(one) for one in unknown))

    async def _stop(self, ident: str) -> None:
        _LOG.warning("stopping the program of %s: no record has this session", ident)
        for harness in self._services.harnesses.values():
            if harness.capabilities.keeps_process and harness.capabilities.resume:
                with suppress(Exception):  # a harness that never had this session may say so
                    await asyncio.wait_for(harness.stop(ident), _LOOK)

    async def _look(self, ident: str) -> None:
        session: Session = await self._write(lambda tx: tx.need(Session, "session", ident))
        harness = self._services.harnesses.get(session.harness)
        async with self._places:
            why_not = await explain_loss(harness, session)
        await self._write(lambda tx: _record_look(tx, ident, why_not))


def _end_unstarted(tx: Transaction) -> None:
    """End sessions that never became live and have no waking endpoint."""
    for session in tx.ledger.many(Session, "sessions_running", limit=_MANY):
        ways = tx.ledger.many(Endpoint, "endpoints_of_session", session=session.id)
        if not any(one.state is EndpointState.WAKING for one in ways):
            session_end.fail_start(tx, session.id, "the broker was restarted", Layer.BROKER)


def _mark_unknown(tx: Transaction) -> list[Session]:
    """Mark the live sessions of held endpoints as of unknown reachability, and return them."""
    found: list[Session] = []
    for endpoint in tx.ledger.many(Endpoint, "endpoints_held", limit=_MANY):
        session = tx.get(Session, endpoint.session_id)
        if session is not None and session.state is SessionState.LIVE:
            found.append(_record_class(tx, session, SessionClass.REACHABILITY_UNKNOWN))
    return found


def _record_class(tx: Transaction, session: Session, found: SessionClass) -> Session:
    if session.session_class is found:
        return session
    return tx.record(SessionUpdated, check_class(session, found, tx.now), move="check", reason=found)


async def explain_loss(harness: Harness | None, session: Session) -> str:
    """Return why a session cannot continue; empty if it can.

    It can if its program runs, its harness can resume it, or it keeps no process between turns.
    """
    if harness is None:
        return f"this Scout has no harness {session.harness} any more"
    can = harness.capabilities
    if not can.keeps_process or (can.resume and session.native_ids):
        await _is_warm(harness, session)  # lets the adapter find its program now
        return ""
    if await _is_warm(harness, session):
        return ""
    return f"its program is gone, and {session.harness} cannot resume it"


async def _is_warm(harness: Harness, session: Session) -> bool:
    try:
        return await asyncio.wait_for(harness.is_warm(session.id), _LOOK)
    except Exception:  # noqa: BLE001 (a program that cannot be checked counts as gone; it is logged)
        _LOG.exception("looking at %s", session.id)
        return False


def _record_look(tx: Transaction, ident: str, why_not: str) -> None:
    """End a session that cannot continue, unless a turn or terminal uses it, or mark it resumable."""
    session = tx.need(Session, "session", ident)
    unknown = session.session_class is SessionClass.REACHABILITY_UNKNOWN
    if not unknown or session.state is not SessionState.LIVE:
        return
    ways = tx.ledger.many(Endpoint, "endpoints_of_session", session=session.id)
    works = any(one.state is EndpointState.WORKING for one in ways if one.state not in ENDPOINT.terminal)
    if why_not and not works and session.terminal is None:
        session_end.record_session_end(tx, session, why_not, SessionClass.NOT_ATTACHABLE)
    else:
        _record_class(tx, session, SessionClass.RESUMABLE)
