"""Requests about work items: durable, owned execution, apart from chat."""

from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.base.time import Time
from scout.model.waiting import WaitingKind
from scout.model.work_item import Priority, Relation, RelationKind, WorkItem, WorkState
from scout.protocol.parameters import Cursor, Limit, Revision, Words, says
from scout.protocol.request import Page, Request, Write

__all__ = [
    "AcceptWork",
    "CancelWork",
    "CreateWork",
    "GetWork",
    "HandOverWork",
    "ListWork",
    "ProgressWork",
    "RelateWork",
    "ReopenWork",
    "ResumeWork",
    "StartWork",
    "SubmitWork",
    "UpdateWork",
    "WaitWork",
    "WorkStep",
    "WorkView",
]

WorkId = Annotated[Words, says("the work item's id")]


class WorkStep(Record):
    """One change of an item, as the log holds it."""

    seq: int
    at: Time
    move: str
    state: WorkState
    revision: int
    by: str
    reason: str = ""


class WorkView(WorkItem):
    """A work item and how its people are called; `relatedBy` and `steps` where one item is shown.

    `relatedBy`: the items that stand in a relation to this one.
    """

    owner_address: str
    requester_address: str
    next_move_address: str | None = None
    related_by: tuple[Relation, ...] = ()
    steps: tuple[WorkStep, ...] = ()
    notes: tuple[str, ...] = ()


class CreateWork(Write[WorkView]):
    """Create a work item; whoever owns it holds the next move and is told."""

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
    permission: ClassVar[str] = "who may address the owner"

    title: Annotated[Words, says("what is to be done")]
    owner_id: Annotated[Words | None, says("who does it, by any address; you, unless said")] = None
    description: Annotated[str, says("more about it")] = ""
    reviewer_id: Annotated[Words | None, says("who accepts it; you, unless said")] = None
    accepted: Annotated[bool, says("whether somebody must accept the result")] = True
    priority: Annotated[Priority, says("low, normal, high or urgent")] = Priority.NORMAL
    labels: Annotated[tuple[Words, ...], says("a word to find it by")] = ()
    blocks: Annotated[tuple[Words, ...], says("a work item that waits for this one")] = ()
    conversation_id: Annotated[Words | None, says("the conversation it came up in")] = None
    due_at: Annotated[Time | None, says("when it should be done")] = None


class ListWork(Request[Page[WorkView]]):
    """List work items, newest first: those you own, requested or owe a move; the operator sees all."""

    operation: ClassVar[str] = "work.list"
    route: ClassVar[str] = "GET /v1/work"
    flags: ClassVar[dict[str, str]] = {"ownerId": "owner"}
    permission: ClassVar[str] = "what you may read"

    owner_id: Annotated[Words | None, says("only this owner's")] = None
    owed: Annotated[bool, says("only those whose next move is yours")] = False
    state: Annotated[WorkState | None, says("only in this state")] = None
    label: Annotated[Words | None, says("only with this label")] = None
    all: Annotated[bool, says("also what is done or cancelled")] = False
    cursor: Cursor = None
    limit: Limit = None


class GetWork(Request[WorkView]):
    """Show a work item and every step it took."""

    operation: ClassVar[str] = "work.show"
    route: ClassVar[str] = "GET /v1/work/{workItemId}"
    words: ClassVar[tuple[str, ...]] = ("workItemId",)
    permission: ClassVar[str] = "requester, owner, reviewer, holder, or who may read them"

    work_item_id: WorkId


class StartWork(Write[WorkView]):
    """Claim an item that you own: you work on it now."""

    operation: ClassVar[str] = "work.start"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/start"
    words: ClassVar[tuple[str, ...]] = ("workItemId",)
    permission: ClassVar[str] = "the owner"

    work_item_id: WorkId
    revision: Revision = None


class ProgressWork(Write[WorkView]):
    """Say how far it is: steps, percent, a sentence."""

    operation: ClassVar[str] = "work.progress"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/progress"
    words: ClassVar[tuple[str, ...]] = ("workItemId", "summary")
    permission: ClassVar[str] = "the owner"

    work_item_id: WorkId
    summary: Annotated[Words, says("where it stands, in a sentence")] = ""
    done: Annotated[int | None, says("steps done")] = None
    total: Annotated[int | None, says("steps in all")] = None
    percent: Annotated[float | None, says("0 to 100; from the steps, unless said")] = None
    revision: Revision = None


class WaitWork(Write[WorkView]):
    """Say that it cannot go on, what it waits for, and whose move that is."""

    operation: ClassVar[str] = "work.wait"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/wait"
    words: ClassVar[tuple[str, ...]] = ("workItemId",)
    flags: ClassVar[dict[str, str]] = {"nextMoveOwnerId": "next"}
    permission: ClassVar[str] = "the owner"

    work_item_id: WorkId
    on: Annotated[WaitingKind, says("actor, work_item, approval, artifact, condition")]
    ref: Annotated[Words | None, says("which one: an address, an item's id, a file, a sentence")] = None
    next_move_owner_id: Annotated[
        Words | None, says("whose move it is; found from what it waits for, unless said")
    ] = None
    until: Annotated[Time | None, says("when it is over by itself")] = None
    reason: Annotated[Words, says("why")] = ""
    revision: Revision = None


class ResumeWork(Write[WorkView]):
    """Say that what it waited for has happened."""

    operation: ClassVar[str] = "work.resume"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/resume"
    words: ClassVar[tuple[str, ...]] = ("workItemId",)
    permission: ClassVar[str] = "the owner, or who holds the next move"

    work_item_id: WorkId
    reason: Annotated[Words, says("what happened")] = ""
    revision: Revision = None


class SubmitWork(Write[WorkView]):
    """Say that it is done: the reviewer holds the next move."""

    operation: ClassVar[str] = "work.submit"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/submit"
    words: ClassVar[tuple[str, ...]] = ("workItemId", "summary")
    flags: ClassVar[dict[str, str]] = {"reviewerId": "reviewer"}
    permission: ClassVar[str] = "the owner"

    work_item_id: WorkId
    summary: Annotated[Words, says("what was done")] = ""
    reviewer_id: Annotated[Words | None, says("who looks at it; the requester, unless said")] = None
    revision: Revision = None


class AcceptWork(Write[WorkView]):
    """Accept what was done: the item is settled."""

    operation: ClassVar[str] = "work.accept"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/accept"
    words: ClassVar[tuple[str, ...]] = ("workItemId",)
    permission: ClassVar[str] = "the reviewer"

    work_item_id: WorkId
    reason: Annotated[Words, says("a word about it")] = ""
    revision: Revision = None


class ReopenWork(Write[WorkView]):
    """Give it back to its owner: not good enough, or not enough any more."""

    operation: ClassVar[str] = "work.reopen"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/reopen"
    words: ClassVar[tuple[str, ...]] = ("workItemId", "reason")
    permission: ClassVar[str] = "the reviewer or the requester"

    work_item_id: WorkId
    reason: Annotated[Words, says("what is missing")]
    revision: Revision = None


class HandOverWork(Write[WorkView]):
    """Give it to another owner, who is told."""

    operation: ClassVar[str] = "work.hand-over"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/hand_over"
    words: ClassVar[tuple[str, ...]] = ("workItemId", "to")
    permission: ClassVar[str] = "the owner, the requester, or who controls the owner"

    work_item_id: WorkId
    to: Annotated[Words, says("the new owner: any address")]
    reason: Annotated[Words, says("why")] = ""
    revision: Revision = None


class CancelWork(Write[WorkView]):
    """Put it away for good: nobody needs it any more."""

    operation: ClassVar[str] = "work.cancel"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/cancel"
    words: ClassVar[tuple[str, ...]] = ("workItemId", "reason")
    permission: ClassVar[str] = "the requester, the owner, or who controls the owner"

    work_item_id: WorkId
    reason: Annotated[Words, says("why")] = ""
    revision: Revision = None


class UpdateWork(Write[WorkView]):
    """Change its title, description, priority, labels, reviewer or due time."""

    operation: ClassVar[str] = "work.update"
    route: ClassVar[str] = "PATCH /v1/work/{workItemId}"
    words: ClassVar[tuple[str, ...]] = ("workItemId",)
    flags: ClassVar[dict[str, str]] = {"reviewerId": "reviewer", "labels": "label", "dueAt": "due"}
    permission: ClassVar[str] = "the owner or the requester"

    work_item_id: WorkId
    title: Annotated[Words | None, says("what is to be done")] = None
    description: Annotated[str | None, says("more about it")] = None
    priority: Annotated[Priority | None, says("low, normal, high or urgent")] = None
    labels: Annotated[tuple[Words, ...] | None, says("the words to find it by, instead of those it has")] = (
        None
    )
    reviewer_id: Annotated[Words | None, says("who accepts it")] = None
    due_at: Annotated[Time | None, says("when it should be done")] = None
    revision: Revision = None


class RelateWork(Write[WorkView]):
    """Say how an item stands to another: it blocks it, spawns it, or has to do with it."""

    operation: ClassVar[str] = "work.relate"
    route: ClassVar[str] = "POST /v1/work/{workItemId}/relate"
    words: ClassVar[tuple[str, ...]] = ("workItemId", "kind", "other")
    permission: ClassVar[str] = "the owner or the requester"

    work_item_id: WorkId
    kind: Annotated[RelationKind, says("blocks, spawns or relates")]
    other: Annotated[Words, says("the other item's id")]
