"""`scout pause` while the real Claude Code and Codex work: they finish, nothing starts, and `resume` continues."""

from collections.abc import Generator

import pytest

from tests.daemon.daemons import eventually
from tests.live.machine import DIALECTS, Machine, a_machine

# The first to come here installs the programs.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(params=["claude", "codex"])
def harness(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def machine(harness: str) -> Generator[Machine]:
    with a_machine(harness) as made:
        yield made


def running(machine: Machine, harness: str, flight: str) -> bool:
    """Whether the model has been called for a flight's turn."""
    return machine.flight(flight)["state"] == "running" and bool(machine.model.of(DIALECTS[harness]))


def test_a_pause_lets_the_turn_end_and_holds_the_next_ask(machine: Machine, harness: str) -> None:
    talkie = machine.repository("talkie", harness)
    first = machine.ask(talkie, "First. <<stall 170>> ++ <<say one>>")
    eventually(lambda: running(machine, harness, first))
    assert "turns running: 1" in machine.say("pause", "--reason", "low battery")

    # A new ask is accepted, waits, and the person reads why and what continues it.
    asked = machine.type("ask", "@talkie", "Second. <<say two>>", "--no-wait")
    assert "asked @talkie" in asked.stdout
    assert "because: paused since" in asked.stderr
    assert "(low battery): it starts after `scout resume`" in asked.stderr
    second = machine.data("flight", "list")["items"][0]["id"]

    # The turn that runs ends as always.
    with machine.model.hurrying():
        done = machine.ended(first)
    assert (done["state"], done["output"]) == ("completed", "one")

    # Nothing is started for the second, not by a restart of the daemon either.
    machine.say("restart")
    machine.up()
    waits = machine.flight(second)
    assert (waits["state"], "low battery" in waits["reason"]) == ("queued", True)
    assert not any("Second." in turn for turn in machine.heard(harness))
    wake = machine.type("wake", "@talkie")
    assert "try: scout resume" in wake.stderr
    assert wake.returncode != 0

    machine.say("resume")
    assert machine.ended(second, 90)["output"] == "two"
    assert any("First." in turn for turn in machine.heard(harness)), "the same conversation continues"


def test_a_pause_now_interrupts_the_program_and_its_retry_is_answered(machine: Machine, harness: str) -> None:
    talkie = machine.repository("talkie", harness)
    flight = machine.ask(talkie, "Long. <<stall 170>> ++ <<say done>>")
    eventually(lambda: running(machine, harness, flight))
    told = machine.say("pause", "--now")
    (again,) = [line for line in told.splitlines() if flight in line]
    over = machine.ended(flight)
    assert (over["state"], over["reason"]) == ("cancelled", "interrupted: Scout was paused")

    retry = machine.data(*again.partition("scout ")[2].split())["flightId"]
    assert machine.flight(retry)["state"] == "queued"
    calls = len(machine.model.of(DIALECTS[harness]))
    assert "no turn starts until you run scout resume" in machine.say("status")
    assert len(machine.model.of(DIALECTS[harness])) == calls
    with machine.model.hurrying():
        machine.say("resume")
        assert machine.ended(retry, 90)["output"] == "done"
