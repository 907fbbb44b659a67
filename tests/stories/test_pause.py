"""A person stops everything for a while: nothing starts, nothing is lost, and every surface says so."""

from pathlib import Path

import pytest

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon, eventually

pytestmark = pytest.mark.slow


def outcome(shell: Shell, flight: str) -> tuple[str, str]:
    told = shell.data("flight", "get", flight)
    return told["state"], told["reason"]


def sleeper(shell: Shell, name: str) -> None:
    """An agent whose program works until the file `go` is there."""
    script = f"while [ ! -e {shell.folder}/go ]; do sleep 0.05; done; echo {name} is done"
    shell.say("agent", "register", name, "--command", f"sh -c '{script}'", cwd=shell.project("desk"))


def test_pause_and_resume(tmp_path: Path) -> None:
    with a_shell() as shell:
        scout = Daemon(shell.home, start_daemon(shell))
        sleeper(shell, "night")
        running = shell.data("ask", "@night", "work", "--no-wait")["flightId"]
        eventually(lambda: outcome(shell, running)[0] == "running")

        told = shell.say("pause", "--reason", "low battery")
        assert "paused" in told
        assert "scout resume" in told

        # Every surface says so, and what is asked now is accepted and waits.
        for words in (["status"], [], ["brief"]):
            assert "low battery" in shell.say(*words), words
        assert "no turn starts until you run scout resume" in shell.say("status")
        assert scout.call("GET", "/v1/status").json["paused"]["reason"] == "low battery"
        asked = shell.data("ask", "@night", "more", "--no-wait")
        assert (asked["state"], "scout resume" in asked["reason"]) == ("queued", True)
        shell.say("agent", "register", "parrot", "--harness", "echo")
        echo = shell.data("ask", "@parrot", "hello", "--no-wait")["flightId"]
        refused = shell.type("wake", "@parrot")
        assert refused.returncode != 0
        assert "try: scout resume" in refused.stderr

        # What runs may finish. The pause outlives the daemon.
        (shell.folder / "go").touch()
        eventually(lambda: outcome(shell, running)[0] == "completed")
        shell.say("restart")
        assert "low battery" in shell.say("status")
        assert outcome(shell, echo)[0] == "queued"
        assert "low battery" in outcome(shell, echo)[1]

        assert "resumed" in shell.say("resume")
        eventually(lambda: outcome(shell, echo)[0] == "completed")
        eventually(lambda: outcome(shell, asked["flightId"])[0] == "completed")
        assert "paused" not in shell.say()


def test_pause_now_interrupts_what_runs_and_says_how_to_go_on(tmp_path: Path) -> None:
    with a_shell() as shell:
        start_daemon(shell)
        sleeper(shell, "night")
        flight = shell.data("ask", "@night", "work", "--no-wait")["flightId"]
        eventually(lambda: outcome(shell, flight)[0] == "running")
        told = shell.say("pause", "--now")
        again = next(line for line in told.splitlines() if flight in line)
        assert outcome(shell, flight) == ("cancelled", "interrupted: Scout was paused")
        (shell.folder / "go").touch()
        shell.say("resume")
        retry = again.partition("scout ")[2].split()
        answer = shell.data(*retry)["flightId"]
        eventually(lambda: outcome(shell, answer)[0] == "completed")
