"""Requests about work items: durable, owned work, apart from chat."""

from typing import Annotated, ClassVar

from msgspec import UNSET

from scout.base.record import Record
from scout.base.time import Time
from scout.model.waiting import WaitingKind
from scout.model.work_item import Priority, Relation, RelationKind, WorkItem, WorkState
from scout.protocol.parameters import At, Cursor, Limit, Revision, Words, describe
from scout.protocol.request import Page, PastMoment, Request, Write

WorkId = Annotated[Words, describe("the work item's id")]


class WorkStep(Record):
    """One change of an item, from the log."""

    seq: int
    at: Time
    move: str
    state: WorkState
    revision: int
    by: str
    reason: str = ""


class WorkView(WorkItem):
    """A work item with addresses. `relatedBy` and `steps` are filled where one item is shown.

    `relatedBy`: relations that other items have to this one.
    """

    owner_address: str
    requester_address: str
    next_move_address: str | None = None
    related_by: tuple[Relation, ...] = ()
    steps: tuple[WorkStep, ...] = ()
    notes: tuple[str, ...] = ()
    moment: PastMoment = UNSET


class CreateWork(Write[WorkView]):
    """Create a work item. Its owner holds the next move and is notified."""

    operation: ClassVar[str] = "work.create"
    route: ClassVar[str] = "POST /v1/work"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("title",)
    flags: ClassVar[dict[str, str]] = {
        "ownerId": "owner",
        "reviewerId": "reviewer",
        "labels": "label",
        "conversationId": "conversation",
        "dueAt": "due",
    }
    permission: ClassVar[str] = "callers who may address the owner"

    title: Annotated[Words, describe("what to do")]
    owner_id: Annotated[Words | None, describe("the owner's address; default: you")] = None
    description: Annotated[str, describe("details")] = ""
    reviewer_id: Annotated[Words | None, describe("the reviewer; default: you")] = None
    accepted: Annotated[bool, describe("whether the result needs acceptance")] = True
    priority: Annotated[Priority, describe("low, normal, high or urgent")] = Priority.NORMAL
    labels: Annotated[tuple[Words, ...], describe("a label")] = ()
    blocks: Annotated[tuple[Words, ...], describe("a work item that waits for this one")] = ()
    conversation_id: Annotated[Words | None, describe("the conversation it belongs to")] = None
    due_at: Annotated[Time | None, describe("due time")] = None


class ListWork(Request[Page[WorkView]]):
    """List work items you own, requested or hold the next move of, newest first. The operator sees all."""

    operation: ClassVar[str] = "work.list"
    route: ClassVar[str] = "GET /v1/work"
    flags: ClassVar[dict[str, str]] = {"ownerId": "owner"}
    permission: ClassVar[str] = "only what you may read"

    owner_id: Annotated[Words | None, describe("only this owner")] = None
    owed: Annotated[bool, describe("only where the next move is yours")] = False
    state: Annotated[WorkState | None, describe("only in this state")] = None
    label: Annotated[Words | None, describe("only with this label")] = None
    all: Annotated[bool, describe("include done and cancelled items")] = False
    cursor: Cursor = None
    limit: Limit = None
    at: At = None


class GetWork(Request[WorkView]):
    """Show a work item and its history."""

    operation: ClassVar[str] = "work.show"
    route: ClassVar[str] = "GET /v1/work/{workItemId}"
    words: ClassVar[tuple[str, ...]] = ("workItemId",)
    permission: ClassVar[str] = "its participants, or callers who may read them"

    work_item_id: WorkId
    at: At = None


class StartWork(Write[WorkView]):
    """Start work on an item you own."""

    operation: ClassVar[str] = "work.start"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/start"
    words: ClassVar[tuple[str, ...]] = ("workItemId",)
    permission: ClassVar[str] = "the owner"

    work_item_id: WorkId
    revision: Revision = None


class ProgressWork(Write[WorkView]):
    """Report progress: steps, percent or a sentence."""

    operation: ClassVar[str] = "work.progress"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/progress"
    words: ClassVar[tuple[str, ...]] = ("workItemId", "summary")
    permission: ClassVar[str] = "the owner"

    work_item_id: WorkId
    summary: Annotated[Words, describe("progress in one sentence")] = ""
    done: Annotated[int | None, describe("steps done")] = None
    total: Annotated[int | None, describe("steps in total")] = None
    percent: Annotated[float | None, describe("0 to 100; default: from the steps")] = None
    revision: Revision = None


class WaitWork(Write[WorkView]):
    """Mark an item as waiting, for what and on whom."""

    operation: ClassVar[str] = "work.wait"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/wait"
    words: ClassVar[tuple[str, ...]] = ("workItemId",)
    flags: ClassVar[dict[str, str]] = {"nextMoveOwnerId": "next"}
    permission: ClassVar[str] = "the owner"

    work_item_id: WorkId
    on: Annotated[WaitingKind, describe("actor, work_item, approval, artifact, condition")]
    ref: Annotated[
        Words | None, describe("what it waits for: an address, an item's id, a file or a sentence")
    ] = None
    next_move_owner_id: Annotated[
        Words | None, describe("the owner of the next move; default: derived from what it waits for")
    ] = None
    until: Annotated[Time | None, describe("the wait ends then, and the owner is told to continue")] = None
    reason: Annotated[Words, describe("why")] = ""
    revision: Revision = None


class ResumeWork(Write[WorkView]):
    """Resume a waiting item."""

    operation: ClassVar[str] = "work.resume"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/resume"
    words: ClassVar[tuple[str, ...]] = ("workItemId",)
    permission: ClassVar[str] = "the owner, or the holder of the next move"

    work_item_id: WorkId
    reason: Annotated[Words, describe("what happened")] = ""
    revision: Revision = None


class SubmitWork(Write[WorkView]):
    """Submit an item for review. The reviewer holds the next move."""

    operation: ClassVar[str] = "work.submit"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/submit"
    words: ClassVar[tuple[str, ...]] = ("workItemId", "summary")
    flags: ClassVar[dict[str, str]] = {"reviewerId": "reviewer"}
    permission: ClassVar[str] = "the owner"

    work_item_id: WorkId
    summary: Annotated[Words, describe("what was done")] = ""
    reviewer_id: Annotated[Words | None, describe("the reviewer; default: the requester")] = None
    revision: Revision = None


class AcceptWork(Write[WorkView]):
    """Accept the result. The item is done."""

    operation: ClassVar[str] = "work.accept"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/accept"
    words: ClassVar[tuple[str, ...]] = ("workItemId",)
    permission: ClassVar[str] = "the reviewer"

    work_item_id: WorkId
    reason: Annotated[Words, describe("a comment")] = ""
    revision: Revision = None


class ReopenWork(Write[WorkView]):
    """Return an item to its owner for more work."""

    operation: ClassVar[str] = "work.reopen"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/reopen"
    words: ClassVar[tuple[str, ...]] = ("workItemId", "reason")
    permission: ClassVar[str] = "the reviewer or the requester"

    work_item_id: WorkId
    reason: Annotated[Words, describe("see what is missing")]
    revision: Revision = None


class HandOverWork(Write[WorkView]):
    """Hand an item over to another owner, who is notified."""

    operation: ClassVar[str] = "work.hand-over"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/hand_over"
    words: ClassVar[tuple[str, ...]] = ("workItemId", "to")
    permission: ClassVar[str] = "the owner, the requester, or callers who control the owner"

    work_item_id: WorkId
    to: Annotated[Words, describe("the new owner's address")]
    reason: Annotated[Words, describe("why")] = ""
    revision: Revision = None


class CancelWork(Write[WorkView]):
    """Cancel a work item."""

    operation: ClassVar[str] = "work.cancel"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/cancel"
    words: ClassVar[tuple[str, ...]] = ("workItemId", "reason")
    permission: ClassVar[str] = "the requester, the owner, or callers who control the owner"

    work_item_id: WorkId
    reason: Annotated[Words, describe("why")] = ""
    revision: Revision = None


class UpdateWork(Write[WorkView]):
    """Change a work item's title, description, priority, labels, reviewer or due time."""

    operation: ClassVar[str] = "work.update"
    route: ClassVar[str] = "PATCH /v1/work/{workItemId}"
    words: ClassVar[tuple[str, ...]] = ("workItemId",)
    flags: ClassVar[dict[str, str]] = {"reviewerId": "reviewer", "labels": "label", "dueAt": "due"}
    permission: ClassVar[str] = "the owner or the requester"

    work_item_id: WorkId
    title: Annotated[Words | None, describe("what to do")] = None
    description: Annotated[str | None, describe("details")] = None
    priority: Annotated[Priority | None, describe("low, normal, high or urgent")] = None
    labels: Annotated[tuple[Words, ...] | None, describe("labels; they replace the current ones")] = None
    reviewer_id: Annotated[Words | None, describe("the reviewer")] = None
    due_at: Annotated[Time | None, describe("due time")] = None
    revision: Revision = None


class RelateWork(Write[WorkView]):
    """Relate an item to another: blocks, spawns or relates."""

    operation: ClassVar[str] = "work.relate"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/relate"
    words: ClassVar[tuple[str, ...]] = ("workItemId", "kind", "other")
    permission: ClassVar[str] = "the owner or the requester"

    work_item_id: WorkId
    kind: Annotated[RelationKind, describe("blocks, spawns or relates")]
    other: Annotated[Words, describe("the other item's id")]
