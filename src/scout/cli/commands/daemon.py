"""`up`, `down`, `restart`, `status`: the daemon, and the unit file that lets the system start it."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from scout.cli.connection.call import CliIdentity, DaemonCall, start_daemon
from scout.cli.connection.refusal import RefusalError, build_remedy
from scout.cli.connection.text import note, paint, print_out, print_text
from scout.cli.operations.build import build_epilog, run_guarded
from scout.cli.operations.complete import complete_addresses
from scout.cli.operations.overview import show_status
from scout.cli.operations.verbs import Options
from scout.cli.output.results import format_flights, show
from scout.cli.output.sessions import run_row
from scout.client.http import Lost
from scout.daemon.start import Running, find_running, stop
from scout.daemon.unit import build_unit
from scout.policy.sentences import count_machines
from scout.settings.record import SETTINGS

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_PATIENCE = 15.0
_REASON = "scout down --stop"
_SHOWN = 5  # maximum open flights and running sessions listed when the daemon stops
_ROUNDS = 5  # looks for work that began while other work was ended


@click.command(epilog=build_epilog("up"))
@click.argument("address", required=False, shell_complete=complete_addresses)
@click.option("--foreground", is_flag=True, help="Run in this terminal, and log to it too.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 picks a free one.")
@click.option("--install", is_flag=True, help="Let systemd or launchd start it: write its unit file.")
@click.option("--uninstall", is_flag=True, help="Remove that unit file.")
@click.option("--print", "printed", is_flag=True, help="With --install: only print the unit file.")
@_JSON
def up(
    *,
    address: str | None,
    foreground: bool,
    port: int | None,
    install: bool,
    uninstall: bool,
    printed: bool,
    as_json: bool,
) -> None:
    """Start the daemon if it is not running, and show its address.

    ADDRESS: an agent to wake, as `scout wake` does.
    """
    arguments = [] if port is None else ["--port", str(port)]

    def work() -> int:
        caller = CliIdentity()
        if install or uninstall:
            home = caller.where.home
            return uninstall_unit(home) if uninstall else install_unit(home, printed)
        if foreground:
            return _run_in_foreground(caller, arguments)
        found, began = start_daemon(caller, arguments)
        if address is not None:
            woken = DaemonCall(caller, start=False).call(
                "POST /v1/agents/{address}/wake", {"address": address}
            )
            show("wake", woken, as_json)
            return 0
        _show_daemon(found, "started" if began else "already running", as_json)
        return 0

    run_guarded(work, as_json)


def _run_in_foreground(caller: CliIdentity, arguments: list[str]) -> int:
    found = find_running(caller.where.home)
    if found is not None:
        message = f"a daemon (pid {found.pid}) is already running for {caller.where.home}"
        raise RefusalError.of(
            "wrong_state", message, noun="daemon", state="running", remedies=[build_remedy("down")]
        )
    sys.stdout.flush()
    command = [sys.executable, "-m", "scout.daemon", "--foreground", *arguments]
    os.execve(sys.executable, command, dict(caller.environ))


def _show_daemon(found: Running, word: str, as_json: bool) -> None:
    if as_json:
        print_out(json.dumps(found.facts()))
    else:
        print_out(f"{paint(word, 'green')}: {found.url} (pid {found.pid}, socket {found.socket})")


@click.command(epilog=build_epilog("down"))
@click.option("--stop", "stop_work", is_flag=True, help="Cancel open work and end its programs first.")
@_JSON
def down(stop_work: bool, as_json: bool) -> None:
    """Stop the daemon. Running sessions keep running and are listed; --stop ends them."""

    def work() -> int:
        caller = CliIdentity()
        found = find_running(caller.where.home)
        flights, runs = _list_work(caller, required=stop_work) if found is not None else ([], [])
        server = _read_mesh_server(caller) if found is not None else None
        if stop_work and found is not None:
            _end_work(caller, flights, runs)
            _stop_mesh(caller, server)
        _stop_daemon(caller.where.home)
        if as_json:
            told = {"stopped": found is not None, "pid": found.pid if found else None}
            left = {"cancelled" if stop_work else "open": [one["id"] for one in flights]}
            print_out(
                json.dumps({**told, **left, "ended" if stop_work else "running": [one["id"] for one in runs]})
            )
        else:
            _tell_stopped(found, flights, runs, stop_work)
            if not stop_work and server is not None and server.get("connections"):
                others = count_machines(server["connections"], "other")
                print_out(f"the mesh server keeps running for {others} (scout down --stop ends it)")
        return 0

    run_guarded(work, as_json)


def _end_work(caller: CliIdentity, flights: list[dict[str, Any]], runs: list[dict[str, Any]]) -> None:
    """Cancel flights and end sessions, also those that were just beginning; they are added to the lists.

    The end of one turn starts the next that waits, so the daemon is paused first.
    """
    pause = {"untilRestart": True, "reason": _REASON}
    DaemonCall(caller, start=False).call("POST /v1/pause", pause)
    more, started = flights, runs
    for _ in range(_ROUNDS):
        _cancel_flights(caller, more)
        _end_sessions(caller, started)
        more, started = _list_work(caller, required=True)
        if not (more or started):
            return
        flights += [one for one in more if one["id"] not in {known["id"] for known in flights}]
        runs += [one for one in started if one["id"] not in {known["id"] for known in runs}]


def _stop_mesh(caller: CliIdentity, server: dict[str, Any] | None) -> None:
    """End the server of the mesh; the next daemon starts it again."""
    if server is not None:
        DaemonCall(caller, start=False).call("POST /v1/mesh/down", {"once": True})


def _tell_stopped(
    found: Running | None, flights: list[dict[str, Any]], runs: list[dict[str, Any]], stopped: bool
) -> None:
    print_out(f"stopped (pid {found.pid})" if found else "no daemon was running")
    _list_running(
        "cancelled" if stopped else "resumes when the daemon is up again",
        format_flights(flights, _SHOWN),
        flights,
    )
    left = "ended" if stopped else "still running (scout down --stop ends them)"
    _list_running(left, [run_row(one) for one in runs[:_SHOWN]], runs)


def _list_running(title: str, rows: list[str], records: list[dict[str, Any]]) -> None:
    """Print the first rows, and how many more there are."""
    if records:
        print_out(f"{title}:")
    for row in rows:
        print_out(row)
    if len(records) > _SHOWN:
        print_out(f"  … and {len(records) - _SHOWN} more")


def _list_work(caller: CliIdentity, *, required: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return open flights and running sessions. A daemon that does not answer can be stopped all the same.

    `required`: nothing may be missing, so a daemon that does not answer is a refusal.
    """
    try:
        return _list_open_flights(caller), _list_running_sessions(caller)
    except (RefusalError, Lost, OSError) as problem:
        if required:
            raise
        note(f"scout: what is running could not be listed: {problem}")
        return [], []


def _list_open_flights(caller: CliIdentity) -> list[dict[str, Any]]:
    return _read_pages(DaemonCall(caller, start=False), "GET /v1/flights", {"open": True})


def _list_running_sessions(caller: CliIdentity) -> list[dict[str, Any]]:
    """Return the running sessions that Scout started."""
    line = DaemonCall(caller, start=False)
    live = _read_pages(line, "GET /v1/sessions", {"live": True})
    ours = [one["id"] for one in live if one["origin"] != "enrolled"]
    seen = [line.call("GET /v1/sessions/{sessionId}", {"sessionId": ident}) for ident in ours]
    return [one for one in seen if one["running"]]


def _read_pages(line: DaemonCall, route: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    page = line.call(route, {**parameters, "limit": 200})
    items: list[dict[str, Any]] = page["items"]
    while page.get("next"):
        page = line.call(route, {**parameters, "limit": 200, "cursor": page["next"]})
        items += page["items"]
    return items


def _read_mesh_server(caller: CliIdentity) -> dict[str, Any] | None:
    """Return the server of the mesh that this machine runs, if it runs one."""
    if not (Path(caller.where.home) / "mesh" / "mesh.json").exists():
        return None
    try:
        server = DaemonCall(caller, start=False).call("GET /v1/mesh", {}).get("server")
    except (RefusalError, Lost, OSError):
        return None
    return server if server and server["running"] else None


def _end_sessions(caller: CliIdentity, runs: list[dict[str, Any]]) -> None:
    _call_for_each(caller, "POST /v1/sessions/{sessionId}/stop", "sessionId", runs, "stopped")


def _cancel_flights(caller: CliIdentity, flights: list[dict[str, Any]]) -> None:
    _call_for_each(caller, "POST /v1/flights/{flightId}/cancel", "flightId", flights, "cancelled")


def _call_for_each(
    caller: CliIdentity, route: str, field: str, records: list[dict[str, Any]], done: str
) -> None:
    line = DaemonCall(caller, start=False)
    for record in records:
        try:
            line.call(route, {field: record["id"], "reason": _REASON})
        except RefusalError as problem:
            note(f"scout: {record['id']} was not {done}: {problem}")


def _stop_daemon(home: str) -> None:
    if not stop(home, _PATIENCE):
        found = find_running(home)
        message = f"the daemon (pid {found.pid if found else '?'}) did not stop within {_PATIENCE:g} s"
        raise RefusalError.of("busy", message, reason="stopping", remedies=[build_remedy("doctor")])


@click.command(epilog=build_epilog("restart"))
@_JSON
def restart(as_json: bool) -> None:
    """Replace the running daemon, for example after an upgrade."""

    def work() -> int:
        caller = CliIdentity()
        before = find_running(caller.where.home)
        _stop_daemon(caller.where.home)
        found, _ = start_daemon(caller, _keep_port(before))
        _show_daemon(found, "restarted" if before else "started", as_json)
        return 0

    run_guarded(work, as_json)


def _keep_port(before: Running | None) -> list[str]:
    """Return the arguments that keep the port, so that known addresses stay valid."""
    port = before.url.rpartition(":")[2] if before else ""
    return ["--port", port] if port.isdecimal() else []


@click.command(epilog=build_epilog("status"))
@_JSON
def status(as_json: bool) -> None:
    """Show whether the daemon is running, and its address. This never starts it."""

    run_guarded(lambda: show_status(Options(as_json=as_json)), as_json)


_NEXT = {
    "systemd": (
        "systemctl --user daemon-reload",
        "systemctl --user enable --now scout",
        "loginctl enable-linger    # to keep it running when you are logged out",
    ),
    "launchd": ("launchctl load -w {file}",),
}
_BACK = {
    "systemd": ("systemctl --user disable --now scout", "systemctl --user daemon-reload"),
    "launchd": ("launchctl remove scout",),
}


def locate_unit(platform: str = sys.platform) -> tuple[str, Path]:
    """Return this system's kind of unit, and the path of the unit file."""
    if platform == "darwin":
        return "launchd", Path.home() / "Library/LaunchAgents/scout.plist"
    return "systemd", Path.home() / ".config/systemd/user/scout.service"


def _read_environment(home: str) -> dict[str, str]:
    """Return PATH and the settings in effect: the system starts units without them."""
    names = ("PATH", *(one.environment for one in SETTINGS.values()))
    return {"SCOUT_HOME": home, **{name: os.environ[name] for name in names if os.environ.get(name)}}


def install_unit(home: str, printed: bool) -> int:
    """Write or print the unit file, and print the next commands."""
    kind, file = locate_unit()
    text = build_unit(kind, sys.executable, _read_environment(home))
    if printed:
        print_text(text.rstrip("\n"))
        return 0
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    print_out(f"written: {file}")
    print_out("now:")
    for line in _NEXT[kind]:
        print_out(f"  {line.format(file=file)}")
    note("undo: scout up --uninstall")
    return 0


def uninstall_unit(home: str) -> int:
    """Remove the unit file. Print the commands that stop a running daemon, and where the data is."""
    kind, file = locate_unit()
    there = file.exists()
    file.unlink(missing_ok=True)
    print_out(f"removed: {file}" if there else f"there was no {file}")
    print_out("if it still runs:")
    for line in _BACK[kind]:
        print_out(f"  {line}")
    print_out(f"your data stays in {home}")
    return 0
