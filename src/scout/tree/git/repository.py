"""Git repositories, read from disk without running git: top levels, linked work trees, branches."""

import os
import re
from pathlib import Path

from scout.base.record import Record

_SMALL = 64 * 1024
_BRANCH = re.compile(r"ref: *refs/heads/(.+)")
_REBASED = ("rebase-merge/head-name", "rebase-apply/head-name")


class Repository(Record):
    """A work tree. `main` is the folder of the main repository when this one is linked to it.

    `own` is its git folder and `common` the one that it shares with linked work trees; both are paths only.
    `branch` is what HEAD names, None when detached; `origin` is the branch that a rebase will return to.
    """

    top: str
    own: str
    common: str
    main: str | None = None
    branch: str | None = None
    origin: str | None = None


def find_repository(folders: list[str]) -> Repository | None:
    """Return the work tree of the first of these folders that is a top level."""
    for folder in folders:
        inner = _find_git_folder(Path(folder))
        if inner is not None:
            head = (read_small_text(inner / "HEAD") or "").strip()
            return Repository(
                top=folder,
                own=str(inner),
                common=_find_common(inner) or str(inner),
                main=_find_main(inner),
                branch=_parse_branch(head),
                origin=_read_rebased_branch(inner),
            )
    return None


def read_small_text(path: Path) -> str | None:
    """Return the text of a small regular file; None for anything else."""
    try:
        if not path.is_file() or path.stat().st_size > _SMALL:
            return None
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return None


def _find_git_folder(folder: Path) -> Path | None:
    """Return the git folder of a work tree; a `.git` without HEAD is not a repository."""
    inner = folder / ".git"
    pointer = read_small_text(inner)
    if pointer is not None:
        word, _, target = pointer.strip().partition(": ")
        if word != "gitdir":
            return None
        inner = folder / target
    return inner if read_small_text(inner / "HEAD") is not None else None


def _find_main(inner: Path) -> str | None:
    """Return the main folder of a linked work tree's repository; for a bare repository, itself."""
    shared = _find_common(inner)
    if shared is None:
        return None
    common = Path(shared)
    return str(common.parent if common.name.startswith(".") else common).removesuffix(".git")


def _find_common(inner: Path) -> str | None:
    shared = read_small_text(inner / "commondir")
    return None if shared is None else os.path.realpath(inner / shared.strip())


def _parse_branch(head: str) -> str | None:
    found = _BRANCH.fullmatch(head)
    return found[1] if found is not None and found[1] != ".invalid" else None


def _read_rebased_branch(inner: Path) -> str | None:
    texts = (read_small_text(inner / name) for name in _REBASED)
    return next((text.strip().removeprefix("refs/heads/") for text in texts if text), None)
