"""The `.scout` and `.exo` folders of projects, on the real disk."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from scout.ports import FoundFolder, GitFailed, IdentityFile
from scout.tree.git.repository import find_repository
from scout.tree.identity_file import Untrusted, read_claims, sign, verify
from scout.tree.scout_folder import (
    AGENTS,
    IDENTITY,
    NAME,
    WORK_TREES,
    open_folder,
    prepare_folder,
    read_file,
    write_file,
)

_EXO = ".exo"
_MOST = 10_000
_NO_FILE = "it has no identity file"
Kind = Literal["root", "worktree", "worker"]


class ScoutFolders:
    """Folders of projects. `key` signs identity files."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def prepare(self, root: str) -> None:
        """Make `.scout` with its `.gitignore`."""
        prepare_folder(root)

    def taken(self, root: str, folder: str, *, worker: bool = False) -> bool:
        """Whether a folder of this name exists."""
        return os.path.lexists(Path(root, NAME, AGENTS if worker else WORK_TREES, folder))

    def write_identity(self, folder: str, identity: IdentityFile) -> None:
        """Write an identity file with its MAC: in the folder of a worker, else in the folder's `.scout`."""
        above, worker = Path(folder).parent, _is_worker(folder)
        top = str(above.parent.parent) if worker else folder
        prepare_folder(top)
        parts = (NAME, AGENTS, Path(folder).name) if worker else (NAME,)
        with open_folder(top, parts, make=True) as opened:
            write_file(opened, IDENTITY, sign(identity, folder, self._key))

    def remove_worker(self, root: str, folder: str) -> None:
        """Remove the folder of a worker; it holds nothing but its identity."""
        if "/" in folder or folder in {"", ".", ".."}:
            raise GitFailed(f"{folder!r} cannot be the folder of a worker")
        if not self.taken(root, folder, worker=True):
            return
        with open_folder(root, (NAME, AGENTS)) as agents:
            try:
                shutil.rmtree(folder, dir_fd=agents)
            except FileNotFoundError:
                return
            except OSError as error:
                raise GitFailed(f"the folder of the worker {folder} stays: {error.strerror}") from None

    # -- scanning --------------------------------------------------------------------------------

    def scan(self, root: str) -> tuple[FoundFolder, ...]:
        """Read every identity of a project; the root's first, then work trees, workers, others."""
        root = os.path.realpath(root)
        found = [
            *self._scan_root(root),
            *_scan_each(root, NAME, WORK_TREES, lambda path: self._scan_tree(root, path)),
            *_scan_each(root, NAME, AGENTS, lambda path: self._scan_worker(root, path)),
            *_scan_each(root, _EXO, WORK_TREES, lambda path: _scan_exo(path, "worktree")),
            *_scan_each(root, _EXO, AGENTS, lambda path: _scan_exo(path, "worker")),
        ]
        return tuple(found)

    def _scan_root(self, root: str) -> Iterator[FoundFolder]:
        try:
            data = _read_below(root, (NAME,))
        except ValueError as problem:
            yield FoundFolder(folder=root, kind="root", problem=str(problem))
            return
        if data is not None:
            yield self._believe(root, root, "root", data, branch=_read_branch(root))

    def _scan_tree(self, root: str, folder: str) -> FoundFolder:
        branch = _read_branch(folder)
        try:
            data = _read_below(folder, (NAME,))
            data = data if data is not None else _read_below(folder, ())
        except ValueError as problem:
            return FoundFolder(folder=folder, branch=branch, problem=str(problem))
        if data is None:
            return FoundFolder(folder=folder, branch=branch, problem=_NO_FILE)
        return self._believe(root, folder, "worktree", data, branch=branch)

    def _scan_worker(self, root: str, folder: str) -> FoundFolder:
        try:
            data = _read_below(folder, ())
        except ValueError as problem:
            return FoundFolder(folder=folder, kind="worker", problem=str(problem))
        if data is None:
            return FoundFolder(folder=folder, kind="worker", problem=_NO_FILE)
        return self._believe(root, folder, "worker", data)

    def _believe(
        self, root: str, folder: str, kind: Kind, data: bytes, *, branch: str | None = None
    ) -> FoundFolder:
        try:
            identity = verify(data, folder, root, self._key)
        except Untrusted as why:
            return FoundFolder(folder=folder, kind=kind, claims=why.claims, branch=branch, problem=str(why))
        return FoundFolder(folder=folder, kind=kind, identity=identity, branch=branch)


def _scan_each(
    root: str, system: str, below: str, scan: Callable[[str], FoundFolder]
) -> Iterator[FoundFolder]:
    """Scan the folders of one kind. Links are named and not followed."""
    top = Path(root, system, below)
    try:
        with open_folder(root, (system, below)) as opened:
            names = sorted(name for name in os.listdir(opened) if not name.startswith("."))  # noqa: PTH208 (names only)
            kinds = [(name, _read_mode(opened, name)) for name in names[:_MOST]]
    except GitFailed as problem:
        if os.path.lexists(top):
            yield FoundFolder(
                folder=_clean_text(str(top)), system=_choose_system(system), problem=str(problem)
            )
        return
    except OSError:
        return
    for name, mode in kinds:
        path = f"{top}/{name}"
        if _clean_text(path) != path:
            yield FoundFolder(
                folder=_clean_text(path), system=_choose_system(system), problem="its name is not UTF-8 text"
            )
        elif stat.S_ISLNK(mode):
            yield FoundFolder(
                folder=path, system=_choose_system(system), problem="it is a link, which is not followed"
            )
        elif stat.S_ISDIR(mode):
            yield scan(path)
    if len(names) > _MOST:
        problem = f"it holds {len(names)} folders; the first {_MOST} were read"
        yield FoundFolder(folder=str(top), system=_choose_system(system), problem=problem)


def _scan_exo(folder: str, kind: Kind) -> FoundFolder:
    """Read a folder of ExoMonad: the branch of its work tree is its identity, and its file only a claim."""
    claims: dict[str, str] = {}
    problem = None
    try:
        claims = read_claims(_read_below(folder, ()) or b"{}")
    except ValueError as why:
        problem = str(why)
    branch = _read_branch(folder)
    return FoundFolder(folder=folder, system="exo", kind=kind, claims=claims, branch=branch, problem=problem)


def _read_below(folder: str, parts: tuple[str, ...]) -> bytes | None:
    """Return the identity file in a folder; a ValueError tells why it cannot be read."""
    if parts and not os.path.lexists(Path(folder, *parts)):
        return None
    try:
        with open_folder(folder, parts) as opened:
            return read_file(opened, IDENTITY)
    except GitFailed as problem:
        raise ValueError(str(problem)) from None
    except ValueError as problem:
        raise ValueError(f"its {IDENTITY} {problem}") from None


def _read_branch(folder: str) -> str | None:
    """Return the branch that a work tree has checked out, or that a rebase will return to."""
    repository = find_repository([folder])
    return None if repository is None else repository.branch or repository.origin


def _is_worker(folder: str) -> bool:
    return Path(folder).parent.name == AGENTS and Path(folder).parent.parent.name == NAME


def _read_mode(folder: int, name: str) -> int:
    with suppress(OSError):
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    return 0


def _clean_text(path: str) -> str:
    return path.encode("utf-8", "replace").decode()


def _choose_system(folder: str) -> Literal["scout", "exo"]:
    return "exo" if folder == _EXO else "scout"
