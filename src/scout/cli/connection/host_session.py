"""What runs inside a person's own session and speaks for it: which session it is, and its credential.

Only the standard library's small parts: hooks run at every prompt of their host.
"""
# ruff: noqa: PTH103, PTH105, PTH107, PTH115, PTH116, PTH119, PTH123, PTH208 (pathlib costs more than all of this)

from __future__ import annotations

import contextlib
import json
import os

from scout.cli.connection.http import DaemonAddress, HttpResponse, Lost, exchange, quote
from scout.settings.where import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

TOKEN_FILE = "host.token"

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "env", "timeout"})
_CLIMBS = 6
_ABOVE = 16
_NATIVE = ("CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID")  # where hosts name their sessions


class NotEnrolled(Exception):  # noqa: N818 (a fact, not a mistake)
    """The session cannot speak now."""


class Refusal(NotEnrolled):
    """And trying again does not help: no host is set up, or the daemon says no."""


class HostSession:
    """One host on this machine, as the relay and the hooks of its sessions see it."""

    def __init__(self, name: str, environ: Mapping[str, str] = os.environ, *, timeout: float = 5.0) -> None:
        self.name = name
        self.environ = environ
        self.timeout = timeout
        self.where = find(environ)
        self.place = _place(environ, self.where.socket)
        self.folder = f"{self.where.runtime}/hosts"

    # -- calls -------------------------------------------------------------------------------------

    def token(self) -> str:
        """The host's own credential, which `scout setup` made."""
        try:
            with open(f"{self.where.home}/{TOKEN_FILE}", encoding="ascii", errors="replace") as file:
                return file.read().strip()
        except OSError as error:
            raise Refusal(f"no host token ({error.strerror}); try: scout setup") from None

    def call(self, token: str, method: str, target: str, body: Any = None, timeout: float = 0) -> Any:
        """The answer, decoded."""
        answer = self._exchange(token, method, target, body, timeout or self.timeout)
        told = _decoded(answer.body)
        if answer.status >= 400:
            raise Refusal(str(told.get("message") or f"the daemon answered {answer.status}"))
        return told

    def _exchange(self, token: str, method: str, target: str, body: Any, timeout: float) -> HttpResponse:
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            return exchange(self.place, method, target, headers, data, timeout=timeout)
        except (OSError, Lost) as error:
            raise NotEnrolled(f"no daemon answers at {self.place.name} ({error})") from None

    # -- sessions ----------------------------------------------------------------------------------

    def enrol(self, cwd: str, native: str | None = None, model: str | None = None) -> dict[str, Any]:
        """Enter the session; what it got is kept in a file that only this user reads."""
        pid, started = process_of_host(self.environ)
        window = window_of(pid, cwd) if native else None
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
        """Tell the broker what happens in a session."""
        target = f"/v1/sessions/{quote(session['sessionId'])}/hook"
        return self.call(self.token(), "POST", target, {"event": event, **more})

    def end_lost(self) -> None:
        """End what is kept of processes that are gone without a word."""
        for name in self._files():
            session = self._read(name)
            if "pid" in session and _process(session["pid"])[2] != session["started"]:
                self._remove(name)
                with contextlib.suppress(Refusal):
                    self.report(session, "session_end")

    # -- files -------------------------------------------------------------------------------------

    def keep(self, session: dict[str, Any]) -> None:
        """Write the session's file; another one of the same session is removed."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        name = self._file(session["native"], session["pid"])
        for other in self._files():
            if other != name and self._read(other).get("sessionId") == session["sessionId"]:
                self._remove(other)
        fresh = f"{self.folder}/.{os.getpid()}-{os.urandom(4).hex()}"
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(session, file)
        os.replace(fresh, f"{self.folder}/{name}")

    def kept(self, native: str) -> dict[str, Any] | None:
        """What is kept of the session that the host calls so."""
        return self._read(self._file(native, None)) or None

    def kept_here(self) -> dict[str, Any] | None:
        """What is kept of a session of the process that this runs in, the latest first."""
        process = process_of_host(self.environ)
        found = [(name, self._read(name)) for name in self._files()]
        mine = [(name, one) for name, one in found if (one.get("pid"), one.get("started")) == process]
        return max(mine, key=lambda pair: self._age(pair[0]))[1] if mine else None

    def forget(self, session: dict[str, Any]) -> None:
        """The session is over."""
        self._remove(self._file(session["native"], session["pid"]))

    def _file(self, native: str | None, pid: int | None) -> str:
        return f"{self.name}-{quote(native)[:150]}.json" if native else f"{self.name}-pid-{pid}.json"

    def _files(self) -> list[str]:
        try:
            names = os.listdir(self.folder)
        except OSError:
            return []
        return [name for name in names if name.startswith(f"{self.name}-") and name.endswith(".json")]

    def _read(self, name: str) -> dict[str, Any]:
        try:
            with open(f"{self.folder}/{name}", "rb") as file:
                return _decoded(file.read())
        except OSError:
            return {}

    def _age(self, name: str) -> float:
        try:
            return os.stat(f"{self.folder}/{name}").st_mtime
        except OSError:
            return 0.0

    def _remove(self, name: str) -> None:
        try:
            os.remove(f"{self.folder}/{name}")
        except OSError:
            return


def is_object(value: Any) -> bool:
    """Whether a decoded JSON value is an object."""
    return isinstance(value, dict)


def as_object(value: Any) -> dict[str, Any]:
    """A decoded JSON value as an object; anything else is an empty one."""
    found: Any = value if is_object(value) else {}
    return found


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        return as_object(json.loads(data)) if data else {}
    except ValueError:
        return {}


def _place(environ: Mapping[str, str], usual: str) -> DaemonAddress:
    socket, url = environ.get("SCOUT_SOCKET"), environ.get("SCOUT_URL")
    return DaemonAddress.of_url(url) if url and not socket else DaemonAddress(socket=socket or usual)


def session_token(runtime: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The credential of the enrolled session in which this runs: by its name, else by the processes above."""
    folder = f"{runtime}/hosts"
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return None
    kept: list[tuple[float, dict[str, Any]]] = []
    for name in names:
        with contextlib.suppress(OSError), open(f"{folder}/{name}", "rb") as file:
            kept.append((os.fstat(file.fileno()).st_mtime, _decoded(file.read())))
    named = {environ[mark] for mark in _NATIVE if environ.get(mark)}
    above = set(_above(os.getppid()))
    by_name = [one for one in kept if one[1].get("native") in named]
    by_process = [one for one in kept if (one[1].get("pid"), one[1].get("started")) in above]
    found = sorted(by_name or by_process, key=lambda one: one[0])
    return found[-1][1].get("token") if found else None


def _above(pid: int) -> Iterator[tuple[int, str]]:
    """The processes above, each with its start."""
    for _ in range(_ABOVE):
        _, parent, started = _process(pid)
        yield pid, started
        if parent <= 1:
            return
        pid = parent


def process_of_host(environ: Mapping[str, str] = os.environ) -> tuple[int, str]:
    """The process of the host, and when it began: the nearest above this one that is no shell."""
    told = environ.get("CLAUDE_PID", "")
    pid = int(told) if told.isdecimal() else os.getppid()
    for _ in range(_CLIMBS):
        name, above, started = _process(pid)
        if name not in _SHELLS or above <= 1:
            return pid, started
        pid = above
    return pid, _process(pid)[2]


def window_of(pid: int, cwd: str) -> tuple[int, str] | None:
    """The window in which a person has a session open, where its host is a server that outlives windows.

    Codex runs its sessions in one server for all windows: the window is the youngest program of the same
    name with a terminal, in the folder of the session.
    """
    if b"--managed-daemon" not in _command(pid).split(b"\0"):
        return None
    name, _, _ = _process(pid)
    found = [one for one in _numbers() if _is_window(one, name, cwd)]
    starts = [(int(_process(one)[2] or 0), one) for one in found]
    return (max(starts)[1], str(max(starts)[0])) if starts else None


def _is_window(pid: int, name: str, cwd: str) -> bool:
    try:
        return _fields(pid)[4] != "0" and _process(pid)[0] == name and os.readlink(f"/proc/{pid}/cwd") == cwd
    except (OSError, IndexError):
        return False


def _numbers() -> list[int]:
    try:
        return [int(one) for one in os.listdir("/proc") if one.isdecimal()]
    except OSError:
        return []


def _command(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _fields(pid: int) -> list[str]:
    """What the system says of a process after its name."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().decode("utf-8", "replace").rpartition(")")[2].split()


def started_at(pid: int) -> str:
    """When a process began, as the system says it."""
    return _process(pid)[2]


def _process(pid: int) -> tuple[str, int, str]:
    """Its name, its parent and its start, as the system says them."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            data = file.read().decode("utf-8", "replace")
    except OSError:
        return _asked(pid)
    name, _, rest = data.partition("(")[2].rpartition(")")
    fields = rest.split()
    return name, int(fields[1]), fields[19]


def _asked(pid: int) -> tuple[str, int, str]:
    """The same where there is no /proc."""
    import subprocess

    ask = ["ps", "-o", "ppid=,lstart=,comm=", "-p", str(pid)]
    try:
        words = subprocess.run(ask, capture_output=True, text=True, timeout=2, check=False).stdout.split()
    except (OSError, subprocess.SubprocessError):
        words = []
    if len(words) < 7:
        return "", 0, ""
    return os.path.basename(" ".join(words[6:])).lstrip("-"), int(words[0]), " ".join(words[1:6])
