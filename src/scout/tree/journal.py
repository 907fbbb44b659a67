"""The journal of changes that were begun: one small file each, on disk before the change begins."""

import os
from pathlib import Path

from scout.base.codec import decode, encode_for_store
from scout.base.refusal import Refused
from scout.ports import GitFailed, JournalEntry
from scout.settings.folder import make_private
from scout.tree.scout_folder import open_folder, read_file, write_file

_SUFFIX = ".json"


class FileJournal:
    """A journal in a folder of Scout's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, entry: JournalEntry) -> None:
        """Store an entry; when this returns, it survives a power cut."""
        make_private(self._folder)
        with open_folder(str(self._folder), ()) as folder:
            write_file(folder, _name_entry(entry.id), encode_for_store(entry))

    def update(self, entry: JournalEntry) -> None:
        """Replace an entry."""
        self.begin(entry)

    def end(self, entry_id: str) -> None:
        """Remove an entry; a missing one has ended already."""
        try:
            (self._folder / _name_entry(entry_id)).unlink(missing_ok=True)
        except OSError as error:
            raise GitFailed(f"the journal entry {entry_id} cannot be removed: {error.strerror}") from None
        if self._folder.is_dir():
            with open_folder(str(self._folder), ()) as folder:
                os.fsync(folder)

    def unfinished(self) -> tuple[JournalEntry, ...]:
        """Return the entries that have not ended, the oldest first."""
        if not self._folder.is_dir():
            return ()
        with open_folder(str(self._folder), ()) as folder:
            names = sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIX))  # noqa: PTH208 (names only)
            found = [entry for name in names if (entry := _read(folder, name)) is not None]
        return tuple(sorted(found, key=lambda entry: (entry.begun_at, entry.id)))


def _read(folder: int, name: str) -> JournalEntry | None:
    """Read one entry. Entries are replaced as a whole, so an invalid one was not written by Scout."""
    try:
        entry = decode(read_file(folder, name) or b"", JournalEntry)
    except (ValueError, Refused):
        return None
    return entry if _name_entry(entry.id) == name else None


def _name_entry(entry_id: str) -> str:
    if not entry_id.replace("_", "").replace("-", "").isalnum() or not entry_id.isascii():
        raise ValueError(f"not an id: {entry_id!r}")
    return f"{entry_id}{_SUFFIX}"
