"""The request that imports one part of another system's records."""

from collections.abc import Callable
from typing import Any

from scout.base.refusal import Refused
from scout.broker.imports import agents, talk, work
from scout.broker.imports.part import ImportPart
from scout.broker.imports.talk import ReadPositions
from scout.broker.transaction.transaction import Transaction
from scout.policy.permit import Deed, Subject
from scout.protocol.imports.records import (
    AnyImported,
    ImportedAgent,
    ImportedAlias,
    ImportedConversation,
    ImportedMessage,
    ImportedQuestion,
    ImportedWork,
)
from scout.protocol.imports.requests import ImportOutcome, ImportRecords, ImportResult

_TAKEN: dict[type[Any], Callable[[ImportPart, Any], ImportOutcome]] = {
    ImportedAgent: agents.take_agent,
    ImportedAlias: agents.take_alias,
    ImportedConversation: talk.take_conversation,
    ImportedWork: work.take_work,
    ImportedQuestion: work.take_question,
}


def import_records(tx: Transaction, request: ImportRecords) -> ImportResult:
    """Import one part. A record that cannot be imported is skipped with its reason; the others are stored."""
    tx.permit(Deed.ADMINISTER, Subject(name="imports"))
    part = ImportPart(tx, request.system, dry=request.dry_run)
    positions = ReadPositions(part)
    outcomes = tuple(_take(part, record, positions) for record in request.records)
    positions.move_all()
    return ImportResult(outcomes=outcomes)


def _take(part: ImportPart, record: AnyImported, positions: ReadPositions) -> ImportOutcome:
    before = len(part.tx.events)
    try:
        if isinstance(record, ImportedMessage):
            return talk.take_message(part, record, positions)
        return _TAKEN[type(record)](part, record)
    except Refused as refusal:
        if len(part.tx.events) != before:
            raise  # half a record is never stored: the whole part is refused
        return part.skip(record, refusal.diagnostic.message)
