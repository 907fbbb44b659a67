"""The checks of the doctor: each reports what it found and the command that fixes it."""

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scout import __version__
from scout.adapters.process.run_folders import RunFolders
from scout.adapters.sinks.desktop import find_program
from scout.base.refusal import Refused
from scout.cli.connection.call import ROUTES, CliIdentity, DaemonCall
from scout.cli.connection.refusal import RefusalError, explain_path
from scout.cli.hosts.host_session import TOKEN_FILE
from scout.cli.hosts.hosts import HOSTS, Addition, Host, find_scout_program
from scout.cli.hosts.jsonc import NotJson
from scout.cli.output.telemetry import describe_telemetry
from scout.client.http import Lost
from scout.daemon.setting_checks import list_problems
from scout.daemon.start import find_running
from scout.policy.sentences import describe_mesh
from scout.ports.folders import measure
from scout.protocol.operations import build_command_line
from scout.settings.load import read
from scout.store.integrity.backup import check_file
from scout.store.integrity.damage import examine
from scout.tree.snapshots import GitSnapshots

_SPACE = 256 * 1024 * 1024


class Result:
    """One finding."""

    def __init__(self, name: str, well: bool, says: str, remedy: str = "", *, hint: bool = False) -> None:
        self.name, self.well, self.says, self.remedy, self.hint = name, well, says, remedy, hint

    def to_json(self) -> dict[str, Any]:
        told = {"name": self.name, "ok": self.well, "says": self.says, "remedy": self.remedy or None}
        return {**told, "hint": self.hint}


_Check = Callable[[CliIdentity, bool], Iterator[Result]]


def _check_python(caller: CliIdentity, fix: bool) -> Iterator[Result]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Result("python", sys.version_info >= (3, 11), f"{version} ({sys.executable}), scout {__version__}")


def _check_settings(caller: CliIdentity, fix: bool) -> Iterator[Result]:
    loaded = read()
    problems = [problem.message for problem in (*loaded.problems, *list_problems(loaded))]
    yield Result("settings", not problems, "; ".join(problems) or loaded.settings.config, "scout config")


def _check_folder(caller: CliIdentity, fix: bool) -> Iterator[Result]:
    home = Path(caller.where.home)
    if not home.exists():
        yield Result("data folder", True, f"{home} is created at the first start")
        return
    yield from _check_mode("data folder", home, 0o700, fix)
    for name in ("token", "scout.db", "node.key", TOKEN_FILE):
        if (home / name).exists():
            yield from _check_mode(name, home / name, 0o600, fix)
    free = shutil.disk_usage(home).free
    yield Result("disk space", free >= _SPACE, f"{free // 1024**2} MiB free", "scout explain store_full")


def _check_mode(name: str, path: Path, wanted: int, fix: bool) -> Iterator[Result]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077 and fix:
        path.chmod(wanted)
        yield Result(name, True, f"{path} was open to others ({mode:o}); now {wanted:o}")
        return
    owned = path.stat().st_uid == os.getuid()
    says = f"{path} ({mode:o})" + ("" if owned else ", which belongs to another user")
    yield Result(name, owned and not mode & 0o077, says, "scout doctor --fix")


def _check_daemon(caller: CliIdentity, fix: bool) -> Iterator[Result]:
    found = find_running(caller.where.home)
    if found is None:
        yield from _check_stale_socket(caller, fix)
        yield Result("daemon", False, "not running", "scout up")
        return
    yield Result("lock", True, f"held by pid {found.pid or '(starting)'}")
    try:
        status = DaemonCall(caller, start=False).call(ROUTES["status"], {})
    except RefusalError as problem:
        refused = problem.code in ("unauthenticated", "forbidden")
        remedy = f"scout explain {problem.code}" if refused else "scout restart"
        yield Result("daemon", False, f"pid {found.pid} declines: {problem}", remedy)
        return
    except (Lost, OSError) as error:
        yield Result("daemon", False, f"pid {found.pid} does not answer: {error}", "scout restart")
        return
    yield Result("daemon", True, f"answers at {status['url']} and {status['socket']}")
    same = status["version"] == __version__
    if behind := status.get("history"):
        says = f"{behind['indexed']} of {behind['events']} events are read; --at works up to there"
        yield Result("history", True, says, hint=True)
    if "telemetry" in status:
        told = status["telemetry"]
        works = told["state"] in ("starting", "working")
        yield Result(
            "telemetry", True, describe_telemetry(told), hint=not works
        )  # nothing else depends on it
    yield Result("version", same, f"daemon {status['version']}, command {__version__}", "scout restart")


def _check_stale_socket(caller: CliIdentity, fix: bool) -> Iterator[Result]:
    socket = Path(caller.where.socket)
    if socket.exists() and fix:
        socket.unlink()
        yield Result("socket", True, f"{socket} was left by a daemon that has ended; removed")
    elif socket.exists():
        yield Result(
            "socket", True, f"{socket} was left by a daemon that has ended; the next start replaces it"
        )


def _check_store(caller: CliIdentity, fix: bool) -> Iterator[Result]:
    file = Path(caller.where.home) / "scout.db"
    if not file.exists():
        yield Result("store", True, "none yet")
        return
    try:
        check_file(file)
    except Refused as refusal:
        remedies = examine(file).remedies
        command = build_command_line(remedies[0]) if remedies else "scout verify"
        yield Result("store", False, refusal.diagnostic.message, command)
    else:
        yield Result("store", True, f"{file.stat().st_size // 1024} KiB, undamaged")


def _check_usage(caller: CliIdentity, fix: bool) -> Iterator[Result]:
    """Report the disk usage of runs, snapshots and attachments, and their limits."""
    settings = read().settings
    limits, sessions = settings.rules.limits, Path(settings.sessions)
    runs, pictures = RunFolders(sessions).list_stored(), GitSnapshots(sessions).list_stored()
    attachments = measure(Path(settings.blobs)).size
    yield _report_usage("runs", sum(one.size for one in runs), limits.run_output_total)
    yield _report_usage("pictures", sum(one.size for one in pictures), limits.pictures_total)
    yield _report_usage("attachments", attachments, limits.attachments_total, refuses=True)


def _report_usage(name: str, used: int, cap: int, *, refuses: bool = False) -> Result:
    """Report one disk usage. Old runs and snapshots are removed; attachments are refused when full."""
    full = refuses and used >= cap
    remedy = f"scout config set limits.attachmentsTotal {2 * cap}"
    return Result(name, not full, f"{_format_size(used)} used of {_format_size(cap)}", remedy)


def _format_size(size: int) -> str:
    return f"{size / 1024**2:.1f} MiB" if size >= 1024**2 else f"{-(-size // 1024)} KiB"


def _check_harnesses(caller: CliIdentity, fix: bool) -> Iterator[Result]:
    """Report which harnesses the daemon can run; it has the PATH of the shell that started it."""
    try:
        runtimes = DaemonCall(caller, start=False).call("GET /v1/runtimes", {})["items"]
    except (RefusalError, Lost, OSError):
        yield Result("programs", True, "start the daemon to see which harnesses are ready", hint=True)
        return
    ready = ", ".join(one["name"] for one in runtimes if one["ready"])
    yield Result("programs", True, f"ready: {ready}")
    for one in runtimes:
        if sentence := explain_path(one, caller.environ):
            yield Result("programs", False, sentence, "scout restart")
        elif not one["ready"] and one.get("missing") != "binary":
            yield Result(
                "programs", True, f"{one['name']}: {one.get('hint') or one.get('missing')}", hint=True
            )


def _check_sinks(caller: CliIdentity, fix: bool) -> Iterator[Result]:
    """Report sinks that cannot notify a person."""
    settings = read().settings
    notify = settings.notify
    if notify.desktop:
        found = find_program()
        says = found or "neither notify-send nor osascript was found: desktop notifications are off"
        yield Result("notices", True, says, hint=not found)
    for url in notify.webhooks:
        host = urlsplit(url).hostname or ""
        safe = url.startswith("https:") or host in ("localhost", "127.0.0.1", "::1")
        yield Result(
            "webhook",
            safe,
            host if safe else f"{host} gets notices without encryption; use https",
            "scout config",
        )
    secret = Path(settings.webhook_secret)
    if notify.webhooks and secret.exists():
        yield from _check_mode("webhook.key", secret, 0o600, fix)


def _check_connectors(caller: CliIdentity, fix: bool) -> Iterator[Result]:
    """Report connectors that do not work, and files of secrets that others can read."""
    folder = Path(caller.where.home) / "connectors"
    for file in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        yield from _check_mode(f"connectors/{file.name}", file, 0o600, fix)
    try:
        connectors = DaemonCall(caller, start=False).call("GET /v1/connectors", {})["items"]
    except (RefusalError, Lost, OSError):
        return
    for one in connectors:
        works = one["state"] in ("running", "starting")
        says = f"{one['state']} as {one['account']}" if works else f"{one['state']}: {one['problem']}"
        yield Result(one["connector"], works, says, f"scout connector add {one['connector']}")


def _check_mesh(caller: CliIdentity, fix: bool) -> Iterator[Result]:
    """Report a mesh that does not work, and its files that others can read. Nothing without a mesh."""
    file = Path(caller.where.home) / "mesh" / "mesh.json"
    if not file.exists():
        return
    yield from _check_mode("mesh/mesh.json", file, 0o600, fix)
    try:
        view = DaemonCall(caller, start=False).call("GET /v1/mesh", {})
    except (RefusalError, Lost, OSError):
        return
    server = view.get("server")
    works = bool(view.get("connected") and (server is None or server["running"]))
    stopped = bool(view.get("stopped"))
    yield Result("mesh", works or stopped, describe_mesh(view), "scout mesh up", hint=stopped)


def _check_hosts(caller: CliIdentity, fix: bool) -> Iterator[Result]:
    """Report which hosts are set up, and what Scout cannot see there."""
    program = find_scout_program(caller.environ)
    for host in HOSTS.values():
        there = {one.what: _is_present(file, one) for file, one in host.additions(caller.environ, program)}
        if host.is_here(caller.environ) or any(there.values()):
            yield _report_host(caller, host, there)


def _report_host(caller: CliIdentity, host: Host, there: dict[str, bool]) -> Result:
    name, remedy = f"host {host.name}", f"scout setup {host.name}"
    if not there["MCP server"]:
        return Result(name, True, f"{host.title} is not set up: {remedy}", hint=True)
    if not (Path(caller.where.home) / TOKEN_FILE).exists():
        return Result(name, False, f"{host.title} is set up, but its token is gone", remedy)
    if there.get("hooks"):
        return Result(name, True, f"{host.title} is set up, with hooks")
    blind = "without hooks a server cannot see a prompt its host intercepts"
    if "hooks" in there:
        return Result(name, False, f"{host.title} is set up, but {blind}", remedy)
    return Result(name, True, f"{host.title} is set up; {blind}")


def _is_present(file: Path, addition: Addition) -> bool:
    try:
        return addition.is_in(file.read_text("utf-8"))
    except (OSError, ValueError, NotJson):
        return False


def _check_session(caller: CliIdentity, fix: bool) -> Iterator[Result]:
    if caller.session:
        has = bool(caller.environ.get("SCOUT_TOKEN"))
        says = f"inside a harness session ({caller.session}), {'with' if has else 'without'} SCOUT_TOKEN"
        yield Result("session", has, says, "scout explain unauthenticated")


CHECKS: tuple[_Check, ...] = (
    _check_python,
    _check_settings,
    _check_session,
    _check_folder,
    _check_daemon,
    _check_store,
    _check_usage,
    _check_harnesses,
    _check_connectors,
    _check_mesh,
    _check_hosts,
    _check_sinks,
)
