"""Where an imported record comes from: the other system, and the record's id there."""

import hashlib

from msgspec import UNSET, UnsetType

from scout.base.ids import derive_id, mint
from scout.base.record import Record
from scout.base.time import Time


class ImportedFrom(Record):
    """The system that a record was imported from, and its id there."""

    system: str
    id: str


Origin = ImportedFrom | UnsetType  # left out of records that were made here


def derive_imported_id(prefix: str, origin: ImportedFrom, created_at: Time | None = None) -> str:
    """Return the id of an imported record: the same in every import, so that none is imported twice.

    With a time, it has its place among the ids of that time; lists are sorted by id.
    """
    if created_at is None:
        return derive_id(prefix, "import", origin.system, origin.id)
    text = f"import\0{origin.system}\0{origin.id}"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return mint(prefix, created_at // 1000, digest)


def is_imported(origin: Origin) -> bool:
    """Whether a record was imported."""
    return origin is not UNSET
