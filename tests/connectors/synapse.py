"""A real Matrix homeserver: Synapse, installed once into a cache outside the tree, run on loopback."""

import base64
import fcntl
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.connectors.loopback import find_port

__all__ = ["Synapse", "require_synapse"]

VERSION = "1.163.2"
_CONSTRAINTS = Path(__file__).with_name("synapse-constraints.txt")
_INSTALL_SECONDS = 300
_START_SECONDS = 60
_PLENTY = {"per_second": 10_000, "burst_count": 10_000}


# -- installing ----------------------------------------------------------------------------------------


def require_synapse() -> Path:
    """The Python that has Synapse; the test is skipped where it cannot be had."""
    found, problem = _had()
    if found is None:
        pytest.skip(f"NOT PROVED HERE: matrix-synapse@{VERSION} is not installed: {problem}")
    return found


@functools.cache
def _had() -> tuple[Path | None, str]:
    """Found in the cache, or put there by one of the workers while the others wait."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scout-tests" / "python"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"matrix-synapse-{VERSION}"
    with (cache / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists() and (problem := _install(folder)):
            return None, problem
    return folder / "bin" / "python", ""


def _install(folder: Path) -> str:
    """Whole or not at all; what went wrong otherwise. A virtual environment cannot be moved, so a mark is last."""
    shutil.rmtree(folder, ignore_errors=True)
    python = str(folder / "bin" / "python")
    words = ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--retries", "1"]
    wanted = ["--constraint", str(_CONSTRAINTS), f"matrix-synapse=={VERSION}"]
    for command in ([sys.executable, "-m", "venv", str(folder)], [python, *words, *wanted]):
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return " ".join(str(error).split())[:300]
        if done.returncode != 0:
            return " ".join((done.stderr or done.stdout).split())[-300:]
    (folder / "whole").touch()
    return ""


# -- running -------------------------------------------------------------------------------------------


class Synapse:
    """One homeserver with its store in a temporary folder. Everybody may register; nothing is rate limited."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._folder = Path(tempfile.mkdtemp(prefix="syn-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._port = find_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._write_settings()

    def start(self) -> None:
        """Start it and wait until it answers."""
        words = [
            str(self._python),
            "-m",
            "synapse.app.homeserver",
            "-c",
            str(self._folder / "homeserver.yaml"),
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                words, cwd=self._folder, stdout=log, stderr=log, env=_environ(), start_new_session=True
            )
        until = time.monotonic() + _START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "log").read_text()[-2000:]
            assert time.monotonic() < until, f"Synapse did not answer within {_START_SECONDS} s"
            time.sleep(0.05)

    def stop(self) -> None:
        """End it as its operator would; its store stays."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    def remove(self) -> None:
        """End it, and remove its store."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def register(self, user: str) -> tuple[str, str]:
        """Make an account; its user id and an access token. The password is `pw-` and the name."""
        body = {"username": user, "password": f"pw-{user}", "auth": {"type": "m.login.dummy"}}
        answer = httpx2.post(
            f"{self.url}/_matrix/client/v3/register", json=body, trust_env=False, verify=False, timeout=30
        )
        answer.raise_for_status()
        return answer.json()["user_id"], answer.json()["access_token"]

    def set_rate(self, message: dict[str, float] | None) -> None:
        """Limit the messages of each user, after the next start."""
        self._write_settings(rc_message=message or _PLENTY)

    def _answers(self) -> bool:
        try:
            return httpx2.get(
                f"{self.url}/_matrix/client/versions", trust_env=False, verify=False, timeout=5
            ).is_success
        except httpx2.HTTPError:
            return False

    def _write_settings(self, **changed: Any) -> None:
        """Synapse reads YAML, and JSON is YAML."""
        key = self._folder / "signing.key"
        key.write_text(f"ed25519 a_1 {base64.b64encode(b'k' * 32).decode().rstrip('=')}\n")
        listener = {"bind_addresses": ["127.0.0.1"], "port": self._port, "type": "http", "tls": False}
        settings: dict[str, Any] = {
            "server_name": "localhost",
            "pid_file": str(self._folder / "pid"),
            "listeners": [{**listener, "resources": [{"names": ["client"]}]}],
            "database": {"name": "sqlite3", "args": {"database": str(self._folder / "store.db")}},
            "media_store_path": str(self._folder / "media"),
            "max_upload_size": "1M",
            "signing_key_path": str(key),
            "macaroon_secret_key": "a",
            "form_secret": "b",
            "trusted_key_servers": [],
            "suppress_key_server_warning": True,
            "report_stats": False,
            "enable_registration": True,
            "enable_registration_without_verification": True,
            "bcrypt_rounds": 4,
            "caches": {"sync_response_cache_duration": "0s"},  # a second first sync must not repeat the first
            "rc_message": _PLENTY,
            "rc_registration": _PLENTY,
            "rc_login": {"address": _PLENTY, "account": _PLENTY, "failed_attempts": _PLENTY},
            "rc_joins": {"local": _PLENTY, "remote": _PLENTY},
            "rc_invites": {"per_room": _PLENTY, "per_user": _PLENTY, "per_issuer": _PLENTY},
            **changed,
        }
        (self._folder / "homeserver.yaml").write_text(json.dumps(settings))


def _environ() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": tempfile.gettempdir()}
