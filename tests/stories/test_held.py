"""What waits for a person is in one list with its command; what waits for an agent is in that agent's inbox."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon, daemon, eventually

pytestmark = pytest.mark.slow


def needs(shell: Shell) -> list[str]:
    return [str(one["title"]) for one in shell.data("attention")["items"]]


@pytest.mark.rows("R3.3-12")
def test_the_flights_of_a_manual_agent_are_one_item_until_a_person_starts_it(tmp_path: Path) -> None:
    with a_shell() as shell:
        scout = Daemon(shell.home, start_daemon(shell))
        scout.register("hand", harness="echo", wakePolicy="manual")
        first = shell.data("ask", "@hand", "one", "--no-wait")
        assert (first["state"], first["phase"]) == ("queued", "held")
        [title] = needs(shell)
        assert title.endswith("is started by hand: 1 ask waits")
        events = scout.call("GET", "/v1/log?family=collab.attention&newest=true").json["items"]

        second = shell.data("ask", "@hand", "two", "--no-wait")
        [title] = needs(shell)
        assert title.endswith("is started by hand: 2 asks wait")
        again = scout.call("GET", "/v1/log?family=collab.attention&newest=true").json["items"]
        assert [one["id"] for one in again] == [one["id"] for one in events]  # no second fact
        assert "is started by hand" in shell.say()
        assert "started by hand" in shell.say("why", second["flightId"])

        [item] = shell.data("attention")["items"]
        command = next(line for line in item["body"].splitlines() if line.startswith("try: "))
        shell.say(*shlex.split(command)[2:])
        for asked in (first, second):
            eventually(lambda asked=asked: done(scout, asked["flightId"]))
        assert needs(shell) == []


def done(scout: Daemon, flight: str) -> bool:
    return scout.call("GET", f"/v1/flights/{flight}").json["state"] == "completed"


def test_cancelling_the_last_held_ask_takes_the_item_away(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as scout:
        scout.register("hand", harness="echo", wakePolicy="manual")
        asked = [ask(scout, "@hand", text) for text in ("one", "two")]
        for left, flight in zip(("1 ask waits", ""), asked, strict=True):
            assert scout.call("POST", f"/v1/flights/{flight}/cancel", {}).status == 200
            titles = [one["title"] for one in scout.call("GET", "/v1/attention").json["items"]]
            assert [left in title for title in titles] == ([True] if left else [])


def ask(scout: Daemon, to: str, body: str, **more: Any) -> str:
    reply = scout.call("POST", "/v1/asks", {"to": to, "body": body}, **more)
    assert reply.status < 300, reply.body
    return str(reply.json["flightId"])


def test_a_flight_that_waits_for_an_agent_is_in_that_agents_inbox_and_brief(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as scout:
        worker, oracle = scout.register("worker")["token"], scout.register("oracle")["token"]
        assert scout.call("POST", "/v1/endpoints", {}, token=worker).status == 201
        flight = ask(scout, "@worker", "build the thing")
        path = f"/v1/flights/{flight}"
        assert scout.call("POST", f"{path}/start", {}, token=worker).status == 200
        blocked = {"on": "actor", "ref": "@oracle", "reason": "which colour?"}
        assert scout.call("POST", f"{path}/wait", blocked, token=worker).status == 200

        [mail] = scout.call("GET", "/v1/inbox", token=oracle).json["items"]
        assert "waits for you: which colour?" in mail["message"]["body"]
        assert scout.call("GET", path, token=oracle).status == 200
        brief = scout.call("GET", "/v1/brief", token=oracle).json
        assert [one["id"] for one in brief["awaited"]] == [flight]
        assert any("worker" in one for one in brief["waitingForMe"])

        assert scout.call("POST", f"{path}/resume", {}, token=worker).status == 200
        assert scout.call("GET", "/v1/brief", token=oracle).json["awaited"] == []


def test_a_flight_that_waits_for_the_operator_is_in_what_needs_them(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as scout:
        worker = scout.register("worker")["token"]
        assert scout.call("POST", "/v1/endpoints", {}, token=worker).status == 201
        path = f"/v1/flights/{ask(scout, '@worker', 'deploy')}"
        scout.call("POST", f"{path}/start", {}, token=worker)
        blocked = {"on": "condition", "ref": "a key", "reason": "I have no key"}
        assert scout.call("POST", f"{path}/wait", blocked, token=worker).status == 200
        [item] = scout.call("GET", "/v1/now").json["needsMe"]
        assert item["title"].endswith("waits for you: I have no key")
        assert scout.call("POST", f"{path}/resume", {}, token=worker).status == 200
        assert scout.call("GET", "/v1/now").json["needsMe"] == []


@pytest.mark.rows("R2.1-26")
def test_a_card_of_an_agent_lasts_a_day_and_reaches_the_session_that_made_it(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as scout:
        maker = scout.register("maker")["token"]
        card = scout.call("POST", "/v1/cards", {}, token=maker).json
        assert (card["maxUses"], card["expiresAt"] is not None) == (1, True)
        assert scout.call("POST", "/v1/cards", {}).json["expiresAt"] is None  # a person's stays
        short = scout.call("POST", "/v1/cards", {"expiresIn": 0.01}, token=maker).json
        late = eventually(lambda: get_refusal(scout, short["id"]))
        assert late["code"] == "expired_card"

        session = scout.call("POST", "/v1/sessions", {"agent": "@maker", "harness": "echo"}).json
        wish = {"agent": "@maker", "replyToSessionId": session["id"]}
        bound = scout.call("POST", "/v1/cards", wish).json
        sent = scout.call("POST", "/v1/messages", {"to": bound["id"], "body": "hello"}).json
        delivery = scout.call("GET", f"/v1/deliveries/{sent['deliveries'][0]['deliveryId']}").json
        assert delivery["sessionId"] == session["id"]


def get_refusal(scout: Daemon, card: str) -> Any:
    reply = scout.call("POST", "/v1/messages", {"to": card, "body": "hello"})
    return reply.json if reply.status == 410 else None


def test_an_agent_that_does_not_answer_is_unreachable_and_not_offline(tmp_path: Path) -> None:
    with daemon(tmp_path / "home", SCOUT_PERIODS_ONLINE_WITHIN="0.05") as scout:
        silent = scout.register("silent")["token"]
        assert scout.call("POST", "/v1/endpoints", {}, token=silent).status == 201
        told = eventually(lambda: problem(scout, "@silent"))
        assert (told["code"], told["unreachable"]) == ("target_offline", True)
        assert "is unreachable" in told["message"]
        assert "offline" not in told["message"]
        queue = next(one for one in told["remedies"] if one["operation"] == "ask")
        queued = scout.call("POST", "/v1/asks", queue["parameters"])
        assert queued.status < 300, queued.body
        nothing = scout.register("nothing")
        assert nothing["token"]
        assert not problem(scout, "@nothing")["unreachable"]


def problem(scout: Daemon, to: str) -> Any:
    reply = scout.call("POST", "/v1/asks", {"to": to, "body": "hello"})
    return reply.json if reply.status == 503 else None
