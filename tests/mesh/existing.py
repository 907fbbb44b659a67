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
import sys
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import nkeys  # pyright: ignore[reportMissingTypeStubs] (it has no types)

from scout.mesh.certificate import make_certificate
from scout.mesh.server import find_program
from tests.mesh.namespaces import Host

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
async def existing(folder: Path, *, jetstream: bool = True, tls: bool = False) -> AsyncGenerator[Existing]:
    """Run such a server until the end; with `tls`, its certificate for `localhost` is in `server.pem`."""
    account, port, process = await asyncio.to_thread(_start, folder, jetstream, tls)
    try:
        await _wait_for(port)
        url = f"tls://localhost:{port}" if tls else f"nats://127.0.0.1:{port}"
        yield Existing(folder, url, account)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


class Cluster(Existing):
    """Three servers, one on each of three machines of a network."""

    def __init__(self, folder: Path, hosts: Sequence[Host], account: Key) -> None:
        super().__init__(folder, ",".join(f"nats://{one.address}:4222" for one in hosts), account)
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self._hosts = {f"server-{number}": host for number, host in enumerate(hosts)}

    def start(self, name: str) -> None:
        command = (*self._hosts[name].runner, find_program(), "-c", str(self._folder / f"{name}.conf"))
        self._servers[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start_all(self) -> None:
        for name in self._hosts:
            self.start(name)

    def kill(self, name: str) -> None:
        process = self._servers.pop(name)
        process.kill()
        process.wait()

    def kill_all(self) -> None:
        for name in [*self._servers]:
            self.kill(name)

    def find_leaders(self) -> list[str]:
        """The server that leads each stream, as a running server says."""
        name = next(iter(self._servers))
        command = (*self._hosts[name].runner, sys.executable, "-c", _READ_LEADERS, self._hosts[name].address)
        told = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        return told.stdout.split()


_READ_LEADERS = """
import json, sys, urllib.request
url = f"http://{sys.argv[1]}:8222/jsz?accounts=1&streams=1"
accounts = json.load(urllib.request.urlopen(url, timeout=5)).get("account_details", [])
print(*(one["cluster"]["leader"] for account in accounts for one in account.get("stream_detail", [])))
"""


@contextmanager
def cluster(folder: Path, hosts: Sequence[Host]) -> Generator[Cluster]:
    """Run a cluster until the end."""
    folder.mkdir()
    account, common = _build_accounts(jetstream=True)
    found = Cluster(folder, hosts, account)
    for number, host in enumerate(hosts):
        own = {
            "server_name": f"server-{number}",
            "listen": f"{host.address}:4222",
            "http": f"{host.address}:8222",
            "log_file": str(folder / f"server-{number}.log"),
            "jetstream": {"store_dir": str(folder / f"js-{number}")},
            "cluster": {
                "name": "three",
                "listen": f"{host.address}:6222",
                "routes": [f"nats://{one.address}:6222" for one in hosts],
            },
        }
        (folder / f"server-{number}.conf").write_text(json.dumps({**common, **own}))
    try:
        found.start_all()
        yield found
    finally:
        found.kill_all()


def _start(folder: Path, jetstream: bool, tls: bool) -> tuple[Key, int, subprocess.Popen[bytes]]:
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    account = _write_configuration(folder, port, jetstream, _write_certificate(folder) if tls else {})
    command = (find_program(), "-c", str(folder / "nats.conf"))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return account, port, process


def _write_certificate(folder: Path) -> dict[str, Any]:
    """Return the part of the configuration that names a new certificate and its key."""
    files = folder / "server.pem", folder / "server.key"
    for file, text in zip(files, make_certificate("localhost"), strict=True):
        file.write_text(text)
    return {"tls": {"cert_file": str(files[0]), "key_file": str(files[1])}}


def _write_configuration(folder: Path, port: int, jetstream: bool, more: dict[str, Any]) -> Key:
    account, common = _build_accounts(jetstream)
    own = {
        **more,
        "listen": f"127.0.0.1:{port}",
        "log_file": str(folder / "nats.log"),
        "jetstream": {"store_dir": str(folder / "js")},
    }
    (folder / "nats.conf").write_text(json.dumps({**common, **own}))
    return account


def _build_accounts(jetstream: bool) -> tuple[Key, dict[str, Any]]:
    """Return the key of the account, and the part of the configuration that all servers share."""
    operator, account, system = Key(_KEYS.PREFIX_BYTE_OPERATOR), Key(0), Key(0)
    limits = {"type": "account", "limits": _LIMITS if jetstream else _NO_STREAMS}
    return account, {
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


async def _wait_for(port: int) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            assert time.monotonic() < until
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return
