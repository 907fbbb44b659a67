"""What typing an everyday command costs, beside an interpreter that does nothing."""

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.daemon import Daemon, daemon, fresh, seeded
from bench.figure import Figure

ROUNDS = 15
FEW, MANY = 1_000, 100_000  # messages stored
GOAL = 4.0  # times a bare interpreter, in processor time
_BARE = "bare interpreter"
_HOOK = '{"session_id": "0", "cwd": "/", "hook_event_name": "Notification"}'


class Typed(NamedTuple):
    """One command: its words, what happens before it is typed, and what it reads."""

    words: tuple[str, ...]
    before: Callable[[Daemon], object] = lambda _: None
    stdin: str = ""


def _need(to: Daemon) -> object:
    elm = to.call("POST", "/v1/tokens", {"agent": "@elm"})["secret"]
    return to.call("POST", "/v1/attention", {"title": "May I?", "kind": "permission"}, elm)


def _message(to: Daemon) -> object:
    return to.call("POST", "/v1/messages", {"to": "@arc", "body": "hello"})


COMMANDS = {
    "scout": Typed(()),
    "who": Typed(("who",)),
    "whoami": Typed(("whoami",)),
    "status": Typed(("status",)),
    "attention": Typed(("attention",)),
    "approve": Typed(("approve", "last"), _need),
    "inbox": Typed(("inbox",), _message),
    "send": Typed(("send", "@arc", "hello")),
    "ask": Typed(("ask", "@arc", "hello")),
    "ask --no-wait": Typed(("ask", "@arc", "hello", "--no-wait")),
    "wait": Typed(("wait", "last")),
    "flight": Typed(("flight",)),
    "flight get": Typed(("flight", "get", "last")),
    "ps": Typed(("ps",)),
    "tell": Typed(("tell", "@arc", "hello")),
    "session list": Typed(("session", "list")),
    "work": Typed(("work",)),
    "question": Typed(("question",)),
    "show": Typed(("show", "@arc")),
    "latest": Typed(("latest",)),
    "log": Typed(("log", "--newest", "--limit", "20")),
    "watch": Typed(("watch", "--after", "0", "--count", "20")),
    "hook": Typed(("hook", "notification"), stdin=_HOOK),
    "statusline": Typed(("statusline",), stdin="{}"),
}


class Cost(NamedTuple):
    """Milliseconds of one process."""

    cpu: float
    wall: float


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """Each command in turn, round after round, so that what else the machine does meets all of them alike."""
    rounds = max(round(ROUNDS * scale), 3)
    with fresh() as to:
        _register_agents(to)
        costs = _measure(to, rounds)
    bare = _median(costs.pop(_BARE))
    yield Figure(name="a bare interpreter: processor time", result=bare.cpu, unit="ms")
    for name, measured in costs.items():
        typed = _median(measured)
        yield Figure(name=f"{name}: processor time", result=typed.cpu / bare.cpu, unit="×", goal=GOAL)
        yield Figure(name=f"{name}: until it is done", result=typed.wall / bare.wall, unit="×")


def stored_figures(scale: float = 1.0) -> Iterator[Figure]:
    """The same commands where 100,000 messages are stored, beside 1,000: processor time with the daemon's."""
    rounds, many = max(round(ROUNDS * scale), 3), round(MANY * scale)
    with (
        seeded(messages=FEW) as small,
        seeded(messages=many) as large,
        daemon(small) as few,
        daemon(large) as all_of_them,
    ):
        costs = [_measure_both(to, rounds) for to in (few, all_of_them)]
    for name in COMMANDS:
        title = f"{name}, {many:,} messages stored: against {FEW:,}"
        yield Figure(name=title, result=costs[1][name] / costs[0][name], unit="×", goal=1.2)


def _measure_both(to: Daemon, rounds: int) -> dict[str, float]:
    """The least that each command costs, here and in the daemon, once that has caught up with the seed."""
    _register_agents(to)
    to.wait_until_quiet()
    environ, costs = plain_environment(to), dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(rounds + 1):
        for name, one in COMMANDS.items():
            one.before(to)
            before = to.read_processor_time()
            used = run_command([*installed_program(), *one.words], environ, one.stdin).cpu
            costs[name] = min(costs[name], used + to.read_processor_time() - before)
    return costs


def _register_agents(to: Daemon) -> None:
    to.call("POST", "/v1/agents", {"definitionId": "arc", "harness": "echo"})
    to.call("POST", "/v1/agents", {"definitionId": "elm"})


def _measure(to: Daemon, rounds: int) -> dict[str, list[Cost]]:
    costs: dict[str, list[Cost]] = {_BARE: [], **{name: [] for name in COMMANDS}}
    environ = plain_environment(to)
    for _ in range(rounds + 1):
        costs[_BARE].append(run_command([sys.executable, "-c", "pass"], environ))
        for name, one in COMMANDS.items():
            one.before(to)
            costs[name].append(run_command([*installed_program(), *one.words], environ, one.stdin))
    return {name: measured[1:] for name, measured in costs.items()}  # the first reads from the disk


def installed_program() -> list[str]:
    """The command as it was installed beside this interpreter."""
    beside = shutil.which("scout", path=str(Path(sys.executable).parent))
    return [beside] if beside else [sys.executable, "-m", "scout"]


def plain_environment(to: Daemon) -> dict[str, str]:
    """The environment of a person's terminal: the interpreter keeps its bytecode, as in an installed wheel."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SCOUT_", "PYTHON"))}
    return {**kept, "SCOUT_HOME": str(to.home), "SCOUT_AUTOSTART": "0"}


def run_command(command: list[str], environ: dict[str, str], stdin: str = "") -> Cost:
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(stdin.encode())
    process.stdin.close()
    problem = process.stderr.read()
    process.stderr.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (command, problem)
    return Cost(1000 * (used.ru_utime + used.ru_stime), 1000 * (time.perf_counter() - began))


def _median(costs: list[Cost]) -> Cost:
    return Cost(statistics.median(one.cpu for one in costs), statistics.median(one.wall for one in costs))
