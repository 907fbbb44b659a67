"""Sessions in a person's hands: handed over to a terminal and taken back, or enrolled by a host program."""

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from scout.base.refusal import Refused, Remedy
from scout.broker.delivery import recovery, session_records
from scout.broker.effects import flight_state, session_end
from scout.broker.routing.attention_items import close_held_item, find_person_for, open_held_item
from scout.broker.transaction import admission
from scout.broker.transaction.call import Transactions
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.model.agent import Agent
from scout.model.delivery import Delivery, postpone
from scout.model.endpoint import ENDPOINT, Endpoint, EndpointState
from scout.model.events.asks import DeliveryNacked
from scout.model.events.presence import SessionUpdated
from scout.model.flight import Flight, FlightPhase, FlightState, hold_flight, note_flight
from scout.model.problems.session import Layer, SessionBusy, SessionNotAttachable
from scout.model.session import Session, SessionOrigin, SessionState, Terminal, give_back, hand_over
from scout.model.waiting import WaitingKind, WaitingOn
from scout.policy.permit import Deed
from scout.ports import KeptRuns, SessionSpec
from scout.protocol.sessions import CloseSession, OpenSession

_REASON = "its session is open in a terminal"
_CHECK = 3600
_MANY = 10_000
_Process = tuple[int, str]
_Seen = frozenset[_Process]


class HostProcesses:
    """Tracks the processes that these sessions depend on, by pid and start time.

    A session whose terminal is gone is taken back. An enrolled session whose host is gone ends, even
    without a hook event.
    """

    def __init__(self, broker: Transactions) -> None:
        self._broker = broker
        self._terminals: dict[str, _Seen] = {}
        self._hosts: dict[str, _Seen] = {}

    async def begin(self) -> None:
        """Load the sessions that were open when the broker stopped."""
        running = await self._broker.read(
            lambda ledger: ledger.many(Session, "sessions_running", limit=_MANY)
        )
        for session in running:
            self.on_session(session)

    def on_session(self, session: Session) -> None:
        """Update the processes of a session that started, moved to another process, or ended."""
        for known, seen in (
            (self._terminals, _get_terminal_process(session)),
            (self._hosts, _get_host_processes(session)),
        ):
            if seen:
                known[session.id] = seen
            else:
                known.pop(session.id, None)

    async def check(self) -> None:
        """Take back the sessions whose terminal is gone, and end those whose host is gone."""
        for ident, _ in await self._find_gone(self._terminals):
            await self._broker.as_system(lambda tx, one=ident: take_back(tx, one))
        for ident, process in await self._find_gone(self._hosts):
            await self._broker.as_system(lambda tx, one=ident, at=process: _end_hosted(tx, one, at))

    async def _find_gone(self, known: Mapping[str, _Seen]) -> list[tuple[str, _Process]]:
        runs = self._broker.services.runs
        return await asyncio.to_thread(_list_gone, runs, dict(known)) if runs is not None and known else []


def _get_terminal_process(session: Session) -> _Seen:
    terminal = session.terminal
    return frozenset({(terminal.pid, terminal.started)}) if terminal is not None else frozenset()


def _get_host_processes(session: Session) -> _Seen:
    """Return the processes that a live enrolled session needs, as reported by its host."""
    if session.origin is not SessionOrigin.ENROLLED or session.state is not SessionState.LIVE:
        return frozenset()
    named = ((session.pid, session.pid_started), (session.window_pid, session.window_started))
    return frozenset((pid, started) for pid, started in named if pid and started)


def _list_gone(runs: KeptRuns, known: Mapping[str, _Seen]) -> list[tuple[str, _Process]]:
    return [
        (ident, process)
        for ident, processes in known.items()
        for process in processes
        if not runs.is_alive(*process)
    ]


def _end_hosted(tx: Transaction, ident: str, process: _Process) -> None:
    session = tx.need(Session, "session", ident)
    if process in _get_host_processes(session):
        reason = f"its {session.harness} program is gone (pid {process[0]})"
        session_end.record_session_end(tx, session, reason, layer=Layer.PROCESS)


# -- handing over ------------------------------------------------------------------------------------


def check_handover(tx: Transaction, request: OpenSession) -> tuple[str, SessionSpec]:
    """Return the harness and session to hand over, or refuse."""
    session, endpoint = _require_free_session(tx, request)
    agent = tx.need(Agent, "agent", session.agent_id)
    return session.harness, session_records.build_session_spec(tx, agent, endpoint)


def _require_free_session(tx: Transaction, request: OpenSession) -> tuple[Session, Endpoint]:
    """Return a live session that Scout holds and that has no turn, or refuse."""
    session = tx.need(Session, "session", request.session_id)
    tx.permit(Deed.CONTROL, build_subject(tx.need(Agent, "agent", session.agent_id)))
    ways = tx.ledger.many(Endpoint, "endpoints_of_session", session=session.id)
    held = [one for one in ways if one.held and one.state not in ENDPOINT.terminal]
    if session.state is not SessionState.LIVE or not held:
        raise Refused(_build_refusal(session))
    if held[-1].state is EndpointState.WORKING:
        stop = Remedy(operation="interrupt", parameters={"address": tx.address(session.agent_id)})
        raise Refused(SessionBusy(session_id=session.id, remedies=(stop,)))
    if session.terminal is not None and session.terminal.pid != request.pid:
        reason = f"it is open in a terminal already (pid {session.terminal.pid})"
        raise Refused(SessionBusy(session_id=session.id, reason=reason))
    return session, held[-1]


def _build_refusal(session: Session) -> SessionNotAttachable:
    again = {"session": session.id}
    remedy = Remedy(operation="session.attach", parameters=again, why="attach it first")
    reason = f"it is {session.state}, and Scout does not hold it"
    return SessionNotAttachable(session_id=session.id, layer=Layer.SESSION, reason=reason, remedies=(remedy,))


def open_terminal(tx: Transaction, request: OpenSession) -> Session:
    """Hand a session to a person as its only writer; the credentials of its program are revoked."""
    session, _ = _require_free_session(tx, request)
    terminal = Terminal(pid=request.pid, started=request.pid_started, by=tx.sender, since=tx.now)
    admission.revoke_session_tokens(tx, session, "it was opened in a terminal")
    return tx.record(SessionUpdated, hand_over(session, terminal, tx.now), move="open")


def hold_turn(tx: Transaction, delivery: Delivery, session: Session) -> None:
    """Hold a turn because a person has its session open. This does not count as an attempt."""
    check = tx.now.plus(_CHECK)
    flight = tx.get(Flight, delivery.flight_id)
    if flight is not None and flight.state is FlightState.QUEUED:
        on = WaitingOn(kind=WaitingKind.OPERATOR, ref=session.id)
        owner = find_person_for(tx, session.agent_id)
        held = hold_flight(flight, on, tx.now, next_move_owner_id=owner, reason=_REASON)
        flight_state.record_note(tx, replace(held, next_check_at=check))
        remedy = Remedy(operation="session.close", parameters={"sessionId": session.id}, why="give it back")
        open_held_item(tx, session.agent_id, "waits until you close its session in your terminal", (remedy,))
    _postpone_delivery(tx, delivery, _REASON, check)


def _postpone_delivery(tx: Transaction, delivery: Delivery, reason: str, until: Any) -> None:
    tx.record(DeliveryNacked, postpone(delivery, until, reason, tx.now), move="postpone", reason=reason)


# -- taking back -------------------------------------------------------------------------------------


def close_session(tx: Transaction, request: CloseSession) -> Session:
    """Give a session back and release what waited for it. Closing twice changes nothing."""
    session = tx.need(Session, "session", request.session_id)
    tx.permit(Deed.CONTROL, build_subject(tx.need(Agent, "agent", session.agent_id)))
    return take_back(tx, session.id)


def take_back(tx: Transaction, ident: str) -> Session:
    """Take a session back, as the broker itself."""
    session = tx.need(Session, "session", ident)
    if session.terminal is None:
        return session
    session = tx.record(SessionUpdated, give_back(session, tx.now), move="close")
    for delivery in recovery.list_pending_deliveries(tx.ledger):
        if delivery.target == session.agent_id and delivery.problem == _REASON:
            _release_delivery(tx, delivery)
    close_held_item(tx, session.agent_id)
    return session


def _release_delivery(tx: Transaction, delivery: Delivery) -> None:
    reason = "its session was given back"
    flight = tx.get(Flight, delivery.flight_id)
    if flight is not None and flight.phase is FlightPhase.HELD:
        free = {"waiting_on": None, "next_move_owner_id": flight.target, "reason": reason}
        flight_state.record_note(tx, note_flight(flight, FlightPhase.ACCEPTED, tx.now, **free))
    _postpone_delivery(tx, delivery, reason, tx.now)
