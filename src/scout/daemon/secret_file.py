"""Small secrets on disk: made once, kept, and for the owner alone."""

import os
import secrets
import shlex
import stat
from collections.abc import Callable
from pathlib import Path

from scout.base.refusal import BadRequest, Refused, Remedy

_MOST = 4096  # bytes of a secret


def operator_token(file: Path, make: Callable[[], str]) -> str:
    """The operator's credential: the text of the file, which is made when it is not there."""
    return kept(file, make).strip()


def node_key(file: Path) -> bytes:
    """What only this machine knows: 32 bytes, which is the form of an Ed25519 private key."""
    return bytes.fromhex(kept(file, lambda: secrets.token_hex(32)))


def kept(file: Path, make: Callable[[], str]) -> str:
    """The text of the file, made and synced first when there is none. A half-made one is never seen.

    A file that somebody else could have put there, or read, is refused: its secret is not ours alone.
    """
    if not _is_there(file):
        _write(file, make() + "\n")
    descriptor = _open(file)
    try:
        _check_owner(file, os.fstat(descriptor))
        return os.read(descriptor, _MOST).decode()
    finally:
        os.close(descriptor)


def _is_there(file: Path) -> bool:
    """Whether there is something of this name; an empty regular file counts as nothing."""
    try:
        seen = file.lstat()
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(seen.st_mode) or seen.st_size > 0


def _write(file: Path, text: str) -> None:
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as writing:
        writing.write(text)
        writing.flush()
        os.fsync(writing.fileno())
    fresh.replace(file)


def _open(file: Path) -> int:
    """The file itself, never what a link points to; a pipe is not waited for."""
    try:
        return os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if file.is_symlink():
            raise _refusal(file, "it is a link") from None
        raise _refusal(file, error.strerror or str(error)) from None


def _check_owner(file: Path, seen: os.stat_result) -> None:
    if not stat.S_ISREG(seen.st_mode):
        raise _refusal(file, "it is not a regular file")
    if seen.st_uid != os.getuid():
        raise _refusal(file, f"it belongs to user {seen.st_uid}, not to you (user {os.getuid()})")
    if seen.st_nlink > 1:
        raise _refusal(file, "it has a second name elsewhere")
    if stat.S_IMODE(seen.st_mode) & 0o077:
        raise _refusal(file, f"others can read or write it (mode {stat.S_IMODE(seen.st_mode):04o})")


def _refusal(file: Path, why: str) -> Refused:
    """Only the person knows whether the file is theirs, so nothing is repaired silently."""
    name = shlex.quote(str(file))
    problem = f"{file} cannot hold a secret of yours: {why}"
    why_up = f"after `rm {name}` (a new secret is made), or `chmod 600 {name}` if the file is yours"
    remedy = Remedy(operation="up", parameters={}, why=why_up)
    return Refused(BadRequest(problem=problem, field="home", remedies=(remedy,)))
