"""Runs of schedules: what follows when one ends, cannot start, or starts again."""

from scout.base.refusal import Diagnostic, Remedy
from scout.broker.routing import attention_items
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import Kind
from scout.model.agent import Agent
from scout.model.attention import Attention, AttentionKind
from scout.model.events.directory import ScheduleEnded, ScheduleUpdated
from scout.model.flight import FLIGHT, Flight
from scout.model.people.schedule import SCHEDULE, Schedule, end_schedule, release_run
from scout.protocol.operations import build_command_line

_OFFERED = 3  # addresses that may be meant
# Remedies that repeat the ask itself: a schedule is changed instead.
_OF_ASKS = frozenset({"ask", "parse", "resolve", "send"})


def find_schedule(tx: Transaction, agent_id: str) -> Schedule | None:
    """Return the schedule of a cron agent; None for any other agent."""
    agent = tx.agent(agent_id)
    if agent is None or agent.kind is not Kind.CRON:
        return None
    return tx.ledger.one(Schedule, "schedule_of_agent", agent=agent.id)


def find_last_flight(tx: Transaction, schedule: Schedule) -> Flight | None:
    """Return the newest flight of the last run."""
    if schedule.last_ask_id is None:
        return None
    flights = tx.ledger.many(Flight, "flights_of_ask", ask=schedule.last_ask_id)
    return flights[-1] if flights else None


def find_open_run(tx: Transaction, schedule: Schedule) -> Flight | None:
    """Return the flight of the last run if it has not ended."""
    flight = find_last_flight(tx, schedule)
    return flight if flight is not None and flight.state not in FLIGHT.terminal else None


def release_waiting_run(tx: Transaction, flight: Flight) -> None:
    """Start the run that waited for this one to end."""
    schedule = find_schedule(tx, flight.requester_id)
    if schedule is None or schedule.waiting_slot is None or schedule.last_ask_id != flight.ask_id:
        return
    reason = f"flight {flight.id} is {flight.state}"
    tx.record(ScheduleUpdated, release_run(schedule, tx.now), move="change", reason=reason)


def end_agent_schedule(tx: Transaction, agent: Agent, reason: str) -> None:
    """End the schedule of a cron agent that is retired."""
    schedule = find_schedule(tx, agent.id)
    if schedule is not None and schedule.state not in SCHEDULE.terminal:
        tx.record(ScheduleEnded, end_schedule(schedule, reason, tx.now), move="end", reason=reason)
        close_schedule_item(tx, schedule, reason)


# -- what the owner has to know ------------------------------------------------------------------------


def report_failure(tx: Transaction, schedule: Schedule, problem: Diagnostic) -> None:
    """Tell the owner that a run could not start, with the commands that would correct it."""
    named = {"scheduleId": schedule.id}
    better = [{**named, "to": one.address} for one in problem.candidates[:_OFFERED]]
    remedies = [Remedy(operation="cron.update", parameters=one) for one in better]
    remedies += [one for one in problem.remedies if one.operation not in _OF_ASKS]
    remedies.append(Remedy(operation="cron.show", parameters=named))
    title = f"the schedule of {schedule.target} could not run: {problem.message}"
    _open_item(tx, schedule, title, problem.message, remedies)


def report_overlap(tx: Transaction, schedule: Schedule, flight: Flight) -> None:
    """Tell the owner that a run does not end, so that later ones do not start."""
    named = {"scheduleId": schedule.id, "overlap": "cancel"}
    remedies = [
        Remedy(operation="flight.cancel", parameters={"flightId": flight.id}),
        Remedy(operation="cron.update", parameters=named, why="let a new run cancel the old one"),
    ]
    title = f"a run of the schedule of {schedule.target} does not end"
    count = f"{schedule.not_started} runs in a row did not start"
    _open_item(tx, schedule, title, f"{count}, because flight {flight.id} has not ended.", remedies)


def _open_item(tx: Transaction, schedule: Schedule, title: str, body: str, remedies: list[Remedy]) -> None:
    lines = [body, f"{schedule.cron}: {attention_items.shorten_title(schedule.body)}"]
    lines += [f"try: {build_command_line(one)}" for one in remedies]
    attention_items.open_item(
        tx,
        AttentionKind.FAILURE,
        user=schedule.owner,
        source=tx.services.system_agent,
        agent_id=schedule.agent_id,
        title=attention_items.shorten_title(title),
        body="\n".join(lines),
        dedupe=_build_item_key(schedule),
    )


def close_schedule_item(tx: Transaction, schedule: Schedule, reason: str) -> None:
    """Close the item about a schedule: it runs again, or has ended."""
    for item in tx.ledger.many(Attention, "attention_about", dedupe=_build_item_key(schedule)):
        attention_items.close_item(tx, item, reason)


def _build_item_key(schedule: Schedule) -> str:
    return f"schedule:{schedule.id}"
