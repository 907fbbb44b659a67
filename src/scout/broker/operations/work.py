"""Work items: durable, owned, always somebody's move. Who owes the next step is told, nobody else."""

from typing import Any

from msgspec.structs import replace

from scout.base.refusal import Remedy
from scout.broker.effects import dependencies, notices
from scout.broker.effects.notices import Told
from scout.broker.routing import conversations
from scout.broker.routing.views import work_view
from scout.broker.transaction import ownership
from scout.broker.transaction.paging import before, sought
from scout.broker.transaction.transaction import Turn, subject_of
from scout.model.conversation import Conversation
from scout.model.events.talk import WorkItemCreated, WorkItemEvent, WorkItemUpdated
from scout.model.ref import Ref
from scout.model.work_item import (
    Acceptance,
    Priority,
    Progress,
    Relation,
    RelationKind,
    WorkItem,
    WorkMove,
    accept_work,
    cancel_work,
    hand_over_work,
    new_work,
    progress_work,
    relate_work,
    reopen_work,
    resume_work,
    start_work,
    submit_work,
    update_work,
    wait_work,
)
from scout.policy.permit import Deed
from scout.policy.wake import Cause
from scout.protocol.operations import command_line
from scout.protocol.request import Page
from scout.protocol.work import (
    AcceptWork,
    CancelWork,
    CreateWork,
    GetWork,
    HandOverWork,
    ListWork,
    ProgressWork,
    RelateWork,
    ReopenWork,
    ResumeWork,
    StartWork,
    SubmitWork,
    UpdateWork,
    WaitWork,
    WorkStep,
    WorkView,
)

__all__ = [
    "accept",
    "assignment",
    "cancel",
    "create",
    "get",
    "hand_over",
    "list_work",
    "progress",
    "relate",
    "reopen",
    "resume",
    "resumed",
    "start",
    "submit",
    "update",
    "wait",
]

_STEPS = 1000


def create(turn: Turn, request: CreateWork) -> WorkView:
    """New work: its owner holds the next move and is told."""
    owner = _addressed(turn, request.owner_id) or turn.sender
    for ident in request.blocks:
        _readable(turn, ident)
    item = new_work(
        turn.mint("wrk"),
        request.title,
        turn.now,
        requester_id=turn.sender,
        owner_id=owner,
        description=request.description,
        reviewer_id=_addressed(turn, request.reviewer_id),
        acceptance=Acceptance.PENDING if request.accepted else Acceptance.NONE,
        priority=request.priority,
        labels=request.labels,
        relations=tuple(Relation(kind=RelationKind.BLOCKS, work_item_id=one) for one in request.blocks),
        conversation_id=_conversation(turn, request.conversation_id),
        due_at=request.due_at,
    )
    told = notices.recorded(
        turn, WorkItemCreated, item, move="create", cause=Cause.ASSIGNMENT, text=assignment(item)
    )
    return _shown(turn, told)


def _addressed(turn: Turn, address: str | None) -> str | None:
    """An agent that the caller may speak to, by its address."""
    if address is None:
        return None
    agent = turn.resolve(address).agent
    if agent.id != turn.sender:
        turn.permit(Deed.ADDRESS, subject_of(agent))
    return agent.id


def _conversation(turn: Turn, ident: str | None) -> str | None:
    if ident is None:
        return None
    return conversations.may_read(turn, turn.need(Conversation, "conversation", ident)).id


def assignment(item: WorkItem) -> str:
    """What an owner reads of the work that is now its own."""
    marks = [f"due {item.due_at}"] if item.due_at else []
    marks += [item.priority] if item.priority is not Priority.NORMAL else []
    head = f"{item.title} ({', '.join(marks)})" if marks else item.title
    begin = Remedy(operation="work.start", parameters={"workItemId": item.id})
    return "\n\n".join(part for part in (head, item.description, f"begin: {command_line(begin)}") if part)


# -- looking -----------------------------------------------------------------------------------------


def get(turn: Turn, request: GetWork) -> WorkView:
    """One item with what relates to it and every step it took, as the log holds them."""
    item = _readable(turn, request.work_item_id)
    facts = turn.ledger.facts("events_at", ref=str(Ref.to(item.id)), after=0, limit=_STEPS)
    steps = tuple(_step(turn, fact) for fact in facts if isinstance(fact, WorkItemEvent))
    return work_view(turn, item, related_by=_related_by(turn, item), steps=steps)


def _readable(turn: Turn, ident: str) -> WorkItem:
    item = turn.need(WorkItem, "work item", ident)
    ownership.check_reader(turn, item.owner_id, item.requester_id, item.next_move_owner_id, item.reviewer_id)
    return item


def _step(turn: Turn, fact: WorkItemEvent) -> WorkStep:
    changed = fact.payload
    return WorkStep(
        seq=fact.seq,
        at=fact.time,
        move=changed.move or "",
        state=changed.record.state,
        revision=changed.record.revision,
        by=turn.address(changed.by),
        reason=changed.reason,
    )


def _related_by(turn: Turn, item: WorkItem) -> tuple[Relation, ...]:
    others = turn.ledger.many(WorkItem, "work_relating", item=item.id, limit=_STEPS)
    found = [
        Relation(kind=relation.kind, work_item_id=other.id)
        for other in others
        for relation in other.relations
        if relation.work_item_id == item.id
    ]
    return tuple(dict.fromkeys(found))


def list_work(turn: Turn, request: ListWork) -> Page[WorkView]:
    """Work items, newest first: the caller's own unless an owner is named; the operator sees all."""
    settled = request.all or request.state is not None
    query, values = _query(turn, request)
    query = query if settled or query == "work_owed" else f"{query}_open"
    listed = sought(
        lambda bound, limit: turn.ledger.many(WorkItem, query, before=bound, limit=limit, **values),
        lambda item: request.state in (None, item.state) and request.label in (None, *item.labels),
        before(request.cursor),
        request.limit,
        turn.rules.limits,
    )
    return Page(items=tuple(work_view(turn, one) for one in listed.items), next=listed.next)


def _query(turn: Turn, request: ListWork) -> tuple[str, dict[str, Any]]:
    """Which of them, of whom."""
    if request.owed:
        return "work_owed", {"agent": turn.sender}
    if request.owner_id is not None:
        owner = turn.resolve(request.owner_id).agent
        ownership.check_reader(turn, owner.id)
        return "work_owned", {"agent": owner.id}
    return ("work_all", {}) if turn.is_operator else ("work_of", {"agent": turn.sender})


# -- the owner's moves -------------------------------------------------------------------------------


def _owned(turn: Turn, ident: str) -> WorkItem:
    """An item, if the caller owns it or controls who does."""
    item = turn.need(WorkItem, "work item", ident)
    ownership.check_mover(turn, "work item", item.id, item.owner_id)
    return item


def start(turn: Turn, request: StartWork) -> WorkView:
    """The owner begins."""
    item = start_work(_owned(turn, request.work_item_id), turn.now, seen=request.revision)
    return _shown(turn, notices.noted(turn, WorkItemUpdated, item, move=WorkMove.START))


def progress(turn: Turn, request: ProgressWork) -> WorkView:
    """How far it is; what is not said stays as it was."""
    item = _owned(turn, request.work_item_id)
    was = item.progress
    stepped = request.done is not None or request.total is not None
    percent = None if stepped else was.percent
    progress = Progress(
        done=was.done if request.done is None else request.done,
        total=was.total if request.total is None else request.total,
        percent=percent if request.percent is None else request.percent,
        summary=request.summary or was.summary,
    )
    further = progress_work(item, progress, turn.now, seen=request.revision)
    told = notices.noted(turn, WorkItemUpdated, further, move=WorkMove.PROGRESS, reason=request.summary)
    return _shown(turn, told)


def wait(turn: Turn, request: WaitWork) -> WorkView:
    """It cannot go on: whose move it is now is told."""
    item = _owned(turn, request.work_item_id)
    on, found = dependencies.on_what(turn, item, request.on, request.ref)
    holder = _addressed(turn, request.next_move_owner_id) or found
    on, reason = replace(on, until=request.until), request.reason or f"waiting on {request.on}"
    waiting = wait_work(item, on, holder, turn.now, seen=request.revision, reason=reason)
    text = f"{item.title} waits for you ({request.on} {request.ref or ''}): {reason}\n\nwork item {item.id}"
    return _shown(turn, _moved(turn, waiting, WorkMove.WAIT, text, reason))


def resume(turn: Turn, request: ResumeWork) -> WorkView:
    """What it waited for has happened, says its owner or who held the next move."""
    item = turn.need(WorkItem, "work item", request.work_item_id)
    ownership.check_mover(turn, "work item", item.id, item.owner_id, item.next_move_owner_id)
    return _shown(turn, resumed(turn, item, request.reason, seen=request.revision))


def resumed(turn: Turn, item: WorkItem, reason: str, *, seen: int | None = None) -> Told[WorkItem]:
    """The item goes on: its owner holds the next move and is told, unless it is the one who says so."""
    again = resume_work(item, turn.now, seen=seen)
    text = f"go on with {item.title}: {reason or 'the wait is over'}\n\nwork item {item.id}"
    return _moved(turn, again, WorkMove.RESUME, text, reason)


def submit(turn: Turn, request: SubmitWork) -> WorkView:
    """Done, says its owner: the reviewer holds the next move; where nobody is to accept it, it is settled."""
    item = _owned(turn, request.work_item_id)
    reviewer, summary = _addressed(turn, request.reviewer_id), request.summary
    done = submit_work(item, turn.now, seen=request.revision, reviewer_id=reviewer, summary=summary)
    if done.acceptance is Acceptance.NONE:
        notices.noted(turn, WorkItemUpdated, done, move=WorkMove.SUBMIT, reason=summary)
        text = f"done: {item.title}: {summary}\n\nwork item {item.id}"
        return _shown(turn, _settled(turn, accept_work(done, turn.now), WorkMove.ACCEPT, text, summary))
    accepting = command_line(Remedy(operation="work.accept", parameters={"workItemId": item.id}))
    text = f"for review: {item.title}: {done.progress.summary}\n\naccept: {accepting}"
    return _shown(turn, _moved(turn, done, WorkMove.SUBMIT, text, summary))


# -- the moves of the reviewer and others ------------------------------------------------------------


def accept(turn: Turn, request: AcceptWork) -> WorkView:
    """The reviewer takes it: its owner finds that in its inbox."""
    item = turn.need(WorkItem, "work item", request.work_item_id)
    ownership.check_mover(turn, "work item", item.id, item.reviewer_id or item.requester_id)
    done = accept_work(item, turn.now, seen=request.revision)
    text = f"accepted: {item.title}\n{request.reason}".rstrip()
    return _shown(turn, _settled(turn, done, WorkMove.ACCEPT, text, request.reason))


def reopen(turn: Turn, request: ReopenWork) -> WorkView:
    """Back to its owner, who is told what is missing."""
    item = turn.need(WorkItem, "work item", request.work_item_id)
    ownership.check_mover(turn, "work item", item.id, item.reviewer_id, item.requester_id)
    again = reopen_work(item, request.reason, turn.now, seen=request.revision)
    text = f"reopened: {item.title}: {request.reason}\n\nwork item {item.id}"
    return _shown(turn, _moved(turn, again, WorkMove.REOPEN, text, request.reason))


def hand_over(turn: Turn, request: HandOverWork) -> WorkView:
    """Another owner, who is told; who waits for this item waits for the new owner."""
    item = turn.need(WorkItem, "work item", request.work_item_id)
    ownership.check_mover(turn, "work item", item.id, item.owner_id, item.requester_id)
    owner = _addressed(turn, request.to) or turn.sender
    handed = hand_over_work(item, owner, turn.now, seen=request.revision, reason=request.reason)
    return _shown(turn, dependencies.handed_over(turn, item, handed, assignment(handed), request.reason))


def cancel(turn: Turn, request: CancelWork) -> WorkView:
    """Put away for good: who worked on it, or wanted it, finds that in its inbox."""
    item = turn.need(WorkItem, "work item", request.work_item_id)
    ownership.check_mover(turn, "work item", item.id, item.requester_id, item.owner_id)
    cancelled = cancel_work(item, request.reason, turn.now, seen=request.revision)
    text = f"cancelled: {item.title}\n{request.reason}".rstrip()
    return _shown(turn, _settled(turn, cancelled, WorkMove.CANCEL, text, request.reason))


def update(turn: Turn, request: UpdateWork) -> WorkView:
    """An edit; in review, another reviewer holds the next move and is told."""
    item = _editable(turn, request.work_item_id)
    given = {
        "title": request.title,
        "description": request.description,
        "priority": request.priority,
        "labels": request.labels,
        "reviewer_id": _addressed(turn, request.reviewer_id),
        "due_at": request.due_at,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    edited = update_work(item, turn.now, seen=request.revision, **changes)
    if edited.next_move_owner_id == item.next_move_owner_id:
        return _shown(turn, notices.noted(turn, WorkItemUpdated, edited, move="update"))
    text = f"for review: {edited.title}: {edited.progress.summary}\n\nwork item {item.id}"
    return _shown(turn, _moved(turn, edited, "update", text, "another reviewer"))


def relate(turn: Turn, request: RelateWork) -> WorkView:
    """How it stands to another item; both show it."""
    item, other = _editable(turn, request.work_item_id), _readable(turn, request.other)
    related = relate_work(item, request.kind, other.id, turn.now)
    if related is not item:
        notices.noted(turn, WorkItemUpdated, related, move="relate", reason=f"{request.kind} {other.id}")
    return work_view(turn, related, related_by=_related_by(turn, related))


def _editable(turn: Turn, ident: str) -> WorkItem:
    item = turn.need(WorkItem, "work item", ident)
    ownership.check_mover(turn, "work item", item.id, item.owner_id, item.requester_id)
    return item


# -- storing -----------------------------------------------------------------------------------------


def _moved(turn: Turn, item: WorkItem, move: str, text: str, reason: str) -> Told[WorkItem]:
    return notices.recorded(
        turn, WorkItemUpdated, item, move=move, cause=Cause.MOVE, text=text, reason=reason
    )


def _settled(turn: Turn, item: WorkItem, move: WorkMove, text: str, reason: str) -> Told[WorkItem]:
    """Settled work is nobody's move. Its owner finds it in the inbox; if the owner did it, the requester."""
    other = item.owner_id if item.owner_id != turn.sender else item.requester_id
    return notices.noted(turn, WorkItemUpdated, item, move=move, reason=reason, to=other, text=text)


def _shown(turn: Turn, told: Told[WorkItem]) -> WorkView:
    return work_view(turn, told.record, notes=told.notes)
