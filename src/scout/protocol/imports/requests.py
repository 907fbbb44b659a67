"""The request that imports one part of another system's records, and what became of each."""

from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from scout.base.record import Record
from scout.protocol.imports.records import AnyImported, ImportSystem
from scout.protocol.parameters import describe
from scout.protocol.request import Write

MOST_RECORDS = 100  # of one part


class ImportState(StrEnum):
    """`taken`: new in Scout, or would be; `present`: it was there already; `skipped`: not imported."""

    TAKEN = "taken"
    PRESENT = "present"
    SKIPPED = "skipped"


class ImportOutcome(Record):
    """What became of one record: its id and name in Scout, and why, if it was skipped or renamed."""

    type: str
    id: str
    state: ImportState
    record_id: str | None = None
    name: str = ""
    reason: str = ""


class ImportResult(Record):
    """One outcome for each record, in their order."""

    outcomes: tuple[ImportOutcome, ...]


class ImportRecords(Write[ImportResult]):
    """Import a part of another system's records. Nothing is delivered, and no agent is woken."""

    operation: ClassVar[str] = "import"
    route: ClassVar[str] = "POST /v1/import"
    words: ClassVar[tuple[str, ...]] = ("system",)
    permission: ClassVar[str] = "the operator"

    system: Annotated[ImportSystem, describe("the system that the records come from")]
    records: Annotated[
        tuple[AnyImported, ...],
        msgspec.Meta(max_length=MOST_RECORDS),
        describe(f"the records, maximum {MOST_RECORDS}"),
    ]
    dry_run: Annotated[bool, describe("change nothing, and tell what would be imported")] = False
