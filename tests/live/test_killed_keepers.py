"""The keeper of a program is killed: retiring its agent and stopping Scout still leave nothing running."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from scout.adapters.process.process_table import ProcessId, is_alive, list_processes
from tests.daemon.daemons import eventually
from tests.live.machine import Machine, a_machine, processes_in
from tests.live.test_sessions import build_shell, get_pid

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BOTH = ("claude", "codex")
# A child of the program that does not end when it is asked to.
STUBBORN = "touch began; trap '' TERM HUP INT; sleep 300 & wait; sleep 300"


@pytest.fixture
def machine() -> Generator[Machine]:
    with a_machine(*BOTH) as made:
        yield made


def working(machine: Machine, harness: str) -> tuple[str, str]:
    """A flight whose program runs a stubborn child, and its session."""
    talkie = machine.repository("talkie", harness)
    flight = machine.ask(talkie, f"{build_shell(harness, STUBBORN)} <<say never>>")
    machine.say("attention", "approve", machine.waits(flight)["id"])
    eventually((talkie / "began").exists)
    return flight, str(machine.flight(flight)["sessionId"])


def kill_keeper(machine: Machine, session: str) -> set[ProcessId]:
    """Kill the keeper of a session; everything that ran with it."""
    pid = get_pid(machine, session)
    run = {
        entry.identity for entry in list_processes().values() if pid in {entry.identity.pid, entry.session}
    }
    (keeper,) = [
        one.pid
        for one in run
        if b"keeper.py" in Path(f"/proc/{one.pid}/cmdline").read_bytes() and one.pid != pid
    ]
    os.kill(keeper, signal.SIGKILL)
    return run


@pytest.mark.parametrize("harness", BOTH)
def test_an_agent_can_be_retired(machine: Machine, harness: str) -> None:
    flight, session = working(machine, harness)
    run = kill_keeper(machine, session)
    machine.say("agent", "retire", "@talkie")
    assert machine.ended(flight)["state"] in ("failed", "cancelled")
    assert machine.data("session", "inspect", session)["state"] == "ended"
    eventually(lambda: not [one for one in run if is_alive(one)])
    eventually(
        lambda: not [pid for pid, words in processes_in(machine.folder).items() if "sleep" in str(words)]
    )


@pytest.mark.parametrize("harness", BOTH)
@pytest.mark.parametrize("when", ["during a turn", "between turns"])
def test_scout_can_be_stopped_with_its_sessions(machine: Machine, harness: str, when: str) -> None:
    if when == "during a turn":
        _, session = working(machine, harness)
    else:
        done = machine.ended(machine.ask(machine.repository("talkie", harness), "<<say hello>>"))
        session = str(done["sessionId"])
    kill_keeper(machine, session)
    machine.say("down", "--stop")
    assert processes_in(machine.folder) == {}
    machine.up()  # the end of the test stops it
    assert machine.data("flight", "list", "--open")["items"] == []
    again = machine.ended(machine.ask(machine.repository("talkie"), "<<say back again>>"))
    assert again["output"] == "back again"
