"""A work tree compared with the branch of its parent: what the parent does not have."""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from scout.ports import GitFailed, TreeState, TreeToCompare
from scout.tree.git.administration import Administration, Branches
from scout.tree.git.isolated import IsolatedGit, SharedFolders, open_isolated
from scout.tree.git.repository import Repository, find_repository
from scout.tree.status import Uncommitted, count_commits, find_operation, read_uncommitted

_LOCKS = 5.0


class Commits(NamedTuple):
    """Commits of a work tree: ids with subjects that the parent lacks, and counts."""

    unmerged: tuple[str, ...] = ()
    unpushed: int = 0
    ahead: int = 0
    behind: int = 0


class Comparison:
    """Compares work trees of one repository; its branches are read once. Close it afterwards."""

    def __init__(self, repository: Repository, scratch: Path, end: float) -> None:
        self._repository = repository
        self._scratch = scratch
        self._end = end
        self._branches: Branches | None = None
        self._shared = SharedFolders(scratch, end)

    def close(self) -> None:
        """Remove temporary files."""
        self._shared.close()

    def compare(self, wanted: TreeToCompare, most: int) -> TreeState:
        """Compare one work tree. What cannot be read is a `problem`, and the rest is still told."""
        here = find_repository([wanted.path])
        problem = None if here is not None else _explain_missing(wanted.path)
        head = branch = operation = None
        files = Uncommitted()
        commits = Commits()
        try:
            if here is not None:
                branch, operation = here.branch or here.origin, find_operation(here)
                head = self._head(here)
                files = read_uncommitted(here, self._scratch, self._end, head, self._shared)
            commits = self._compare_commits(wanted, branch, head, most)
        except GitFailed as failure:
            problem = str(failure)
        names = files.names
        return TreeState(
            path=wanted.path,
            branch=branch,
            commit=head,
            uncommitted=names[:most],
            more_uncommitted=len(names[most:]),
            operation=operation,
            problem=problem,
            unmerged=commits.unmerged,
            unpushed=commits.unpushed,
            ahead=commits.ahead,
            behind=commits.behind,
        )

    def _head(self, here: Repository) -> str | None:
        """Return the commit that is checked out; that of a branch is known already."""
        found = self._read_branches().heads.get(here.branch or "")
        return found or Administration(here, self._end, _LOCKS).head_commit()

    def _read_branches(self) -> Branches:
        if self._branches is None:
            self._branches = Administration(self._repository, self._end, _LOCKS).list_branches()
        return self._branches

    def _compare_commits(
        self, wanted: TreeToCompare, branch: str | None, head: str | None, most: int
    ) -> Commits:
        """Compare the commits of the agent's branch and of what is checked out with the parent's branch."""
        heads, remotes = self._read_branches()
        own = {name for name in (wanted.branch, branch) if name is not None and name != wanted.parent_branch}
        tips = list(dict.fromkeys(one for one in (head, *(heads.get(name) for name in own)) if one))
        parent = heads.get(wanted.parent_branch or "")
        others = [commit for name, commit in heads.items() if name not in own] + [*remotes.values()]
        if not tips or (len(tips) == 1 and tips[0] == parent):
            return Commits()
        with open_isolated(self._repository, self._scratch, self._end) as git:
            if parent is None:
                return Commits(unpushed=count_commits(git, tips, others))
            ahead, behind = _count_both(git, tips, parent)
            return Commits(
                unmerged=_list_commits(git, tips, parent, most) if ahead else (),
                unpushed=count_commits(git, tips, others) if ahead else 0,
                ahead=ahead,
                behind=behind,
            )


def _count_both(git: IsolatedGit, tips: list[str], parent: str) -> tuple[int, int]:
    """Count the commits ahead of the parent and behind it; with one tip, git counts both at once."""
    if len(tips) > 1:
        return count_commits(git, tips, [parent]), count_commits(git, [parent], tips)
    ahead, behind = git.run("rev-list", "--left-right", "--count", f"{tips[0]}...{parent}").split()
    return int(ahead), int(behind)


def _list_commits(git: IsolatedGit, tips: list[str], parent: str, most: int) -> tuple[str, ...]:
    words = ("rev-list", "--format=%h %s", "--no-commit-header", f"--max-count={most}", *tips, f"^{parent}")
    return tuple(git.run(*words).splitlines())


def _explain_missing(path: str) -> str:
    if not os.path.lexists(path):
        return f"{path} is missing"
    with contextlib.suppress(OSError):
        if not os.listdir(path):  # noqa: PTH208 (names only)
            return f"{path} is an empty folder"
    return f"{path} is not a git work tree; its files are unknown to git"
