"""Notices to parents: a child finished, failed, waits or died. Nobody else gets them (decision 0036).

The notices follow from the events of a transaction and are written in the same one, so each fact is sent
exactly once, even if the daemon is killed.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from scout.broker.routing import attention_items, posts, wake
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import Kind
from scout.model.agent import Agent, Lifecycle, is_self_connected
from scout.model.ask import Ask, ReplyMode
from scout.model.conversation import Message, MessageKind
from scout.model.delivery import Delivery
from scout.model.events.asks import FlightCancelled, FlightCompleted, FlightEvent, FlightFailed, FlightWaiting
from scout.model.events.envelope import Event, Metadata
from scout.model.events.presence import AgentRetired, SessionEnded
from scout.model.events.talk import WorkItemUpdated
from scout.model.flight import Flight, FlightState
from scout.model.work_item import WorkItem, WorkState
from scout.policy.directory import Party
from scout.policy.tree.family import (
    ChildFact,
    ParentNotice,
    decide_flight_notice,
    decide_notice,
    decide_work_notice,
)
from scout.policy.wake import Cause, Occasion, WakeDecision
from scout.store.ledger import LAST

_RULE = "child"
_SOME = 200


class ChildNews(NamedTuple):
    """One fact about a child, as text. `key` marks news that the parent needs to read only once."""

    child_id: str
    parent: Agent
    notice: ParentNotice
    text: str
    key: str = ""


def find_parent(tx: Transaction, child_id: str) -> Agent | None:
    """Return the parent of a spawned agent, if the parent is in service."""
    child = tx.agent(child_id)
    parent = tx.agent(child.parent_id) if child is not None and child.kind is Kind.SUB else None
    return parent if parent is not None and parent.lifecycle is not Lifecycle.RETIRED else None


def is_left_to_parent(tx: Transaction, flight: Flight, asker_id: str) -> bool:
    """Whether a flight failed whose asker is the parent of its target and has not caused the failure."""
    if flight.state is not FlightState.FAILED or asker_id == tx.actor.agent_id:
        return False
    parent = find_parent(tx, flight.target)
    return parent is not None and parent.id == asker_id


def notify_parents(tx: Transaction) -> None:
    """Tell parents about the changes of this transaction: one message for each child."""
    news = [one for event in tuple(tx.events) for one in _read_event(tx, event)]
    for child_id in dict.fromkeys(one.child_id for one in news):
        _post_news(tx, [one for one in news if one.child_id == child_id])


def _read_event(tx: Transaction, event: Event) -> list[ChildNews]:
    read = _READERS.get(type(event))
    found = read(tx, event) if read is not None else None
    return [found] if found is not None and found.notice is not ParentNotice.SILENT else []


# -- facts -------------------------------------------------------------------------------------------


def _read_flight(tx: Transaction, event: FlightEvent) -> ChildNews | None:
    flight = event.payload.record
    parent = find_parent(tx, flight.target)
    if parent is None:
        return None
    ask = tx.get(Ask, flight.ask_id)
    asker = tx.agent(flight.requester_id)
    notice = decide_flight_notice(
        flight,
        parent.id,
        actor_id=tx.actor.agent_id,
        replies_to=ask.reply_to if ask else None,
        asker_in_service=asker is not None and asker.lifecycle is not Lifecycle.RETIRED,
        unfetched=ask is not None and _is_unfetched(tx, flight, ask),
    )
    key = f"{flight.id} waits" if flight.state is FlightState.WAITING else ""
    return ChildNews(flight.target, parent, notice, _describe_flight(tx, flight, ask), key)


def _is_unfetched(tx: Transaction, flight: Flight, ask: Ask) -> bool:
    """Whether the asker has to fetch the answer, and does not wait for it now."""
    sent = ask.reply_to is not None or ask.reply_to_session_id is not None
    waits = tx.services.is_awaited(f"{flight.id} {ask.sender}")
    return ask.reply_mode is ReplyMode.INLINE and not sent and not waits


def _describe_flight(tx: Transaction, flight: Flight, ask: Ask | None) -> str:
    message = tx.get(Message, ask.message_id) if ask is not None else None
    title = attention_items.shorten_title(message.body) if message is not None else flight.ask_id
    words = _WORDS[flight.state]
    detail = attention_items.shorten_title(flight.output or "") if flight.output else flight.reason
    return f"{tx.address(flight.target)} {words}: {title}\n{detail}\nflight {flight.id}"


_WORDS: Mapping[FlightState, str] = {
    FlightState.COMPLETED: "finished",
    FlightState.FAILED: "failed",
    FlightState.CANCELLED: "was cancelled",
    FlightState.WAITING: "waits",
}


def _read_work(tx: Transaction, event: WorkItemUpdated) -> ChildNews | None:
    """Return news of a work item, unless it follows from a flight, whose notice has the same news."""
    item = event.payload.record
    parent = find_parent(tx, item.owner_id)
    if parent is None or _follows_from_flight(tx, item):
        return None
    fact, notice = decide_work_notice(item, event.payload.move, parent.id, actor_id=tx.actor.agent_id)
    if fact is None:
        return None
    detail = event.payload.reason or item.progress.summary or item.reason
    lines = (f"{tx.address(item.owner_id)} {_WORK_WORDS[fact]}: {item.title}", detail, f"work item {item.id}")
    key = f"{item.id} waits" if fact is ChildFact.WAITING else ""
    return ChildNews(item.owner_id, parent, notice, "\n".join(line for line in lines if line), key)


_WORK_WORDS: Mapping[ChildFact, str] = {
    ChildFact.COMPLETED: "finished",
    ChildFact.WAITING: "waits",
    ChildFact.CANCELLED: "no longer has to do",
}


def _follows_from_flight(tx: Transaction, item: WorkItem) -> bool:
    flights = (one.payload.record for one in tx.events if isinstance(one, FlightEvent))
    return any(flight.work_item_id == item.id for flight in flights)


def _read_retirement(tx: Transaction, event: AgentRetired) -> ChildNews | None:
    child = event.payload.record
    parent = find_parent(tx, child.id)
    if parent is None or parent.id == tx.actor.agent_id:
        return None
    reason = f": {event.payload.reason}" if event.payload.reason else ""
    notice = decide_notice(ChildFact.RETIRED, parent_moves=False)
    return ChildNews(child.id, parent, notice, f"{tx.address(child.id)} is retired{reason}")


def _read_session_end(tx: Transaction, event: SessionEnded) -> ChildNews | None:
    """Return news of a session that Scout found dead while its agent had work, but no flight that failed."""
    session = event.payload.record
    parent = find_parent(tx, session.agent_id)
    child = tx.agent(session.agent_id)
    if parent is None or child is None or event.payload.by != tx.services.system_agent:
        return None
    item = _find_open_work(tx, child.id)
    if item is None or child.lifecycle is Lifecycle.RETIRED or _has_failed(tx, child.id):
        return None
    notice = decide_notice(ChildFact.DIED, parent_moves=is_self_connected(child.config))
    words = f"the session of {tx.address(child.id)} ended: {session.reason}"
    return ChildNews(child.id, parent, notice, f"{words}\nopen work: {item.title}\nwork item {item.id}")


def _find_open_work(tx: Transaction, agent_id: str) -> WorkItem | None:
    items = tx.ledger.many(WorkItem, "work_owned_open", agent=agent_id, before=LAST, limit=_SOME)
    return next((one for one in items if one.state is WorkState.WORKING), None)


def _has_failed(tx: Transaction, agent_id: str) -> bool:
    """Whether a flight of the agent failed in this transaction: that notice names the same cause."""
    return any(isinstance(one, FlightFailed) and one.payload.record.target == agent_id for one in tx.events)


_READERS: Mapping[type[Event], Callable[[Transaction, Any], ChildNews | None]] = {
    FlightCompleted: _read_flight,
    FlightFailed: _read_flight,
    FlightCancelled: _read_flight,
    FlightWaiting: _read_flight,
    AgentRetired: _read_retirement,
    SessionEnded: _read_session_end,
    WorkItemUpdated: _read_work,
}


# -- messages ----------------------------------------------------------------------------------------


def _post_news(tx: Transaction, news: list[ChildNews]) -> None:
    """Post one message from the child to its parent, unless the parent has the same one unread."""
    news = [one for one in news if not (one.key and _is_unread(tx, one))]
    if not news:
        return
    child_id, parent = news[0].child_id, news[0].parent
    text = "\n\n".join(dict.fromkeys(one.text for one in news))
    place = posts.ensure_direct_conversation(tx, child_id, parent.id)
    wakes = any(one.notice is ParentNotice.WAKE for one in news)
    kind = MessageKind.CHAT if wakes else MessageKind.STATUS
    metadata = Metadata(target_agents=(parent.id,))
    decision = decide_parent_wake(tx, child_id, parent.id, place.id) if wakes else None
    message = posts.post_message(tx, place.id, text, sender=child_id, kind=kind, metadata=metadata)
    if decision is not None:
        wake.deliver_message(tx, message, parent.id, decision)
    else:
        posts.create_delivery(tx, message, parent.id, rule=_RULE, reason=news[0].key or "news of a child")


def decide_parent_wake(tx: Transaction, sender_id: str, parent_id: str, conversation_id: str) -> WakeDecision:
    """Decide whether a message to a parent starts a turn, within the wake budget of the conversation."""
    place = tx.conversation(conversation_id)
    occasion = Occasion(
        cause=Cause.MOVE,
        sender=Party(agent_id=sender_id),
        targets=(Party(agent_id=parent_id),),
        place=wake.build_wake_context(tx, place) if place is not None else None,
    )
    return wake.decide_who_is_woken(tx, occasion)


def _is_unread(tx: Transaction, news: ChildNews) -> bool:
    """Whether the parent still has an unread notice that this flight waits."""
    waiting = tx.ledger.many(Delivery, "inbox", agent=news.parent.id, after="", limit=_SOME)
    return any(one.rule == _RULE and one.reason == news.key for one in waiting)
