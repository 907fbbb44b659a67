"""The repository of a directory, and the main work tree of a linked one."""

import os
import re
from pathlib import Path

from scout.ports import GitFailed
from scout.tree.git.repository import Repository, find_repository, read_small_text

_BARE = re.compile(r"^\s*bare\s*(=\s*\"?(true|yes|on|1)\b|$)", re.IGNORECASE | re.MULTILINE)
_WORK_TREE = re.compile(r"^\s*worktree\s*=\s*\"?([^\"\n]+?)\"?\s*$", re.IGNORECASE | re.MULTILINE)


def list_upward(directory: str, none: frozenset[str]) -> list[str]:
    """Return the real directory and the folders above it, without those that cannot be a project."""
    real = os.path.realpath(directory)
    return [folder for folder in map(str, (Path(real), *Path(real).parents)) if folder not in none]


def find_upward(folders: list[str]) -> Repository | None:
    """Return the repository of the first folder that is a work tree or a bare repository."""
    for folder in folders:
        found = find_repository([folder])
        if found is not None:
            return found
        if _is_bare(folder):
            return Repository(top=folder, own=folder, common=folder)
    return None


def is_bare(repository: Repository) -> bool:
    """Whether a repository has no work tree itself."""
    return repository.top == repository.common


def find_main(repository: Repository) -> Repository:
    """Return the main work tree of a repository, or its git folder if that is bare.

    Submodules and separate git folders name their work tree; it counts only if it names the git folder, too.
    """
    if repository.main is None:
        return repository
    common = os.path.realpath(repository.common)
    for folder in _list_possible_tops(common):
        found = find_repository([folder])
        if found is not None and found.main is None and os.path.realpath(found.common) == common:
            return found
    return Repository(top=common, own=common, common=common)


def open_repository(folder: str) -> Repository:
    """Return the repository whose work tree, or bare git folder, this is."""
    found = find_upward([folder])
    if found is None:
        raise GitFailed(f"{folder} is not a git work tree")
    return found


def _list_possible_tops(common: str) -> list[str]:
    named = _WORK_TREE.search(read_small_text(Path(common, "config")) or "")
    tops = [str(Path(common).parent)] if Path(common).name == ".git" else []
    return [*tops, os.path.realpath(Path(common, named[1]))] if named else tops


def _is_bare(folder: str) -> bool:
    inner = Path(folder)
    if inner.name == ".git" or read_small_text(inner / "HEAD") is None:
        return False
    config = read_small_text(inner / "config")
    return config is not None and bool(_BARE.search(config)) and (inner / "objects").is_dir()
