"""`scout runtimes --check`: each promise of the checklist is tried; nothing of the check is left."""

import json
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Shell, a_shell, start_daemon, type_in_terminal
from tests.daemon.daemons import Daemon, eventually
from tests.live.machine import processes_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as made:
        start_daemon(made)
        yield made


def a_claude(folder: Path, says: str) -> str:
    """A PATH on which the program `claude` is this script."""
    folder.mkdir()
    program = folder / "claude"
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def verdicts(told: Any) -> dict[str, str]:
    return {one["line"]: one["verdict"] for one in told["checks"]}


def leftovers(shell: Shell) -> list[str]:
    """Processes and files of a check."""
    running = [line for line in processes_in(shell.folder).values() if "trials" in line]
    return running + [str(path) for path in shell.home.glob("trials/*")]


@pytest.mark.rows("R5.1-1", "R5.1-2")
def test_every_promise_of_a_free_harness_is_tried_without_being_asked(shell: Shell) -> None:
    shown = shell.say("runtimes", "--check", "echo", within=120)
    lines = shown.splitlines()[2:]
    assert "passed         receives a message: a note came with its next turn" in lines
    assert {line[:13].strip() for line in lines} == {"passed", "not supported"}
    assert "not supported  reports usage or marked estimates: it reports no usage" in lines
    # The same verdicts over HTTP, and nothing in anybody's lists.
    daemon = Daemon(shell.home, start_daemon(shell))
    (found,) = daemon.call("GET", "/v1/runtimes?check=echo").json["items"]
    assert found["check"] == "finished"
    assert [f"{one['verdict']:<15}{one['line']}: {one['because']}" for one in found["checks"]] == lines
    for noun in ("who", "flight", "session", "latest", "inbox"):
        assert shell.data(noun)["items"] == [], noun
    assert leftovers(shell) == []


def test_a_command_that_answers_passes_and_one_that_breaks_does_not(shell: Shell) -> None:
    good = shell.data("runtimes", "--check", "command", "--command", "tr a-z A-Z", within=120)
    assert set(verdicts(good).values()) == {"passed", "not supported"}, good["checks"]
    bad = shell.type("runtimes", "--check", "command", "--command", "false", within=120)
    assert bad.returncode == 1
    (failed,) = [line for line in bad.stdout.splitlines() if line.startswith("failed")]
    assert "receives an ask and gives a flight result: the flight is failed" in failed
    assert "exit 1" in failed
    assert "not tried      receives a message: its first ask has no result" in bad.stdout
    assert "try: scout runtimes --check command" in bad.stderr
    assert leftovers(shell) == []


def test_a_program_that_is_missing_or_broken_is_not_tried(shell: Shell, tmp_path: Path) -> None:
    path = a_claude(tmp_path / "bin", "exit 1")
    shell.say("down")
    done = shell.type("runtimes", "--check", "claude", "--yes", PATH=path, SCOUT_AUTOSTART="1")
    assert done.returncode == 1
    first, *others = done.stdout.splitlines()[2:]
    assert first.startswith("failed         ready on this machine: ")
    assert {line.partition(": ")[2] for line in others} == {"it is not ready"}
    assert "try: scout" in done.stderr


def test_a_misspelt_harness_is_refused_with_the_same_command_for_the_nearest(shell: Shell) -> None:
    done = shell.type("runtimes", "--check", "ecko")
    assert done.returncode == 5
    assert "try: scout runtimes --check echo" in done.stderr


def test_what_costs_tokens_needs_a_yes(shell: Shell, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    path = a_claude(
        tmp_path / "bin", f'[ "$1" = --version ] && echo "2.1.325 (Claude Code)" || touch {asked}'
    )
    shell.say("down")
    environ: dict[str, Any] = {"PATH": path, "SCOUT_AUTOSTART": "1", "ANTHROPIC_API_KEY": "sk-ant-none-000"}
    done = shell.type("runtimes", "--check", "claude", within=120, **environ)
    assert done.returncode == 6, (done.stdout, done.stderr)
    assert "passed         stable identity: " in done.stdout
    assert "not tried      receives a message: needs consent" in done.stdout
    assert "try: scout runtimes --check claude --yes" in done.stderr
    as_data = shell.type("runtimes", "--check", "claude", "--json", within=120, **environ)
    assert as_data.returncode == 6, (as_data.stdout, as_data.stderr)
    checks = json.loads(as_data.stdout)["checks"]
    untried = [one for one in checks if one["because"] == "needs consent"]
    assert len(untried) == done.stdout.count("needs consent") > 0
    assert any(one["verdict"] == "passed" for one in checks)
    assert not asked.exists()
    # On a terminal the person is asked, and told what it takes.
    code, screen = type_in_terminal(shell, "runtimes", "--check", "claude", until="[y/N]", **environ)
    assert "takes up to 5 short turns of its model" in screen
    assert code == 130
    assert not asked.exists()


def test_ctrl_c_ends_the_check_and_what_it_started(shell: Shell) -> None:
    command = [sys.executable, "-m", "scout", "runtimes", "--check", "command", "--command", "sleep 100"]
    with subprocess.Popen(
        command,
        env=shell.environ,
        cwd=shell.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("passed         reports harness"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "everything that the check started has ended" in told
    assert leftovers(shell) == []
    assert Daemon(shell.home, start_daemon(shell)).call("GET", "/v1/runtimes?check=command").json["items"][0][
        "check"
    ] == ("stopped")


def test_a_daemon_that_is_killed_takes_its_check_with_it(shell: Shell) -> None:
    daemon = Daemon(shell.home, start_daemon(shell))
    begun = daemon.call("POST", "/v1/runtimes/command/check", {"command": ["sleep", "100"]})
    assert (begun.status, begun.json["check"]) == (200, "running")
    eventually(lambda: len(_checks(daemon)) > 6, 90)
    subprocess.run(["kill", "-9", str(start_daemon(shell).pid)], check=True)
    eventually(lambda: not [one for one in leftovers(shell) if "/trials/" not in one or " " in one])
    start_daemon(shell)
    assert leftovers(shell) == []


def _checks(daemon: Daemon) -> list[Any]:
    return list(daemon.call("GET", "/v1/runtimes?check=command").json["items"][0]["checks"])


def test_only_the_operator_checks_and_not_while_scout_is_paused(shell: Shell) -> None:
    daemon = Daemon(shell.home, start_daemon(shell))
    token = daemon.call("POST", "/v1/agents", {"definitionId": "reader"}).json["token"]
    refused = daemon.call("POST", "/v1/runtimes/echo/check", {}, token=token)
    assert (refused.status, refused.json["code"]) == (403, "forbidden")
    shell.say("pause")
    paused = shell.type("runtimes", "--check", "echo", "--json")
    assert json.loads(paused.stdout)["error"]["code"] == "paused"
    unknown = shell.type("runtimes", "--check", "clode")
    assert unknown.stderr.startswith("harness_unavailable")
