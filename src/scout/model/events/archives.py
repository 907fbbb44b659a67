"""Events about archives: which part of the log is in which file."""

from scout.model.events.envelope import Changed, Event
from scout.model.retention.archive import Archive


class ArchiveEvent(Event):
    """The record says which events the file has, and its checksum."""

    payload: Changed[Archive]


class ArchiveCreated(ArchiveEvent, tag="collab.archive.created"):
    """A part of the log, or a snapshot of the tables, is in a file."""


class ArchiveRewritten(ArchiveEvent, tag="collab.archive.rewritten"):
    """The file was written again without a redacted message."""


class ArchiveReplaced(ArchiveEvent, tag="collab.archive.replaced"):
    """A newer snapshot has taken the place of this one."""


class ArchivePurged(ArchiveEvent, tag="collab.archive.purged"):
    """The file was deleted. Its events cannot be read any more."""
