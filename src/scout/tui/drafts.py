"""What was written and not sent. A file in the data folder keeps it when the application ends."""

import contextlib
import os
from pathlib import Path

from scout.base.codec import decode, encode
from scout.base.record import Record
from scout.base.refusal import Refused

_MOST = 50  # drafts that are kept


class Draft(Record):
    """One text: to whom, what, and the files that go with it."""

    to: str = ""
    body: str = ""
    files: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.to.strip() or self.body.strip() or self.files)


class DraftBook:
    """Drafts by place: `ask`, `ask @agent`, or the id of a conversation.

    Only what changed here is written, so that two applications keep each other's drafts.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._drafts = _read(file)
        self._changed = set[str]()

    def get(self, place: str) -> Draft:
        return self._drafts.get(place, Draft())

    def keep(self, place: str, draft: Draft) -> None:
        """Keep a draft in memory; an empty one is forgotten."""
        if draft == self.get(place):
            return
        self._changed.add(place)
        self._drafts.pop(place, None)
        if not draft.is_empty:
            self._drafts[place] = draft

    def forget(self, place: str) -> None:
        """Drop a draft: it was sent."""
        self.keep(place, Draft())

    def save(self) -> None:
        """Write what changed. Without a disk the drafts stay in memory."""
        if self._file is None or not self._changed:
            return
        stored = {place: draft for place, draft in _read(self._file).items() if place not in self._changed}
        stored |= {place: self._drafts[place] for place in self._changed if place in self._drafts}
        with contextlib.suppress(OSError):
            _write(self._file, dict(list(stored.items())[-_MOST:]))
        self._changed.clear()


def _read(file: Path | None) -> dict[str, Draft]:
    try:
        return decode(file.read_bytes(), dict[str, Draft]) if file is not None else {}
    except (OSError, Refused):
        return {}


def _write(file: Path, drafts: dict[str, Draft]) -> None:
    """Replace the file as a whole. Only its owner can read it."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as written:
        written.write(encode(drafts))
    fresh.replace(file)
