"""The clock, chance, the disk, and the ways to a person."""

from collections.abc import Iterator
from typing import Protocol

from scout.base.record import Record
from scout.base.time import Time
from scout.policy.disk import StoredFolder

__all__ = [
    "Blobs",
    "Change",
    "Clock",
    "Ids",
    "KeptRuns",
    "Notice",
    "Places",
    "Router",
    "SessionFolders",
    "Sink",
    "Snapshots",
    "Surroundings",
]


class Clock(Protocol):
    """Wall-clock time for records, monotonic time for timeouts."""

    def now(self) -> Time: ...
    def monotonic(self) -> float: ...


class Ids(Protocol):
    """Chance: ids for records, secrets for credentials.

    `series` is an endless run of ids without their prefix, each greater than all that were given out before.
    """

    def series(self) -> Iterator[str]: ...
    def secret(self) -> str: ...


class Surroundings(Record):
    """What the disk says about a directory. Paths are real and absolute.

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


class Places(Protocol):
    """The disk, as far as names depend on it."""

    def locate(self, directory: str, base: str | None = None) -> Surroundings:
        """What a directory is; `base` is what a relative one is relative to. Refused when it is not there."""
        ...

    def real_path(self, directory: str, base: str | None = None) -> str:
        """The directory without links, whatever project it is in. Refused when it is not there."""
        ...

    @property
    def home(self) -> str: ...
    @property
    def temporary(self) -> tuple[str, ...]: ...


class Blobs(Protocol):
    """Files by the SHA-256 of their bytes."""

    def put(self, data: bytes) -> str: ...
    def get(self, sha256: str) -> bytes | None: ...
    def size(self, sha256: str) -> int | None: ...


class SessionFolders(Protocol):
    """What sessions leave on the disk, one folder for each thing that can be removed."""

    def list_stored(self) -> tuple[StoredFolder, ...]:
        """All of it, with its size."""
        ...

    def remove(self, folder: StoredFolder) -> None:
        """Remove one of these for ever; whoever looks for it later is told so."""
        ...


class KeptRuns(SessionFolders, Protocol):
    """The processes of this machine, and what the programs of sessions left behind."""

    def is_alive(self, pid: int, started: str) -> bool:
        """Whether exactly this process runs."""
        ...

    def last_words(self, session_id: str, lines: int) -> tuple[str, ...]:
        """The last lines that the newest program of a session wrote to stderr."""
        ...


class Change(Record):
    """What two pictures of a work tree differ by. `problem`: why there is nothing to compare.

    `running`: there is no second picture yet, so the tree was compared as it is. `cut`: the patch is longer.
    """

    directory: str = ""
    base: str = ""
    head: str = ""
    running: bool = False
    stat: str = ""
    patch: str = ""
    cut: bool = False
    problem: str = ""


class Snapshots(SessionFolders, Protocol):
    """Pictures of the work trees in which programs work, kept elsewhere; the trees are only read.

    Each takes a bounded time. What could not be taken is known by `change`.
    """

    def before(self, session_id: str, flight_id: str, directory: str) -> None:
        """Keep the tree as it is before the first turn of a flight."""
        ...

    def after(self, session_id: str, flight_id: str) -> None:
        """Keep the tree as it is after a turn; the last one counts."""
        ...

    def change(self, session_id: str, flight_id: str, *, patch: bool) -> Change:
        """What a flight changed so far."""
        ...


# ----------------------------------------------------------------------------------------- people


class Notice(Record, omit_defaults=True):
    """What a person is told outside of Scout: one thing that needs them, or how many there are at once.

    `id` stays the same when it is told again, so that a receiver can know it.
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
    """A way to a person's eyes. It knows nothing of what becomes of the thing."""

    @property
    def name(self) -> str: ...

    async def tell(self, notice: Notice) -> None:
        """Show it, or raise what went wrong: then it is tried again."""
        ...


class Router(Protocol):
    """Somebody who breaks a tie in a channel of several agents, where no rule names one of them."""

    async def suggest(self, text: str, candidates: tuple[str, ...]) -> str | None:
        """One of the addresses, or none; an `OSError` or a `TimeoutError` says that there is no answer."""
        ...
