"""A session that a person started, as its host's relay and hooks see it: how it enrols and reports.

It imports only small parts of the standard library, because hooks run at every prompt of their host.
"""
# ruff: noqa: PTH103, PTH105, PTH107, PTH116, PTH123, PTH208 (pathlib costs more than all of this)

from __future__ import annotations

import contextlib
import json
import os

from scout.client.environment import Environment, build_headers
from scout.client.http import Lost, decode_json, exchange, quote, to_object
from scout.client.session_files import find_host_process, find_window, read_process_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TOKEN_FILE = "host.token"


class NotEnrolled(Exception):  # noqa: N818 (a fact, not a mistake)
    """The session cannot call the daemon now."""


class Refusal(NotEnrolled):
    """Retrying does not help: no host is set up, or the daemon refuses."""


class HostSession:
    """One host on this machine, as the relay and the hooks of its sessions see it."""

    def __init__(self, name: str, environ: Mapping[str, str] = os.environ, *, timeout: float = 5.0) -> None:
        self.name = name
        self.environ = environ
        self.timeout = timeout
        self.environment = Environment(environ)
        self.where = self.environment.where
        self.address = self.environment.address
        self.folder = f"{self.where.runtime}/hosts"

    # -- calls -------------------------------------------------------------------------------------

    def token(self) -> str:
        """Return the host's credential, which `scout setup` made."""
        try:
            with open(f"{self.where.home}/{TOKEN_FILE}", encoding="ascii", errors="replace") as file:
                return file.read().strip()
        except OSError as error:
            raise Refusal(f"no host token ({error.strerror}); try: scout setup") from None

    def call(self, token: str, method: str, target: str, body: Any = None, timeout: float = 0) -> Any:
        """Call the daemon and return the decoded response."""
        data = b"" if body is None else json.dumps(body).encode()
        headers = {**build_headers(token), "Accept": "application/json"}
        try:
            answer = exchange(self.address, method, target, headers, data, timeout=timeout or self.timeout)
        except (OSError, Lost) as error:
            raise NotEnrolled(f"no daemon answers at {self.address.name} ({error})") from None
        record = to_object(answer.decode())
        if answer.status >= 400:
            raise Refusal(str(record.get("message") or f"the daemon answered {answer.status}"))
        return record

    # -- sessions ----------------------------------------------------------------------------------

    def enrol(self, cwd: str, native: str | None = None, model: str | None = None) -> dict[str, Any]:
        """Enrol the session, and store its credential in a file that only this user can read."""
        pid, started = find_host_process(self.environ)
        window = find_window(pid, cwd) if native else None
        wish = {
            "cwd": cwd,
            "harness": self.name,
            "nativeSessionId": native,
            "parentPid": pid,
            "parentStarted": started,
            "windowPid": window[0] if window else None,
            "windowStarted": window[1] if window else None,
            "model": model,
        }
        given = {name: value for name, value in wish.items() if value is not None}
        told = self.call(self.token(), "POST", "/v1/sessions/enrol", given)
        kept = {
            "sessionId": told["session"]["id"],
            "endpointId": told["endpointId"],
            "address": told["name"],
            "token": told["token"],
            "harness": self.name,
            "native": native or told["session"]["nativeIds"].get("session"),
            "pid": pid,
            "started": started,
            "hasDoor": told.get("hasDoor", False),
        }
        self.keep(kept)
        return kept

    def report(self, session: dict[str, Any], event: str, **more: Any) -> dict[str, Any]:
        """Report an event of a session to the broker."""
        target = f"/v1/sessions/{quote(session['sessionId'])}/hook"
        return self.call(self.token(), "POST", target, {"event": event, **more})

    def end_lost(self) -> None:
        """End sessions whose process has ended without a report."""
        for name in self._list_names():
            session = self._read(name)
            if "pid" in session and read_process_start(session["pid"]) != session["started"]:
                self._remove(name)
                with contextlib.suppress(Refusal):
                    self.report(session, "session_end")

    # -- files -------------------------------------------------------------------------------------

    def keep(self, session: dict[str, Any]) -> None:
        """Write the session's file; remove any other file of the same session."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        name = self._build_name(session["native"], session["pid"])
        for other in self._list_names():
            if other != name and self._read(other).get("sessionId") == session["sessionId"]:
                self._remove(other)
        fresh = f"{self.folder}/.{os.getpid()}-{os.urandom(4).hex()}"
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(session, file)
        os.replace(fresh, f"{self.folder}/{name}")

    def find_kept(self, native: str) -> dict[str, Any] | None:
        """Return the stored session with this native id."""
        return self._read(self._build_name(native, None)) or None

    def find_kept_here(self) -> dict[str, Any] | None:
        """Return the stored session of the current host process; of several, the latest."""
        process = find_host_process(self.environ)
        found = [(name, self._read(name)) for name in self._list_names()]
        mine = [(name, one) for name, one in found if (one.get("pid"), one.get("started")) == process]
        return max(mine, key=lambda pair: self._get_age(pair[0]))[1] if mine else None

    def forget(self, session: dict[str, Any]) -> None:
        """Remove the file of a session that ended."""
        self._remove(self._build_name(session["native"], session["pid"]))

    def _build_name(self, native: str | None, pid: int | None) -> str:
        return f"{self.name}-{quote(native)[:150]}.json" if native else f"{self.name}-pid-{pid}.json"

    def _list_names(self) -> list[str]:
        try:
            names = os.listdir(self.folder)
        except OSError:
            return []
        return [name for name in names if name.startswith(f"{self.name}-") and name.endswith(".json")]

    def _read(self, name: str) -> dict[str, Any]:
        try:
            with open(f"{self.folder}/{name}", "rb") as file:
                return to_object(decode_json(file.read()))
        except OSError:
            return {}

    def _get_age(self, name: str) -> float:
        try:
            return os.stat(f"{self.folder}/{name}").st_mtime
        except OSError:
            return 0.0

    def _remove(self, name: str) -> None:
        try:
            os.remove(f"{self.folder}/{name}")
        except OSError:
            return
