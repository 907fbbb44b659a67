"""A NATS server that somebody else runs: operator, accounts and users by signed tokens, and a credentials file."""

import asyncio
import base64
import hashlib
import json
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import nkeys  # pyright: ignore[reportMissingTypeStubs] (it has no types)

from scout.mesh.server import find_program

_KEYS = cast("Any", nkeys)
_ALL: dict[str, Any] = dict.fromkeys(
    ("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage", "disk_storage"), -1
)
_LIMITS = {**_ALL, "streams": -1, "consumer": -1, "wildcards": True}
_NO_STREAMS = {**_LIMITS, "disk_storage": 0, "mem_storage": 0}


class Key:
    """A key of the given kind, which signs tokens."""

    def __init__(self, kind: int) -> None:
        self.seed = bytes(_KEYS.encode_seed(secrets.token_bytes(32), kind)).decode()
        self._pair = _KEYS.from_seed(bytearray(self.seed.encode()))
        self.public = bytes(self._pair.public_key).decode()

    def sign(self, subject: str, name: str, facts: dict[str, Any]) -> str:
        """Sign a token about a subject."""
        claims: dict[str, Any] = {"iat": 1_700_000_000, "iss": self.public, "name": name, "sub": subject}
        claims["nats"] = {**facts, "version": 2}
        claims["jti"] = (
            base64.b32encode(hashlib.sha256(json.dumps(claims).encode()).digest()).decode().strip("=")
        )
        head = _encode(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
        body = f"{head}.{_encode(json.dumps(claims).encode())}"
        return f"{body}.{_encode(bytes(self._pair.sign(body.encode())))}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Existing:
    """The server's URL, and one credentials file for each user of its account."""

    def __init__(self, folder: Path, url: str, account: Key) -> None:
        self._folder = folder
        self._account = account
        self.url = url

    def make_credentials(self, name: str, permissions: dict[str, Any] | None = None) -> str:
        """Return the path of a new credentials file; without `permissions` its user may do everything."""
        user = Key(_KEYS.PREFIX_BYTE_USER)
        facts = {"type": "user", "subs": -1, "data": -1, "payload": -1, **(permissions or {})}
        token = self._account.sign(user.public, name, facts)
        file = self._folder / f"{name}.creds"
        file.write_text(
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
        )
        return str(file)


@asynccontextmanager
async def existing(folder: Path, *, jetstream: bool = True) -> AsyncGenerator[Existing]:
    """Run such a server until the end."""
    account, port, process = await asyncio.to_thread(_start, folder, jetstream)
    try:
        await _wait_for(port)
        yield Existing(folder, f"nats://127.0.0.1:{port}", account)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def _start(folder: Path, jetstream: bool) -> tuple[Key, int, subprocess.Popen[bytes]]:
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    account = _write_configuration(folder, port, jetstream)
    command = (find_program(), "-c", str(folder / "nats.conf"))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return account, port, process


def _write_configuration(folder: Path, port: int, jetstream: bool) -> Key:
    operator, account, system = Key(_KEYS.PREFIX_BYTE_OPERATOR), Key(0), Key(0)
    limits = {"type": "account", "limits": _LIMITS if jetstream else _NO_STREAMS}
    configuration = {
        "listen": f"127.0.0.1:{port}",
        "log_file": str(folder / "nats.log"),
        "jetstream": {"store_dir": str(folder / "js")},
        "operator": operator.sign(
            operator.public, "operator", {"type": "operator", "system_account": system.public}
        ),
        "system_account": system.public,
        "resolver": "MEMORY",
        "resolver_preload": {
            account.public: operator.sign(account.public, "mesh", limits),
            system.public: operator.sign(system.public, "system", {"type": "account", "limits": _NO_STREAMS}),
        },
    }
    (folder / "nats.conf").write_text(json.dumps(configuration))
    return account


async def _wait_for(port: int) -> None:
    until = time.monotonic() + 20
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            assert time.monotonic() < until
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return
