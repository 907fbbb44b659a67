"""Questions: information wanted, answered once, apart from chat and from work."""

from scout.base.refusal import BadRequest, Refused
from scout.broker.effects import answers, notices
from scout.broker.effects.notices import Told
from scout.broker.operations import flights
from scout.broker.routing import conversations, posts
from scout.broker.routing.views import question_view
from scout.broker.transaction import ownership
from scout.broker.transaction.paging import before, sought
from scout.broker.transaction.transaction import Turn, subject_of
from scout.model.agent import Agent
from scout.model.conversation import Conversation, MessageKind, check_body
from scout.model.events.asks import FLIGHT_EVENTS
from scout.model.events.talk import QUESTION_EVENTS, QuestionCreated, QuestionEvent
from scout.model.flight import Flight, FlightMove, wait_flight
from scout.model.question import Question, QuestionMove, SpawnWork, new_question, reopen_question
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

__all__ = ["answer", "close", "create", "decline", "get", "list_questions", "reopen"]

_LINE = 120


def create(turn: Turn, request: CreateQuestion) -> QuestionView:
    """Ask: the responder holds the next move and is told; a flight that is named waits for the answer."""
    asked_in = turn.ledger.get(Flight, request.to) if request.to.startswith("flt_") else None
    body = check_body(request.body)
    responder = _responder(turn, asked_in.requester_id if asked_in else request.to)
    flight = _waiting_flight(turn, request, asked_in)
    about = turn.need(WorkItem, "work item", request.work_item_id) if request.work_item_id else None
    if about is not None:
        ownership.check_reader(turn, about.owner_id, about.requester_id, about.next_move_owner_id)
    question = new_question(
        turn.mint("qst"),
        body,
        turn.now,
        asker_id=turn.sender,
        responder_id=responder.id,
        options=request.options,
        conversation_id=_conversation(turn, request, responder),
        flight_id=flight.id if flight else None,
        work_item_id=about.id if about else None,
    )
    told = _asked(turn, QuestionCreated, question, _text(question), move="create")
    if flight is not None:
        _wait(turn, flight, told.record)
    return _shown(turn, told)


def _waiting_flight(turn: Turn, request: CreateQuestion, asked_in: Flight | None) -> Flight | None:
    """The flight that waits for the answer: the named one, else the sender's own, in which it asks back."""
    own = asked_in.id if asked_in and asked_in.target == turn.sender else None
    named = request.flight_id or own
    return flights.taken(turn, named) if named else None


def _responder(turn: Turn, address: str) -> Agent:
    """The agent that is to answer."""
    agent = turn.resolve(address).agent
    turn.permit(Deed.ADDRESS, subject_of(agent))
    if agent.id == turn.sender:
        raise Refused(BadRequest(problem="a question is for somebody else than who asks it", field="to"))
    return agent


def _conversation(turn: Turn, request: CreateQuestion, responder: Agent) -> str | None:
    """Where it is asked, if a conversation is named: both take part in it from here on."""
    if request.conversation_id is None:
        return None
    conversation = turn.need(Conversation, "conversation", request.conversation_id)
    conversations.may_read(turn, conversation)
    for one in (turn.sender, responder.id):
        posts.joined(turn, conversation.id, one)
    return conversation.id


def _text(question: Question) -> str:
    """What the responder reads: the question itself, and the answers to choose from."""
    options = "".join(f"\n- {option}" for option in question.options)
    return f"{question.body}\n{options}" if options else question.body


def _asked(
    turn: Turn, kind: type[QuestionEvent], question: Question, text: str, *, move: str, reason: str = ""
) -> Told[Question]:
    return notices.recorded(
        turn,
        kind,
        question,
        move=move,
        cause=Cause.QUESTION,
        text=text,
        reason=reason,
        message_kind=MessageKind.QUESTION,
    )


def _wait(turn: Turn, flight: Flight, question: Question) -> None:
    on, step = WaitingOn(kind=WaitingKind.QUESTION, ref=question.id), FlightMove.WAIT
    asks = f"asks {turn.address(question.responder_id)}: {question.body.strip().splitlines()[0][:_LINE]}"
    waiting = wait_flight(flight, on, turn.now, next_move_owner_id=question.responder_id, reason=asks)
    turn.record(FLIGHT_EVENTS[step], waiting, move=step, reason=waiting.reason)


# -- looking -----------------------------------------------------------------------------------------


def get(turn: Turn, request: GetQuestion) -> QuestionView:
    """One question, for who asked, who is to answer, and who may read them."""
    question = turn.need(Question, "question", request.question_id)
    ownership.check_reader(turn, question.responder_id, question.asker_id)
    return question_view(turn, question)


def list_questions(turn: Turn, request: ListQuestions) -> Page[QuestionView]:
    """Questions, newest first: those of the caller; the operator sees all."""
    query = "questions_owed" if request.owed else "questions_asked" if request.asked else "questions_of"
    values = {"agent": turn.sender}
    if query == "questions_of" and turn.is_operator:
        query, values = "questions_all", {}
    listed = sought(
        lambda bound, limit: turn.ledger.many(Question, query, before=bound, limit=limit, **values),
        lambda one: request.state in (None, one.state) and (not request.asked or one.asker_id == turn.sender),
        before(request.cursor),
        request.limit,
        turn.rules.limits,
    )
    return Page(items=tuple(question_view(turn, one) for one in listed.items), next=listed.next)


# -- moves -------------------------------------------------------------------------------------------


def _found(turn: Turn, ident: str, *, by_asker: bool = False) -> Question:
    """The question, if the caller may move it: its responder, or to put it away or ask again its asker."""
    question = turn.need(Question, "question", ident)
    ownership.check_mover(turn, "question", ident, question.asker_id if by_asker else question.responder_id)
    return question


def answer(turn: Turn, request: AnswerQuestion) -> QuestionView:
    """The first answer; work may begin with it."""
    question = _found(turn, request.question_id)
    spawn = None
    if request.spawn_work is not None:
        owner = turn.resolve(request.spawn_work.owner_id).agent
        turn.permit(Deed.ADDRESS, subject_of(owner))
        spawn = SpawnWork(title=request.spawn_work.title, owner_id=owner.id)
    return _shown(turn, answers.answer(turn, question, request.answer, seen=request.revision, spawn=spawn))


def decline(turn: Turn, request: DeclineQuestion) -> QuestionView:
    """No answer, and why."""
    question = _found(turn, request.question_id)
    return _shown(turn, answers.decline(turn, question, request.reason, seen=request.revision))


def close(turn: Turn, request: CloseQuestion) -> QuestionView:
    """Put away by who asked."""
    question = _found(turn, request.question_id, by_asker=True)
    return _shown(turn, answers.close(turn, question, request.reason, seen=request.revision))


def reopen(turn: Turn, request: ReopenQuestion) -> QuestionView:
    """Asked again, of the same one or another."""
    question = _found(turn, request.question_id, by_asker=True)
    responder = _responder(turn, request.to or question.responder_id)
    again = reopen_question(
        question, turn.now, seen=request.revision, responder_id=responder.id, reason=request.reason
    )
    text = f"{request.reason}\n\n{_text(again)}" if request.reason else _text(again)
    step = QuestionMove.REOPEN
    return _shown(turn, _asked(turn, QUESTION_EVENTS[step], again, text, move=step, reason=request.reason))


def _shown(turn: Turn, told: Told[Question]) -> QuestionView:
    return question_view(turn, told.record, told.notes)
