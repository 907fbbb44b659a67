"""Work items: durable, owned, with one owner of the next move, which is the only agent notified."""

from typing import Any

from msgspec.structs import replace

from scout.base.refusal import Remedy
from scout.broker.effects import dependencies, notices
from scout.broker.effects.notices import Noticed
from scout.broker.routing import conversations
from scout.broker.routing.views import build_work_view
from scout.broker.transaction.paging import build_filtered_page, decode_bound
from scout.broker.transaction.transaction import Transaction, build_subject, require_owner, require_reader
from scout.model.conversation import Conversation
from scout.model.events.talk import WorkItemCreated, WorkItemEvent, WorkItemUpdated
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
    create_work,
    hand_over_work,
    relate_work,
    reopen_work,
    resume_work,
    start_work,
    submit_work,
    update_progress,
    update_work,
    wait_work,
)
from scout.policy.permit import Deed
from scout.policy.wake import Cause
from scout.protocol.operations import build_command_line
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

_STEPS = 1000


def create(tx: Transaction, request: CreateWork) -> WorkView:
    """Create a work item; its owner gets the next move and is notified."""
    owner = _resolve_addressable(tx, request.owner_id) or tx.sender
    for ident in request.blocks:
        get_readable(tx, ident)
    item = create_work(
        tx.mint("wrk"),
        request.title,
        tx.now,
        requester_id=tx.sender,
        owner_id=owner,
        description=request.description,
        reviewer_id=_resolve_addressable(tx, request.reviewer_id),
        acceptance=Acceptance.PENDING if request.accepted else Acceptance.NONE,
        priority=request.priority,
        labels=request.labels,
        relations=tuple(Relation(kind=RelationKind.BLOCKS, work_item_id=one) for one in request.blocks),
        conversation_id=_find_conversation_id(tx, request.conversation_id),
        due_at=request.due_at,
    )
    told = notices.record_and_wake(
        tx, WorkItemCreated, item, move="create", cause=Cause.ASSIGNMENT, text=describe_assignment(item)
    )
    return _show(tx, told)


def _resolve_addressable(tx: Transaction, address: str | None) -> str | None:
    """Return the id of an agent that the caller may address."""
    if address is None:
        return None
    agent = tx.resolve(address).agent
    if agent.id != tx.sender:
        tx.permit(Deed.ADDRESS, build_subject(agent))
    return agent.id


def _find_conversation_id(tx: Transaction, ident: str | None) -> str | None:
    if ident is None:
        return None
    return conversations.require_readable(tx, tx.need(Conversation, "conversation", ident)).id


def describe_assignment(item: WorkItem) -> str:
    """Return the text that notifies an owner of its new work item."""
    marks = [f"due {item.due_at}"] if item.due_at else []
    marks += [item.priority] if item.priority is not Priority.NORMAL else []
    head = f"{item.title} ({', '.join(marks)})" if marks else item.title
    begin = Remedy(operation="work.start", parameters={"workItemId": item.id})
    return "\n\n".join(
        part for part in (head, item.description, f"begin: {build_command_line(begin)}") if part
    )


# -- reading -----------------------------------------------------------------------------------------


def get(tx: Transaction, request: GetWork) -> WorkView:
    """Return one item with its relations and its steps from the log."""
    item = get_readable(tx, request.work_item_id)
    return build_work_view(tx, item, related_by=_list_relations(tx, item), steps=list_steps(tx, item))


def list_steps(tx: Transaction, item: WorkItem) -> tuple[WorkStep, ...]:
    """Return the changes of an item from the log, oldest first."""
    facts = tx.ledger.log.list_at(item.id, 0, _STEPS)
    return tuple(_build_step(tx, fact) for fact in facts if isinstance(fact, WorkItemEvent))


def get_readable(tx: Transaction, ident: str) -> WorkItem:
    """Return an item that the caller takes part in or may read."""
    item = tx.need(WorkItem, "work item", ident)
    require_reader(tx, item.owner_id, item.requester_id, item.next_move_owner_id, item.reviewer_id)
    return item


def _build_step(tx: Transaction, fact: WorkItemEvent) -> WorkStep:
    changed = fact.payload
    return WorkStep(
        seq=fact.seq,
        at=fact.time,
        move=changed.move or "",
        state=changed.record.state,
        revision=changed.record.revision,
        by=tx.address(changed.by),
        reason=changed.reason,
    )


def list_relating(tx: Transaction, item: WorkItem) -> list[WorkItem]:
    """Return the items that have a relation to this one."""
    return tx.ledger.many(WorkItem, "work_relating", item=item.id, limit=_STEPS)


def _list_relations(tx: Transaction, item: WorkItem) -> tuple[Relation, ...]:
    found = [
        Relation(kind=relation.kind, work_item_id=other.id)
        for other in list_relating(tx, item)
        for relation in other.relations
        if relation.work_item_id == item.id
    ]
    return tuple(dict.fromkeys(found))


def list_work(tx: Transaction, request: ListWork) -> Page[WorkView]:
    """List work items, newest first: default the caller's own; the operator sees all."""
    settled = request.all or request.state is not None
    query, values = _choose_query(tx, request)
    query = query if settled or query == "work_owed" else f"{query}_open"
    listed = build_filtered_page(
        lambda bound, limit: tx.ledger.many(WorkItem, query, before=bound, limit=limit, **values),
        lambda item: request.state in (None, item.state) and request.label in (None, *item.labels),
        decode_bound(request.cursor),
        request.limit,
        tx.rules.limits,
    )
    return Page(items=tuple(build_work_view(tx, one) for one in listed.items), next=listed.next)


def _choose_query(tx: Transaction, request: ListWork) -> tuple[str, dict[str, Any]]:
    """Return the ledger query and its parameters."""
    if request.owed:
        return "work_owed", {"agent": tx.sender}
    if request.owner_id is not None:
        owner = tx.resolve(request.owner_id).agent
        require_reader(tx, owner.id)
        return "work_owned", {"agent": owner.id}
    return ("work_all", {}) if tx.is_operator else ("work_of", {"agent": tx.sender})


# -- the owner's moves -------------------------------------------------------------------------------


def _get_owned(tx: Transaction, ident: str) -> WorkItem:
    """Return an item if the caller owns it or controls its owner."""
    item = tx.need(WorkItem, "work item", ident)
    require_owner(tx, "work item", item.id, item.owner_id)
    return item


def start(tx: Transaction, request: StartWork) -> WorkView:
    """Start a work item; owner only."""
    item = start_work(_get_owned(tx, request.work_item_id), tx.now, seen=request.revision)
    return _show(tx, notices.record_and_notify(tx, WorkItemUpdated, item, move=WorkMove.START))


def report_progress(tx: Transaction, request: ProgressWork) -> WorkView:
    """Record progress; omitted fields keep their values."""
    item = _get_owned(tx, request.work_item_id)
    was = item.progress
    stepped = request.done is not None or request.total is not None
    percent = None if stepped else was.percent
    progress = Progress(
        done=was.done if request.done is None else request.done,
        total=was.total if request.total is None else request.total,
        percent=percent if request.percent is None else request.percent,
        summary=request.summary or was.summary,
    )
    further = update_progress(item, progress, tx.now, seen=request.revision)
    told = notices.record_and_notify(
        tx, WorkItemUpdated, further, move=WorkMove.PROGRESS, reason=request.summary
    )
    return _show(tx, told)


def wait(tx: Transaction, request: WaitWork) -> WorkView:
    """Record that the item waits; the new owner of the next move is notified."""
    item = _get_owned(tx, request.work_item_id)
    on, found = dependencies.describe_dependency(tx, item, request.on, request.ref)
    holder = _resolve_addressable(tx, request.next_move_owner_id) or found
    on, reason = replace(on, until=request.until), request.reason or f"waiting on {request.on}"
    waiting = wait_work(item, on, holder, tx.now, seen=request.revision, reason=reason)
    text = f"{item.title} waits for you ({request.on} {request.ref or ''}): {reason}\n\nwork item {item.id}"
    return _show(tx, _record_move(tx, waiting, WorkMove.WAIT, text, reason))


def resume(tx: Transaction, request: ResumeWork) -> WorkView:
    """Resume a waiting item; allowed for its owner and the holder of the next move."""
    item = tx.need(WorkItem, "work item", request.work_item_id)
    require_owner(tx, "work item", item.id, item.owner_id, item.next_move_owner_id)
    return _show(tx, resume_item(tx, item, request.reason, seen=request.revision))


def resume_item(
    tx: Transaction, item: WorkItem, reason: str, *, seen: int | None = None
) -> Noticed[WorkItem]:
    """Resume an item: its owner gets the next move and is notified, unless it is the caller."""
    again = resume_work(item, tx.now, seen=seen)
    text = f"continue with {item.title}: {reason or 'the wait has ended'}\n\nwork item {item.id}"
    return _record_move(tx, again, WorkMove.RESUME, text, reason)


def submit(tx: Transaction, request: SubmitWork) -> WorkView:
    """Submit an item: its reviewer gets the next move; without a required acceptance, it is done."""
    item = _get_owned(tx, request.work_item_id)
    reviewer, summary = _resolve_addressable(tx, request.reviewer_id), request.summary
    done = submit_work(item, tx.now, seen=request.revision, reviewer_id=reviewer, summary=summary)
    if done.acceptance is Acceptance.NONE:
        notices.record_and_notify(tx, WorkItemUpdated, done, move=WorkMove.SUBMIT, reason=summary)
        text = f"done: {item.title}: {summary}\n\nwork item {item.id}"
        return _show(tx, _record_settled(tx, accept_work(done, tx.now), WorkMove.ACCEPT, text, summary))
    accepting = build_command_line(Remedy(operation="work.accept", parameters={"workItemId": item.id}))
    text = f"for review: {item.title}: {done.progress.summary}\n\naccept: {accepting}"
    return _show(tx, _record_move(tx, done, WorkMove.SUBMIT, text, summary))


# -- the moves of the reviewer and others ------------------------------------------------------------


def accept(tx: Transaction, request: AcceptWork) -> WorkView:
    """Accept an item as its reviewer; its owner gets a message."""
    item = tx.need(WorkItem, "work item", request.work_item_id)
    require_owner(tx, "work item", item.id, item.reviewer_id or item.requester_id)
    done = accept_work(item, tx.now, seen=request.revision)
    text = f"accepted: {item.title}\n{request.reason}".rstrip()
    return _show(tx, _record_settled(tx, done, WorkMove.ACCEPT, text, request.reason))


def reopen(tx: Transaction, request: ReopenWork) -> WorkView:
    """Return an item to its owner, which is notified with the reason."""
    item = tx.need(WorkItem, "work item", request.work_item_id)
    require_owner(tx, "work item", item.id, item.reviewer_id, item.requester_id)
    again = reopen_work(item, request.reason, tx.now, seen=request.revision)
    text = f"reopened: {item.title}: {request.reason}\n\nwork item {item.id}"
    return _show(tx, _record_move(tx, again, WorkMove.REOPEN, text, request.reason))


def hand_over(tx: Transaction, request: HandOverWork) -> WorkView:
    """Give an item to another owner, which is notified; dependents now wait for the new owner."""
    item = tx.need(WorkItem, "work item", request.work_item_id)
    require_owner(tx, "work item", item.id, item.owner_id, item.requester_id)
    owner = _resolve_addressable(tx, request.to) or tx.sender
    handed = hand_over_work(item, owner, tx.now, seen=request.revision, reason=request.reason)
    return _show(
        tx, dependencies.record_handover(tx, item, handed, describe_assignment(handed), request.reason)
    )


def cancel(tx: Transaction, request: CancelWork) -> WorkView:
    """Cancel an item; its owner or requester gets a message."""
    item = tx.need(WorkItem, "work item", request.work_item_id)
    require_owner(tx, "work item", item.id, item.requester_id, item.owner_id)
    cancelled = cancel_work(item, request.reason, tx.now, seen=request.revision)
    text = f"cancelled: {item.title}\n{request.reason}".rstrip()
    return _show(tx, _record_settled(tx, cancelled, WorkMove.CANCEL, text, request.reason))


def update(tx: Transaction, request: UpdateWork) -> WorkView:
    """Edit an item; a reviewer changed during review gets the next move and is notified."""
    item = _get_editable(tx, request.work_item_id)
    given = {
        "title": request.title,
        "description": request.description,
        "priority": request.priority,
        "labels": request.labels,
        "reviewer_id": _resolve_addressable(tx, request.reviewer_id),
        "due_at": request.due_at,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    edited = update_work(item, tx.now, seen=request.revision, **changes)
    if edited.next_move_owner_id == item.next_move_owner_id:
        return _show(tx, notices.record_and_notify(tx, WorkItemUpdated, edited, move="update"))
    text = f"for review: {edited.title}: {edited.progress.summary}\n\nwork item {item.id}"
    return _show(tx, _record_move(tx, edited, "update", text, "another reviewer"))


def relate(tx: Transaction, request: RelateWork) -> WorkView:
    """Relate an item to another; both show the relation."""
    item, other = _get_editable(tx, request.work_item_id), get_readable(tx, request.other)
    related = relate_work(item, request.kind, other.id, tx.now)
    if related is not item:
        notices.record_and_notify(
            tx, WorkItemUpdated, related, move="relate", reason=f"{request.kind} {other.id}"
        )
    return build_work_view(tx, related, related_by=_list_relations(tx, related))


def _get_editable(tx: Transaction, ident: str) -> WorkItem:
    item = tx.need(WorkItem, "work item", ident)
    require_owner(tx, "work item", item.id, item.owner_id, item.requester_id)
    return item


# -- storing -----------------------------------------------------------------------------------------


def _record_move(tx: Transaction, item: WorkItem, move: str, text: str, reason: str) -> Noticed[WorkItem]:
    return notices.record_and_wake(
        tx, WorkItemUpdated, item, move=move, cause=Cause.MOVE, text=text, reason=reason
    )


def _record_settled(
    tx: Transaction, item: WorkItem, move: WorkMove, text: str, reason: str
) -> Noticed[WorkItem]:
    """Record a finished item, without a next move; notify its owner, or its requester if the owner acted."""
    other = item.owner_id if item.owner_id != tx.sender else item.requester_id
    return notices.record_and_notify(tx, WorkItemUpdated, item, move=move, reason=reason, to=other, text=text)


def _show(tx: Transaction, told: Noticed[WorkItem]) -> WorkView:
    return build_work_view(tx, told.record, notes=told.notes)
