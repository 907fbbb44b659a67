"""Requests about questions: information wanted, apart from chat and work."""

from typing import Annotated, ClassVar

from msgspec import UNSET

from scout.base.record import Record
from scout.model.question import Question, QuestionState
from scout.model.work_item import WorkItem
from scout.protocol.parameters import At, Body, Cursor, Limit, Revision, Seconds, Words, describe
from scout.protocol.request import Page, PastMoment, Request, Write


class QuestionView(Question):
    """A question with addresses and its related work item."""

    asker_address: str
    responder_address: str
    work_item: WorkItem | None = None
    notes: tuple[str, ...] = ()
    moment: PastMoment = UNSET


class CreateQuestion(Write[QuestionView]):
    """Ask for information, not for work."""

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
    permission: ClassVar[str] = "callers who may address the responder"

    to: Annotated[Words, describe("the responder's address, or a flight to ask its requester")]
    body: Body
    options: Annotated[tuple[Words, ...], describe("a suggested answer; other answers are allowed")] = ()
    flight_id: Annotated[Words | None, describe("the flight you work on; it waits for the answer")] = None
    work_item_id: Annotated[Words | None, describe("the work item it is about")] = None
    conversation_id: Annotated[
        Words | None, describe("post in this conversation instead of the direct one")
    ] = None
    wait: Annotated[Seconds, describe("wait up to this many seconds for the answer, maximum 60")] = 0


class ListQuestions(Request[Page[QuestionView]]):
    """List questions you asked or should answer, newest first. The operator sees all."""

    operation: ClassVar[str] = "question.list"
    route: ClassVar[str] = "GET /v1/questions"
    permission: ClassVar[str] = "only what you may read"

    owed: Annotated[bool, describe("only where the next move is yours")] = False
    asked: Annotated[bool, describe("only questions you asked")] = False
    state: Annotated[QuestionState | None, describe("only in this state")] = None
    cursor: Cursor = None
    limit: Limit = None
    at: At = None


class GetQuestion(Request[QuestionView]):
    """Show a question, optionally waiting until it is answered."""

    operation: ClassVar[str] = "question.show"
    route: ClassVar[str] = "GET /v1/questions/{questionId}"
    words: ClassVar[tuple[str, ...]] = ("questionId",)
    permission: ClassVar[str] = "the asker, the responder, or callers who may read them"

    question_id: Words
    wait: Annotated[Seconds, describe("wait up to this many seconds for an answer, maximum 60")] = 0
    at: At = None


class Spawn(Record, forbid_unknown_fields=True):
    """The work item that an answer starts; `ownerId` is any address."""

    title: Words
    owner_id: Words


class AnswerQuestion(Write[QuestionView]):
    """Answer a question. The first answer wins. It can start a linked work item."""

    operation: ClassVar[str] = "question.answer"
    route: ClassVar[str] = "POST /v1/questions/{questionId}/answer"
    words: ClassVar[tuple[str, ...]] = ("questionId", "answer")
    permission: ClassVar[str] = "the responder, or callers who act for it"

    question_id: Words
    answer: Annotated[str, describe("the answer, or one of the options")]
    spawn_work: Annotated[Spawn | None, describe("a work item to create: title and ownerId")] = None
    revision: Revision = None


class DeclineQuestion(Write[QuestionView]):
    """Decline to answer a question."""

    operation: ClassVar[str] = "question.decline"
    route: ClassVar[str] = "POST /v1/questions/{questionId}/decline"
    words: ClassVar[tuple[str, ...]] = ("questionId", "reason")
    permission: ClassVar[str] = "the responder, or callers who act for it"

    question_id: Words
    reason: Annotated[Words, describe("the reason")] = ""
    revision: Revision = None


class CloseQuestion(Write[QuestionView]):
    """Close a question that no longer needs an answer."""

    operation: ClassVar[str] = "question.close"
    route: ClassVar[str] = "POST /v1/questions/{questionId}/close"
    words: ClassVar[tuple[str, ...]] = ("questionId",)
    permission: ClassVar[str] = "the asker, or callers who act for it"

    question_id: Words
    reason: Annotated[Words, describe("why")] = ""
    revision: Revision = None


class ReopenQuestion(Write[QuestionView]):
    """Reopen a question, for the same responder or another."""

    operation: ClassVar[str] = "question.reopen"
    route: ClassVar[str] = "POST /v1/questions/{questionId}/reopen"
    words: ClassVar[tuple[str, ...]] = ("questionId",)
    permission: ClassVar[str] = "the asker, or callers who act for it"

    question_id: Words
    to: Annotated[Words | None, describe("a new responder")] = None
    reason: Annotated[Words, describe("what the answer lacked")] = ""
    revision: Revision = None
