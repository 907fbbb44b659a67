"""Small secrets on disk: made once, kept, and readable only by their owner."""

import os
import secrets
import shlex
import stat
from collections.abc import Callable
from pathlib import Path

from scout.base.refusal import BadRequest, Refused, Remedy

_MOST = 64 * 1024  # bytes of a secret


def read_operator_token(file: Path, make: Callable[[], str]) -> str:
    """Return the operator's token; made with its file if there is none."""
    return read_or_make(file, make).strip()


def read_node_key(file: Path) -> bytes:
    """Return the private key of this machine: 32 bytes, as Ed25519 has them."""
    return _read_or_make_key(file)


def read_identity_key(file: Path) -> bytes:
    """Return the key that signs the identity files of agents: 32 bytes."""
    return _read_or_make_key(file)


def read_page_key(file: Path) -> bytes:
    """Return the key of the web page: its host name and the secrets of its tabs are derived from it."""
    return _read_or_make_key(file)


def _read_or_make_key(file: Path) -> bytes:
    return bytes.fromhex(read_or_make(file, lambda: secrets.token_hex(32)))


def read_or_make(file: Path, make: Callable[[], str]) -> str:
    """Return the text of a file, which is made and synced first if there is none. Never a half-written text.

    A file that another user could have written or read is refused, because its secret may be known.
    """
    if not _has_content(file):
        write_secret(file, make() + "\n")
    return read_secret(file)


def read_secret(file: Path) -> str:
    """Return the text of a file that only its owner could have written or read; another one is refused."""
    descriptor = _open(file)
    try:
        _check_owner(file, os.fstat(descriptor))
        return os.read(descriptor, _MOST).decode()
    finally:
        os.close(descriptor)


def _has_content(file: Path) -> bool:
    """Whether the file exists; an empty regular file does not count."""
    try:
        seen = file.lstat()
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(seen.st_mode) or seen.st_size > 0


def write_secret(file: Path, text: str) -> None:
    """Write and sync a file that only its owner can read, in one step."""
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as writing:
        writing.write(text)
        writing.flush()
        os.fsync(writing.fileno())
    fresh.replace(file)


def _open(file: Path) -> int:
    """Open the file itself: links are not followed, and a pipe does not block."""
    try:
        return os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if file.is_symlink():
            raise _build_refusal(file, "it is a link") from None
        raise _build_refusal(file, error.strerror or str(error)) from None


def _check_owner(file: Path, seen: os.stat_result) -> None:
    if not stat.S_ISREG(seen.st_mode):
        raise _build_refusal(file, "it is not a regular file")
    if seen.st_uid != os.getuid():
        raise _build_refusal(file, f"it belongs to user {seen.st_uid}, not to you (user {os.getuid()})")
    if seen.st_nlink > 1:
        raise _build_refusal(file, "it has a second hard link")
    if stat.S_IMODE(seen.st_mode) & 0o077:
        raise _build_refusal(file, f"others can read or write it (mode {stat.S_IMODE(seen.st_mode):04o})")


def _build_refusal(file: Path, why: str) -> Refused:
    """Build the refusal. Only the owner knows whether the file is theirs, so nothing is repaired silently."""
    name = shlex.quote(str(file))
    problem = f"{file} cannot be used as a secret: {why}"
    why_up = f"after `rm {name}` (a new secret is made), or `chmod 600 {name}` if the file is yours"
    remedy = Remedy(operation="up", parameters={}, why=why_up)
    return Refused(BadRequest(problem=problem, field="home", remedies=(remedy,)))
