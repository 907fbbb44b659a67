"""Lanes: in each of them one thing runs after another.

Each agent has a lane, so that the turns of its session follow each other. An isolated session has its own
lane, because it shares nothing with the agent's other sessions: nobody waits for it, and it waits for nobody.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from scout.base.refusal import Refused
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.model.ask import Ask, SessionPolicy
from scout.model.delivery import Delivery
from scout.model.session import Session
from scout.store.ledger import Ledger

_LOG = logging.getLogger("scout.dispatch")
_ISOLATED = (SessionPolicy.NEW, SessionPolicy.FORK)
_Run = Callable[[str], Awaitable[object]]


def is_isolated(ask: Ask) -> bool:
    """Whether an ask gets a session that only it uses."""
    return ask.session_policy in _ISOLATED


def find_lane(records: Transaction | Ledger, delivery: Delivery) -> str:
    """Return the lane of a delivery: its agent's, or one for its isolated session.

    The session of an isolated ask does not exist yet. Until it does, the delivery has a lane to itself.
    """
    session_id = delivery.session_id
    if delivery.flight_id is not None:
        ask = records.get(Ask, delivery.ask_id)
        if ask is not None and ask.message_id == delivery.message_id:
            if is_isolated(ask):
                return session_id or delivery.id
            session_id = session_id or ask.target_session_id
    session = records.get(Session, session_id) if session_id is not None else None
    return delivery.target if session is None else get_session_lane(session)


def get_session_lane(session: Session) -> str:
    """Return the lane of a session's turns."""
    return session.agent_id if session.isolated_for is None else session.id


class Lanes:
    """What runs and waits in each lane. `services.line` gets the places of the flights that wait."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._waiting: dict[str, deque[tuple[str, _Run]]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._flights: dict[str, str] = {}  # the flight of each delivery that waits
        self._closed = False

    def __len__(self) -> int:
        """Return the number of lanes in which something runs or waits."""
        return len(self._waiting)

    def __contains__(self, lane: str) -> bool:
        """Whether something runs or waits in a lane."""
        return lane in self._waiting

    @property
    def tasks(self) -> Iterable[asyncio.Task[None]]:
        """Return the task of each lane."""
        return self._tasks.values()

    def is_waiting(self, lane: str, ident: str) -> bool:
        """Whether a delivery waits in a lane."""
        return any(one == ident for one, _ in self._waiting.get(lane, ()))

    def enqueue(self, lane: str, ident: str, run: _Run, flight_id: str | None = None) -> None:
        """Run something after everything already queued in the same lane."""
        if self._closed:
            return
        if flight_id is not None:
            self._flights[ident] = flight_id
        self._waiting.setdefault(lane, deque()).append((ident, run))
        if lane not in self._tasks:
            self._tasks[lane] = asyncio.get_running_loop().create_task(self._drain(lane))
        else:
            self._show_places(lane)

    def _show_places(self, lane: str) -> None:
        """Store in each queued flight how many turns run before its own."""
        flights = [self._flights[ident] for ident, _ in self._waiting[lane] if ident in self._flights]
        for place, flight_id in enumerate(flights, 1):
            self._services.line[flight_id] = place, None

    async def _drain(self, lane: str) -> None:
        queue = self._waiting[lane]
        try:
            while queue and not self._closed:
                ident, run = queue.popleft()
                self._services.line.pop(self._flights.pop(ident, ""), None)
                self._show_places(lane)
                try:
                    await run(ident)
                except Refused as refusal:
                    _LOG.warning("delivery %s: %s", ident, refusal)
                except Exception:  # noqa: BLE001 (the lane continues; it is logged)
                    _LOG.exception("delivery %s", ident)
        finally:
            del self._tasks[lane]
            if queue and not self._closed:
                self._tasks[lane] = asyncio.get_running_loop().create_task(self._drain(lane))
            else:
                self._waiting.pop(lane, None)

    def seal(self) -> None:
        """Start nothing more."""
        self._closed = True

    async def close(self) -> None:
        """Start nothing more, and cancel what runs."""
        self.seal()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
