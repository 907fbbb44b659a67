"""Programs that Scout sees only on a screen: what each does, also between turns, and that it has ended."""

import asyncio
import logging
from contextlib import suppress

from scout.broker.effects import session_end
from scout.broker.routing import routes
from scout.broker.transaction.call import Transactions
from scout.broker.transaction.transaction import Transaction
from scout.model.endpoint import EndpointState, observe_program
from scout.model.events.presence import EndpointUpdated
from scout.model.problems.session import Layer
from scout.model.session import Session, SessionClass, SessionState
from scout.ports import ProgramSight

_LOG = logging.getLogger("scout.screens")
_MANY = 10_000
_LONGEST = 15.0  # seconds for one look at one screen


class ScreenWatch:
    """Looks at the screens of live sessions, one round at a time and beside everything else."""

    def __init__(self, broker: Transactions) -> None:
        self._broker = broker
        self._watched: dict[str, str] = {}
        self._told: dict[str, ProgramSight] = {}
        self._round: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Load the sessions that were live when the broker stopped."""
        running = await self._broker.read(
            lambda ledger: ledger.many(Session, "sessions_running", limit=_MANY)
        )
        for session in running:
            self.on_session(session)

    def on_session(self, session: Session) -> None:
        """Watch a live session whose harness reads screens; forget one that has ended."""
        harness = self._broker.services.harnesses.get(session.harness)
        reads = harness is not None and harness.capabilities.reads_screen
        if reads and session.state is SessionState.LIVE:
            self._watched[session.id] = session.harness
        else:
            self._watched.pop(session.id, None)
            self._told.pop(session.id, None)

    def check(self) -> None:
        """Begin a round, unless the last one is still running."""
        if self._watched and (self._round is None or self._round.done()):
            self._round = asyncio.get_running_loop().create_task(self._look_at_all())

    async def close(self) -> None:
        if self._round is not None:
            self._round.cancel()
            with suppress(asyncio.CancelledError):
                await self._round

    async def _look_at_all(self) -> None:
        for ident, harness in list(self._watched.items()):
            try:
                async with asyncio.timeout(_LONGEST):
                    seen = await self._broker.services.harnesses[harness].look(ident)
                await self._record(ident, seen)
            except Exception:  # noqa: BLE001 (it is logged; the other screens and the next round follow)
                _LOG.exception("looking at the screen of %s", ident)

    async def _record(self, ident: str, seen: ProgramSight) -> None:
        """Store what is new; an end is tried again until the turn in it has ended."""
        if seen != self._told.get(ident) or seen.ended:
            await self._broker.as_system(lambda tx: record_sight(tx, ident, seen))
            self._told[ident] = seen


def record_sight(tx: Transaction, ident: str, seen: ProgramSight) -> None:
    """Record what a program does. A program that has ended ends its session, once its turn has ended."""
    session, endpoint = tx.get(Session, ident), routes.find_endpoint(tx, ident)
    if session is None or endpoint is None or session.state is not SessionState.LIVE:
        return
    if seen.ended:
        if endpoint.state is not EndpointState.WORKING:  # the turn reports how it ended
            named = "session" in session.native_ids
            ending = SessionClass.RESUMABLE if named else SessionClass.NOT_ATTACHABLE
            reason = f"its program has ended: {seen.ended}"
            session_end.record_session_end(tx, session, reason, ending, Layer.PROCESS)
    elif endpoint.program_state is not seen.state:
        tx.record(EndpointUpdated, observe_program(endpoint, seen.state, tx.now), move="observe")
