"""Checking files out into a work tree, by a git that knows nothing of the repository's configuration."""

import re
from pathlib import Path

from scout.tree.git.index_file import read_index
from scout.tree.git.isolated import Isolation, get_object_bytes, is_sparse, open_isolated
from scout.tree.git.repository import Repository, read_small_text

_FILTER = re.compile(r"(?<=\sfilter=)[\w.-]+")
_NAMED = 5


def check_out(repository: Repository, commit: str, scratch: Path, end: float) -> None:
    """Fill an empty work tree with the files of a commit."""
    with open_isolated(repository, scratch, end, Isolation(head=commit)) as git:
        git.run("read-tree", "-m", "-u", commit)


def check_out_index(repository: Repository, scratch: Path, end: float) -> None:
    """Fill an empty work tree with the files of its index, which may hold staged changes."""
    with open_isolated(repository, scratch, end) as git:
        git.run("checkout-index", "--all", "--index", "--quiet")


def describe_checkout(repository: Repository) -> tuple[str, ...]:
    """Return what a person should know about the files of a new work tree."""
    notes: list[str] = []
    facts = read_index(repository.own, get_object_bytes(repository))
    if facts.submodules:
        names = ", ".join(name.decode("utf-8", "replace") for name in facts.submodules[:_NAMED])
        fill = 'scout project set worktree.setup "git submodule update --init"'
        notes.append(f"the folders of submodules are empty ({names}); to fill them in new work trees: {fill}")
    filters = sorted(set(_FILTER.findall(read_small_text(Path(repository.top, ".gitattributes")) or "")))
    if filters:
        fill = '; to fetch them in new work trees: scout project set worktree.setup "git lfs pull"'
        named = ", ".join(filters[:_NAMED])
        notes.append(f"files with the filter {named} are as stored{fill if 'lfs' in filters else ''}")
    if is_sparse(repository):
        notes.append("the checkout is sparse, as in the main work tree")
    return tuple(notes)
