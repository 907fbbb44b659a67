"""Agents that sleep: the records show what keeps one awake; idle sessions of a sleeping one are released."""

from collections.abc import Sequence

from scout.broker.effects import reservations, retirement
from scout.broker.routing import activity, routes
from scout.broker.transaction import admission
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent, AgentMove, WakePolicy, mark_active, move_agent
from scout.model.attention import Attention
from scout.model.delivery import Delivery
from scout.model.endpoint import Endpoint, EndpointMove, EndpointState, get_wake_policy, is_online
from scout.model.events.presence import AgentRetired, AgentSleeping, SessionEnded
from scout.model.flight import Flight, FlightState
from scout.model.session import Session, end_session
from scout.policy.sweep_actions import EndTask, Rest, Sleep, StayAwake, SweepSubject
from scout.store.ledger import LAST

_FEW = 20
_LET_GO = "its agent sleeps"
_DONE = frozenset({FlightState.COMPLETED, FlightState.CANCELLED})  # a failed task can be retried
_BUSY = frozenset({EndpointState.ATTACHING, EndpointState.WAKING, EndpointState.WORKING})


# -- reading -----------------------------------------------------------------------------------------


def watch(tx: Transaction, agent: Agent) -> SweepSubject:
    """Return an agent with what may keep it awake."""
    endpoints = tx.endpoints(agent.id)
    ours = [one for one in endpoints if one.held]
    flights = tx.ledger.many(Flight, "flights_to", agent=agent.id, before=LAST, limit=1)
    raised = tx.ledger.many(Attention, "attention_by", agent=agent.id, before=LAST, limit=1)
    sessions = _find_idle_sessions(tx, ours)
    policies = {get_wake_policy(agent, one) for one in endpoints if one.state is not EndpointState.STOPPED}
    rest = Rest(
        active_at=activity.find_last_activity(tx, agent, endpoints, (*flights, *raised)),
        flights=bool(tx.ledger.many(Flight, "flights_open_to", agent=agent.id, before=LAST, limit=1)),
        leased=bool(tx.ledger.many(Delivery, "leases_of", agent=agent.id, limit=1)),
        attention=_has_open_item(tx, agent),
        working=any(one.state in _BUSY for one in ours),
        live=_is_live(tx, endpoints),
        terminal=any(one.terminal is not None for one in sessions),
        unresumable=any(not _can_release(tx, one) for one in sessions),
        kept_warm=WakePolicy.KEEP_WARM in {agent.config.wake_policy, *policies},
        by_hand=bool(sessions) and agent.config.wake_policy is WakePolicy.MANUAL,
        elsewhere=agent.node != tx.services.node,
        done=any(one.state in _DONE for one in flights),
    )
    return SweepSubject(record=agent, rest=rest)


def _has_open_item(tx: Transaction, agent: Agent) -> bool:
    opened = tx.ledger.many(Attention, "attention_by_open", agent=agent.id, before=LAST, limit=_FEW)
    return any(one.source.id == agent.id for one in opened)


def _is_live(tx: Transaction, endpoints: Sequence[Endpoint]) -> bool:
    """Whether a session reports by itself: a person's, or one of an agent that reads its own mail."""
    within = tx.rules.periods.online_within
    return any(is_online(one, tx.now, within) for one in endpoints if not one.held)


def _find_idle_sessions(tx: Transaction, endpoints: Sequence[Endpoint]) -> list[Session]:
    """Return the sessions run by Scout that are idle."""
    idle = [one.session_id for one in endpoints if one.state is EndpointState.IDLE]
    found = [tx.get(Session, ident) for ident in idle]
    return [one for one in found if one is not None]


def _can_release(tx: Transaction, session: Session) -> bool:
    """Whether a session can lose its program: it keeps none, or its harness can resume it."""
    harness = tx.services.harnesses.get(session.harness)
    if harness is None or not harness.capabilities.keeps_process:
        return True
    return harness.capabilities.resume and bool(session.native_ids)


# -- acting ------------------------------------------------------------------------------------------


def follow(tx: Transaction, agent: Agent, action: Sleep | StayAwake | EndTask) -> None:
    """Carry out what the sweeper found due for an agent."""
    match action:
        case Sleep():
            _fall_asleep(tx, agent, action.rule)
        case EndTask():
            retired = move_agent(agent, AgentMove.RETIRE, tx.now)
            tx.record(AgentRetired, retired, move=AgentMove.RETIRE, reason=action.rule)
            retirement.release_obligations(tx, retired)
            admission.revoke_agent_tokens(tx, retired, action.rule)
        case StayAwake():
            tx.ledger.refresh(mark_active(agent, action.active_at))
            tx.cache.agents.pop(agent.id, None)


def _fall_asleep(tx: Transaction, agent: Agent, reason: str) -> None:
    """Release its sessions, then let the agent sleep, so that nothing of it is online."""
    for endpoint in tx.endpoints(agent.id):
        if endpoint.held and endpoint.state is EndpointState.IDLE:
            _release_session(tx, endpoint)
    asleep = move_agent(agent, AgentMove.SLEEP, tx.now)
    tx.record(AgentSleeping, asleep, move=AgentMove.SLEEP, reason=reason)


def _release_session(tx: Transaction, endpoint: Endpoint) -> None:
    """End the program of an idle session; the session and its endpoint stay and can be resumed."""
    routes.record_endpoint_move(tx, endpoint, EndpointMove.EXPIRE, _LET_GO)
    session = tx.get(Session, endpoint.session_id)
    if session is not None:
        tx.record(SessionEnded, end_session(session, _LET_GO, tx.now), move="end", reason=_LET_GO)
        admission.revoke_session_tokens(tx, session, _LET_GO)
        reservations.release_for_session(tx, session.id, _LET_GO)
