"""Who is there: an agent that falls silent ends in an outcome, and two sessions of one agent answer each its own."""

from pathlib import Path
from typing import Any

import pytest

from tests.daemon.daemons import Daemon, daemon, eventually

pytestmark = pytest.mark.slow

DAY = 86_400


def ask(scout: Daemon, **what: Any) -> str:
    reply = scout.call("POST", "/v1/asks", what)
    assert reply.status < 300, reply.body
    return str(reply.json["flightId"])


def flight(scout: Daemon, ident: str) -> Any:
    return scout.call("GET", f"/v1/flights/{ident}").json


def take(scout: Daemon, token: str) -> list[str]:
    """What an agent takes from its inbox; it has read it then."""
    items = scout.call("POST", "/v1/inbox/claim", {"wait": 20}, token=token).json["items"]
    taken = [one["deliveryId"] for one in items]
    assert scout.call("POST", "/v1/inbox/ack", {"deliveryIds": taken}, token=token).status == 200
    return [one["message"]["body"] for one in items]


@pytest.mark.rows("R3.4-6")
def test_an_agent_that_falls_silent_holds_the_move_and_its_asker_hears_the_end(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    settings = {"SCOUT_TEST_CLOCK_FILE": str(clock), "SCOUT_PERIODS_GRACE": "0.1"}
    with daemon(tmp_path / "home", **settings) as scout:
        worker = scout.register("worker")
        assert scout.call("POST", "/v1/endpoints", {}, token=worker["token"]).status == 201
        taken = ask(scout, to="@worker", body="build it")
        assert take(scout, worker["token"]) == ["build it"]
        assert flight(scout, taken)["state"] == "running"
        waiting = ask(scout, to="@worker", body="then test it")

        # It says nothing more. What it took waits for it by name; what it did not take waits for it to come back.
        move(clock, 400)
        eventually(lambda: flight(scout, taken)["phase"] == "checking")
        move(clock, 500)
        silent = eventually(lambda: (one := flight(scout, taken))["state"] == "waiting" and one)
        assert silent["nextMoveOwnerId"] == worker["agent"]["id"]
        assert silent["reason"].startswith("no sign of life since")
        brief = scout.call("GET", "/v1/brief", token=worker["token"]).json
        assert taken in [one["id"] for one in brief["flights"]]
        held = eventually(lambda: (one := flight(scout, waiting))["phase"] == "held" and one)
        assert held["nextMoveOwnerId"]
        assert held["nextCheckAt"]

        # It never comes back: both end, and the asker is told with the next command.
        move(clock, 2 * DAY)
        for one in (taken, waiting):
            over = eventually(lambda one=one: (told := flight(scout, one))["state"] == "failed" and told)
            assert over["remedies"]
        told = [one["message"]["body"] for one in scout.call("GET", "/v1/inbox").json["items"]]
        assert sum("@worker failed" in one for one in told) == 2


def test_a_quiet_heartbeat_counts_at_once(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    with daemon(tmp_path / "home", SCOUT_TEST_CLOCK_FILE=str(clock)) as scout:
        token = scout.register("worker")["token"]
        ways = [
            scout.call("POST", "/v1/endpoints", {"model": model, "state": "idle"}, token=token).json["id"]
            for model in ("opus", "sonnet")
        ]

        def beat(way: str) -> None:
            assert scout.call("POST", f"/v1/endpoints/{way}/heartbeat", {}, token=token).status == 200

        # The endpoint that was heard from last is the one that is chosen, whichever came first.
        for way in (*ways, *ways):
            beat(way)
            chosen = scout.call("GET", "/v1/resolve?address=@worker").json
            assert chosen["endpointId"] == way, chosen

        # An endpoint that speaks every 80 seconds is never away, although 90 seconds are the limit.
        for seconds in (80, 160, 240, 320):
            move(clock, seconds)
            found = scout.call("GET", "/v1/agents/@worker").json
            assert found["status"] == "online", (seconds, found)
            for way in ways:
                beat(way)


def test_a_quiet_heartbeat_decides_which_of_two_agents_is_meant(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    with daemon(tmp_path / "home", SCOUT_TEST_CLOCK_FILE=str(clock)) as scout:
        made = [
            scout.call("POST", "/v1/agents", {"definitionId": "worker", "profile": profile}).json
            for profile in ("one", "two")
        ]
        ways = [
            scout.call("POST", "/v1/endpoints", {"state": "idle"}, token=one["token"]).json["id"]
            for one in made
        ]
        for seconds, beats in ((40, 0), (80, 0), (95, 1), (120, 0), (165, 1)):
            # The first was heard from 80 seconds after the start, and the second never again.
            move(clock, seconds)
            found = scout.call("GET", "/v1/resolve?address=@worker").json
            if beats:
                assert found.get("rule") == "only one online", (seconds, found)
                assert found["agentId"] == made[0]["agent"]["id"]
            else:
                beat = scout.call("POST", f"/v1/endpoints/{ways[0]}/heartbeat", {}, token=made[0]["token"])
                assert beat.status == 200


def test_a_card_has_expired_as_soon_as_its_time_is_over(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    with daemon(tmp_path / "home", SCOUT_TEST_CLOCK_FILE=str(clock)) as scout:
        token = scout.register("worker")["token"]
        card = scout.call("POST", "/v1/cards", {"expiresIn": 60}, token=token).json
        states = [card["state"]]
        for seconds in (59, 61):
            move(clock, seconds)
            shown = scout.call("GET", f"/v1/cards/{card['id']}", token=token).json
            (listed,) = scout.call("GET", "/v1/cards", token=token).json["items"]
            assert shown["state"] == listed["state"]
            states.append(shown["state"])
        assert states == ["active", "active", "expired"]


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_a_reply_that_names_nothing_answers_the_ask_of_the_session_that_replies(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    folder = tmp_path / "talkie"
    folder.mkdir()
    with daemon(tmp_path / "home") as scout:
        host = scout.call("POST", "/v1/tokens", {"kind": "host"}).json["secret"]
        one, two = (enrol(scout, host, folder, name) for name in ("n-1", "n-2"))
        assert one["agentId"] == two["agentId"]
        first = ask(scout, targetSessionId=one["session"]["id"], body="how many?")
        second = ask(scout, targetSessionId=two["session"]["id"], body="which colour?")
        assert take(scout, one["token"]) == ["how many?"]
        assert take(scout, two["token"]) == ["which colour?"]

        # Whoever answers first, each answer belongs to the ask of the session that gives it.
        sessions, answers = {"one": one, "two": two}, {"one": "twelve", "two": "blue"}
        for name in order:
            reply(scout, sessions[name], answers[name])
        assert flight(scout, first)["output"] == "twelve"
        assert flight(scout, second)["output"] == "blue"


def move(clock: Path, seconds: int) -> None:
    """The clock of the machine goes forward."""
    fresh = clock.with_suffix(".new")
    fresh.write_text(str(seconds))
    fresh.replace(clock)


def enrol(scout: Daemon, host: str, folder: Path, name: str) -> Any:
    """A session that a person opened in a folder."""
    given = {"cwd": str(folder), "harness": "claude", "nativeSessionId": name}
    reply = scout.call("POST", "/v1/sessions/enrol", given, token=host)
    assert reply.status == 201, reply.body
    return reply.json


def reply(scout: Daemon, session: Any, body: str) -> None:
    said = scout.call("POST", "/v1/replies", {"body": body}, token=session["token"])
    assert said.status < 300, said.body
