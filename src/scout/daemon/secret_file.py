"""Small secrets on disk: made once, kept, and for the owner alone."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

__all__ = ["kept", "node_key", "operator_token"]


def operator_token(file: Path, make: Callable[[], str]) -> str:
    """The operator's credential: the text of the file, which is made when it is not there."""
    return kept(file, make).strip()


def node_key(file: Path) -> bytes:
    """What only this machine knows: 32 bytes, which is the form of an Ed25519 private key."""
    return bytes.fromhex(kept(file, lambda: secrets.token_hex(32)))


def kept(file: Path, make: Callable[[], str]) -> str:
    """The text of the file, made and synced first when there is none. A half-made one is never seen."""
    if not (file.exists() and file.read_text().strip()):
        fresh = file.with_name(f".{file.name}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as writing:
            writing.write(make() + "\n")
            writing.flush()
            os.fsync(writing.fileno())
        fresh.replace(file)
    file.chmod(0o600)
    return file.read_text()
