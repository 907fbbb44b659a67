"""Copying untracked files of the main work tree, such as `.env`, into a new work tree."""

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from scout.ports import GitFailed
from scout.tree.git.isolated import open_isolated
from scout.tree.git.repository import Repository

_LISTED = 8 << 20
_FILES, _BYTES = 5_000, 512 << 20
_NEVER = (".git", ".scout", ".exo")


def copy_untracked(
    source: Repository, target: str, globs: Sequence[str], scratch: Path, end: float
) -> list[str]:
    """Copy the files that match globs, written as in `.gitignore`. Nothing that exists is replaced.

    Git itself matches the globs and leaves out files that it tracks. Links that lead outside are left out.
    """
    names = _list_untracked(source, globs, scratch, end)
    if len(names) > _FILES:
        raise GitFailed(f"{len(names)} files match {', '.join(globs)[:200]}; at most {_FILES} are copied")
    room, copied = _BYTES, list[str]()
    for name in names:
        size = _copy(source.top, target, name, room, globs)
        if size is not None:
            room -= size
            copied.append(name)
    return copied


def _list_untracked(source: Repository, globs: Sequence[str], scratch: Path, end: float) -> list[str]:
    patterns = [f"--exclude={glob}" for glob in globs if glob.strip() and "\n" not in glob]
    if not patterns:
        return []
    with open_isolated(source, scratch, end) as git:
        printed = git.call(("ls-files", "-z", "--others", "--ignored", *patterns), most=_LISTED)
    if len(printed) > _LISTED:
        raise GitFailed(f"too many files match {', '.join(globs)[:200]}")
    names = [name.decode("utf-8", "surrogateescape") for name in printed.split(b"\0") if name]
    return [name for name in names if not name.endswith("/") and not set(_NEVER) & set(name.split("/"))]


def _copy(top: str, target: str, name: str, room: int, globs: Sequence[str]) -> int | None:
    """Copy one file and return its size; None if it is left out."""
    source, copy = Path(top, name), Path(target, name)
    try:
        seen = source.lstat()
        if not _is_inside(copy, target) or os.path.lexists(copy):
            return None
        if stat.S_ISLNK(seen.st_mode):
            return _copy_link(source, copy, top)
        if not stat.S_ISREG(seen.st_mode):
            return None
        if seen.st_size > room:
            raise GitFailed(
                f"the files that match {', '.join(globs)[:200]} are larger than {_BYTES >> 20} MB"
            )
        copy.parent.mkdir(parents=True, exist_ok=True)
        _copy_content(source, copy)
        return seen.st_size
    except OSError as error:
        raise GitFailed(f"{name} cannot be copied: {error.strerror}") from None


def _is_inside(copy: Path, target: str) -> bool:
    """Whether no folder above the copy is a link: the repository may contain links to anywhere."""
    parents = [copy.parent, *copy.parent.parents]
    return not any(folder.is_symlink() for folder in parents[: parents.index(Path(target))])


def _copy_link(source: Path, copy: Path, top: str) -> int | None:
    """Copy a relative link that leads to a file of the project."""
    link = os.readlink(source)  # noqa: PTH115 (its text)
    real = os.path.realpath(source)
    if os.path.isabs(link) or not real.startswith(f"{os.path.realpath(top)}/"):  # noqa: PTH117 (a text)
        return None
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.symlink_to(link)
    return 0


def _copy_content(source: Path, copy: Path) -> None:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(reading, "rb") as file:
        mode = stat.S_IMODE(os.fstat(reading).st_mode)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(copy, flags, mode), "wb") as fresh:
            shutil.copyfileobj(file, fresh)
            os.fchmod(fresh.fileno(), mode)
