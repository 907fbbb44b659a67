"""The installed version and the free disk space, which may change while the daemon runs."""

import re
import shutil
from pathlib import Path

import scout

_VERSION = re.compile(r'^__version__ = "([^"]+)"', re.MULTILINE)


class SystemInstallation:
    """Scout as it is on this machine's disk. `home` is where its data is."""

    def __init__(self, home: str, file: Path | None = None) -> None:
        self._home = home
        self._file = file or Path(scout.__file__)
        self._read: tuple[int, str] = (0, "")

    def count_free_bytes(self) -> int | None:
        try:
            return shutil.disk_usage(self._home).free
        except OSError:
            return None

    def read_version(self) -> str:
        """Return the version on disk; the file is read again only when it has changed."""
        try:
            changed = self._file.stat().st_mtime_ns
            if changed != self._read[0]:
                found = _VERSION.search(self._file.read_text("utf-8"))
                self._read = (changed, found.group(1) if found else "")
        except OSError:
            return ""
        return self._read[1]
