"""Imported open work and open questions. Their owners are not told; reminders come as for any other."""

from msgspec.structs import replace

from scout.broker.imports.part import ImportPart
from scout.model.conversation import make_storable
from scout.model.events.talk import QuestionCreated, WorkItemCreated
from scout.model.imported import derive_imported_id
from scout.model.question import Question, create_question
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import WorkItem, WorkState, create_work
from scout.protocol.imports.records import ImportedQuestion, ImportedWork
from scout.protocol.imports.requests import ImportOutcome

_TITLE = 200  # characters


def take_work(part: ImportPart, record: ImportedWork) -> ImportOutcome:
    """Store open work in the state it had."""
    tx, origin = part.tx, part.get_origin(record)
    ident = derive_imported_id("wrk", origin, record.created_at)
    if tx.get(WorkItem, ident) is not None:
        return part.find(record, ident, _shorten(record.title))
    owner, requester = part.resolve_agent(record.owner), part.resolve_agent(record.requester)
    item = create_work(
        ident,
        _shorten(record.title),
        tx.now,
        requester_id=requester,
        owner_id=owner,
        description=make_storable(record.description),
        acceptance=record.acceptance,
        priority=record.priority,
        labels=tuple(_shorten(label) for label in record.labels),
        conversation_id=part.resolve_conversation(record.conversation) if record.conversation else None,
        imported_from=origin,
    )
    next_owner = part.resolve_agent(record.next_move_owner) if record.next_move_owner else owner
    item = _set_state(replace(item, created_at=record.created_at or tx.now), record, next_owner)
    if not part.dry:
        tx.record(WorkItemCreated, item, move="import")
    return part.take(record, ident, item.title)


def _set_state(item: WorkItem, record: ImportedWork, next_owner: str) -> WorkItem:
    state = WorkState(record.state)
    waits = WaitingOn(kind=WaitingKind.ACTOR, ref=next_owner) if state is WorkState.WAITING else None
    reviewer = next_owner if state is WorkState.REVIEW else None
    return replace(item, state=state, next_move_owner_id=next_owner, waiting_on=waits, reviewer_id=reviewer)


def take_question(part: ImportPart, record: ImportedQuestion) -> ImportOutcome:
    """Store an open question."""
    tx, origin = part.tx, part.get_origin(record)
    ident = derive_imported_id("qst", origin, record.created_at)
    if tx.get(Question, ident) is not None:
        return part.find(record, ident)
    asker, responder = part.resolve_agent(record.asker), part.resolve_agent(record.responder)
    if asker == responder:
        return part.skip(record, "its asker and its responder are the same")
    question = create_question(
        ident,
        make_storable(record.body),
        tx.now,
        asker_id=asker,
        responder_id=responder,
        conversation_id=part.resolve_conversation(record.conversation) if record.conversation else None,
    )
    question = replace(question, created_at=record.created_at or tx.now, imported_from=origin)
    if not part.dry:
        tx.record(QuestionCreated, question, move="import")
    return part.take(record, ident, _shorten(record.body))


def _shorten(text: str) -> str:
    return " ".join(make_storable(text).split())[:_TITLE]
