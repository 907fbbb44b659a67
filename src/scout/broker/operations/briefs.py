"""Where somebody stands, in one call: who they are, what they owe, who waits, and the next steps."""

from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from scout.base.refusal import Remedy
from scout.broker.operations import agents, attention
from scout.broker.routing.unread import count_unread
from scout.broker.routing.views import flight_view, question_view, work_view
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.transaction import Transaction
from scout.model.attention import Attention
from scout.model.flight import Flight
from scout.model.question import Question, QuestionState
from scout.model.work_item import WorkItem, WorkState
from scout.protocol.agents import WhoAmI
from scout.protocol.asks import FlightView
from scout.protocol.insight import Brief, ShowBrief
from scout.store.ledger import LAST

_LISTED = 20
_EVER = 1 << 62
_COUNTED = 1000
_BODY = 2000  # of what was asked; the whole is shown with its flight
_STEPS = 5
_WORK_STEPS = {
    WorkState.OPEN: Remedy(operation="work.start", parameters={"workItemId": ""}),
    WorkState.WORKING: Remedy(operation="work.submit", parameters={"workItemId": ""}),
    WorkState.REVIEW: Remedy(operation="work.accept", parameters={"workItemId": ""}),
    WorkState.WAITING: Remedy(operation="work.show", parameters={"workItemId": ""}),
}


async def show_brief(call: CallContext[CallBroker], request: ShowBrief) -> Brief:
    """Answer with a brief, and count the orientation commands that it saves an agent."""
    shown = await call.read(lambda tx: brief(tx, request))
    call.count("orientation_commands_avoided")
    return shown


def brief(tx: Transaction, request: ShowBrief) -> Brief:
    """Enough to go on after a lost context: each list is short and found by an index."""
    many, me, page = tx.ledger.many, tx.sender, {"before": LAST, "limit": _LISTED}
    flights = many(Flight, "flights_open_to", agent=me, **page)
    owed = many(Question, "questions_owed", agent=me, **page)
    questions = [one for one in owed if one.state is QuestionState.OPEN]
    work = many(WorkItem, "work_owed", agent=me, **page)
    answered = [one for one in owed if one.state is QuestionState.ANSWERED]
    asked = many(Flight, "flights_open_for", agent=me, **page)
    needs = many(Attention, "attention_by_open", agent=me, **page)
    unread = count_unread(tx, me)
    awaited = _awaiting_me(tx, me)
    waiting = [one.requester_id for one in (*flights, *work)] + [one.asker_id for one in questions]
    waiting += [one.target for one in awaited]
    told = Brief(
        me=agents.who_am_i(tx, WhoAmI()),
        flights=tuple(_shortened(flight_view(tx, one)) for one in flights),
        questions=tuple(question_view(tx, one) for one in questions),
        work=tuple(work_view(tx, one) for one in work),
        answered=tuple(question_view(tx, one) for one in answered),
        asked=tuple(_shortened(flight_view(tx, one)) for one in asked),
        needs=tuple(attention.view_of(tx, one) for one in needs),
        awaited=tuple(_shortened(flight_view(tx, one)) for one in awaited),
        waiting_for_me=tuple(tx.address(one) for one in dict.fromkeys(waiting) if one != me),
        unread=unread,
        next=(),
        paused=tx.services.paused,
    )
    return replace(told, next=tuple(islice(_steps(told, me), _STEPS)))


def _awaiting_me(tx: Transaction, me: str) -> list[Flight]:
    """Flights of others that wait for the caller's next move, among those that are open."""
    opened = tx.ledger.many(Flight, "flights_due", now=_EVER, limit=_COUNTED)
    mine = [
        one for one in opened if one.next_move_owner_id == me and me not in (one.target, one.requester_id)
    ]
    return mine[:_LISTED]


def _shortened(view: FlightView) -> FlightView:
    return view if len(view.body) <= _BODY else replace(view, body=f"{view.body[:_BODY]}…")


def _steps(told: Brief, me: str) -> Iterator[Remedy]:
    """What to do next; each list begins with the newest, and whoever waits longest comes first."""
    for flight in reversed(told.flights):
        if flight.next_move_owner_id in (None, me):
            why = f"{flight.requester_address} waits for the result"
            result = {"flightId": flight.id, "output": "…"}
            yield Remedy(operation="flight.complete", parameters=result, why=why)
    for flight in told.awaited:
        why = f"it waits for you: {flight.reason}"
        yield Remedy(operation="send", parameters={"to": flight.target_address, "body": "…"}, why=why)
    for question in reversed(told.questions):
        answer = {"questionId": question.id, "answer": "…"}
        yield Remedy(operation="question.answer", parameters=answer, why=f"{question.asker_address} asks")
    for item in reversed(told.work):
        why = f"{item.state}: {item.title}"
        yield replace(_WORK_STEPS[item.state], parameters={"workItemId": item.id}, why=why)
    for question in reversed(told.answered):
        why = f"{question.responder_address} has answered"
        yield Remedy(operation="question.close", parameters={"questionId": question.id}, why=why)
    if told.unread:
        yield Remedy(operation="inbox", parameters={}, why=f"{told.unread} unread")
