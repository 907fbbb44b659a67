"""The clock, random ids, the disk, and notifications."""

from collections.abc import Iterable, Iterator
from datetime import tzinfo
from typing import Protocol

from scout.base.record import Record
from scout.base.time import Time
from scout.model.session import ProcessLoad
from scout.policy.disk import StoredFolder


class Clock(Protocol):
    """Wall-clock time for records, monotonic time for timeouts."""

    def now(self) -> Time: ...
    def monotonic(self) -> float: ...


class Ids(Protocol):
    """Chance: ids for records, secrets for credentials.

    `series` is an endless run of ids without their prefix, each greater than all that were given out before.
    `continue_after` is told the last one of an earlier run: the clock may have been moved back since.
    """

    def series(self) -> Iterator[str]: ...
    def continue_after(self, ident: str) -> None: ...
    def secret(self) -> str: ...


class Surroundings(Record):
    """The project, repository and branch of a directory. Paths are real and absolute.

    `project_root` is the nearest folder upward with a `.scout/project.toml`, else the git top level,
    else the directory. `definition` is the configured name or the folder's (of a linked work tree, its main
    repository's); `workspace` is the folded branch of a linked work tree and None elsewhere.
    """

    directory: str
    project_root: str
    definition: str
    parent_folder: str
    branch: str | None = None
    workspace: str | None = None
    repository: str | None = None
    configured_name: str | None = None
    harness: str | None = None
    model: str | None = None


class WorkTreePath(Record):
    """A path on this machine. `path`: the links of its folders are resolved; `real`: its own link too.

    `top`: the top of its git work tree. `common`: the git folder that all work trees of the repository share.
    Both are None outside of git.
    """

    path: str
    real: str
    top: str | None = None
    common: str | None = None


class Places(Protocol):
    """The directories of this machine, as far as names depend on them."""

    def locate(self, directory: str, base: str | None = None) -> Surroundings:
        """Describe a directory; a relative one is resolved from `base`. Refused if it does not exist."""
        ...

    def real_path(self, directory: str, base: str | None = None) -> str:
        """Return the real path of a directory. Refused if it does not exist."""
        ...

    def find_work_tree(self, path: str, base: str | None = None) -> WorkTreePath:
        """In which work tree a file or directory is; it does not have to exist yet."""
        ...

    @property
    def home(self) -> str: ...
    @property
    def temporary(self) -> tuple[str, ...]: ...


class Installation(Protocol):
    """What this machine knows of itself without asking any program."""

    def count_free_bytes(self) -> int | None:
        """Return the bytes that are free where Scout stores its data; None if that cannot be read."""
        ...

    def read_version(self) -> str:
        """Return the version that is installed, which a running daemon may be behind; empty if unknown."""
        ...


class Blobs(Protocol):
    """Files by the SHA-256 of their bytes."""

    def put(self, data: bytes) -> str: ...
    def get(self, sha256: str) -> bytes | None: ...
    def size(self, sha256: str) -> int | None: ...

    def read_part(self, sha256: str, offset: int, size: int) -> bytes | None:
        """Return some bytes of a file, or None. They are not checked against the hash."""
        ...

    def add_part(self, sha256: str, offset: int, data: bytes) -> int:
        """Add bytes to a file that arrives in parts; return how many there are now.

        A part that begins elsewhere than the last one ended is dropped; one at 0 begins again.
        """
        ...

    def finish(self, sha256: str) -> bool:
        """Store a file that has arrived. False: it is another file than this hash says, and is dropped."""
        ...


class SessionFolders(Protocol):
    """What sessions leave on disk: one folder for each part that can be removed."""

    def list_stored(self) -> tuple[StoredFolder, ...]:
        """List all folders with their sizes."""
        ...

    def remove(self, folder: StoredFolder) -> None:
        """Remove a folder permanently. Later readers see that it was removed."""
        ...


class KeptRuns(SessionFolders, Protocol):
    """The processes of this machine, and the output of the programs of sessions."""

    def is_alive(self, pid: int, started: str) -> bool:
        """Whether exactly this process is running."""
        ...

    def last_words(self, session_id: str, lines: int) -> tuple[str, ...]:
        """Return the last lines that the newest program of a session wrote to stderr."""
        ...

    def measure_load(self, pids: Iterable[int]) -> dict[int, ProcessLoad]:
        """Return what these programs and their descendants use now, by pid. Blocks."""
        ...

    def list_kept(self) -> tuple[str, ...]:
        """Return the sessions with a running program that is kept between turns. Blocks."""
        ...


class Change(Record):
    """The difference between two snapshots of a work tree. `problem`: why there is nothing to compare.

    `running`: there is no second snapshot yet, so the current tree was compared. `cut`: the patch is longer.
    """

    directory: str = ""
    base: str = ""
    head: str = ""
    running: bool = False
    stat: str = ""
    patch: str = ""
    cut: bool = False
    problem: str = ""


class SnapshotPeriod(Record):
    """When the snapshots of a flight were taken, in seconds since 1970, and of which work tree.

    `ended` is None until the one after the flight is taken.
    """

    directory: str
    began: float
    ended: float | None = None

    def overlaps(self, other: "SnapshotPeriod") -> bool:
        """Whether both flights worked in the same work tree at the same time, and have ended."""
        if self.ended is None or other.ended is None or self.directory != other.directory:
            return False
        return self.began < other.ended and other.began < self.ended


class Snapshots(SessionFolders, Protocol):
    """Snapshots of the work trees in which programs work, stored elsewhere; the trees are only read.

    Each takes a bounded time. `change` says which snapshot could not be taken, and why.
    """

    def before(self, session_id: str, flight_id: str, directory: str) -> None:
        """Take the snapshot before the first turn of a flight."""
        ...

    def after(self, session_id: str, flight_id: str) -> None:
        """Take the snapshot after a turn; the last one counts."""
        ...

    def change(self, session_id: str, flight_id: str, *, patch: bool) -> Change:
        """Return what a flight has changed so far."""
        ...

    def period(self, session_id: str, flight_id: str) -> SnapshotPeriod | None:
        """Return when the snapshots of a flight were taken; None if there is no first one."""
        ...

    def files(self, session_id: str, flight_id: str) -> frozenset[str]:
        """Return the files that differ between the two snapshots, relative to the top of the work tree."""
        ...


# ----------------------------------------------------------------------------------------- people


class Notice(Record, omit_defaults=True):
    """A notification to a person outside of Scout: one item that needs them, or the number of several.

    `id` stays the same when a notification is repeated, so that a receiver can recognise it.
    """

    id: str
    title: str
    text: str = ""
    kind: str = ""
    risk: str = ""
    agent: str = ""
    count: int = 1
    at: Time


class Sink(Protocol):
    """A destination of notifications, such as the desktop or a webhook."""

    @property
    def name(self) -> str: ...

    async def tell(self, notice: Notice) -> None:
        """Deliver a notice. An exception means that it is retried."""
        ...


class Router(Protocol):
    """Breaks ties in a channel of several agents, where no rule names one of them."""

    async def suggest(self, text: str, candidates: tuple[str, ...]) -> str | None:
        """Return one of the addresses, or none. `OSError` and `TimeoutError` mean that there is no answer."""
        ...


class TimeZones(Protocol):
    """The time zones that this machine knows. They are read from the disk, so call these in a thread."""

    def load(self, name: str) -> tzinfo:
        """Return a zone by its name, such as Europe/Berlin. Refused if it is unknown."""
        ...

    def find_local(self) -> str:
        """Return the name of this machine's zone."""
        ...
