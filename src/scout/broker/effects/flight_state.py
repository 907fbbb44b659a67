"""What follows when a delivery or a flight changes, in the same transaction."""

from msgspec.structs import replace

from scout.base.refusal import Remedy
from scout.broker.effects import answers, notices
from scout.broker.effects.final_text import hide_tokens
from scout.broker.routing import attention_items, posts
from scout.broker.routing.attention_items import settle_held
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import Kind
from scout.model.agent import Lifecycle
from scout.model.ask import Ask, ReplyMode
from scout.model.attention import AttentionKind
from scout.model.conversation import Attachment, Message, MessageKind
from scout.model.coupling import Trouble, close_delivery, follow_delivery, follow_flight, on_dead_lettered
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, bounce_of
from scout.model.events.asks import (
    DELIVERY_EVENTS,
    FLIGHT_EVENTS,
    DeliveryDeadLettered,
    DeliveryWoken,
    FlightUpdated,
)
from scout.model.events.envelope import Metadata
from scout.model.events.talk import WorkItemUpdated
from scout.model.flight import (
    FLIGHT,
    CompletedBy,
    Flight,
    FlightMove,
    FlightPhase,
    FlightState,
    complete_flight,
    retry_remedy,
    start_flight,
)
from scout.model.problems.session import Layer
from scout.model.question import Question, QuestionState
from scout.model.work_item import WorkItem, WorkMove, WorkState
from scout.policy.wake import Cause
from scout.protocol.operations import command_line

_WORK_MOVES = {
    WorkState.WAITING: WorkMove.WAIT,
    WorkState.REVIEW: WorkMove.SUBMIT,
    WorkState.DONE: WorkMove.ACCEPT,
    WorkState.CANCELLED: WorkMove.CANCEL,
}
_ENDED = {
    FlightState.COMPLETED: FlightMove.COMPLETE,
    FlightState.FAILED: FlightMove.FAIL,
    FlightState.CANCELLED: FlightMove.CANCEL,
}


def record_delivery(
    tx: Transaction,
    before: Delivery,
    after: Delivery,
    move: DeliveryMove = DeliveryMove.DEAD_LETTER,
    *,
    layer: Layer = Layer.ADAPTER,
    log: str | None = None,
    remedies: tuple[Remedy, ...] = (),
) -> Delivery:
    """Store a delivery's change; its flight follows, and a sender whose message comes back is told."""
    dead = after.state is DeliveryState.DEAD_LETTERED
    kind = DeliveryDeadLettered if dead else DELIVERY_EVENTS[move]
    tx.record(kind, after, move=move, reason=after.problem)
    flight = tx.get(Flight, after.flight_id)
    if flight is not None:
        _follow(tx, flight, after, Trouble(layer, log, remedies))
    elif dead:
        _bounce(tx, after)
    return after


def record_wake(tx: Transaction, delivery: Delivery, reason: str) -> None:
    """Store that something was really woken for a delivery: a program took it, or a session's door did."""
    tx.record(DeliveryWoken, delivery, move="wake", reason=reason)


def note_after_end(tx: Transaction, flight: Flight, message: Message) -> Delivery | None:
    """The asker finds what was said after an ask came to nothing: it may be the answer. Nobody is woken."""
    ask = tx.get(Ask, flight.ask_id)
    came_to_nothing = flight.state in (FlightState.FAILED, FlightState.CANCELLED)
    if ask is None or not came_to_nothing or ask.reply_mode is ReplyMode.NONE:
        return None
    asker = tx.agent(ask.reply_to or ask.sender)
    if asker is None or asker.lifecycle is Lifecycle.RETIRED or asker.id in tx.services.own_agents:
        return None
    said = replace(message, flight_id=None)  # it is no part of the flight any more
    reason = f"a note after the end: the ask {ask.id} is {flight.state}"
    return posts.deliver(tx, said, asker.id, rule="note", reason=reason)


def _follow(tx: Transaction, flight: Flight, delivery: Delivery, trouble: Trouble) -> None:
    if delivery.state is DeliveryState.DEAD_LETTERED:
        address = tx.address(flight.target)
        failed = on_dead_lettered(flight, delivery, tx.now, address=address, trouble=trouble)
        if failed is not flight:
            finish_flight(tx, flight, failed)
        return
    following = follow_delivery(flight, delivery, tx.now)
    if following is flight:
        return
    if following.state is flight.state:
        record_note(tx, following)
    else:
        record_start(tx, following)


def record_note(tx: Transaction, flight: Flight) -> Flight:
    """Store another phase, reason or next check."""
    return tx.record(FlightUpdated, flight, move=flight.phase, reason=flight.reason)


def record_start(tx: Transaction, flight: Flight) -> Flight:
    """Store that the target took it; the work it belongs to has begun."""
    tx.record(FLIGHT_EVENTS[FlightMove.START], flight, move=FlightMove.START, reason=flight.reason)
    _work(tx, flight)
    return flight


def finish_flight(tx: Transaction, before: Flight, after: Flight) -> Flight:
    """Store a flight's end: nothing more is delivered for it, its work follows, its asker can know."""
    step = _ENDED[after.state]
    tx.record(FLIGHT_EVENTS[step], after, move=step, reason=after.reason)
    for delivery in tx.ledger.many(Delivery, "deliveries_of_flight", flight=after.id):
        closed = close_delivery(delivery, after, tx.now)
        if closed is not delivery:
            cancel = DeliveryMove.CANCEL
            tx.record(DELIVERY_EVENTS[cancel], closed, move=cancel, reason=closed.problem)
    _unasked(tx, before, after)
    _work(tx, after)
    attention_items.close_items_of(tx, before)
    if before.phase is FlightPhase.HELD:
        settle_held(tx, before.target)
    if after.state is not FlightState.COMPLETED:
        _tell_failure(tx, after)
    else:
        _look_at_task(tx, after.target)
    return after


def _look_at_task(tx: Transaction, agent_id: str) -> None:
    """An agent that was there for one task is looked at by the next round of the sweeper."""
    agent = tx.agent(agent_id)
    if agent is not None and agent.kind is Kind.TASK:
        tx.ledger.refresh(replace(agent, last_active_at=None))
        tx.cache.agents.pop(agent_id, None)


def _unasked(tx: Transaction, before: Flight, after: Flight) -> None:
    """A flight that is over needs no answer any more."""
    asked = before.waiting_on.ref if before.is_asking and before.waiting_on else None
    question = tx.get(Question, asked)
    if question is not None and question.state is QuestionState.OPEN:
        answers.close(tx, question, f"flight {after.id} is {after.state}")


def _work(tx: Transaction, flight: Flight) -> None:
    """The flight's work item follows it; who is to review it is told, unless the flight's answer tells it."""
    item = tx.get(WorkItem, flight.work_item_id)
    if item is None:
        return
    sender = None if flight.state is FlightState.CANCELLED else flight.target
    reason = f"flight {flight.id} is {flight.state}"
    resumes = item.state is WorkState.WAITING
    for step in follow_flight(item, flight, tx.now):
        move = _WORK_MOVES.get(step.state, WorkMove.RESUME if resumes else WorkMove.START)
        if step.state is not WorkState.REVIEW or step.next_move_owner_id == flight.requester_id:
            notices.record_and_notify(tx, WorkItemUpdated, step, move=move, reason=reason, sender=sender)
            continue
        review = f"for review: {step.title}\n\nwork item {step.id}"
        notices.record_and_wake(
            tx,
            WorkItemUpdated,
            step,
            move=move,
            cause=Cause.MOVE,
            text=review,
            reason=reason,
            sender=sender,
        )


def complete_with_answer(
    tx: Transaction, flight: Flight, text: str, by: CompletedBy, attachments: tuple[Attachment, ...] = ()
) -> Flight:
    """The first reply to an ask completes it; it is said in the ask's conversation and goes to its asker."""
    ask, text = tx.need(Ask, "ask", flight.ask_id), hide_tokens(tx, text)
    if flight.state is FlightState.QUEUED:
        flight = record_start(tx, start_flight(flight, tx.now))
    FLIGHT.after(flight.state, FlightMove.COMPLETE)
    if not text.strip():
        return finish_flight(tx, flight, complete_flight(flight, text, tx.now, by=by))
    message = posts.post(
        tx,
        flight.conversation_id,
        text,
        sender=flight.target,
        kind=MessageKind.FINAL,
        attachments=attachments,
        ask_id=ask.id,
        flight_id=flight.id,
        work_item_id=flight.work_item_id,
        metadata=Metadata(in_reply_to=ask.message_id, target_agents=(ask.reply_to or ask.sender,)),
    )
    done = complete_flight(flight, text, tx.now, by=by, message_id=message.id)
    finish_flight(tx, flight, done)
    if ask.reply_mode is ReplyMode.NOTIFY or ask.reply_to or ask.reply_to_session_id:
        target, session = ask.reply_to or ask.sender, ask.reply_to_session_id
        said = replace(message, flight_id=None)  # what is delivered for the flight is the ask
        posts.deliver(tx, said, target, rule="reply", session_id=session, reason="the answer")
    return done


def _tell_failure(tx: Transaction, flight: Flight) -> None:
    """Nobody is left to find out by chance that an ask came to nothing."""
    ask = tx.get(Ask, flight.ask_id)
    if ask is None or ask.reply_mode is ReplyMode.NONE or _knows(tx, flight, ask):
        return
    remedies = flight.error.remedies if flight.error else (retry_remedy(flight),)
    tries = [f"try: {command_line(remedy)}" for remedy in remedies]
    text = "\n".join([f"{tx.address(flight.target)} {flight.state}: {flight.reason}", *tries])
    _tell(tx, flight.conversation_id, ask.reply_to or ask.sender, text, ask.message_id)


def _knows(tx: Transaction, flight: Flight, ask: Ask) -> bool:
    """Who cancelled it knows; who waits for it sees it now."""
    if flight.state is FlightState.CANCELLED and tx.sender == ask.sender:
        return True
    waits = tx.services.is_awaited(f"{flight.id} {ask.sender}")
    return waits and ask.reply_mode is ReplyMode.INLINE and ask.reply_to is None


def report_failure(tx: Transaction, delivery: Delivery, problem: str) -> None:
    """A message whose turn came to nothing: its sender is told."""
    if delivery.sender not in tx.services.own_agents and delivery.conversation_id is not None:
        text = f"{tx.address(delivery.target)}: {problem}"
        _tell(tx, delivery.conversation_id, delivery.sender, text, delivery.message_id)
        _alert(tx, delivery, text)


def _bounce(tx: Transaction, delivery: Delivery) -> None:
    bounce = bounce_of(delivery, tx.address(delivery.target))
    if delivery.sender in tx.services.own_agents or delivery.conversation_id is None:
        return  # a notice that cannot be delivered is not noticed again
    again = Remedy(operation="send", parameters={"to": bounce.address, "body": "…"})
    text = f"{bounce.text}\ntry: {command_line(again)}"
    _tell(tx, delivery.conversation_id, bounce.to, text, bounce.message_id)
    _alert(tx, delivery, text)


def _alert(tx: Transaction, delivery: Delivery, text: str) -> None:
    """A person who was not waiting for anything learns of the failure; of one agent's once."""
    sender = tx.agent(delivery.sender)
    if sender is not None and attention_items.is_person(sender):
        attention_items.open_item(
            tx,
            AttentionKind.FAILURE,
            user=sender.owner or tx.services.operator,
            source=tx.services.system_agent,
            agent_id=delivery.target,
            title=attention_items.title_of(text),
            body=text,
            dedupe=f"failure:{delivery.target}",
        )


def _tell(tx: Transaction, conversation_id: str, target: str, text: str, about: str | None) -> None:
    message = posts.post(
        tx,
        conversation_id,
        text,
        sender=tx.services.system_agent,
        kind=MessageKind.STATUS,
        metadata=Metadata(in_reply_to=about, target_agents=(target,)),
    )
    posts.deliver(tx, message, target, rule="notice", reason="something of yours came back")
