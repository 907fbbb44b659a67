"""Reminding one holder: in the log, and then as a message, or in the inbox of a person."""

from typing import Any

from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.broker import alarm, messages, needing, posting
from scout.broker.turn import Turn
from scout.model.agent import Agent, Lifecycle
from scout.model.ask_event import SweepNudged
from scout.model.conversation import Message
from scout.model.envelope import Metadata
from scout.model.flight import Flight
from scout.model.question import Question, QuestionState
from scout.model.work_item import WorkItem, WorkState
from scout.policy.duty import Party
from scout.policy.swept import Level, Nudge, Watch
from scout.policy.wake import Cause, Occasion
from scout.protocol.operations import command_line

__all__ = ["remind", "reminders", "watch"]

Owing = Question | WorkItem | Flight | Message


def reminders(turn: Turn, ident: str) -> dict[str, Any]:
    """Who was reminded of a record so far, as its row says; nothing when nobody was."""
    found = turn.ledger.rows("sweep_of", id=ident)
    if not found or not found[0][0]:
        return {}
    nudges, *moments = found[0]
    nudged_at, next_at = (None if one is None else Time(one) for one in moments)
    return {"nudges": nudges, "nudged_at": nudged_at, "next_at": next_at}


def watch(turn: Turn, record: Any) -> Watch | None:
    """A record and the reminders of it so far."""
    return None if record is None else Watch(record=record, **reminders(turn, record.id))


def remind(turn: Turn, record: Owing, nudge: Nudge) -> None:
    """Store it and tell exactly this holder; a person finds it in the inbox, and nothing is started."""
    holder = turn.agent(nudge.holder_id)
    if holder is None or needing.is_person(holder):
        turn.append(SweepNudged, nudge.id, nudge.stored)
        user = holder.owner if holder is not None else None
        alarm.raised(turn, nudge.alarm, user or turn.world.operator, nudge.escalated_from)
    else:
        _told(turn, record, nudge, holder)


def _told(turn: Turn, record: Owing, nudge: Nudge, holder: Agent) -> None:
    place = posting.dm_of(turn, turn.sender, holder.id)
    occasion = Occasion(
        cause=Cause.NUDGE,
        sender=Party(agent_id=turn.sender),
        targets=(Party(agent_id=holder.id),),
        place=messages.occasion_place(turn, place),
    )
    decision = messages.decide(turn, occasion)
    beside = Metadata() if decision.holder else Metadata(wake=decision.stored)
    turn.append(SweepNudged, nudge.id, nudge.stored, beside)
    if holder.lifecycle is Lifecycle.RETIRED:
        return  # the next one on the ladder hears of it
    message = posting.post(
        turn,
        place.id,
        _text(turn, record, nudge),
        work_item_id=_work_item(record),
        metadata=Metadata(target_agents=(holder.id,)),
    )
    messages.carried(turn, message, holder.id, decision)


def _work_item(record: Owing) -> str | None:
    return record.id if isinstance(record, WorkItem) else record.work_item_id


# -- words -------------------------------------------------------------------------------------------


def _text(turn: Turn, record: Owing, nudge: Nudge) -> str:
    """What it is about, since when, and what to do next, ready to be pasted."""
    if nudge.level is Level.HOLDER:
        yours = "The next move is yours."
    else:
        yours = f"{turn.address(nudge.escalated_from)} was reminded and has not moved; see to it."
    why = Remedy(operation="why", parameters={"id": nudge.id})
    tries = [f"try: {command_line(one)}" for one in (_next(record, nudge.level), why)]
    about = f"{nudge.rule}: {needing.title_of(_title(record))}"
    return "\n".join([about, f"{nudge.alarm.body}. {yours}", *tries])


def _title(record: Owing) -> str:
    match record:
        case WorkItem():
            return record.title
        case Flight():
            return record.reason
        case _:
            return record.body


def _next(record: Owing, level: Level) -> Remedy:
    """What the one who is reminded can do: make the move, or see to it that somebody does."""
    ident = record.id
    match record:
        case Question(state=QuestionState.OPEN):
            return Remedy(operation="question.answer", parameters={"questionId": ident, "answer": "…"})
        case Question():
            return Remedy(operation="question.close", parameters={"questionId": ident})
        case WorkItem() if level is not Level.HOLDER:
            return Remedy(operation="work.hand-over", parameters={"workItemId": ident, "to": "…"})
        case WorkItem(state=WorkState.OPEN):
            return Remedy(operation="work.start", parameters={"workItemId": ident})
        case WorkItem(state=WorkState.WORKING):
            return Remedy(operation="work.progress", parameters={"workItemId": ident, "summary": "…"})
        case WorkItem(state=WorkState.WAITING):
            return Remedy(operation="work.resume", parameters={"workItemId": ident})
        case WorkItem():
            return Remedy(operation="work.accept", parameters={"workItemId": ident})
        case Flight():
            return Remedy(operation="flight.get", parameters={"flightId": ident})
        case Message():
            return Remedy(operation="reply", parameters={"inReplyTo": ident, "body": "…"})
