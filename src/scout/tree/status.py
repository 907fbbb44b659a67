"""What a work tree holds that is nowhere else: uncommitted files, commits, an operation in progress."""

import contextlib
import os
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import NamedTuple

from scout.ports import GitFailed
from scout.tree.git.administration import Administration
from scout.tree.git.index_file import IndexFacts, read_index
from scout.tree.git.isolated import IsolatedGit, Isolation, SharedFolders, get_object_bytes, open_isolated
from scout.tree.git.repository import Repository, find_repository

_PRINTED = 4 << 20
_DEEPEST = 4  # levels of submodules inside submodules
_STATUS = (
    "status",
    "--porcelain=v1",
    "-z",
    "--untracked-files=all",
    "--ignore-submodules=dirty",
    "--no-renames",
    "--no-ahead-behind",
)
# Files of Scout in a work tree. They are ignored by `.scout/.gitignore`, unless the repository has its own.
_OWN_FILES = (".scout/identity.json", ".scout/.gitignore")
_OWN_FOLDERS = (".scout/worktrees/", ".scout/agents/")
_OPERATIONS = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}


class Uncommitted(NamedTuple):
    """Changed and staged files of a work tree, new ones, and those inside submodules."""

    tracked: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    below: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted({*self.tracked, *self.new, *self.below}))


def read_uncommitted(
    repository: Repository, scratch: Path, end: float, head: str | None, shared: SharedFolders | None = None
) -> Uncommitted:
    """List the uncommitted files of a work tree, also those that git was told not to report.

    `shared`: the folders to use for a work tree that needs no separate ones.
    """
    facts = read_index(repository.own, get_object_bytes(repository))
    plain = shared.open(repository, head) if shared and not (facts.assumed or facts.skipped) else None
    if plain is not None:
        tracked, new = _list_changes(plain)
    else:
        with _open_revealed(repository, facts, scratch, end, Isolation(head=head)) as git:
            tracked, new = _list_changes(git)
    below = _list_in_submodules(repository, facts, scratch, end, 1)
    return Uncommitted(tuple(tracked), tuple(name for name in new if not _is_own(name)), tuple(below))


def store_uncommitted(repository: Repository, scratch: Path, end: float, head: str | None) -> str:
    """Store the files of a work tree, with new ones that are not ignored, as a tree in its repository.

    It fails if a repository inside the work tree holds files or commits that are nowhere else.
    """
    facts = read_index(repository.own, get_object_bytes(repository))
    isolation = Isolation(head=head, copy_index=True, keep_objects=True)
    with _open_revealed(repository, facts, scratch, end, isolation) as git:
        dropped = git.drop_submodules()
        git.run("add", "-A", "--", ".")
        inner = git.list_submodules()
        empty = [
            line
            for line in dropped
            if line.partition(b"\t")[2] not in {one.partition(b"\t")[2] for one in inner}
        ]
        if empty:
            git.run("update-index", "-z", "--index-info", given=b"\0".join((*empty, b"")))
        tree = git.run("write-tree").strip()
    names = tuple(line.partition(b"\t")[2] for line in inner)
    below = _list_in_submodules(repository, IndexFacts(submodules=names), scratch, end, 1)
    if below:
        raise GitFailed(
            f"{below[0]} is in a repository inside {repository.top}, which Scout cannot save; move it"
        )
    return tree


def find_operation(repository: Repository) -> str | None:
    """Return the merge, rebase or other operation that is in progress in a work tree."""
    names = (word for name, word in _OPERATIONS.items() if os.path.lexists(f"{repository.own}/{name}"))
    return next(names, None)


@contextlib.contextmanager
def _open_revealed(
    repository: Repository, facts: IndexFacts, scratch: Path, end: float, isolation: Isolation
) -> Generator[IsolatedGit]:
    """Open git with an index in which no existing file is marked as unchanged."""
    top = os.fsencode(repository.top)
    skipped = [name for name in facts.skipped if os.path.lexists(os.path.join(top, name))]  # noqa: PTH118 (bytes)
    isolation = isolation._replace(copy_index=isolation.copy_index or bool(facts.assumed or skipped))
    with open_isolated(repository, scratch, end, isolation) as git:
        for word, names in (("--no-assume-unchanged", facts.assumed), ("--no-skip-worktree", skipped)):
            if names:
                git.run("update-index", word, "-z", "--stdin", given=b"\0".join((*names, b"")))
        yield git


def _list_changes(git: IsolatedGit) -> tuple[list[str], list[str]]:
    printed = git.call(_STATUS, most=_PRINTED)
    lines = printed[:_PRINTED].decode("utf-8", "replace").split("\0")[:-1]
    tracked = sorted(line[3:] for line in lines if not line.startswith("??"))
    return tracked, sorted(line[3:] for line in lines if line.startswith("??"))


def _list_in_submodules(
    repository: Repository, facts: IndexFacts, scratch: Path, end: float, level: int
) -> list[str]:
    """List what submodules hold: their git folders are removed together with the work tree."""
    found: list[str] = []
    for name in facts.submodules if level <= _DEEPEST else ():
        path = os.fsdecode(name)
        inner = find_repository([f"{repository.top}/{path}"])
        if inner is not None and not Path(inner.top).is_symlink():
            below = _list_submodule(inner, scratch, end, level)
            found += [f"{path}/{one}".encode(errors="replace").decode() for one in below]
    return found


def _list_submodule(inner: Repository, scratch: Path, end: float, level: int) -> list[str]:
    administration = Administration(inner, end, 0)
    head, branches = administration.head_commit(), administration.list_branches()
    here = [one for one in (head, *branches.heads.values()) if one]
    with open_isolated(inner, scratch, end, Isolation(head=head)) as git:
        tracked, new = _list_changes(git)
        count = count_commits(git, here, branches.remotes.values())
    commits = [f" ({count} commits that no remote has)"] if count else []
    facts = read_index(inner.own, get_object_bytes(inner))
    return [*commits, *tracked, *new, *_list_in_submodules(inner, facts, scratch, end, level + 1)]


def count_commits(git: IsolatedGit, among: Iterable[str], without: Iterable[str]) -> int:
    """Count the commits that the first ones reach and the others do not."""
    wanted, other = dict.fromkeys(among), dict.fromkeys(without)
    if not wanted.keys() - other.keys():
        return 0
    lines = (*wanted, *(f"^{one}" for one in other))
    return int(git.run("rev-list", "--count", "--stdin", given="\n".join((*lines, "")).encode()))


def _is_own(name: str) -> bool:
    return name in _OWN_FILES or name.startswith(_OWN_FOLDERS)
