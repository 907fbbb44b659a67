"""Archives: old parts of the log in compressed files, and the snapshot from which replay starts."""

from enum import StrEnum

from scout.base.machine import Machine, Mutable, move_record
from scout.base.time import Time


class ArchiveKind(StrEnum):
    """`events`: rows of the log. `snapshot`: the tables as they were after the last archived event."""

    EVENTS = "events"
    SNAPSHOT = "snapshot"


class ArchiveState(StrEnum):
    KEPT = "kept"
    REPLACED = "replaced"
    PURGED = "purged"


class ArchiveMove(StrEnum):
    REWRITE = "rewrite"
    REPLACE = "replace"
    PURGE = "purge"


ARCHIVE = Machine(
    "archive",
    ArchiveState.KEPT,
    {
        ArchiveState.KEPT: {
            ArchiveMove.REWRITE: ArchiveState.KEPT,
            ArchiveMove.REPLACE: ArchiveState.REPLACED,
            ArchiveMove.PURGE: ArchiveState.PURGED,
        },
        ArchiveState.REPLACED: {},
        ArchiveState.PURGED: {},
    },
)


class Archive(Mutable):
    """One file beside the store, with the events from `first` to `last`, of the times `since` to `until`.

    A snapshot has the tables after the event `last`; only the newest one is kept. `file` is a name in the
    archive folder. It changes when a redaction rewrites the file. `by`: who changed its state last.
    """

    kind: ArchiveKind
    state: ArchiveState = ArchiveState.KEPT
    first: int
    last: int
    since: Time
    until: Time
    file: str
    sha256: str
    size: int
    by: str


def rewrite_archive(archive: Archive, now: Time, *, file: str, sha256: str, size: int) -> Archive:
    """Return an archive whose file was written again without a redacted message."""
    return move_record(ARCHIVE, archive, ArchiveMove.REWRITE, now, file=file, sha256=sha256, size=size)


def replace_snapshot(archive: Archive, now: Time) -> Archive:
    """Return a snapshot in whose place there is a newer one."""
    return move_record(ARCHIVE, archive, ArchiveMove.REPLACE, now)


def purge_archive(archive: Archive, now: Time, by: str) -> Archive:
    """Return an archive whose file is deleted."""
    return move_record(ARCHIVE, archive, ArchiveMove.PURGE, now, by=by)
