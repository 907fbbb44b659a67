"""`scout spawn`: creates child agents, gives them a task, and shows one picture of all of them."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from scout.cli.connection.refusal import RefusalError, build_remedy, get_exit_code
from scout.cli.connection.text import note, print_out
from scout.cli.operations.build import (
    build_common_options,
    build_epilog,
    build_parameters,
    run_guarded,
    tidy_parameters,
)
from scout.cli.operations.table import find_operation
from scout.cli.operations.verbs import Options, read_body
from scout.cli.output.own_name import say_you
from scout.cli.output.spawned import show_spawned
from scout.cli.waiting.several import Watched, follow_all

_PATIENCE = 7200.0  # seconds: setup commands may be slow
_HELP = """Create child agents, each on a separate branch in its work tree.

SLUG: a short name. The branch is the parent's branch, a dot and the slug; the agent is called
@PROJECT.SLUG. Without --from, your children belong to the root agent of this project.

With --task each of them is asked at once, and the command waits for all answers. Ctrl-C stops the wait,
never the work. `--task -` reads the task from standard input."""
_OWN = [
    click.Option(["--wait", "wait"], type=float, metavar="SECONDS", help="Maximum time to wait."),
    click.Option(["--no-wait", "no_wait"], is_flag=True, help="Print the agents and do not wait."),
    click.Option(["--panes"], is_flag=True, help="Open each agent in a tmux window."),
]
_LEFT_OUT = frozenset({"within"})


def _run_spawn(panes: bool, wait: float | None, no_wait: bool, **given: Any) -> None:
    manner = Options(
        as_json=given.pop("as_json"),
        act_as=given.pop("act_as"),
        key=given.pop("key", None),
        wait=wait,
        no_wait=no_wait,
    )
    parameters = tidy_parameters(find_operation("spawn"), given)
    run_guarded(lambda: _run(parameters, manner, panes), manner.as_json)


command = click.Command(
    "spawn",
    params=[
        *build_parameters(find_operation("spawn"), _LEFT_OUT),
        *_OWN,
        *build_common_options(find_operation("spawn")),
    ],
    callback=_run_spawn,
    help=_HELP,
    short_help=find_operation("spawn").says,
    epilog=build_epilog("spawn"),
)


def _run(parameters: dict[str, Any], manner: Options, panes: bool) -> int:
    if panes:
        _require_tmux()
    if parameters.get("task") == "-":
        parameters["task"] = read_body(["-"], manner)
    if flight := os.environ.get("SCOUT_FLIGHT"):
        parameters["within"] = flight
    line = manner.line()
    told = line.call("POST /v1/spawn", parameters, manner.key, patience=_PATIENCE)
    if not manner.as_json:
        show_spawned(say_you(line, told))
    if panes:
        _open_windows(told)
    flights = [Watched(one["address"], one["flightId"]) for one in told["agents"] if one.get("flightId")]
    failed = _choose_exit_code(told)
    if flights and not manner.no_wait:
        code = follow_all(line, flights, manner.wait, manner.as_json)
        _print_json(told, manner, flights=[one.flight for one in flights])
        return failed or code
    _print_json(told, manner)
    if not manner.as_json:
        _note_next(told, flights)
    return failed


def _print_json(told: dict[str, Any], manner: Options, **more: Any) -> None:
    if manner.as_json:
        print_out(json.dumps({**told, **more}))


def _choose_exit_code(told: dict[str, Any]) -> int:
    codes = [get_exit_code(str(one["error"]["code"])) for one in told.get("failed") or ()]
    return codes[0] if codes else 0


def _note_next(told: dict[str, Any], flights: list[Watched]) -> None:
    for one in flights:
        note(f"the answer: scout wait {one.flight_id}  # {one.name}")
    if not flights and told["agents"]:
        first = told["agents"][0]["address"]
        note(f"next: scout ask {first} '…', or scout open {first}")


# -- tmux ----------------------------------------------------------------------------------------------


def _require_tmux() -> None:
    if shutil.which("tmux") is None:
        message = "--panes needs tmux, and there is no tmux on the PATH: install it, or leave --panes out"
        again = shlex.join(["scout", *(word for word in sys.argv[1:] if word != "--panes")])
        raise RefusalError.of(
            "bad_request", message, remedies=[build_remedy("spawn", again, "without windows")]
        )


def _open_windows(told: dict[str, Any]) -> None:
    """Open one window for each agent: in this tmux session, or in a detached one of the project's."""
    inside = bool(os.environ.get("TMUX"))
    root = next((one["agent"].get("projectRoot") for one in told["agents"]), None) or "agents"
    session = f"scout-{_clean_window_name(Path(root).name)}"
    for one in told["agents"]:
        where = ["-n", _clean_window_name(one["slug"]), "-c", one.get("workingDir") or "."]
        if inside:
            _run_tmux("new-window", "-d", *where, _build_pane_command(one))
        elif _run_tmux("has-session", "-t", f"={session}", quiet=True):
            _run_tmux("new-window", "-d", "-t", f"={session}:", *where, _build_pane_command(one))
        else:
            _run_tmux("new-session", "-d", "-s", session, *where, _build_pane_command(one))
    if not inside:
        note(f"attach: tmux attach -t {session}")


def _build_pane_command(one: dict[str, Any]) -> str:
    """Return the shell command of a window: the progress of the task, the session, then a shell."""
    scout = shlex.quote(shutil.which("scout") or sys.argv[0])
    wait = f"{scout} wait {one['flightId']}; " if one.get("flightId") else ""
    return f'{wait}{scout} open {shlex.quote(one["address"])}; exec "${{SHELL:-/bin/sh}}"'


def _clean_window_name(text: str) -> str:
    """Return a name without the characters that tmux reads as targets."""
    return "".join(sign if sign.isalnum() or sign in "-_" else "-" for sign in text) or "agents"


def _run_tmux(*words: str, quiet: bool = False) -> bool:
    done = subprocess.run(["tmux", *words], check=False, capture_output=True, text=True)
    if done.returncode and not quiet:
        note(f"tmux: {done.stderr.strip() or 'it failed'}")
    return done.returncode == 0
