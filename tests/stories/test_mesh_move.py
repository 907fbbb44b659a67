"""An agent moves between two machines: real daemons, a real nats-server, and what a person types."""

from pathlib import Path

import pytest

from tests.daemon.daemons import eventually
from tests.stories.mesh_machines import Machine, two_machines
from tests.stories.test_mesh_talk import write_gate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def find_homes(agent: str, *machines: Machine) -> list[str]:
    """The names of the machines on which the agent lives, by their own records."""
    found: list[str] = []
    for machine in machines:
        shown = machine.data("show", agent)
        if shown["node"] == machine.data("status")["node"]:
            found.append(shown["node"])
    return found


@pytest.mark.rows("R8.m-1")
def test_an_agent_moves_away_works_there_and_comes_back(tmp_path: Path) -> None:
    with two_machines(tmp_path) as (one, two):
        home = one.data("status")["node"]
        arc = one.data("agent", "register", "arc", "--harness", "echo")["agent"]["id"]
        assert one.say("ask", "@arc", "here?") == "here?\n"
        one.say("alias", "set", "boss", "@arc")
        one.say("send", "@arc", "unread mail")
        gate = write_gate(tmp_path, "gate")
        one.say("agent", "register", "slow", "--harness", "command", "--command", gate)
        busy = one.data("ask", "@slow", "wait", "--no-wait")
        refused = one.type("agent", "move", "@slow", "--to", "two")
        assert refused.returncode == 7
        assert f"try: scout flight get --wait 60 {busy['flightId']}" in refused.stderr

        moved = one.say("agent", "move", "@arc", "--to", "two")
        assert "moved @arc to two" in moved
        assert "1 unread message" in moved
        assert "alias boss" in moved
        assert "sessions that stay here: ses_" in moved
        assert find_homes(arc, one, two) == ["two"]
        assert "moved to two" in one.say("who")
        assert "moved to node two" in one.type("show", "@arc").stderr
        for address in ("@arc", "@boss", f"@arc.node:{home}", arc):
            answer = one.say("ask", address, f"through {address}")
            assert answer.startswith(f"through {address}")
        assert two.say("ask", "@boss", "and here?").startswith("and here?")
        flight = one.data("ask", "@arc", "where?", "--no-wait")["flightId"]
        assert one.find_flight(flight, "completed")["mesh"]["node"] == "two"

        assert f"moved @arc to {home}" in two.say("agent", "move", "@arc", "--to", home)
        assert find_homes(arc, one, two) == [home]
        assert one.say("ask", "@arc", "home again?").startswith("home again?")
        assert two.say("ask", "@arc", "far away?").startswith("far away?")
        (tmp_path / "gate.open").touch()
        one.find_flight(busy["flightId"], "completed")
        for machine in (one, two):
            assert "clean" in machine.say("verify")


@pytest.mark.rows("R8.m-1")
def test_a_killed_daemon_leaves_the_agent_on_one_machine(tmp_path: Path) -> None:
    with two_machines(tmp_path) as (one, two):
        arc = one.data("agent", "register", "arc", "--harness", "echo", "--wake-policy", "manual")
        ident = arc["agent"]["id"]
        one.say("send", "@arc", "keep this")
        two.kill()  # node one has not noticed yet
        moving = one.data("agent", "move", "@arc", "--to", "two", "--wait", "0")
        assert not moving["arrived"]
        one.kill()
        two.start()
        one.start()
        eventually(lambda: find_homes(ident, one, two) == ["two"])

        def has_mail() -> bool:
            return two.say("inbox", "--as", "@arc").count("keep this") == 1

        eventually(has_mail)
        two.stop()
        one.sees("two", "unreachable")
        one.say("agent", "register", "bow", "--harness", "echo")
        away = one.type("agent", "move", "@bow", "--to", "two")
        assert away.returncode == 5
        assert "peer_unreachable: node two is unreachable since" in away.stderr


def test_a_guest_asks_once_it_is_granted(tmp_path: Path) -> None:
    with two_machines(tmp_path, guest=True) as (one, two):
        one.say("agent", "register", "hudson", "--harness", "echo")
        two.say("agent", "register", "arc", "--harness", "echo")
        two.knows("@hudson")
        one.knows("@arc")
        refused = two.data("ask", "@hudson", "please", "--no-wait")
        failed = two.find_flight(refused["flightId"], "failed")
        assert failed["error"]["code"] == "forbidden"
        path = one.data("show", "@hudson")["path"]
        one.say("grant", "add", "ask", "--node", "two", "--path", path)
        assert two.say("ask", "@hudson", "please").startswith("please")
        home = one.data("mesh", "status")["node"]
        moved = one.type("agent", "move", "@hudson", "--to", "two")
        assert "a node of the same operator" in moved.stderr
        assert home in [node["name"] for node in two.data("mesh", "nodes")["items"]]
