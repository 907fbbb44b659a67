"""Snapshots of git work trees, written by git into a folder of Scout's. The repository is only read.

A copy of the index is brought up to date, and objects that the repository lacks are written to an object
folder beside it. `git.isolated` keeps git from the repository's configuration. All that git changes
in the repository is the time of an object that it would otherwise write again, to mark it as used.
"""

import contextlib
import os
import re
import shutil
import time
from pathlib import Path

from msgspec.structs import replace

from scout.base.codec import decode, encode
from scout.base.record import Record
from scout.base.refusal import Refused
from scout.policy.disk import StoredFolder
from scout.ports import Change, GitFailed, SnapshotPeriod
from scout.ports.folders import measure, remove_folder
from scout.settings.folder import make_private
from scout.tree.git.isolated import open_git
from scout.tree.git.process import Output
from scout.tree.git.repository import Repository, find_repository

_SAFE = re.compile(r"\w[\w.-]*", re.ASCII)
_NAME, _REMOVED = "snapshots", "removed-pictures"
_GONE = "the snapshots of its folder were removed to stay within limits.picturesTotal"
_PATIENCE = 3  # factor on the time limit when a person waits, not a turn


class _Kept(Record, omit_defaults=True):
    """The stored state of one flight: its folder and the trees before and after, or why there are none."""

    directory: str = ""
    base: str = ""
    head: str = ""
    problem: str = ""
    began: float = 0.0
    ended: float | None = None


class GitSnapshots:
    """Snapshots below `sessions`, with the other files of a session. `seconds`: limit for one snapshot."""

    def __init__(
        self, sessions: Path, seconds: float = 3.0, most: int = 256 << 20, shown: int = 200_000
    ) -> None:
        self._sessions = sessions
        self._seconds = seconds
        self._most = most
        self._shown = shown

    def before(self, session_id: str, flight_id: str, directory: str) -> None:
        """Take the first snapshot of a flight; a later one does not replace it."""
        folder = self._get_folder(session_id)
        if self._read_record(folder, flight_id) is None:
            self._write_record(folder, flight_id, self._take_first(folder, directory))

    def after(self, session_id: str, flight_id: str) -> None:
        """Take the last snapshot. If that fails, the flight is compared with the current tree."""
        folder = self._get_folder(session_id)
        kept = self._read_record(folder, flight_id)
        if kept is None or not kept.base:
            return
        with contextlib.suppress(GitFailed):
            head = self._take(folder, kept.directory, self._end())
            self._write_record(folder, flight_id, replace(kept, head=head, ended=time.time()))

    def change(self, session_id: str, flight_id: str, *, patch: bool) -> Change:
        """Compare the two snapshots, or say why that is not possible."""
        folder = self._get_folder(session_id)
        kept = self._read_record(folder, flight_id)
        if kept is None:
            removed = (folder.parent / _REMOVED).exists()
            return Change(
                problem=_GONE if removed else "no snapshot of its folder was taken before it started"
            )
        if kept.problem:
            return Change(problem=kept.problem)
        end = self._end(_PATIENCE)
        try:
            head = kept.head or self._take(folder, kept.directory, end)
            with open_git(_require_repository(kept.directory), folder, end) as git:
                stat = git.read("diff-tree", "--stat=100", "-M", kept.base, head, most=self._shown)
                words = ("diff-tree", "-p", "-M", "--no-ext-diff", "--no-textconv", kept.base, head)
                text = git.read(*words, most=self._shown) if patch else Output("", cut=False)
        except GitFailed as problem:
            return Change(problem=str(problem))
        return Change(
            directory=kept.directory,
            base=kept.base,
            head=head,
            running=not kept.head,
            stat=stat.text,
            patch=text.text,
            cut=text.cut,
        )

    def period(self, session_id: str, flight_id: str) -> SnapshotPeriod | None:
        """Return when the snapshots of a flight were taken; None if there is no first one."""
        kept = self._read_record(self._get_folder(session_id), flight_id)
        if kept is None or not kept.base or not kept.began:
            return None
        top = os.path.realpath(kept.directory)
        return SnapshotPeriod(directory=top, began=kept.began, ended=kept.ended)

    def files(self, session_id: str, flight_id: str) -> frozenset[str]:
        """Return the files that differ between the two snapshots; none if they cannot be compared."""
        folder = self._get_folder(session_id)
        kept = self._read_record(folder, flight_id)
        if kept is None or not kept.head:
            return frozenset()
        words = ("diff-tree", "-r", "--name-only", "--no-renames", "-z", kept.base, kept.head)
        with (
            contextlib.suppress(GitFailed),
            open_git(_require_repository(kept.directory), folder, self._end()) as git,
        ):
            return frozenset(git.run(*words).split("\0")[:-1])
        return frozenset()

    # -- room on the disk ------------------------------------------------------------------------

    def list_stored(self) -> tuple[StoredFolder, ...]:
        """List the snapshots of each session, which share their objects."""
        return tuple(_describe_folder(folder) for folder in self._sessions.glob(f"*/{_NAME}"))

    def remove(self, folder: StoredFolder) -> None:
        """Remove the snapshots of a session."""
        pictures = self._get_folder(folder.session_id)
        (pictures.parent / _REMOVED).touch(mode=0o600)
        remove_folder(pictures)

    # -- taking one ------------------------------------------------------------------------------

    def _take_first(self, folder: Path, directory: str) -> _Kept:
        try:
            top = _require_repository(directory).top
            if top == os.path.realpath(Path.home()):
                return _Kept(problem="its git work tree is the home folder")
            began = time.time()
            return _Kept(directory=top, base=self._take(folder, top, self._end()), began=began)
        except GitFailed as problem:
            return _Kept(problem=str(problem))

    def _take(self, folder: Path, directory: str, end: float) -> str:
        """Take a snapshot of the tree with new files that are not ignored; unreadable files are skipped."""
        with open_git(_require_repository(directory), folder, end) as git:
            git.drop_submodules()
            git.run("add", "-A", "--ignore-errors", "--", ".", fine=(0, 1))
            tree = git.run("write-tree", "--missing-ok").strip()
        self._check_size(folder)
        return tree

    def _check_size(self, folder: Path) -> None:
        """Remove a snapshot with too much new data."""
        size = sum(file.stat().st_size for file in (folder / "objects").rglob("*") if file.is_file())
        if size > self._most:
            shutil.rmtree(folder / "objects", ignore_errors=True)
            raise GitFailed(f"its folder has more than {self._most >> 20} MB of new files")

    def _end(self, times: float = 1.0) -> float:
        return time.monotonic() + times * self._seconds

    # -- what is kept ----------------------------------------------------------------------------

    def _get_folder(self, session_id: str) -> Path:
        return self._sessions / _check_id(session_id) / _NAME

    def _read_record(self, folder: Path, flight_id: str) -> _Kept | None:
        try:
            return decode((folder / f"{_check_id(flight_id)}.json").read_bytes(), _Kept)
        except (OSError, Refused):
            return None

    def _write_record(self, folder: Path, flight_id: str, kept: _Kept) -> None:
        make_private(folder)
        path = folder / f"{_check_id(flight_id)}.json"
        written = path.with_suffix(".new")
        written.touch(mode=0o600)
        written.write_bytes(encode(kept))
        written.replace(path)


def _describe_folder(folder: Path) -> StoredFolder:
    size, written = measure(folder)
    return StoredFolder(session_id=folder.parent.name, name=_NAME, size=size, ended=written)


def _require_repository(directory: str) -> Repository:
    found = find_repository([directory, *map(str, Path(directory).parents)])
    if found is None:
        raise GitFailed(f"{directory} is not a git work tree")
    return found


def _check_id(part: str) -> str:
    """Return an id that is safe as a file name."""
    if not _SAFE.fullmatch(part):
        raise ValueError(f"not an id: {part!r}")
    return part
