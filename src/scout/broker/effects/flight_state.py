"""Effects of a changed delivery or flight, in the same transaction."""

from msgspec.structs import replace

from scout.base.refusal import Remedy
from scout.broker.effects import answers, family, notices, reservations, scheduled_runs
from scout.broker.routing import attention_items, posts, wake
from scout.broker.routing.attention_items import close_held_item
from scout.broker.routing.remote import is_remote
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import Kind
from scout.model.access.token import Token, find_secrets, hash_secret, hide_secrets, is_valid
from scout.model.agent import Lifecycle
from scout.model.ask import Ask, ReplyMode
from scout.model.attention import AttentionKind
from scout.model.conversation import Attachment, Message, MessageKind
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, build_bounce
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
    Trouble,
    close_delivery,
    complete_flight,
    follow_dead_letter,
    follow_delivery,
    retry_remedy,
    start_flight,
)
from scout.model.problems.session import Layer
from scout.model.question import Question, QuestionState
from scout.model.work_item import WorkItem, WorkMove, WorkState, follow_flight
from scout.policy.wake import Cause
from scout.protocol.operations import build_command_line

_LOOKED_AT = 1000  # texts that look like tokens, in one answer
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
    """Record a change of a delivery; update its flight, and notify the sender of a bounced message."""
    dead = after.state is DeliveryState.DEAD_LETTERED
    kind = DeliveryDeadLettered if dead else DELIVERY_EVENTS[move]
    tx.record(kind, after, move=move, reason=after.problem)
    flight = tx.get(Flight, after.flight_id)
    if flight is not None:
        _update_flight(tx, flight, after, Trouble(layer, log, remedies))
    elif dead:
        _notify_bounce(tx, after)
    return after


def record_wake(tx: Transaction, delivery: Delivery, reason: str) -> None:
    """Record that a program or a live session was woken for a delivery."""
    tx.record(DeliveryWoken, delivery, move="wake", reason=reason)


def note_after_end(tx: Transaction, flight: Flight, message: Message) -> Delivery | None:
    """Deliver text that came after a failed ask to its asker, without waking it: it may be the answer."""
    ask = tx.get(Ask, flight.ask_id)
    came_to_nothing = flight.state in (FlightState.FAILED, FlightState.CANCELLED)
    if ask is None or not came_to_nothing or ask.reply_mode is ReplyMode.NONE:
        return None
    asker = tx.agent(ask.reply_to or ask.sender)
    if asker is None or asker.lifecycle is Lifecycle.RETIRED or asker.id in tx.services.own_agents:
        return None
    said = replace(message, flight_id=None)  # it is not part of the flight
    reason = f"a note after the end: the ask {ask.id} is {flight.state}"
    return posts.create_delivery(tx, said, asker.id, rule="note", reason=reason)


def _update_flight(tx: Transaction, flight: Flight, delivery: Delivery, trouble: Trouble) -> None:
    if delivery.state is DeliveryState.DEAD_LETTERED:
        address = tx.address(flight.target)
        failed = follow_dead_letter(flight, delivery, tx.now, address=address, trouble=trouble)
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


def record_note(tx: Transaction, flight: Flight, move: str | None = None) -> Flight:
    """Record a new phase, reason or next check."""
    return tx.record(FlightUpdated, flight, move=move or flight.phase, reason=flight.reason)


def record_start(tx: Transaction, flight: Flight) -> Flight:
    """Record that the target took the flight; its work item starts."""
    tx.record(FLIGHT_EVENTS[FlightMove.START], flight, move=FlightMove.START, reason=flight.reason)
    _update_work(tx, flight)
    return flight


def finish_flight(tx: Transaction, before: Flight, after: Flight) -> Flight:
    """Record a flight's end: cancel its deliveries, update its work, notify its asker."""
    step = _ENDED[after.state]
    tx.record(FLIGHT_EVENTS[step], after, move=step, reason=after.reason)
    for delivery in tx.ledger.many(Delivery, "deliveries_of_flight", flight=after.id):
        closed = close_delivery(delivery, after, tx.now)
        if closed is not delivery:
            cancel = DeliveryMove.CANCEL
            tx.record(DELIVERY_EVENTS[cancel], closed, move=cancel, reason=closed.problem)
    _close_question(tx, before, after)
    _update_work(tx, after)
    if tx.has_any("items"):
        attention_items.close_flight_items(tx, before)
    if tx.has_any("reservations"):
        reservations.release_for_flight(tx, after.id, f"flight {after.id} is {after.state}")
    if before.phase is FlightPhase.HELD:
        close_held_item(tx, before.target)
    if after.state is not FlightState.COMPLETED:
        _notify_failure(tx, after)
    if after.state is not FlightState.FAILED:
        _schedule_task_check(tx, after.target)
    asker = tx.agent(after.requester_id)
    if asker is not None and asker.kind is Kind.CRON:
        scheduled_runs.release_waiting_run(tx, after)
    return after


def _schedule_task_check(tx: Transaction, agent_id: str) -> None:
    """Let the next sweep check an agent that existed for one task."""
    agent = tx.agent(agent_id)
    if agent is not None and agent.kind is Kind.TASK:
        tx.ledger.refresh(replace(agent, last_active_at=None))
        tx.cache.agents.pop(agent_id, None)


def _close_question(tx: Transaction, before: Flight, after: Flight) -> None:
    """Close the question that an ended flight waited for."""
    asked = before.waiting_on.ref if before.is_asking and before.waiting_on else None
    question = tx.get(Question, asked)
    if question is not None and question.state is QuestionState.OPEN:
        answers.record_close(tx, question, f"flight {after.id} is {after.state}")


def _update_work(tx: Transaction, flight: Flight) -> None:
    """Update the flight's work item; notify the reviewer, unless the flight's answer does."""
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
    tx: Transaction,
    flight: Flight,
    text: str,
    by: CompletedBy,
    attachments: tuple[Attachment, ...] = (),
    *,
    message_id: str | None = None,
) -> Flight:
    """Complete an ask with its first reply, posted in its conversation and delivered to the asker.

    `message_id`: the id under which another node has stored the reply.
    """
    ask, text = tx.need(Ask, "ask", flight.ask_id), hide_tokens(tx, text)
    if flight.state is FlightState.QUEUED:
        flight = record_start(tx, start_flight(flight, tx.now))
    FLIGHT.after(flight.state, FlightMove.COMPLETE)
    if not text.strip():
        return finish_flight(tx, flight, complete_flight(flight, text, tx.now, by=by))
    message = posts.post_message(
        tx,
        flight.conversation_id,
        text,
        sender=flight.target,
        kind=MessageKind.FINAL,
        message_id=message_id,
        attachments=attachments,
        ask_id=ask.id,
        flight_id=flight.id,
        work_item_id=flight.work_item_id,
        metadata=Metadata(in_reply_to=ask.message_id, target_agents=(ask.reply_to or ask.sender,)),
    )
    done = complete_flight(flight, text, tx.now, by=by, message_id=message.id)
    finish_flight(tx, flight, done)
    if is_remote(tx, ask.sender):
        return done  # the asker's node delivers the answer there
    if ask.reply_mode is ReplyMode.NOTIFY or ask.reply_to or ask.reply_to_session_id:
        target, session = ask.reply_to or ask.sender, ask.reply_to_session_id
        said = replace(message, flight_id=None)  # only the ask is delivered for the flight
        posts.create_delivery(tx, said, target, rule="reply", session_id=session, reason="the answer")
    return done


def hide_tokens(tx: Transaction, text: str) -> str:
    """Return the text without Scout tokens that are valid now."""
    live = [one for one in find_secrets(text)[:_LOOKED_AT] if _is_live(tx, one)]
    return hide_secrets(text, live) if live else text


def _is_live(tx: Transaction, secret: str) -> bool:
    token = tx.ledger.one(Token, "token_hashed", hashed=hash_secret(secret))
    return token is not None and is_valid(token, tx.now)


def _notify_failure(tx: Transaction, flight: Flight) -> None:
    """Notify the asker that its ask failed or was cancelled."""
    ask = tx.get(Ask, flight.ask_id)
    if ask is None or ask.reply_mode is ReplyMode.NONE or _is_asker_aware(tx, flight, ask):
        return
    if is_remote(tx, ask.sender):
        return  # the asker's node tells it
    remedies = flight.error.remedies if flight.error else (retry_remedy(flight),)
    tries = [f"try: {build_command_line(remedy)}" for remedy in remedies]
    text = "\n".join([f"{tx.address(flight.target)} {flight.state}: {flight.reason}", *tries])
    asker = ask.reply_to or ask.sender
    wakes = family.is_left_to_parent(tx, flight, asker)
    _post_notice(tx, flight.conversation_id, asker, text, ask.message_id, wakes=wakes)


def _is_asker_aware(tx: Transaction, flight: Flight, ask: Ask) -> bool:
    """Whether the asker already knows: it cancelled the flight, or is waiting for it now."""
    if flight.state is FlightState.CANCELLED and tx.sender == ask.sender:
        return True
    waits = tx.services.is_awaited(f"{flight.id} {ask.sender}")
    return waits and ask.reply_mode is ReplyMode.INLINE and ask.reply_to is None


def report_failure(tx: Transaction, delivery: Delivery, problem: str) -> None:
    """Notify the sender of a message whose turn failed."""
    if delivery.sender not in tx.services.own_agents and delivery.conversation_id is not None:
        text = f"{tx.address(delivery.target)}: {problem}"
        _post_notice(tx, delivery.conversation_id, delivery.sender, text, delivery.message_id)
        _alert_person(tx, delivery, text)


def _notify_bounce(tx: Transaction, delivery: Delivery) -> None:
    bounce = build_bounce(delivery, tx.address(delivery.target))
    if delivery.sender in tx.services.own_agents or delivery.conversation_id is None:
        return  # no notice about a notice that cannot be delivered
    again = Remedy(operation="send", parameters={"to": bounce.address, "body": "…"})
    text = f"{bounce.text}\ntry: {build_command_line(again)}"
    _post_notice(tx, delivery.conversation_id, bounce.to, text, bounce.message_id)
    _alert_person(tx, delivery, text)


def _alert_person(tx: Transaction, delivery: Delivery, text: str) -> None:
    """Show a person the failure of a plain message in the inbox, once per agent."""
    sender = tx.agent(delivery.sender)
    if sender is not None and sender.is_person and not sender.is_remote:
        attention_items.open_item(
            tx,
            AttentionKind.FAILURE,
            user=sender.owner or tx.services.operator,
            source=tx.services.system_agent,
            agent_id=delivery.target,
            title=attention_items.shorten_title(text),
            body=text,
            dedupe=f"failure:{delivery.target}",
        )


def _post_notice(
    tx: Transaction, conversation_id: str, target: str, text: str, about: str | None, *, wakes: bool = False
) -> None:
    """Post a notice by Scout. `wakes`: its target has to act, so a turn may be started for it."""
    sender = tx.services.system_agent
    decision = family.decide_parent_wake(tx, sender, target, conversation_id) if wakes else None
    message = posts.post_message(
        tx,
        conversation_id,
        text,
        sender=sender,
        kind=MessageKind.CHAT if wakes else MessageKind.STATUS,
        metadata=Metadata(in_reply_to=about, target_agents=(target,)),
    )
    if decision is not None:
        wake.deliver_message(tx, message, target, decision)
    else:
        posts.create_delivery(tx, message, target, rule="notice", reason="your message or ask failed")
