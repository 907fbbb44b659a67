"""The `.scout` folder of a project or work tree. Links are never followed, and others' folders are refused.

A repository can contain a `.scout` that is a link to somewhere else. So each folder is opened from the one
above it, and files are written and read relative to an open folder.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Generator, Iterable
from pathlib import Path

from scout.ports import GitFailed

NAME = ".scout"
WORK_TREES, AGENTS, IDENTITY = "worktrees", "agents", "identity.json"
_IGNORED = (f"{WORK_TREES}/", f"{AGENTS}/", IDENTITY, ".gitignore")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LARGEST = 64 * 1024


@contextlib.contextmanager
def open_folder(top: str, parts: Iterable[str], *, make: bool = False) -> Generator[int]:
    """Open a folder below `top` as a descriptor; with `make`, missing folders are created."""
    path = top
    try:
        descriptor = os.open(top, _FOLDER)
    except OSError as error:
        raise GitFailed(f"{top} cannot be opened: {error.strerror}") from None
    try:
        for part in parts:
            path = f"{path}/{part}"
            inner = _open_below(descriptor, part, path, make=make)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def prepare_folder(top: str) -> None:
    """Make `.scout` with a `.gitignore` that hides Scout's files and itself.

    A `.gitignore` with other lines is the repository's and stays: a change of it would be uncommitted.
    """
    with open_folder(top, (NAME,), make=True) as folder:
        try:
            present = read_file(folder, ".gitignore") or b""
        except ValueError as problem:
            raise GitFailed(f"{top}/{NAME}/.gitignore {problem}") from None
        lines = {*present.decode("utf-8", "replace").splitlines()}
        if lines < {*_IGNORED}:
            write_file(folder, ".gitignore", "".join(f"{line}\n" for line in _IGNORED).encode(), 0o644)


def write_file(folder: int, name: str, data: bytes, mode: int = 0o600) -> None:
    """Write a file completely or not at all, synced with its folder."""
    fresh = f".{name}.{secrets.token_hex(4)}.new"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(fresh, flags, mode, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(fresh, dir_fd=folder)
            raise
        os.fsync(folder)
    except OSError as error:
        raise GitFailed(f"{name} cannot be written: {error.strerror}") from None


def read_file(folder: int, name: str) -> bytes | None:
    """Return a small regular file of this user, None without one; a ValueError tells what it is instead."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        descriptor = os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(
            "is a link" if _is_link(folder, name) else f"cannot be read: {error.strerror}"
        ) from None
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode):
            raise ValueError("is not a regular file")
        if seen.st_uid != os.getuid():
            raise ValueError(f"belongs to user {seen.st_uid}")
        data = os.read(descriptor, _LARGEST + 1) if seen.st_size <= _LARGEST else b""
        if seen.st_size > _LARGEST or len(data) > _LARGEST:
            raise ValueError(f"is larger than {_LARGEST >> 10} kB")
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    return data


def _open_below(folder: int, name: str, path: str, *, make: bool) -> int:
    try:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=folder)
        descriptor = os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        why = "it is a link" if _is_link(folder, name) else error.strerror
        raise GitFailed(f"{path} cannot be Scout's folder: {why}") from None
    if (owner := os.fstat(descriptor).st_uid) != os.getuid():
        os.close(descriptor)
        raise GitFailed(f"{path} cannot be Scout's folder: it belongs to user {owner}")
    return descriptor


def _is_link(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def build_work_tree_path(root: str, folder: str) -> str:
    """Return the path of an agent's work tree."""
    return str(Path(root, NAME, WORK_TREES, folder))
