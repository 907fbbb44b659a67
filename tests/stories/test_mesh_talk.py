"""Two machines talk: real daemons, a real nats-server, and what a person types."""

import json
from pathlib import Path

import pytest

from tests.daemon.daemons import eventually
from tests.stories.mesh_machines import Machine, kill_server, two_machines

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def write_gate(folder: Path, name: str) -> str:
    """A program that answers once a file is there."""
    program = folder / f"{name}.sh"
    program.write_text(f"#!/bin/sh\nuntil test -e '{folder}/{name}.open'; do sleep 0.05; done\ncat\n")
    program.chmod(0o755)
    return str(program)


def test_messages_asks_and_answers_go_both_ways(tmp_path: Path) -> None:
    with two_machines(tmp_path) as (one, two):
        two.say("agent", "register", "hudson", "--harness", "echo")
        one.say("agent", "register", "arc", "--harness", "echo")
        one.knows("@hudson")
        two.knows("@arc")
        assert one.say("ask", "@hudson", "how are you?") == "how are you?\n"
        assert two.say("ask", "@arc.node:" + one.data("status")["node"], "and you?") == "and you?\n"
        receipt = one.data("ask", "@hudson", "again", "--no-wait")
        view = one.find_flight(receipt["flightId"], "completed")
        assert view["mesh"]["node"] == "two"
        assert view["mesh"]["state"] in ("accepted", "delivered")
        sent = one.data("send", "@hudson", "no answer needed")
        assert sent["deliveries"][0]["mesh"]["node"] == "two"

        def state() -> bool:
            shown = one.data("message", "get", sent["messageId"])
            return shown["deliveries"][0]["mesh"]["state"] in ("accepted", "delivered")

        eventually(state)
        assert "was accepted by node two" in one.say("why", sent["messageId"])
        assert "was accepted" in two.say("why", sent["messageId"])
        assert "clean" in one.say("verify")
        assert "clean" in two.say("verify")


def test_a_killed_daemon_loses_no_flight(tmp_path: Path) -> None:
    with two_machines(tmp_path) as (one, two):
        gate = write_gate(tmp_path, "gate")
        two.say("agent", "register", "slow", "--harness", "command", "--command", gate)
        two.say("agent", "register", "hudson", "--harness", "echo")
        one.knows("@slow")
        one.knows("@hudson")
        asked = one.data("ask", "@slow", "keep this", "--no-wait")
        one.find_flight(asked["flightId"], "running")
        one.kill()
        (tmp_path / "gate.open").touch()
        two.find_flight(asked["flightId"], "completed")
        one.start()
        assert "keep this" in one.find_flight(asked["flightId"], "completed")["output"]

        two.kill()
        waiting = one.data("ask", "@hudson", "when you are back", "--if-unreachable", "queue", "--no-wait")
        two.start()
        done = one.find_flight(waiting["flightId"], "completed")
        assert done["output"] == "when you are back"
        _check_once(one, two, asked["flightId"], waiting["flightId"])


def _check_once(one: Machine, two: Machine, *flights: str) -> None:
    """Each flight ended once on each machine."""
    for machine in (one, two):
        log = [json.loads(line) for line in machine.say("log", "--json", "--limit", "200").splitlines()]
        items = [item for page in log for item in page.get("items", [page])]
        for flight in flights:
            ends = [
                item
                for item in items
                if item["type"] == "collab.flight.completed" and item["payload"]["record"]["id"] == flight
            ]
            assert len(ends) == 1, (machine.folder, flight)


def test_a_killed_server_comes_back_and_what_waited_arrives(tmp_path: Path) -> None:
    with two_machines(tmp_path) as (one, two):
        two.say("agent", "register", "hudson", "--harness", "echo")
        one.knows("@hudson")
        kill_server(one)
        one.sees("two", "unreachable")
        sent = one.data("ask", "@hudson", "through the outage", "--if-unreachable", "queue", "--no-wait")
        assert "when the node is back" in sent["reason"]
        one.say("mesh", "up")
        done = one.find_flight(sent["flightId"], "completed")
        assert done["output"] == "through the outage"


def test_a_machine_that_is_away_refuses_waits_and_expires(tmp_path: Path) -> None:
    with two_machines(tmp_path, "[periods]\nqueueExpiry = 6\n") as (one, two):
        two.say("agent", "register", "hudson", "--harness", "echo")
        one.knows("@hudson")
        two.stop()
        one.sees("two", "unreachable")
        refused = one.type("ask", "@hudson", "now")
        assert refused.returncode == 5
        assert "peer_unreachable: node two is unreachable since" in refused.stderr
        assert "try: scout ask --if-unreachable queue @hudson now" in refused.stderr
        kept = one.data("send", "@hudson", "for later")
        assert "sent when the node is back" in " ".join(kept["notes"])
        waiting = one.data("ask", "@hudson", "never", "--if-unreachable", "queue", "--no-wait")
        failed = one.find_flight(waiting["flightId"], "failed")
        assert failed["error"]["code"] == "peer_unreachable"
        assert "unreachable" in one.say("inbox")
