"""Changes to files of other programs: planned, shown, written atomically, and undone."""

import difflib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scout.cli.connection.refusal import RefusalError
from scout.cli.hosts.hosts import Addition, Host, HostProgram
from scout.cli.hosts.jsonc import NotJson


class FileChange(NamedTuple):
    """One file before and after a change; None if the file does not exist."""

    file: Path
    before: str | None
    after: str | None

    def diff(self) -> str:
        """Return the change as a unified diff."""
        old, new = (text.splitlines(keepends=True) if text else [] for text in (self.before, self.after))
        names = ("/dev/null" if self.before is None else str(self.file), str(self.file))
        target = "/dev/null" if self.after is None else names[1]
        lines = difflib.unified_diff(old, new, names[0], target)
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
        )


def plan_changes(host: Host, environ: Mapping[str, str], program: HostProgram) -> list[FileChange]:
    """Return the changes that set up a host; empty if it is already set up."""
    changes: list[FileChange] = []
    for file, additions in _group_by_file(host, environ, program).items():
        before = _read(file)
        after = before
        for addition in additions:
            after = _add_entry(file, addition.empty if after is None else after, addition)
        if after != before:
            changes.append(FileChange(file, before, after))
    return changes


def _group_by_file(
    host: Host, environ: Mapping[str, str], program: HostProgram
) -> dict[Path, list[Addition]]:
    found: dict[Path, list[Addition]] = {}
    for file, addition in host.additions(environ, program):
        found.setdefault(file, []).append(addition)
    return found


def _add_entry(file: Path, text: str, addition: Addition) -> str:
    try:
        return addition.put(text if text.strip() else addition.empty)
    except NotJson as problem:
        raise RefusalError.of(
            "bad_request",
            f"{file} cannot be changed safely ({problem}); nothing was written. "
            f"Put this there by hand:\n{addition.snippet()}",
            field=str(file),
        ) from None


def _read(file: Path) -> str | None:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise RefusalError.of("bad_request", f"{file} cannot be read: {error}", field=str(file)) from None


def write(change: FileChange) -> None:
    """Write a change atomically. The file keeps its mode, and a link stays a link."""
    file = Path(os.path.realpath(change.file))
    if _read(change.file) != change.before:
        raise RefusalError.of(
            "busy", f"{change.file} was changed meanwhile; nothing was written to it", retryAfter=1
        )
    if change.after is None:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    fresh = file.with_name(f".{file.name}.scout-{os.getpid()}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as writing:
            writing.write(change.after.encode())
            os.fchmod(writing.fileno(), mode)
            writing.flush()
            os.fsync(writing.fileno())
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)


class Records:
    """Records of the changes to each host's files, with everything needed to undo them."""

    def __init__(self, home: str) -> None:
        self._folder = Path(home) / "setup"

    def hosts(self) -> list[str]:
        """Return the hosts that are set up."""
        return sorted(file.stem for file in self._folder.glob("*.json"))

    def read(self, host: str) -> dict[str, dict[str, Any]]:
        """Return the contents of each file before and after the change."""
        try:
            return json.loads((self._folder / f"{host}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}

    def add(self, host: str, changes: list[FileChange]) -> None:
        """Record changes before they are written. The first known contents stay the ones to restore."""
        told = self.read(host)
        for change in changes:
            known = told.get(str(change.file))
            untouched = known is not None and known["after"] == change.before
            before = known["before"] if known is not None and untouched else change.before
            told[str(change.file)] = {"before": before, "after": change.after}
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._folder / f"{host}.json"
        fresh = file.with_suffix(".new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as writing:
            json.dump(told, writing)
        fresh.replace(file)

    def forget(self, host: str) -> None:
        (self._folder / f"{host}.json").unlink(missing_ok=True)


def plan_undo(
    host: Host, environ: Mapping[str, str], program: HostProgram, records: Records
) -> list[FileChange]:
    """Return the changes that undo a setup. From a file edited since, only Scout's entries are removed."""
    told = records.read(host.name)
    changes: list[FileChange] = []
    for file, additions in _group_by_file(host, environ, program).items():
        known, now = told.pop(str(file), None), _read(file)
        if known is not None and now == known["after"]:
            changes.append(FileChange(file, now, known["before"]))
        elif now is not None:
            changes.append(FileChange(file, now, _remove_entries(file, now, additions)))
    changes += [
        FileChange(Path(file), known["after"], known["before"])
        for file, known in told.items()
        if _read(Path(file)) == known["after"]
    ]
    return [change for change in changes if change.before != change.after]


def _remove_entries(file: Path, text: str, additions: list[Addition]) -> str:
    try:
        for addition in additions:
            text = addition.remove(text)
            addition.is_in(text)  # check that it still parses
    except NotJson as problem:
        raise RefusalError.of(
            "bad_request",
            f"{file} cannot be changed safely ({problem}); remove the entries that name scout by hand",
            field=str(file),
        ) from None
    return text
