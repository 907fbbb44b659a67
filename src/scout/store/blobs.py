"""Files named by the SHA-256 of their bytes, in a folder only its owner can read."""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import threading
from pathlib import Path

from scout.base.refusal import Refused
from scout.model.problems.request import StoreFull, TooLarge
from scout.policy.limits import Limits, check_attachments_total
from scout.ports.folders import get_size_on_disk, measure
from scout.store.disk import sync_folder

_NAME = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class FolderBlobs:
    """`aa/bb/aabb…`: two levels of folders, so that none grows large."""

    def __init__(self, folder: Path, limit: int, total: int = Limits().attachments_total) -> None:
        self._folder = folder
        self._limit = limit
        self._total = total
        self._used: int | None = None  # counted at the first use
        self._counting = threading.Lock()

    def put(self, data: bytes) -> str:
        """Store the bytes once, synced, and return their SHA-256."""
        if len(data) > self._limit:
            raise Refused(TooLarge(what="attachment", size=len(data), limit=self._limit))
        name = hashlib.sha256(data).hexdigest()
        place = self._place(name)
        if not place.exists():
            check_attachments_total(self.used(), len(data), self._total)
            try:
                self._write(place, data)
                self._count(place)
            except OSError as error:
                if error.errno in _FULL:
                    raise Refused(StoreFull(path=str(self._folder))) from None
                raise
        return name

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

    def _place(self, name: str) -> Path:
        return self._folder / name[:2] / name[2:4] / name

    def _write(self, place: Path, data: bytes) -> None:
        """Write atomically: under a temporary name, then rename; each new name is synced."""
        for folder in (self._folder, place.parent.parent, place.parent):
            if not folder.is_dir():
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                sync_folder(folder.parent)
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
