"""Pictures of git work trees, taken by git itself into a folder of Scout's: the repository is only read.

A copy of the index is brought up to date, and what the repository does not hold yet is written to an object
folder beside it. No hook, filter or monitor that the repository names is run. All that git does there is to
note on an object, which it would have written again, that it is still of use: a time, no content.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from scout.base.codec import decode, encode
from scout.base.record import Record
from scout.base.refusal import Refused
from scout.ports import Change
from scout.tree.git import find_repository

__all__ = ["GitSnapshots"]

_SAFE = re.compile(r"\w[\w.-]*", re.ASCII)
_PASSED = ("HOME", "PATH", "XDG_CONFIG_HOME")
_QUIET = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "core.fsync=none",
    "core.quotePath=false",
    "advice.addEmbeddedRepo=false",
    "diff.ignoreSubmodules=dirty",
    "submodule.recurse=false",
    "gc.auto=0",
)
_FILTER = re.compile(r"filter\..*\.(?:clean|process|smudge|required)", re.DOTALL)
_LARGEST = 64 << 20  # bytes of one file of an object folder
_BLOCK = 512  # bytes, the unit of `ulimit -f`
_LIMITED = ("/bin/sh", "-c", f'ulimit -f {_LARGEST // _BLOCK}; exec "$@"', "sh")
_ANSWER = 1 << 20
_PATIENCE = 3  # a person who asks waits longer than a turn


class _Skipped(Exception):  # noqa: N818 (a signal between two functions)
    """There can be no picture, and why."""


class _Kept(Record, omit_defaults=True):
    """What is known of one flight: where, the trees before and after, or why there are none."""

    directory: str = ""
    base: str = ""
    head: str = ""
    problem: str = ""


class _Repository(NamedTuple):
    top: str
    objects: str
    staged: str


class GitSnapshots:
    """Kept below `sessions`, with the rest of a session. `seconds` is what one picture may take."""

    def __init__(
        self, sessions: Path, seconds: float = 3.0, most: int = 256 << 20, shown: int = 200_000
    ) -> None:
        self._sessions = sessions
        self._seconds = seconds
        self._most = most
        self._shown = shown

    def before(self, session_id: str, flight_id: str, directory: str) -> None:
        """The first picture of a flight; a later one does not replace it."""
        folder = self._folder(session_id)
        if self._kept(folder, flight_id) is None:
            self._keep(folder, flight_id, self._first(folder, directory))

    def after(self, session_id: str, flight_id: str) -> None:
        """The last one; if it cannot be taken, the flight is compared with the tree as it is when asked."""
        folder = self._folder(session_id)
        kept = self._kept(folder, flight_id)
        if kept is None or not kept.base:
            return
        with contextlib.suppress(_Skipped):
            head = self._picture(folder, kept.directory, self._end())
            self._keep(folder, flight_id, _Kept(directory=kept.directory, base=kept.base, head=head))

    def change(self, session_id: str, flight_id: str, *, patch: bool) -> Change:
        """The two pictures compared, or why they cannot be."""
        folder = self._folder(session_id)
        kept = self._kept(folder, flight_id)
        if kept is None:
            return Change(problem="no picture of its folder was taken before it began")
        if kept.problem:
            return Change(problem=kept.problem)
        end = self._end(_PATIENCE)
        try:
            head = kept.head or self._picture(folder, kept.directory, end)
            run = _Git(folder, _repository(kept.directory, end), end)
            stat = run.shown("diff-tree", "--stat=100", "-M", kept.base, head, most=self._shown)
            words = ("diff-tree", "-p", "-M", "--no-ext-diff", "--no-textconv", kept.base, head)
            text = run.shown(*words, most=self._shown) if patch else _Told("", cut=False)
        except _Skipped as problem:
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

    # -- taking one ------------------------------------------------------------------------------

    def _first(self, folder: Path, directory: str) -> _Kept:
        if find_repository([directory, *map(str, Path(directory).parents)]) is None:
            return _Kept(problem=f"{directory} is no git work tree")
        end = self._end()
        try:
            top = _repository(directory, end).top
            if top == os.path.realpath(Path.home()):
                return _Kept(problem="its git work tree is the whole home folder")
            return _Kept(directory=top, base=self._picture(folder, top, end))
        except _Skipped as problem:
            return _Kept(problem=str(problem))

    def _picture(self, folder: Path, directory: str, end: float) -> str:
        """The tree as it is now, with what is new in it and not ignored; what cannot be read is left out."""
        repository = _repository(directory, end)
        with _index(folder, repository) as index:
            run = _Git(folder, repository, end, index)
            run.words("add", "-A", "--ignore-errors", "--", ".", fine=(0, 1))
            tree = run.words("write-tree").strip()
        self._check_size(folder)
        return tree

    def _check_size(self, folder: Path) -> None:
        """A folder with too much new in it is not kept."""
        size = sum(file.stat().st_size for file in (folder / "objects").rglob("*") if file.is_file())
        if size > self._most:
            shutil.rmtree(folder / "objects", ignore_errors=True)
            raise _Skipped(f"there is more new in its folder than {self._most >> 20} MB")

    def _end(self, times: float = 1.0) -> float:
        return time.monotonic() + times * self._seconds

    # -- what is kept ----------------------------------------------------------------------------

    def _folder(self, session_id: str) -> Path:
        return self._sessions / _safe(session_id) / "snapshots"

    def _kept(self, folder: Path, flight_id: str) -> _Kept | None:
        try:
            return decode((folder / f"{_safe(flight_id)}.json").read_bytes(), _Kept)
        except (OSError, Refused):
            return None

    def _keep(self, folder: Path, flight_id: str, kept: _Kept) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{_safe(flight_id)}.json"
        written = path.with_suffix(".new")
        written.write_bytes(encode(kept))
        written.replace(path)


# ---------------------------------------------------------------------------------------------- git


class _Told(NamedTuple):
    text: str
    cut: bool


class _Git:
    """Git on one repository, with an index and an object folder of Scout's."""

    def __init__(self, folder: Path, repository: _Repository, end: float, index: Path | None = None) -> None:
        self._top = repository.top
        self._end = end
        objects = folder / "objects"
        objects.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._given = {
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(repository.objects),
            **({"GIT_INDEX_FILE": str(index)} if index else {}),
        }
        names = _run(self._top, ("config", "--name-only", "--list", "-z"), {}, end).text.split("\0")
        filters = [name for name in dict.fromkeys(names) if _FILTER.fullmatch(name)]
        # A filter is a program, and even reading the index may run one.
        self._without = [part for name in filters for part in ("-c", f"{name}=")]

    def words(self, *words: str, fine: tuple[int, ...] = (0,)) -> str:
        """What a command prints."""
        return self._run(words, fine=fine).text

    def shown(self, *words: str, most: int) -> _Told:
        """What a command prints, up to so many bytes and whole lines."""
        text, cut = self._run(words, most=most)
        return _Told(text.rpartition("\n")[0] + "\n" if cut else text, cut)

    def _run(self, words: tuple[str, ...], *, most: int = _ANSWER, fine: tuple[int, ...] = (0,)) -> _Told:
        return _run(self._top, (*self._without, *words), self._given, self._end, most=most, fine=fine)


def _run(
    directory: str,
    words: tuple[str, ...],
    given: dict[str, str],
    end: float,
    *,
    most: int = _ANSWER,
    fine: tuple[int, ...] = (0,),
) -> _Told:
    """What git prints, in an environment of its own, for as long as there is time."""
    settings = [part for one in _QUIET for part in ("-c", one)]
    passed = {name: value for name in _PASSED if (value := os.environ.get(name))}
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                [*_LIMITED, "git", *settings, *words],
                cwd=directory,
                env={"PATH": os.defpath, **passed, **_FIXED, **given},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                start_new_session=True,
            )
        except OSError as error:
            raise _Skipped(f"git cannot be run in {directory}: {error.strerror}") from None
        told, late = _read(process, most, end)
        if late:
            raise _Skipped("its work tree is so large that a picture of it takes too long")
        if process.returncode not in fine and len(told) <= most:
            complaints.seek(0)
            words_of_git = " ".join(complaints.read(2000).decode("utf-8", "replace").split())
            raise _Skipped(words_of_git[:300] or f"git ended with {process.returncode} in {directory}")
    return _Told(told[:most].decode("utf-8", "replace"), cut=len(told) > most)


def _read(process: "subprocess.Popen[bytes]", most: int, end: float) -> tuple[bytes, bool]:
    """The beginning of what a process prints, and whether it had to be ended for its time."""
    late = threading.Event()

    def stop() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(max(0.01, end - time.monotonic()), stop)
    timer.start()
    with process:
        assert process.stdout is not None
        told = process.stdout.read(most + 1)
        if len(told) > most:
            _kill(process)
        process.wait()
        timer.cancel()
    return told, late.is_set()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


_FIXED = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ADVICE": "0",
}


def _repository(directory: str, end: float) -> _Repository:
    asked = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "objects")
    told = _run(directory, (*asked, "--git-path", "index"), {}, end).text.split("\n")
    if len(told) != 4:
        raise _Skipped(f"git says nothing that could be read of {directory}")
    return _Repository(*told[:3])


@contextlib.contextmanager
def _index(folder: Path, repository: _Repository) -> Generator[Path]:
    """A copy of the index, so that only what changed since is looked at."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"index-{os.getpid()}-{time.monotonic_ns()}"
    try:
        with contextlib.suppress(FileNotFoundError):  # of a repository without a commit
            shutil.copyfile(repository.staged, path)
        yield path
    except OSError as error:
        raise _Skipped(f"its index cannot be read: {error.strerror}") from None
    finally:
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}.lock").unlink(missing_ok=True)


def _quoted(path: str) -> str:
    """A path in a list that colons separate."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"' if set(path) & {":", '"'} else path


def _safe(part: str) -> str:
    """An id that names a file here and nothing elsewhere."""
    if not _SAFE.fullmatch(part):
        raise ValueError(f"not an id: {part!r}")
    return part
