"""Turns of a session that a person has open: which ask a turn is for, and what happens when it ends."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from scout.base.refusal import Remedy
from scout.broker.effects import flight_state
from scout.broker.routing import attention_items
from scout.broker.transaction.transaction import Transaction
from scout.model.ask import Ask
from scout.model.attention import AttentionKind, ReturnPath
from scout.model.conversation import Message, make_storable
from scout.model.delivery import Delivery
from scout.model.events.asks import FLIGHT_EVENTS
from scout.model.events.presence import SessionUpdated
from scout.model.flight import CompletedBy, Flight, FlightMove, FlightState, wait_flight
from scout.model.session import LiveTurn, Session, note_turn
from scout.model.waiting import WaitingKind, WaitingOn
from scout.policy.host_text import Mail, build_reminder, build_sent_line
from scout.policy.live_turn import TurnStep, choose_step
from scout.protocol.operations import build_command_line
from scout.store.ledger import LAST

_MANY = 200


class Ended(NamedTuple):
    """`context`: the reminder for the agent after a turn. `notice`: the line shown to the person."""

    context: str = ""
    notice: str = ""


def begin_turn(tx: Transaction, session: Session, taken: Sequence[Delivery]) -> None:
    """Record which ask a turn is for; a prompt without an ask is the person's own."""
    flight_id = next((one.flight_id for one in taken if one.flight_id), None)
    known = session.live_turn or LiveTurn()
    keep_turn(tx, session, replace(known, alone_for=flight_id))


def end_turn(tx: Transaction, session: Session, text: str) -> Ended:
    """End a turn: complete each unanswered flight, remind the agent of it, or make it wait for the person."""
    known, text = session.live_turn or LiveTurn(), make_storable(text)
    steps = [(one, choose_step(known, one.id, text)) for one in _find_running(tx, session)]
    sent = [_hand_over(tx, session, one, text) for one, step in steps if step is TurnStep.REPLY]
    for flight in (one for one, step in steps if step is TurnStep.WAIT):
        _wait_for_user(tx, session, flight)
    owed = [one for one, step in steps if step is TurnStep.REMIND]
    keep_turn(tx, session, LiveTurn(reminded=tuple(one.id for one in owed), told=known.told))
    mails = [_build_mail(tx, one) for one in owed]
    context = build_reminder(mails, session.harness) if mails else ""
    return Ended(context=context, notice=build_sent_line(sent))


def keep_turn(tx: Transaction, session: Session, known: LiveTurn) -> None:
    """Record the details of a session's current turn if they changed."""
    if known != (session.live_turn or LiveTurn()):
        tx.record(SessionUpdated, note_turn(session, known, tx.now), move="turn")


def _find_running(tx: Transaction, session: Session) -> list[Flight]:
    """Return the session's running flights, oldest first."""
    found = tx.ledger.many(Flight, "flights_open_to", agent=session.agent_id, before=LAST, limit=_MANY)
    mine = [one for one in found if one.session_id == session.id and one.state is FlightState.RUNNING]
    return mine[::-1]


def _hand_over(tx: Transaction, session: Session, flight: Flight, text: str) -> str:
    """Complete a flight with the turn's last text; return the recipient's name."""
    ask = tx.need(Ask, "ask", flight.ask_id)
    flight_state.complete_with_answer(tx, flight, text, CompletedBy.FINAL_TEXT)
    return describe_sender(tx, session, ask.reply_to or ask.sender)


def describe_sender(tx: Transaction, session: Session, agent_id: str) -> str:
    """Return the sender's name as shown to a session: its address, or "you" for its user."""
    return (
        "you" if agent_id == attention_items.find_person_for(tx, session.agent_id) else tx.address(agent_id)
    )


def _wait_for_user(tx: Transaction, session: Session, flight: Flight) -> None:
    """Make the flight wait for the person at the session, because a reminder brought no answer."""
    person, ask = attention_items.find_person_for(tx, session.agent_id), _build_mail(tx, flight)
    agent = tx.agent(session.agent_id)
    who = "You wait" if ask.by_user else f"{ask.sender} waits"
    title = f"{who} for an answer of the {session.harness} session in {session.cwd}: {ask.body}"
    cancel = build_command_line(Remedy(operation="flight.cancel", parameters={"flightId": flight.id}))
    reason = f"its {session.harness} session ended a turn without an answer"
    on = WaitingOn(kind=WaitingKind.OPERATOR, ref=session.id)
    waiting = wait_flight(flight, on, tx.now, next_move_owner_id=person, reason=reason)
    tx.record(FLIGHT_EVENTS[FlightMove.WAIT], waiting, move=FlightMove.WAIT, reason=reason)
    attention_items.open_item(
        tx,
        AttentionKind.WAITING,
        user=(agent.owner if agent else None) or tx.services.operator,
        source=flight.id,
        agent_id=flight.target,
        title=attention_items.shorten_title(title),
        body=f"Tell that session to answer with messages_reply, or cancel the ask: {cancel}",
        return_path=ReturnPath(flight_id=flight.id, session_id=session.id),
        dedupe=flight.id,
    )


def _build_mail(tx: Transaction, flight: Flight) -> Mail:
    ask = tx.need(Ask, "ask", flight.ask_id)
    message = tx.need(Message, "message", ask.message_id)
    return Mail(
        sender=tx.address(ask.sender),
        message_id=message.id,
        body=message.body,
        asks=True,
        by_user=ask.sender == attention_items.find_person_for(tx, flight.target),
    )
