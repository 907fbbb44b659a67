"""Explain a record from the log alone: the wake decisions, their facts, and what happened."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from scout.base.refusal import BadRequest, Refused, get_code
from scout.broker.operations import attention, overview
from scout.broker.operations.way_between_nodes import (
    describe_envelope,
    describe_way,
    read_delivery_events,
    read_mesh_events,
)
from scout.broker.routing import conversations
from scout.broker.transaction.transaction import Transaction, require_reader
from scout.model.ask import Ask
from scout.model.conversation import Conversation, Message
from scout.model.delivery import Delivery, DeliveryState
from scout.model.events.asks import DeliveryWoken
from scout.model.events.envelope import Event, WakeFact, get_record, list_concerned
from scout.model.events.event_types import get_event_type
from scout.model.events.mesh import EnvelopeEvent, EnvelopeReceived
from scout.model.events.talk import MessagePosted
from scout.model.flight import Flight
from scout.model.problems.request import Forbidden
from scout.model.problems.session import WakeBudget
from scout.model.question import Question
from scout.model.work_item import WorkItem
from scout.policy.wake import WakeAction, compare_decision
from scout.protocol.insight import ExplainedDecision, Explanation, Step, Why

_MOST = 500
_NEAR = 12  # maximum events between a change and its wake decision
_AGENT = re.compile(r"agt_[0-9a-z]+")


class Outcome(StrEnum):
    """The outcome of a wake decision."""

    WOKEN = "woken"
    TOLD = "told"
    QUEUED = "queued"
    FAILED = "failed"
    NOT_NEEDED = "not needed"
    HELD = "held"
    NOBODY = "nobody"


_WORDS = {
    Outcome.WOKEN: "{who} was woken: it is the {rule}",
    Outcome.QUEUED: "{who} is queued and not woken yet: it is the {rule}",
    Outcome.TOLD: "{who} was notified, not woken: it is the {rule}",
    Outcome.FAILED: "{who} could not be woken: it is the {rule}",
    Outcome.NOT_NEEDED: "{who} was no longer needed and not woken: it is the {rule}",
    Outcome.HELD: "{who} must be started by a person: it is the {rule}",
    Outcome.NOBODY: "no agent was woken: {rule}",
}
_DECIDED = {
    WakeAction.DELIVER: Outcome.TOLD,
    WakeAction.HOLD: Outcome.HELD,
    WakeAction.NOBODY: Outcome.NOBODY,
}
_CARRIED = {
    DeliveryState.ACKED: Outcome.WOKEN,
    DeliveryState.DEAD_LETTERED: Outcome.FAILED,
    DeliveryState.CANCELLED: Outcome.NOT_NEEDED,
}


class _Story(NamedTuple):
    """The events of a record. `spoken`: messages posted right after an event may be about the record."""

    noun: str
    ident: str
    facts: list[Event]
    spoken: bool = False


def explain_record(tx: Transaction, request: Why) -> Explanation:
    """Return the record's events, its wake decisions, and the last decision as a sentence."""
    tell = _STORIES.get(request.id.partition("_")[0])
    if tell is None:
        problem = "expected an event, message, ask, flight, delivery, question, work or attention item"
        raise Refused(BadRequest(problem=problem, field="id"))
    story = tell(tx, request.id)
    facts = sorted({one.seq: one for one in story.facts}.values(), key=lambda one: one.seq)
    if not facts:
        overview.check_record_left(tx, story.noun, request.id)
    decided = [one for one in _find_decisions(tx, story, facts) if one.metadata.wake is not None]
    return Explanation(
        noun=story.noun,
        id=request.id,
        says=_build_sentence(tx, story, facts, decided),
        decisions=tuple(_explain_decision(tx, one) for one in decided),
        steps=tuple(_build_step(tx, one) for one in facts),
    )


# -- the events --------------------------------------------------------------------------------------


def _read_events_at(tx: Transaction, ident: str) -> list[Event]:
    return tx.ledger.log.list_at(ident, 0, _MOST)


def _read_post_event(tx: Transaction, message: Message | None) -> list[Event]:
    found = tx.ledger.log.get(message.seq) if message else None
    return [] if found is None else [found]


def _read_delivery_events(tx: Transaction, deliveries: Iterable[Delivery]) -> list[Event]:
    return [event for one in deliveries for event in _read_events_at(tx, one.id)]


def _tell_message(tx: Transaction, ident: str) -> _Story:
    message = tx.need(Message, "message", ident)
    conversations.require_readable(tx, tx.need(Conversation, "conversation", message.conversation_id))
    most = tx.rules.limits.page_most
    deliveries = tx.ledger.many(Delivery, "deliveries_of_message", message=ident, limit=most)
    posted = [*_read_post_event(tx, message), *_read_delivery_events(tx, deliveries)]
    return _Story("message", ident, [*posted, *read_mesh_events(tx, (ident,))])


def _tell_ask(tx: Transaction, ident: str) -> _Story:
    ask = tx.need(Ask, "ask", ident)
    require_reader(tx, ask.target, ask.sender)
    flights = tx.ledger.many(Flight, "flights_of_ask", ask=ident)
    made = _read_post_event(tx, tx.get(Message, ask.message_id))
    flown = [event for one in flights for event in _read_flight_events(tx, one)]
    return _Story("ask", ident, [*made, *_read_events_at(tx, ident), *flown])


def _tell_flight(tx: Transaction, ident: str) -> _Story:
    flight = tx.need(Flight, "flight", ident)
    require_reader(tx, flight.target, flight.requester_id)
    return _Story("flight", ident, _read_flight_events(tx, flight))


def _read_flight_events(tx: Transaction, flight: Flight) -> list[Event]:
    deliveries = tx.ledger.many(Delivery, "deliveries_of_flight", flight=flight.id)
    own = [*_read_events_at(tx, flight.id), *_read_delivery_events(tx, deliveries)]
    return [*own, *read_mesh_events(tx, (flight.id,))]


def _tell_delivery(tx: Transaction, ident: str) -> _Story:
    delivery = tx.need(Delivery, "delivery", ident)
    require_reader(tx, delivery.target, delivery.sender)
    sent = read_delivery_events(tx, delivery)
    return _Story("delivery", ident, [*_read_events_at(tx, ident), *sent])


def _tell_question(tx: Transaction, ident: str) -> _Story:
    question = tx.need(Question, "question", ident)
    require_reader(tx, question.responder_id, question.asker_id)
    facts = [*_read_events_at(tx, ident), *read_mesh_events(tx, (ident,))]
    return _Story("question", ident, facts, spoken=True)


def _tell_work(tx: Transaction, ident: str) -> _Story:
    item = tx.need(WorkItem, "work item", ident)
    require_reader(tx, item.owner_id, item.requester_id, item.next_move_owner_id, item.reviewer_id)
    return _Story("work item", ident, _read_events_at(tx, ident), spoken=True)


def _tell_attention(tx: Transaction, ident: str) -> _Story:
    return _Story("attention item", attention.find(tx, ident).id, _read_events_at(tx, ident))


def _tell_event(tx: Transaction, ident: str) -> _Story:
    event = tx.ledger.log.find(ident)
    if event is None:
        overview.check_record_left(tx, "event", ident)
        raise tx.missing("event", ident)
    if not overview.build_read_filter(tx, lambda: tx.ledger)(event, list_concerned(event)):
        raise Refused(Forbidden(action="read", subject=ident, needs=("the operator's token",)))
    about = event.payload.message_id if isinstance(event, MessagePosted) else event.target.id
    return _Story("event", about, [event], spoken=True)


_STORIES: Mapping[str, Callable[[Transaction, str], _Story]] = {
    "evt": _tell_event,
    "msg": _tell_message,
    "ask": _tell_ask,
    "flt": _tell_flight,
    "dlv": _tell_delivery,
    "qst": _tell_question,
    "wrk": _tell_work,
    "att": _tell_attention,
}


# -- decisions ---------------------------------------------------------------------------------------


def _find_decisions(tx: Transaction, story: _Story, facts: list[Event]) -> list[Event]:
    """Return the record's events and, if `spoken`, the routing events about it of the same moment."""
    found = {one.seq: one for one in facts}
    if story.spoken:
        for fact in facts:
            found |= {one.seq: one for one in _find_routing_events(tx, fact, story.ident)}
    return [found[seq] for seq in sorted(found)]


def _find_routing_events(tx: Transaction, fact: Event, ident: str) -> Iterator[Event]:
    for one in tx.ledger.log.list_routed(fact.seq, fact.seq + _NEAR):
        if one.time == fact.time and (
            ident in list_concerned(one) or ident == _get_duty_id(one.metadata.wake)
        ):
            yield one


def _get_duty_id(wake: WakeFact | None) -> str | None:
    """Return the id of the question, work item or flight whose next move a decision was about."""
    occasion: dict[str, Any] = wake.facts.get("occasion", {}) if wake else {}
    duty: dict[str, Any] = occasion.get("duty") or {}
    return duty.get("id")


def _find_outcome(tx: Transaction, event: Event) -> Outcome:
    """Return the outcome of a decision, from the events of its delivery."""
    wake = event.metadata.wake
    action = WakeAction(wake.action) if wake else WakeAction.NOBODY
    if action is not WakeAction.WAKE:
        return _DECIDED[action]
    delivery = tx.get(Delivery, event.target.id)
    if delivery is None:
        return Outcome.QUEUED
    if any(isinstance(one, DeliveryWoken) for one in _read_events_at(tx, delivery.id)):
        return Outcome.WOKEN
    return _CARRIED.get(delivery.state, Outcome.QUEUED) if delivery.wake else Outcome.TOLD


def _explain_decision(tx: Transaction, event: Event) -> ExplainedDecision:
    wake = event.metadata.wake
    assert wake is not None  # callers pass only events with a decision
    return ExplainedDecision(
        seq=event.seq,
        at=event.time,
        event_id=event.id,
        action=wake.action,
        rule=wake.rule,
        holder=tx.address(wake.agent_id) or None,
        reason=wake.reason,
        passed_over=wake.passed_over,
        instead_of=tx.address(wake.instead_of) or None,
        facts=wake.facts,
        differs=_replace_ids(tx, compare_decision(wake)),
        outcome=_find_outcome(tx, event),
    )


def _build_step(tx: Transaction, event: Event) -> Step:
    payload = event.payload
    if isinstance(event, EnvelopeEvent | EnvelopeReceived):
        move = payload.move if isinstance(event, EnvelopeEvent) else payload.outcome
        return Step(
            seq=event.seq,
            at=event.time,
            type=get_event_type(type(event)),
            move=move,
            by=tx.address(event.source.id),
            reason=describe_envelope(tx, event),
        )
    return Step(
        seq=event.seq,
        at=event.time,
        type=get_event_type(type(event)),
        move=getattr(payload, "move", None),
        by=tx.address(getattr(payload, "by", None) or event.source.id),
        reason=getattr(payload, "reason", "") or getattr(payload, "rule", ""),
    )


# -- in words ----------------------------------------------------------------------------------------


def _replace_ids(tx: Transaction, text: str) -> str:
    """Replace agent ids in a text with addresses."""
    return _AGENT.sub(lambda found: tx.address(found[0]), text)


def _build_sentence(tx: Transaction, story: _Story, facts: list[Event], decided: list[Event]) -> str:
    told = [_describe_decision(tx, decided[-1])] if decided else []
    told += [*_describe_state(story, facts), *describe_way(tx, facts)]
    if not told and facts:
        last = _build_step(tx, facts[-1])
        reason = f": {last.reason}" if last.reason else ""
        told = [f"{last.type.removeprefix('collab.')} by {last.by}{reason}"]
    return " ".join(f"{one[:1].upper()}{one[1:]}." for one in told)


def _describe_decision(tx: Transaction, event: Event) -> str:
    wake = event.metadata.wake
    assert wake is not None  # callers pass only events with a decision
    who = tx.address(wake.agent_id)
    said = _WORDS[_find_outcome(tx, event)].format(who=who, rule=wake.rule)
    if wake.rule == get_code(WakeBudget):
        said = f"{who} was not woken: {wake.reason}"
    passed = [f"{tx.address(one.agent_id)} was passed over: {one.why}" for one in wake.passed_over]
    return "; ".join([said, *passed])


def _describe_state(story: _Story, facts: list[Event]) -> list[str]:
    """Return the record's state after its last change, in words."""
    own = [get_record(one) for one in facts if one.target.id == story.ident]
    state = getattr(own[-1], "state", None) if own else None
    if state is None:
        return []
    reason = getattr(own[-1], "reason", "") or getattr(own[-1], "problem", "")
    noun = "it" if story.noun == "event" else f"the {story.noun}"
    return [f"{noun} is {state}" + (f": {reason}" if reason and reason != state else "")]
