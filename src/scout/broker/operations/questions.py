"""Questions: requests for information with one answer, separate from chat and work."""

from scout.base.refusal import BadRequest, Refused
from scout.broker.effects import answers, notices
from scout.broker.effects.notices import Noticed
from scout.broker.operations import flights
from scout.broker.routing import conversations, posts
from scout.broker.routing.views import build_question_view
from scout.broker.transaction.paging import build_filtered_page, decode_bound
from scout.broker.transaction.transaction import Transaction, build_subject, require_owner, require_reader
from scout.model.agent import Agent
from scout.model.conversation import Conversation, MessageKind, check_body
from scout.model.events.asks import FLIGHT_EVENTS
from scout.model.events.talk import QUESTION_EVENTS, QuestionCreated, QuestionEvent
from scout.model.flight import Flight, FlightMove, wait_flight
from scout.model.question import Question, QuestionMove, SpawnWork, create_question, reopen_question
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import WorkItem
from scout.policy.permit import Deed
from scout.policy.wake import Cause
from scout.protocol.questions import (
    AnswerQuestion,
    CloseQuestion,
    CreateQuestion,
    DeclineQuestion,
    GetQuestion,
    ListQuestions,
    QuestionView,
    ReopenQuestion,
)
from scout.protocol.request import Page

_LINE = 120


def create(tx: Transaction, request: CreateQuestion) -> QuestionView:
    """Ask a question: the responder gets the next move and is notified; a named flight waits for it."""
    asked_in = tx.get(Flight, request.to) if request.to.startswith("flt_") else None
    body = check_body(request.body)
    responder = _find_responder(tx, request.to, asked_in)
    flight = _find_waiting_flight(tx, request, asked_in)
    about = tx.need(WorkItem, "work item", request.work_item_id) if request.work_item_id else None
    if about is not None:
        require_reader(tx, about.owner_id, about.requester_id, about.next_move_owner_id)
    question = create_question(
        tx.mint("qst"),
        body,
        tx.now,
        asker_id=tx.sender,
        responder_id=responder.id,
        options=request.options,
        conversation_id=_find_conversation(tx, request, responder),
        flight_id=flight.id if flight else None,
        work_item_id=about.id if about else None,
    )
    told = _record_and_ask(tx, QuestionCreated, question, _build_text(question), move="create")
    if flight is not None:
        _wait_for_answer(tx, flight, told.record)
    return _show(tx, told)


def _find_waiting_flight(tx: Transaction, request: CreateQuestion, asked_in: Flight | None) -> Flight | None:
    """Return the flight that waits for the answer: the named one, else the caller's own flight in `to`."""
    own = asked_in.id if asked_in and asked_in.target == tx.sender else None
    named = request.flight_id or own
    return flights.take_flight(tx, named) if named else None


def _find_responder(tx: Transaction, address: str, asked_in: Flight | None = None) -> Agent:
    """Return the agent that must answer. The target of a flight may ask its requester, of any user."""
    if asked_in is not None and asked_in.target == tx.sender:
        return tx.need(Agent, "agent", asked_in.requester_id)
    agent = tx.resolve(asked_in.requester_id if asked_in else address).agent
    tx.permit(Deed.ADDRESS, build_subject(agent))
    if agent.id == tx.sender:
        raise Refused(BadRequest(problem="you cannot ask yourself a question", field="to"))
    return agent


def _find_conversation(tx: Transaction, request: CreateQuestion, responder: Agent) -> str | None:
    """Return the named conversation, if any; asker and responder become its members."""
    if request.conversation_id is None:
        return None
    conversation = tx.need(Conversation, "conversation", request.conversation_id)
    conversations.require_readable(tx, conversation)
    for one in (tx.sender, responder.id):
        posts.ensure_member(tx, conversation.id, one)
    return conversation.id


def _build_text(question: Question) -> str:
    """Return the text for the responder: the question and its answer options."""
    options = "".join(f"\n- {option}" for option in question.options)
    return f"{question.body}\n{options}" if options else question.body


def _record_and_ask(
    tx: Transaction, kind: type[QuestionEvent], question: Question, text: str, *, move: str, reason: str = ""
) -> Noticed[Question]:
    return notices.record_and_wake(
        tx,
        kind,
        question,
        move=move,
        cause=Cause.QUESTION,
        text=text,
        reason=reason,
        message_kind=MessageKind.QUESTION,
    )


def _wait_for_answer(tx: Transaction, flight: Flight, question: Question) -> None:
    on, step = WaitingOn(kind=WaitingKind.QUESTION, ref=question.id), FlightMove.WAIT
    asks = f"asks {tx.address(question.responder_id)}: {question.body.strip().splitlines()[0][:_LINE]}"
    waiting = wait_flight(flight, on, tx.now, next_move_owner_id=question.responder_id, reason=asks)
    tx.record(FLIGHT_EVENTS[step], waiting, move=step, reason=waiting.reason)


# -- reading -----------------------------------------------------------------------------------------


def get(tx: Transaction, request: GetQuestion) -> QuestionView:
    """Return one question."""
    return build_question_view(tx, find_readable(tx, request.question_id))


def find_readable(tx: Transaction, ident: str) -> Question:
    """Return a question, for its asker, its responder, and callers that may read them."""
    question = tx.need(Question, "question", ident)
    require_reader(tx, question.responder_id, question.asker_id)
    return question


def list_questions(tx: Transaction, request: ListQuestions) -> Page[QuestionView]:
    """List the caller's questions, newest first; the operator sees all."""
    query = "questions_owed" if request.owed else "questions_asked" if request.asked else "questions_of"
    values = {"agent": tx.sender}
    if query == "questions_of" and tx.is_operator:
        query, values = "questions_all", {}
    listed = build_filtered_page(
        lambda bound, limit: tx.ledger.many(Question, query, before=bound, limit=limit, **values),
        lambda one: request.state in (None, one.state) and (not request.asked or one.asker_id == tx.sender),
        decode_bound(request.cursor),
        request.limit,
        tx.rules.limits,
    )
    return Page(items=tuple(build_question_view(tx, one) for one in listed.items), next=listed.next)


# -- moves -------------------------------------------------------------------------------------------


def _get_question(tx: Transaction, ident: str, *, by_asker: bool = False) -> Question:
    """Return the question if the caller is its responder, or with `by_asker` its asker."""
    question = tx.need(Question, "question", ident)
    require_owner(tx, "question", ident, question.asker_id if by_asker else question.responder_id)
    return question


def answer(tx: Transaction, request: AnswerQuestion) -> QuestionView:
    """Answer a question; the answer may create a work item."""
    question = _get_question(tx, request.question_id)
    spawn = None
    if request.spawn_work is not None:
        owner = tx.resolve(request.spawn_work.owner_id).agent
        tx.permit(Deed.ADDRESS, build_subject(owner))
        spawn = SpawnWork(title=request.spawn_work.title, owner_id=owner.id)
    return _show(tx, answers.record_answer(tx, question, request.answer, seen=request.revision, spawn=spawn))


def decline(tx: Transaction, request: DeclineQuestion) -> QuestionView:
    """Decline a question, with a reason."""
    question = _get_question(tx, request.question_id)
    return _show(tx, answers.record_decline(tx, question, request.reason, seen=request.revision))


def close(tx: Transaction, request: CloseQuestion) -> QuestionView:
    """Close a question; asker only."""
    question = _get_question(tx, request.question_id, by_asker=True)
    return _show(tx, answers.record_close(tx, question, request.reason, seen=request.revision))


def reopen(tx: Transaction, request: ReopenQuestion) -> QuestionView:
    """Ask a question again, of the same responder or another."""
    question = _get_question(tx, request.question_id, by_asker=True)
    responder = _find_responder(tx, request.to or question.responder_id)
    again = reopen_question(
        question, tx.now, seen=request.revision, responder_id=responder.id, reason=request.reason
    )
    text = f"{request.reason}\n\n{_build_text(again)}" if request.reason else _build_text(again)
    step = QuestionMove.REOPEN
    return _show(
        tx, _record_and_ask(tx, QUESTION_EVENTS[step], again, text, move=step, reason=request.reason)
    )


def _show(tx: Transaction, told: Noticed[Question]) -> QuestionView:
    return build_question_view(tx, told.record, told.notes)
