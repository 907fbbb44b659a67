"""Merging one branch into another, with the work tree in which the other one is checked out.

The merge is computed by the isolated git, so no merge driver or hook of the repository runs. It is always a
commit with two parents, also where git would only move the branch: one command takes it back. The order is:
the commit is stored, the work tree is brought along, then the branch is moved. After an interruption the
files of the work tree are each as before or as after the merge, so it can be completed.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from scout.ports import GitFailed, MergedBranch, MergePreview
from scout.tree.git.administration import Administration
from scout.tree.git.held_locks import wait_for_locks
from scout.tree.git.isolated import IsolatedGit, Isolation, open_isolated
from scout.tree.git.process import read_global_config
from scout.tree.git.repository import Repository, find_repository
from scout.tree.status import find_operation, read_uncommitted

_NAME, _EMAIL = "Scout", "scout@localhost"
_LISTED = 64 << 20
_NAMED = 5
_DIFF_FILES = ("diff-files", "-z", "--name-only")
_DIFF_INDEX = ("diff-index", "--cached", "-z", "--name-only")


class Changes(NamedTuple):
    """Paths that a merge adds, deletes, and replaces by another version."""

    added: frozenset[str]
    deleted: frozenset[str]
    replaced: frozenset[str]


class BranchMerges:
    """Merges of one repository; `repository` is its main work tree."""

    def __init__(
        self,
        repository: Repository,
        administration: Administration,
        scratch: Path,
        end: float,
        patience: float,
    ) -> None:
        self._repository = repository
        self._administration = administration
        self._scratch = scratch
        self._end = end
        self._patience = patience

    def preview(self, into: str, branch: str) -> MergePreview:
        """Merge two branches into objects that are thrown away."""
        heads = self._administration.list_branches().heads
        missing = [name for name in (into, branch) if name not in heads]
        if missing:
            raise GitFailed(f"there is no branch {missing[0]}")
        before, commit = heads[into], heads[branch]
        with self._open(Isolation(new_objects=True)) as git:
            if git.succeeds("merge-base", "--is-ancestor", commit, before):
                return MergePreview(into=into, into_commit=before, commit=commit, needed=False)
            tree, conflicts = _merge_trees(git, before, commit)
        tree = None if conflicts else tree
        return MergePreview(into=into, into_commit=before, commit=commit, tree=tree, conflicts=conflicts)

    def store(self, preview: MergePreview, message: str) -> str:
        """Store the merge commit in the repository, and return it. Nothing refers to it yet."""
        if not preview.needed:
            return preview.into_commit
        if preview.tree is None:
            raise GitFailed(f"the merge has conflicts in {_name_some(preview.conflicts)}")
        with self._open(Isolation(keep_objects=True)) as git:
            tree, _ = _merge_trees(git, preview.into_commit, preview.commit)
            if tree != preview.tree:
                raise GitFailed("the merge gives another result than before; try again")
            return self._commit(git, tree, (preview.into_commit, preview.commit), message)

    def store_files(self, tree: str, parent: str | None, message: str) -> str | None:
        """Store a commit of a tree that is in the repository; None if its parent has the same tree."""
        with self._open(Isolation(keep_objects=True)) as git:
            if parent is not None and git.run("rev-parse", f"{parent}^{{tree}}").strip() == tree:
                return None
            return self._commit(git, tree, (parent,) if parent else (), message)

    def merge(self, preview: MergePreview, message: str, begun: Callable[[str], None]) -> MergedBranch:
        """Carry out a merge. Everything that could prevent it is checked before anything moves."""
        before = preview.into_commit
        if not preview.needed:
            return MergedBranch(commit=before, before=before, undo=())
        now = self._administration.list_branches().heads.get(preview.into)
        if now != before:
            raise GitFailed(f"the branch {preview.into} has moved since the merge was tried; try again")
        holder = self._find_holder(preview.into)
        commit = self.store(preview, message)
        if holder is not None:
            self._check_holder(holder, before, commit)
        begun(commit)
        if holder is not None:
            self._bring_along(holder, before, commit)
        self._administration.move_branch(preview.into, commit, before, f"scout: merge {preview.commit[:12]}")
        return MergedBranch(
            commit=commit, before=before, undo=self._undo(holder, preview.into, before, commit)
        )

    def finish(self, into: str, before: str, commit: str) -> None:
        """Complete a merge that was interrupted, if the branch has not moved."""
        now = self._administration.list_branches().heads.get(into)
        if now == before:
            holder = self._find_holder(into)
            if holder is not None:
                self._complete_files(holder, before, commit)
            self._administration.move_branch(into, commit, before, "scout: merge completed")
        elif now is None or not self._reaches(now, commit):
            raise GitFailed(f"the branch {into} has moved since the merge began; nothing was changed")

    # -- the work tree that has the branch checked out -------------------------------------------

    def _find_holder(self, branch: str) -> Repository | None:
        """Return the work tree that has a branch checked out."""
        possible = [tree for tree in self._administration.list_trees() if tree.branch in (branch, None)]
        for here in filter(None, (find_repository([tree.path]) for tree in possible)):
            if here.branch is None and here.origin == branch:
                raise GitFailed(f"the branch {branch} is being rebased in {here.top}; finish that first")
            if here.branch == branch:
                return here
        return None

    def _check_holder(self, holder: Repository, before: str, commit: str) -> None:
        """Refuse a merge that would overwrite anything, or that comes into another operation."""
        if (operation := find_operation(holder)) is not None:
            raise GitFailed(f"a {operation} is in progress in {holder.top}; finish it first")
        files = read_uncommitted(holder, self._scratch, self._end, before)
        if files.tracked:
            raise GitFailed(f"{holder.top} has uncommitted changes in {_name_some(files.tracked)}")
        overwritten = _list_overwritten(holder.top, self._list_changes(holder, before, commit))
        if overwritten:
            raise GitFailed(f"the merge would overwrite {_name_some(overwritten)} in {holder.top}")

    def _list_changes(self, holder: Repository, before: str, commit: str) -> Changes:
        with open_isolated(holder, self._scratch, self._end) as git:
            words = ("diff-tree", "-r", "-z", "--no-renames", "--name-status", before, commit)
            printed = git.call(words, most=_LISTED)
        if len(printed) > _LISTED:
            raise GitFailed("the merge changes too many files")
        parts = printed.decode("utf-8", "surrogateescape").split("\0")
        kinds = {"A": set[str](), "D": set[str](), "M": set[str](), "T": set[str]()}
        for kind, name in zip(parts[0::2], parts[1::2], strict=False):
            kinds[kind].add(name)
        return Changes(frozenset(kinds["A"]), frozenset(kinds["D"]), frozenset(kinds["M"] | kinds["T"]))

    def _bring_along(self, holder: Repository, before: str, commit: str) -> None:
        """Move the index and the files of a work tree from one commit to another; both must be unchanged."""
        with open_isolated(holder, self._scratch, self._end, Isolation(head=before)) as git:
            wait_for_locks(lambda: git.run("update-index", "--refresh", fine=(0, 1)), self._patience)
            wait_for_locks(lambda: git.run("read-tree", "-m", "-u", before, commit), self._patience)

    def _complete_files(self, holder: Repository, before: str, commit: str) -> None:
        """Complete the files of an interrupted merge: each must be as before or as after it."""
        foreign = self._find_foreign(holder, before, commit)
        if foreign:
            raise GitFailed(f"{holder.top} has uncommitted changes in {_name_some(foreign)}")
        with open_isolated(holder, self._scratch, self._end, Isolation(head=before)) as git:
            wait_for_locks(lambda: git.run("read-tree", "--reset", "-u", commit), self._patience)

    def _find_foreign(self, holder: Repository, before: str, commit: str) -> tuple[str, ...]:
        """Return the files that are neither as before nor as after a merge, on disk or in the index."""
        changes = self._list_changes(holder, before, commit)
        old, new = self._list_unlike(holder, before), self._list_unlike(holder, commit)
        present = {
            name for name in changes.added | changes.deleted if os.path.lexists(f"{holder.top}/{name}")
        }
        foreign = {name for name in old if name in new or name in changes.deleted & present}
        foreign |= new & changes.added & present
        return tuple(sorted(foreign | self._list_staged(holder, before) & self._list_staged(holder, commit)))

    def _list_unlike(self, holder: Repository, commit: str) -> set[str]:
        """List the files that differ from a commit, whatever the index of the work tree holds."""
        with open_isolated(holder, self._scratch, self._end, Isolation(head=commit, copy_index=True)) as git:
            git.run("read-tree", "--empty")
            git.run("read-tree", commit)
            git.run("update-index", "--refresh", fine=(0, 1))
            return _split_names(git.call((*_DIFF_FILES, "--ignore-submodules=dirty"), most=_LISTED))

    def _list_staged(self, holder: Repository, commit: str) -> set[str]:
        """List the files whose version in the index differs from a commit."""
        with open_isolated(holder, self._scratch, self._end) as git:
            return _split_names(git.call((*_DIFF_INDEX, "--ignore-submodules=dirty", commit), most=_LISTED))

    # -- objects ---------------------------------------------------------------------------------

    def _open(self, isolation: Isolation) -> AbstractContextManager[IsolatedGit]:
        return open_isolated(self._repository, self._scratch, self._end, isolation)

    def _reaches(self, commit: str, other: str) -> bool:
        with self._open(Isolation()) as git:
            return git.succeeds("merge-base", "--is-ancestor", other, commit)

    def _commit(self, git: IsolatedGit, tree: str, parents: Iterable[str], message: str) -> str:
        name, email = _find_user(self._repository.common, self._end)
        user = ("-c", f"user.name={name}", "-c", f"user.email={email}")
        words = (word for parent in parents for word in ("-p", parent))
        return git.run(*user, "commit-tree", *words, tree, given=f"{message.strip()}\n".encode()).strip()

    def _undo(self, holder: Repository | None, into: str, before: str, commit: str) -> tuple[str, ...]:
        if holder is not None:
            return ("git", "-C", holder.top, "reset", "--keep", before)
        return ("git", "-C", self._repository.top, "update-ref", f"refs/heads/{into}", before, commit)


def _merge_trees(git: IsolatedGit, before: str, commit: str) -> tuple[str, tuple[str, ...]]:
    """Merge two commits; return the tree, and the files with conflicts."""
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", before, commit)
    printed, code = git.call_with_code(words, most=_LISTED, fine=(0, 1))
    tree, *names = printed.decode("utf-8", "replace").split("\0")
    return tree.strip(), tuple(dict.fromkeys(filter(None, names))) if code else ()


def _list_overwritten(top: str, changes: Changes) -> tuple[str, ...]:
    """Return the files that are not in git and in whose place the merge puts something else.

    Git itself would overwrite files that are ignored, such as `.env`.
    """
    found = set[str]()
    for name in changes.added:
        folders = [str(folder) for folder in Path(name).parents][:-1]
        found.update(folder for folder in folders if _is_file(Path(top, folder)))
        found.update(os.path.relpath(path, top) for path in _list_files(Path(top, name)))
    return tuple(sorted(found - changes.deleted - changes.replaced))


def _is_file(path: Path) -> bool:
    return os.path.lexists(path) and (path.is_symlink() or not path.is_dir())


def _split_names(printed: bytes) -> set[str]:
    if len(printed) > _LISTED:
        raise GitFailed("too many files differ")
    return {*filter(None, printed.decode("utf-8", "surrogateescape").split("\0"))}


def _list_files(path: Path) -> list[str]:
    """Return the file at a path, or the files below it."""
    if path.is_dir() and not path.is_symlink():
        return [f"{folder}/{name}" for folder, _, names in os.walk(path) for name in names]
    return [str(path)] if os.path.lexists(path) else []


def _find_user(folder: str, end: float) -> tuple[str, str]:
    """Return the name and e-mail address that the user gave to git; Scout's if there are none."""
    printed = read_global_config(folder, end, "-z", "--get-regexp", r"^user\.(name|email)$")
    found = dict(pair.split("\n", 1) for pair in printed.split("\0") if "\n" in pair)
    name, email = (found.get(f"user.{one}", "").strip() for one in ("name", "email"))
    return (name, email) if name and email else (_NAME, _EMAIL)


def _name_some(names: Iterable[str]) -> str:
    listed = [name.encode(errors="replace").decode() for name in names]
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
