"""Tokens as they are spent: what Scout's own part costs, what is counted meanwhile, and the daily cap."""

from collections.abc import Mapping

from msgspec.structs import replace

from scout.base.time import Time
from scout.broker.effects import flight_state
from scout.broker.routing import operator_alarms
from scout.broker.transaction.transaction import Turn
from scout.model.agent import Agent
from scout.model.delivery import Delivery, postpone
from scout.model.events.asks import DeliveryNacked, UsageReported
from scout.model.flight import Flight, FlightState, hold_flight
from scout.model.usage import Counters, Usage
from scout.policy.usage import About, BudgetDecision, Overhead, decide_budget, overhead

__all__ = ["about", "counted", "hold_for_budget", "reported", "wake_failed"]

_CHECK = 3600  # a cap that is raised counts within the hour


def reported(turn: Turn, usage: Usage) -> Usage:
    """Store a report."""
    return turn.record(UsageReported, usage, move="report")


def counted(turn: Turn, counts: Mapping[str, Counters], tokens: Mapping[str, int]) -> None:
    """Store what was counted in memory meanwhile: one report for each agent, with what its refusals cost."""
    for agent_id, counters in counts.items():
        whose, cost = About(agent_id=agent_id), tokens.get(agent_id, 0)
        report = overhead(turn.mint("usg"), whose, Overhead.DIAGNOSTIC, turn.now, counters=counters)
        reported(turn, replace(report, completion_tokens=cost, total_tokens=cost))


def about(delivery: Delivery, harness: str | None = None, model: str | None = None) -> About:
    """What the cost of carrying a delivery belongs to."""
    return About(
        agent_id=delivery.target,
        harness=harness,
        model=model,
        session_id=delivery.session_id,
        message_id=delivery.message_id,
        ask_id=delivery.ask_id,
        flight_id=delivery.flight_id,
        work_item_id=delivery.work_item_id,
    )


def wake_failed(turn: Turn, delivery: Delivery) -> None:
    """Count an attempt to start somebody that came to nothing."""
    one = Counters(wake_failures=1)
    reported(turn, overhead(turn.mint("usg"), about(delivery), Overhead.WAKE_PROMPT, turn.now, counters=one))


def hold_for_budget(turn: Turn, agent: Agent, delivery: Delivery) -> bool:
    """Let a turn wait until the day is over, if the cap is reached; whether it has to.

    Its flight says so and the operator is told, once. It is looked at again within the hour, for the cap may
    have been raised; this is no attempt.
    """
    decision = _decision(turn, agent)
    if decision.waiting_on is None or decision.alarm is None:
        return False
    on, why = decision.waiting_on, decision.alarm.body
    check = min(on.until or turn.now, turn.now.plus(_CHECK))
    flight = turn.ledger.get(Flight, delivery.flight_id)
    if flight is not None and flight.state is FlightState.QUEUED:
        owner = turn.world.operator_agent
        held = hold_flight(flight, on, turn.now, next_move_owner_id=owner, reason=why)
        flight_state.note(turn, replace(held, next_check_at=check))
    turn.record(DeliveryNacked, postpone(delivery, check, why, turn.now), move="postpone", reason=why)
    operator_alarms.raised(turn, decision.alarm, agent.owner)
    return True


def _decision(turn: Turn, agent: Agent) -> BudgetDecision:
    limits, address = turn.rules.limits, turn.address(agent.id)
    if limits.tokens_per_day is None and limits.agent_tokens_per_day is None:
        return decide_budget(address, 0, 0, limits, turn.now)
    today = _day(turn.now)
    mine = turn.ledger.value("usage_today_of", day=today, agent=agent.id)
    return decide_budget(address, mine, turn.ledger.value("usage_today", day=today), limits, turn.now)


def _day(now: Time) -> str:
    return str(now)[:10]
