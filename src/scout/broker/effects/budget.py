"""Token usage: Scout's overhead, counters kept in memory, and the daily cap."""

from collections.abc import Mapping

from msgspec.structs import replace

from scout.base.time import Time
from scout.broker.effects import flight_state
from scout.broker.routing import attention_items
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.delivery import Delivery, postpone
from scout.model.events.asks import DeliveryNacked, UsageReported
from scout.model.flight import Flight, FlightState, hold_flight
from scout.model.usage import Counters, Usage
from scout.policy.usage import About, BudgetDecision, Overhead, decide_budget, report_overhead

_CHECK = 3600  # seconds: a raised cap takes effect within the hour


def record_usage(tx: Transaction, usage: Usage) -> Usage:
    """Record a usage report."""
    return tx.record(UsageReported, usage, move="report")


def record_counts(tx: Transaction, counts: Mapping[str, Counters], tokens: Mapping[str, int]) -> None:
    """Record the counts kept in memory: one report per agent, with the tokens of its refusals."""
    for agent_id, counters in counts.items():
        whose, cost = About(agent_id=agent_id), tokens.get(agent_id, 0)
        report = report_overhead(tx.mint("usg"), whose, Overhead.DIAGNOSTIC, tx.now, counters=counters)
        record_usage(tx, replace(report, completion_tokens=cost, total_tokens=cost))


def build_usage_subject(delivery: Delivery, harness: str | None = None, model: str | None = None) -> About:
    """Return what the cost of a delivery is charged to."""
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


def count_failed_wake(tx: Transaction, delivery: Delivery) -> None:
    """Count a failed attempt to wake an agent."""
    one = Counters(wake_failures=1)
    record_usage(
        tx,
        report_overhead(
            tx.mint("usg"), build_usage_subject(delivery), Overhead.WAKE_PROMPT, tx.now, counters=one
        ),
    )


def hold_for_budget(tx: Transaction, agent: Agent, delivery: Delivery) -> bool:
    """Hold a turn until tomorrow if the daily cap is reached; return whether it is held.

    The flight shows the reason and the operator is notified once. The turn is checked again within the hour,
    because the cap may have been raised. This does not count as an attempt.
    """
    if tx.rules.limits.tokens_per_day is None and tx.rules.limits.agent_tokens_per_day is None:
        return False
    decision = _decide_budget(tx, agent)
    if decision.waiting_on is None or decision.alarm is None:
        return False
    on, why = decision.waiting_on, decision.alarm.body
    check = min(on.until or tx.now, tx.now.plus(_CHECK))
    flight = tx.get(Flight, delivery.flight_id)
    if flight is not None and flight.state is FlightState.QUEUED:
        owner = attention_items.find_person_for(tx, agent.id)
        held = hold_flight(flight, on, tx.now, next_move_owner_id=owner, reason=why)
        flight_state.record_note(tx, replace(held, next_check_at=check))
    tx.record(DeliveryNacked, postpone(delivery, check, why, tx.now), move="postpone", reason=why)
    attention_items.open_alarm(tx, decision.alarm, agent.owner)
    return True


def _decide_budget(tx: Transaction, agent: Agent) -> BudgetDecision:
    today = _format_day(tx.now)
    mine = tx.ledger.value("usage_today_of", day=today, agent=agent.id)
    everybody = tx.ledger.value("usage_today", day=today)
    return decide_budget(tx.address(agent.id), mine, everybody, tx.rules.limits, tx.now)


def _format_day(now: Time) -> str:
    return str(now)[:10]
