"""Two machines talk: real daemons, a real nats-server, and what a person types."""

import hashlib
import json
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.daemon.daemons import eventually
from tests.stories.mesh_machines import Machine, two_machines

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def write_gate(folder: Path, name: str) -> str:
    """A program that answers once a file is there."""
    program = folder / f"{name}.sh"
    program.write_text(f"#!/bin/sh\nuntil test -e '{folder}/{name}.open'; do sleep 0.05; done\ncat\n")
    program.chmod(0o755)
    return str(program)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Machine, Machine]]:
    """Two machines for the tests that only add to them: each uses names that no other uses."""
    with two_machines(tmp_path_factory.mktemp("mesh")) as machines:
        yield machines


@pytest.mark.rows("R8.a-1", "R8.e-1")
def test_messages_asks_and_answers_go_both_ways(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
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


@pytest.mark.rows("R0-4", "R0-5", "R1.1-13", "R1.3-18")
def test_conversations_are_the_same_on_both_machines_and_equal_names_are_two_agents(
    pair: tuple[Machine, Machine],
) -> None:
    one, two = pair
    one.say("agent", "register", "finn")
    two.say("agent", "register", "greta")
    one.knows("@greta")
    two.knows("@finn")
    there = one.data("send", "@greta", "hello", "--as", "@finn")["conversationId"]
    back = two.data("send", "@finn", "hello", "--as", "@greta")["conversationId"]
    assert there == back
    channels = {machine.data("channel", "create", "build")["id"] for machine in pair}
    assert len(channels) == 1
    for machine in pair:
        machine.say("agent", "register", "twin")
    one.knows("@twin.node:two")
    twins = [machine.data("show", "@twin")["id"] for machine in pair]
    assert twins == [one.data("resolve", f"@twin{node}")["agentId"] for node in ("", ".node:two")]
    assert twins[0] != twins[1] == two.data("resolve", "@twin")["agentId"]


@pytest.mark.rows("R8.a-1", "R8.e-3")
def test_a_wait_and_a_stream_follow_a_flight_of_another_machine(
    pair: tuple[Machine, Machine], tmp_path: Path
) -> None:
    one, two = pair
    with ThreadPoolExecutor(2) as threads:
        gate = write_gate(tmp_path, "gate")
        two.say("agent", "register", "slow", "--harness", "command", "--command", gate)
        one.knows("@slow")
        flight = one.data("ask", "@slow", "worth the wait", "--no-wait")["flightId"]
        one.find_flight(flight, "running")
        short = one.type("flight", "wait", flight, "--timeout", "0.5")
        assert short.returncode != 0, "it still runs"
        waiting = threads.submit(one.type, "flight", "wait", flight, "--timeout", "60", within=90)
        words = ("watch", "--flight", flight, "--family", "collab.flight.completed", "--after", "0")
        stream = threads.submit(one.type, *words, "--count", "1", "--json", within=90)
        (tmp_path / "gate.open").touch()
        assert "worth the wait" in waiting.result(90).stdout
        event = json.loads(stream.result(90).stdout)
        assert (event["type"], event["payload"]["record"]["id"]) == ("collab.flight.completed", flight)


@pytest.mark.rows("R8.a-1")
def test_answers_go_where_the_asker_says_on_another_machine(pair: tuple[Machine, Machine]) -> None:
    one, two = pair
    one.say("agent", "register", "ann")
    two.say("agent", "register", "holly")
    two.say("agent", "register", "parrot", "--harness", "echo")
    for address in ("@holly", "@parrot"):
        one.knows(address)
    two.knows("@ann")
    sent = one.data("send", "@holly", "tell ann", "--reply-to", "@ann")["messageId"]
    eventually(lambda: "tell ann" in two.say("inbox", "--as", "@holly"))
    two.say("reply", "--to", sent, "ann, this is for you", "--as", "@holly")
    eventually(lambda: "ann, this is for you" in one.say("inbox", "--as", "@ann"))
    one.say("ask", "@parrot", "copied", "--reply-to", "@ann", "--reply-mode", "notify", "--no-wait")
    eventually(lambda: "copied" in one.say("inbox", "--as", "@ann"))


@pytest.mark.rows("R8.t-4", "R8.e-6")
def test_files_broadcasts_questions_and_shared_items_reach_the_other_machine(
    pair: tuple[Machine, Machine], tmp_path: Path
) -> None:
    one, two = pair
    two.say("agent", "register", "rita")
    one.say("agent", "register", "olga")
    one.knows("@rita")
    two.knows("@olga")
    report = tmp_path / "report.txt"
    report.write_text("all green\n")
    one.say("send", "@rita", "see this", "--attach", str(report))
    stored = hashlib.sha256(report.read_bytes()).hexdigest()
    eventually(lambda: two.type("attachment", "get", stored).stdout == "all green\n")
    assert "two: " in " ".join(one.data("send", "--broadcast", "--all-nodes", "stop at noon")["notes"])
    question = one.data("question", "create", "@rita", "which port?", "--as", "@olga")["id"]
    eventually(lambda: two.type("question", "answer", question, "8080", "--as", "@rita").returncode == 0)
    eventually(lambda: one.data("question", "show", question)["state"] == "answered")
    assert "stop at noon" in two.say("inbox", "--as", "@rita")
    two.say("mesh", "share")
    try:
        item = two.data("need", "deploy now?", "--as", "@rita", "--no-wait")["id"]
        eventually(lambda: "deploy now?" in one.say("attention", "list"))
        one.say("answer", item, "yes, at noon")
        eventually(lambda: two.data("attention", "show", item)["state"] == "answered")
    finally:
        two.say("mesh", "share", "--off")


@pytest.mark.rows("R8.e-4")
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


@pytest.mark.rows("R8.e-4", "R1.3-30", "R3.5-19")
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
        told = json.loads(one.type("resolve", "@nobody.node:two", "--json").stdout)["error"]
        assert (told["code"], told["node"]) == ("peer_unreachable", "two")
        assert told["lastSeen"] < told["since"]
        kept = one.data("send", "@hudson", "for later")
        assert "sent when the node is back" in " ".join(kept["notes"])
        waiting = one.data("ask", "@hudson", "never", "--if-unreachable", "queue", "--no-wait")
        failed = one.find_flight(waiting["flightId"], "failed")
        assert failed["error"]["code"] == "peer_unreachable"
        assert "unreachable" in one.say("inbox")
