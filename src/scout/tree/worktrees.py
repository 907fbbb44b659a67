"""Git work trees of agents, on the real disk."""

import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from scout.ports import (
    AddedTree,
    CommandResult,
    GitFailed,
    GitTree,
    MergedBranch,
    MergePreview,
    RepositoryFacts,
    TreeState,
    TreeToCompare,
)
from scout.ports.folders import remove_folder
from scout.settings.environment import build_environment
from scout.settings.folder import make_private
from scout.tree.checkout import check_out, check_out_index, describe_checkout
from scout.tree.commands import Commands
from scout.tree.comparison import Comparison
from scout.tree.copies import copy_untracked
from scout.tree.git.administration import Administration
from scout.tree.git.index_file import read_index
from scout.tree.git.isolated import get_object_bytes, is_sparse
from scout.tree.git.repository import Repository, find_repository
from scout.tree.git.repository_lock import RepositoryLocks
from scout.tree.main_work_tree import find_main, find_upward, is_bare, list_upward, open_repository
from scout.tree.merge import BranchMerges
from scout.tree.scout_folder import NAME, WORK_TREES, build_work_tree_path, open_folder, prepare_folder
from scout.tree.status import Uncommitted, read_uncommitted, store_uncommitted

_TEMPORARY = ("/tmp", "/var/tmp")
_AT_ONCE = 4
_UNKNOWN = "is not a working tree"


class GitWorkTrees:
    """Work trees, changed by git. `data`: Scout's folder for locks and temporary files.

    `environment`: names of further variables that the operator's commands get.
    `seconds`: limit for one call; `patience`: how long locks of other git processes are waited for.
    """

    def __init__(
        self, data: Path, environment: Sequence[str] = (), seconds: float = 600.0, patience: float = 20.0
    ) -> None:
        self._scratch = data / "scratch"
        self._checks = data / "checks"
        self._environment = tuple(environment)
        self._seconds = seconds
        self._patience = patience
        self._commands = Commands()
        self._locks = RepositoryLocks(data / "locks", seconds)

    # -- reading ---------------------------------------------------------------------------------

    def look(self, directory: str, most: int = 20) -> RepositoryFacts | None:
        """Describe the repository of a directory; None outside of every repository."""
        repository = find_upward(list_upward(directory, _list_never_projects()))
        if repository is None:
            return None
        main, end = find_main(repository), self._end()
        bare = is_bare(repository)
        commit = self._administration(repository, end).head_commit()
        files = Uncommitted((), ()) if bare else read_uncommitted(repository, self._scratch, end, commit)
        facts = read_index(repository.own, get_object_bytes(repository))
        return RepositoryFacts(
            root=main.top,
            top=repository.top,
            common=os.path.realpath(repository.common),
            branch=repository.branch if not bare else None,
            commit=commit,
            bare=is_bare(main),
            shallow=Path(repository.common, "shallow").exists(),
            sparse=is_sparse(repository),
            submodules=tuple(name.decode("utf-8", "replace") for name in facts.submodules),
            uncommitted=files.names[:most],
            changed=files.tracked[:most],
            free_bytes=_get_free_bytes(main.top),
        )

    def find_commit(self, root: str, revision: str) -> str | None:
        """Return the commit that a branch, tag or id names."""
        return self._administration(open_repository(root), self._end()).find_commit(revision)

    def list_trees(self, root: str) -> tuple[GitTree, ...]:
        """List all work trees of a repository, the main one first."""
        return self._administration(open_repository(root), self._end()).list_trees()

    def state(self, path: str, branch: str | None, parent_branch: str | None, most: int = 20) -> TreeState:
        """Compare a work tree with its parent branch."""
        return self.states((TreeToCompare(path, branch, parent_branch),), most)[0]

    def states(self, wanted: Sequence[TreeToCompare], most: int = 20) -> tuple[TreeState, ...]:
        """Compare many work trees with their parent branches; the branches are read once."""
        known: dict[str, Comparison] = {}
        end = self._end()

        def compare(one: TreeToCompare) -> TreeState:
            try:
                main = _find_main(one.path)
            except GitFailed as problem:
                return TreeState(path=one.path, problem=str(problem))
            comparison = known.setdefault(main.common, Comparison(main, self._scratch, end))
            return comparison.compare(one, most)

        try:
            if len(wanted) < 2:
                return tuple(compare(one) for one in wanted)
            with ThreadPoolExecutor(min(_AT_ONCE, os.cpu_count() or 1), "compare") as pool:
                return tuple(pool.map(compare, wanted))
        finally:
            for comparison in known.values():
                comparison.close()

    # -- adding and removing ---------------------------------------------------------------------

    def add(self, root: str, branch: str, folder: str, base: str) -> AddedTree:
        """Create `branch` at the commit `base`, and its work tree in `.scout/worktrees/<folder>`."""
        repository, end = open_repository(root), self._end()
        path = self._make_room(root, folder)
        administration = self._administration(repository, end)
        with self._locks.hold(repository.common):
            administration.create_branch(branch, base)
            try:
                administration.add_tree(path, branch)
            except GitFailed:
                self._take_back(administration, path, branch, base)
                raise
        try:
            notes = self._fill(path, base, end)
            with self._locks.hold(repository.common):  # git reads the entries of all trees
                administration.unlock_tree(path)
        except GitFailed:
            with self._locks.hold(repository.common):
                self._take_back(administration, path, branch, base)
            raise
        return AddedTree(path=path, branch=branch, commit=base, notes=notes)

    def remove(self, path: str) -> None:
        """Remove a work tree, whatever it holds. Its branch stays."""
        main = _find_main(path)
        here = find_repository([path])
        linked = here is not None and here.main is not None
        if not linked and Path(path).parent != Path(main.top, NAME, WORK_TREES):
            raise GitFailed(f"{path} is not a linked work tree, so it is not removed")
        administration = self._administration(main, self._end())
        with self._locks.hold(main.common):
            self._drop(administration, path)

    def delete_branch(self, root: str, branch: str, commit: str) -> None:
        """Delete a branch if it still is at `commit`. A branch that does not exist is no failure."""
        repository = open_repository(root)
        administration = self._administration(repository, self._end())
        with self._locks.hold(repository.common):
            now = administration.list_branches().heads.get(branch)
            if now is None:
                return
            if now != commit:
                raise GitFailed(f"the branch {branch} is at {now[:12]}, not at {commit[:12]}")
            used = [
                tree.path
                for tree in administration.list_trees()
                if tree.branch == branch and not tree.missing
            ]
            if used:
                raise GitFailed(f"the branch {branch} is checked out in {used[0]}")
            administration.delete_branch(branch, commit)

    def restore_missing(self, path: str, branch: str, root: str) -> None:
        """Check out a branch again at a path whose folder is missing. Staged changes are restored."""
        repository, end = open_repository(root), self._end()
        if os.path.lexists(path):
            raise GitFailed(f"{path} exists")
        self._make_room(root, Path(path).name)
        administration = self._administration(repository, end)
        commit = administration.list_branches().heads.get(branch)
        if commit is None:
            raise GitFailed(f"there is no branch {branch}")
        with self._locks.hold(repository.common):
            known = _find_administered(repository, path)
            if known is not None and _read_head(known) == f"ref: refs/heads/{branch}":
                Path(path).mkdir()
                Path(path, ".git").write_text(f"gitdir: {known}\n", "utf-8")
                kept = (known / "index").exists()
            else:
                administration.add_tree(path, branch, anyhow=True)
                kept = False
        tree = open_repository(path)
        if kept:
            check_out_index(tree, self._scratch, end)
        else:
            check_out(tree, commit, self._scratch, end)
        with self._locks.hold(repository.common), suppress(GitFailed):  # it was not locked
            administration.unlock_tree(path)

    def _make_room(self, root: str, folder: str) -> str:
        """Return the path of a new work tree; everything above it exists and is Scout's."""
        if folder in {"", ".", ".."} or "/" in folder or folder.startswith("."):
            raise GitFailed(f"{folder!r} cannot be the folder of a work tree")
        prepare_folder(root)
        path = build_work_tree_path(root, folder)
        with open_folder(root, (NAME, WORK_TREES), make=True):
            if os.path.lexists(path):
                raise GitFailed(f"{path} exists")
        return path

    def _fill(self, path: str, commit: str, end: float) -> tuple[str, ...]:
        tree = open_repository(path)
        check_out(tree, commit, self._scratch, end)
        return describe_checkout(tree)

    def _take_back(self, administration: Administration, path: str, branch: str, base: str) -> None:
        """Undo an `add` that failed; a failure of that is left to the next start."""
        with suppress(GitFailed):
            self._drop(administration, path)
        with suppress(GitFailed):
            administration.delete_branch(branch, base)

    def _drop(self, administration: Administration, path: str) -> None:
        """Remove the folder, which disappears at once, then what git knows about it."""
        try:
            remove_folder(Path(path))
        except OSError as error:
            raise GitFailed(f"{path} cannot be removed: {error.strerror}") from None
        try:
            administration.forget_tree(path)
        except GitFailed as problem:
            if _UNKNOWN not in str(problem):
                raise

    # -- merging ---------------------------------------------------------------------------------

    def preview_merge(self, root: str, into: str, branch: str) -> MergePreview:
        """Try to merge one branch into another, without touching a work tree."""
        return self._merges(open_repository(root)).preview(into, branch)

    def check_merge(self, root: str, preview: MergePreview, command: str, seconds: float) -> CommandResult:
        """Run a command in a temporary checkout of the merged tree."""
        repository, end = open_repository(root), self._end()
        commit = self._merges(repository).store(preview, f"Try to merge into {preview.into}")
        make_private(self._checks)
        path = str(self._checks / secrets.token_hex(8))
        administration = self._administration(repository, end)
        try:
            with self._locks.hold(repository.common):
                administration.add_detached_tree(path, commit)
            check_out(open_repository(path), commit, self._scratch, end)
            return self.run_command(path, command, seconds)
        finally:
            with self._locks.hold(repository.common):
                self._drop(administration, path)

    def merge(
        self, root: str, preview: MergePreview, message: str, begun: Callable[[str], None]
    ) -> MergedBranch:
        """Move the branch to the merge commit, together with the work tree it is checked out in."""
        repository = open_repository(root)
        with self._locks.hold(repository.common):
            return self._merges(repository).merge(preview, message, begun)

    def finish_merge(self, root: str, into: str, before: str, commit: str) -> None:
        """Complete a merge that was interrupted after `begun`."""
        repository = open_repository(root)
        with self._locks.hold(repository.common):
            self._merges(repository).finish(into, before, commit)

    def save_uncommitted(self, path: str, message: str) -> str | None:
        """Store the uncommitted files of a work tree as a commit without a branch; None if there are none."""
        repository, end = open_repository(path), self._end()
        head = self._administration(repository, end).head_commit()
        tree = store_uncommitted(repository, self._scratch, end, head)
        return self._merges(repository).store_files(tree, head, message)

    # -- files and commands ----------------------------------------------------------------------

    def copy_files(self, root: str, path: str, globs: Sequence[str]) -> tuple[str, ...]:
        """Copy untracked files of the main work tree, such as `.env*`, and return their names."""
        return tuple(copy_untracked(open_repository(root), path, globs, self._scratch, self._end()))

    def run_command(self, path: str, command: str, seconds: float) -> CommandResult:
        """Run a command of the operator in a work tree."""
        return self._commands.run(path, command, seconds, build_environment({}, also=self._environment))

    def stop_commands(self) -> None:
        """End the running commands, because Scout stops."""
        self._commands.stop()

    def remove_leftovers(self) -> None:
        """Remove what an interrupted call left in Scout's data folder. Call it once, at the start."""
        for folder in self._checks.glob("*"):
            with suppress(GitFailed):
                self.remove(str(folder))
            remove_folder(folder)
        remove_folder(self._scratch)

    # -- shared ----------------------------------------------------------------------------------

    def _merges(self, repository: Repository) -> BranchMerges:
        main, end = find_main(repository), self._end()
        return BranchMerges(main, self._administration(main, end), self._scratch, end, self._patience)

    def _administration(self, repository: Repository, end: float) -> Administration:
        return Administration(repository, end, self._patience)

    def _end(self) -> float:
        return time.monotonic() + self._seconds


def _list_never_projects() -> frozenset[str]:
    places: Iterable[str] = (str(Path.home()), tempfile.gettempdir(), *_TEMPORARY)
    return frozenset(("/", *(os.path.realpath(place) for place in places)))


def _get_free_bytes(path: str) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def _find_main(path: str) -> Repository:
    """Return the main work tree of a tree, also if the tree's folder is missing or broken."""
    found = find_upward(list_upward(path, frozenset()))
    if found is None:
        raise GitFailed(f"{path} is not in a git repository")
    return find_main(found)


def _find_administered(repository: Repository, path: str) -> Path | None:
    """Return the folder in which git administers the work tree of this path."""
    wanted = os.path.realpath(f"{path}/.git")
    for folder in Path(repository.common, "worktrees").glob("*"):
        with suppress(OSError, ValueError):
            if os.path.realpath((folder / "gitdir").read_text("utf-8").strip()) == wanted:
                return folder
    return None


def _read_head(folder: Path) -> str:
    try:
        return (folder / "HEAD").read_text("utf-8").strip()
    except (OSError, ValueError):
        return ""
