"""Files named by the SHA-256 of their bytes, in a folder only its owner can read."""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import threading
from collections.abc import Generator
from pathlib import Path

from scout.base.refusal import BadRequest, Refused
from scout.model.problems.request import StoreFull, TooLarge
from scout.policy.limits import Limits, check_attachments_total
from scout.ports.folders import get_size_on_disk, measure
from scout.store.disk import sync_folder

_NAME = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_ARRIVING = 4  # files that arrive in parts at the same time; the parts of others are dropped


_DRAFTS = "arriving"


def make_folder(folder: Path) -> None:
    """Make a folder, and missing ones above it, readable by their owner only; each name is synced."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)


class FolderBlobs:
    """`aa/bb/aabb…`: two levels of folders, so that none grows large."""

    def __init__(self, folder: Path, limit: int, total: int = Limits().attachments_total) -> None:
        self._folder = folder
        self._limit = limit
        self._total = total
        self._used: int | None = None  # counted at the first use
        self._counting = threading.Lock()
        self._arriving = threading.Lock()

    def put(self, data: bytes) -> str:
        """Store the bytes once, synced, and return their SHA-256."""
        if len(data) > self._limit:
            raise Refused(TooLarge(what="attachment", size=len(data), limit=self._limit))
        name = hashlib.sha256(data).hexdigest()
        place = self._place(name)
        if not place.exists():
            check_attachments_total(self.used(), len(data), self._total)
            with self._refuse_full_disk():
                self._write(place, data)
                self._count(place)
        return name

    @contextlib.contextmanager
    def _refuse_full_disk(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in _FULL:
                raise Refused(StoreFull(path=str(self._folder))) from None
            raise

    def used(self) -> int:
        """Return the total size of all files in bytes."""
        with self._counting:
            if self._used is None:
                self._used = measure(self._folder).size
            return self._used

    def _count(self, place: Path) -> None:
        size = get_size_on_disk(place.stat())
        with self._counting:
            if self._used is not None:
                self._used += size

    def get(self, sha256: str) -> bytes | None:
        """Return the bytes of a file, or None; a file whose bytes do not match its name is a fault."""
        if not _NAME.fullmatch(sha256):
            return None
        try:
            data = self._place(sha256).read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise OSError(errno.EIO, "a stored attachment is damaged", str(self._place(sha256)))
        return data

    def size(self, sha256: str) -> int | None:
        """Return the size of a file, or None."""
        try:
            return self._place(sha256).stat().st_size if _NAME.fullmatch(sha256) else None
        except FileNotFoundError:
            return None

    # -- in parts ----------------------------------------------------------------------------------

    def read_part(self, sha256: str, offset: int, size: int) -> bytes | None:
        """Return some bytes of a file, or None. They are not checked against the hash."""
        if not _NAME.fullmatch(sha256):
            return None
        try:
            with self._place(sha256).open("rb") as file:
                file.seek(offset)
                return file.read(size)
        except FileNotFoundError:
            return None

    def add_part(self, sha256: str, offset: int, data: bytes) -> int:
        """Add bytes to a file that arrives in parts; return how many there are now."""
        if not _NAME.fullmatch(sha256):
            raise Refused(BadRequest(problem="this is no SHA-256", field="sha256"))
        if offset + len(data) > self._limit:
            raise Refused(TooLarge(what="attachment", size=offset + len(data), limit=self._limit))
        check_attachments_total(self.used(), offset + len(data), self._total)
        with self._arriving, self._refuse_full_disk():
            draft = self._open_draft(sha256, begins=offset == 0)
            length = draft.stat().st_size
            if offset != length:
                return length
            with draft.open("ab") as file:
                file.write(data)
            return length + len(data)

    def _open_draft(self, name: str, *, begins: bool) -> Path:
        draft = self._folder / _DRAFTS / name
        make_folder(draft.parent)
        if begins or not draft.exists():
            others = sorted(draft.parent.iterdir(), key=lambda one: one.stat().st_mtime_ns)
            for old in [one for one in others if one != draft][: 1 - _ARRIVING]:
                old.unlink()
            os.close(os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
        return draft

    def finish(self, sha256: str) -> bool:
        """Store a file that has arrived. False: it is another file than this hash says, and is dropped."""
        draft, place = self._folder / _DRAFTS / sha256, self._place(sha256)
        with self._arriving, self._refuse_full_disk():
            with draft.open("rb") as file:
                true = hashlib.file_digest(file, "sha256").hexdigest() == sha256
                os.fsync(file.fileno())
            if not true:
                draft.unlink()
                return False
            make_folder(place.parent)
            draft.rename(place)
            sync_folder(place.parent)
            self._count(place)
        return True

    def _place(self, name: str) -> Path:
        return self._folder / name[:2] / name[2:4] / name

    def _write(self, place: Path, data: bytes) -> None:
        """Write atomically: under a temporary name, then rename; each new name is synced."""
        make_folder(place.parent)
        draft = place.with_name(f".{secrets.token_hex(8)}")
        try:
            descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.rename(place)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
        sync_folder(place.parent)
