"""What the hook before an edit costs, beside a hook that does nothing, and how soon it gives up."""

import json
import os
import signal
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.daemon import Daemon, fresh
from bench.figure import Figure, microseconds
from bench.typed import installed_program, plain_environment, run_command

ROUNDS = 40
HELD = 50  # reservations in the work tree
GOAL = 2.0  # times a hook that does nothing
LONGER = 120.0  # milliseconds that it may wait in vain; the start of Python depends on the machine


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """The hook with a daemon that answers, one that is silent, and none."""
    rounds = max(round(ROUNDS * scale), 5)
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder, fresh() as to:
        work = Path(folder) / "work"
        subprocess.run(["git", "init", "-q", str(work)], check=True)
        environ = {**plain_environment(to), **_session(to, work)}
        wish = {"paths": ["src/new.py"], "folder": str(work)}
        checked = microseconds(lambda: to.call("POST", "/v1/reservations/check", wish), 20)
        yield Figure(name=f"check of one path among {HELD} reservations", result=checked / 1000, unit="ms")
        bare, hook = _measure(rounds, work, environ)
        yield Figure(name="hook that does nothing: p95", result=_p95(bare), unit="ms")
        yield Figure(name="hook before an edit: p95", result=_p95(hook) / _p95(bare), unit="×", goal=GOAL)
        os.kill(to.pid, signal.SIGSTOP)
        try:
            silent = [_edit(work, environ) for _ in range(rounds)]
        finally:
            os.kill(to.pid, signal.SIGCONT)
        away = [_edit(work, {**environ, "SCOUT_SOCKET": f"{folder}/nothing"}) for _ in range(rounds)]
        for name, measured in (("with a silent daemon", silent), ("without a daemon", away)):
            yield Figure(name=f"{name} it gives up: p95", result=_p95(measured), unit="ms")
            longer = statistics.median(measured) - statistics.median(bare)
            yield Figure(
                name=f"{name}, beyond a hook that does nothing", result=longer, unit="ms", goal=LONGER
            )


def _session(to: Daemon, work: Path) -> dict[str, str]:
    """What a program that Scout started finds in its environment; another agent holds files there."""
    for name in ("arc", "elm"):
        to.call("POST", "/v1/agents", {"definitionId": name, "projectRoot": str(work), "command": ["cat"]})
    secrets = {
        name: to.call("POST", "/v1/tokens", {"agent": f"@{name}"})["secret"] for name in ("arc", "elm")
    }
    for number in range(HELD):
        wish = {"globs": [f"src/part{number}/**/*_test.py", f"docs/{number}/"], "folder": str(work)}
        to.call("POST", "/v1/reservations", wish, secrets["elm"])
    return {"SCOUT_SESSION": "ses_bench", "SCOUT_TOKEN": secrets["arc"], "SCOUT_SOCKET": to.socket}


def _measure(rounds: int, work: Path, environ: dict[str, str]) -> tuple[list[float], list[float]]:
    """Both in turn, so that what else the machine does meets them alike."""
    plain = {name: value for name, value in environ.items() if name != "SCOUT_SESSION"}
    bare, hook = list[float](), list[float]()
    for _ in range(rounds + 1):
        bare.append(run_command([*installed_program(), "hook", "notification"], plain, _facts(work)).wall)
        hook.append(_edit(work, environ))
    return bare[1:], hook[1:]


def _edit(work: Path, environ: dict[str, str]) -> float:
    return run_command([*installed_program(), "hook", "pre_edit"], environ, _facts(work)).wall


def _facts(work: Path) -> str:
    given = {"file_path": str(work / "src" / "new.py")}
    return json.dumps({"session_id": "0", "cwd": str(work), "tool_name": "Edit", "tool_input": given})


def _p95(measured: list[float]) -> float:
    return statistics.quantiles(measured, n=20)[-1]
