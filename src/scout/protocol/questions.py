"""Requests about questions: information wanted, apart from chat and from work."""

from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.model.question import Question, QuestionState
from scout.model.work_item import WorkItem
from scout.protocol.parameters import Body, Cursor, Limit, Revision, Seconds, Words, says
from scout.protocol.request import Page, Request, Write

__all__ = [
    "AnswerQuestion",
    "CloseQuestion",
    "CreateQuestion",
    "DeclineQuestion",
    "GetQuestion",
    "ListQuestions",
    "QuestionView",
    "ReopenQuestion",
    "Spawn",
]


class QuestionView(Question):
    """A question, how its people are called, and the work that it is about or that came of it."""

    asker_address: str
    responder_address: str
    work_item: WorkItem | None = None
    notes: tuple[str, ...] = ()


class CreateQuestion(Write[QuestionView]):
    """Ask for information, without asking for work."""

    operation: ClassVar[str] = "question.create"
    route: ClassVar[str] = "POST /v1/questions"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("to", "body")
    flags: ClassVar[dict[str, str]] = {
        "options": "option",
        "flightId": "flight",
        "conversationId": "conversation",
        "workItemId": "work",
    }
    permission: ClassVar[str] = "who may address the responder"

    to: Annotated[Words, says("who answers: any address, or a flight for the one who asked in it")]
    body: Body
    options: Annotated[tuple[Words, ...], says("an answer to choose from; any other text is one too")] = ()
    flight_id: Annotated[
        Words | None, says("the flight you work on: it waits for the answer, and this is no loop")
    ] = None
    work_item_id: Annotated[Words | None, says("the work item it is about")] = None
    conversation_id: Annotated[Words | None, says("in this conversation instead of the direct one")] = None
    wait: Annotated[Seconds, says("answer after the answer or this many seconds, at most 60")] = 0


class ListQuestions(Request[Page[QuestionView]]):
    """List questions, newest first: those you asked or are to answer; the operator sees all."""

    operation: ClassVar[str] = "question.list"
    route: ClassVar[str] = "GET /v1/questions"
    permission: ClassVar[str] = "what you may read"

    owed: Annotated[bool, says("only those whose next move is yours")] = False
    asked: Annotated[bool, says("only those you asked")] = False
    state: Annotated[QuestionState | None, says("only in this state")] = None
    cursor: Cursor = None
    limit: Limit = None


class GetQuestion(Request[QuestionView]):
    """Show a question, at once or when it is answered."""

    operation: ClassVar[str] = "question.show"
    route: ClassVar[str] = "GET /v1/questions/{questionId}"
    words: ClassVar[tuple[str, ...]] = ("questionId",)
    permission: ClassVar[str] = "asker, responder, or who may read them"

    question_id: Words
    wait: Annotated[Seconds, says("wait this long for an answer, at most 60; then as it is")] = 0


class Spawn(Record, forbid_unknown_fields=True):
    """The work that an answer turned out to need; `ownerId` is any address."""

    title: Words
    owner_id: Words


class AnswerQuestion(Write[QuestionView]):
    """Answer a question; the first answer wins. It may spawn a linked work item."""

    operation: ClassVar[str] = "question.answer"
    route: ClassVar[str] = "POST /v1/questions/{questionId}/answer"
    words: ClassVar[tuple[str, ...]] = ("questionId", "answer")
    permission: ClassVar[str] = "the responder, or who acts for it"

    question_id: Words
    answer: Annotated[str, says("the answer, or one of the options")]
    spawn_work: Annotated[Spawn | None, says("work to begin with the answer: title and ownerId")] = None
    revision: Revision = None


class DeclineQuestion(Write[QuestionView]):
    """Say that you will not answer, and why."""

    operation: ClassVar[str] = "question.decline"
    route: ClassVar[str] = "POST /v1/questions/{questionId}/decline"
    words: ClassVar[tuple[str, ...]] = ("questionId", "reason")
    permission: ClassVar[str] = "the responder, or who acts for it"

    question_id: Words
    reason: Annotated[Words, says("why not")] = ""
    revision: Revision = None


class CloseQuestion(Write[QuestionView]):
    """Put a question away: nobody needs it any more."""

    operation: ClassVar[str] = "question.close"
    route: ClassVar[str] = "POST /v1/questions/{questionId}/close"
    words: ClassVar[tuple[str, ...]] = ("questionId",)
    permission: ClassVar[str] = "the asker, or who acts for it"

    question_id: Words
    reason: Annotated[Words, says("why")] = ""
    revision: Revision = None


class ReopenQuestion(Write[QuestionView]):
    """Ask again, the same one or another."""

    operation: ClassVar[str] = "question.reopen"
    route: ClassVar[str] = "POST /v1/questions/{questionId}/reopen"
    words: ClassVar[tuple[str, ...]] = ("questionId",)
    permission: ClassVar[str] = "the asker, or who acts for it"

    question_id: Words
    to: Annotated[Words | None, says("another who is to answer")] = None
    reason: Annotated[Words, says("what was missing")] = ""
    revision: Revision = None
