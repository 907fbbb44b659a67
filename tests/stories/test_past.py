"""A person looks back: what was open, who was online, what needed them, at any moment since the first."""

import random
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from scout.model.agent import Agent, Lifecycle
from scout.model.events.envelope import Changed
from scout.model.events.presence import AgentUpdated
from scout.store.database import connect
from scout.store.table import get_table
from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon, daemon, eventually
from tests.seeds import run_seed
from tests.store.facts import fact
from tests.stories.kill_points import kill

pytestmark = pytest.mark.slow


def last_event(shell: Shell) -> int:
    return int(shell.data("log", "--newest")["items"][-1]["seq"])


@pytest.mark.rows("R6.h-1", "R6.h-6")
def test_a_person_looks_back_at_the_command_line() -> None:
    with a_shell() as shell:
        start_daemon(shell)
        shell.say("agent", "register", "by-hand")
        shell.say("agent", "register", "parrot", "--harness", "echo")
        flight = shell.data("ask", "@by-hand", "count the words", "--if-unreachable", "queue")["flightId"]
        work = shell.data("work", "create", "Write the page")["id"]
        then = last_event(shell)
        shell.say("ask", "@parrot", "hello")
        shell.say("flight", "cancel", flight)
        shell.say("work", "start", work)

        assert shell.data("flight", "list", "--open")["items"] == []
        listed = shell.say("flight", "list", "--open", "--at", str(then))
        assert re.match(r"As it was at \d\d:\d\d:\d\d, event \d+\n", listed)
        assert "count the words" in listed
        assert [one["state"] for one in shell.data("flight", "list", "--at", str(then))["items"]] == [
            "queued"
        ]
        assert shell.data("flight", "get", flight, "--at", str(then))["state"] == "queued"
        assert shell.data("work", "list", "--at", str(then))["items"][0]["state"] == "open"
        assert shell.data("work", "show", work, "--at", str(then))["moment"]["seq"] == then
        status = {one["address"]: one["status"] for one in shell.data("who", "--at", str(then))["items"]}
        assert status == {"@by-hand": "offline", "@parrot": "offline"}
        assert shell.data("show", "@parrot", "--at", "now")["status"] == "online"
        assert shell.data("session", "list", "--at", str(then))["items"] == []
        assert len(shell.data("session", "list", "--at", "now")["items"]) == 1

        # `scout` alone, in all ways to name a moment.
        summary = shell.say("--at", str(then))
        assert "As it was" in summary
        assert "count the words" in summary
        assert "unread" not in summary
        time = shell.data("now", "--at", str(then))["at"]
        assert shell.data("now", "--at", time)["moment"]["seq"] >= then
        assert shell.data("now", "--at", "1 second ago")["moment"]["seq"] >= 1
        assert "moment" not in shell.data("now")

        told = shell.data("activity", "--buckets", "7")
        assert (len(told["counts"]), sum(told["counts"])) == (7, told["last"]["seq"])
        shown = shell.say("activity", "--buckets", "3")
        assert shown.startswith("history: ")
        assert "█" in shown


@pytest.mark.rows("R6.h-4")
@pytest.mark.parametrize("at", ["0", "999999", "2020-01-01", "2999-01-01T10:00", "1980-01-01T00:00:00Z"])
def test_a_moment_without_history_comes_with_one_that_works(at: str) -> None:
    with a_shell() as shell:
        start_daemon(shell)
        shell.say("agent", "register", "one")
        refused = shell.type("who", "--at", at)
        assert refused.returncode == 3
        assert "no_such_moment" in refused.stderr
        remedy = re.search(r"try: scout (.*?)(?:  #|$)", refused.stderr, re.MULTILINE)
        assert remedy is not None
        shell.say(*remedy[1].split())


@pytest.mark.rows("R6.h-1", "R6.h-3")
def test_an_agent_sees_of_the_past_what_it_may_read_now(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as scout:
        asker, other = scout.register("asker"), scout.register("other")
        assert scout.call("POST", "/v1/endpoints", {}, token=asker["token"]).status == 201
        ask = {"to": "@asker", "body": "the word is nightingale"}
        asked = scout.call("POST", "/v1/asks", ask).json
        needed = scout.call(
            "POST", "/v1/attention/need", {"question": "Which nightingale?"}, token=asker["token"]
        )
        assert needed.status in (200, 201), needed.body
        seq = scout.call("GET", "/v1/log?newest=true").json["items"][-1]["seq"]
        reply = {"inReplyTo": asked["flightId"], "body": "a nightingale, then"}
        answered = scout.call("POST", "/v1/replies", reply, token=asker["token"])
        assert answered.status in (200, 201), answered.body

        def read(path: str, secret: str = "") -> str:
            join = "&" if "?" in path else "?"
            return scout.call("GET", f"{path}{join}at={seq}", token=secret).body.decode()

        lists = [
            "/v1/now",
            "/v1/agents",
            "/v1/attention",
            "/v1/attention?all=true",
            "/v1/flights",
            "/v1/work",
        ]
        lists += ["/v1/questions", "/v1/sessions", "/v1/agents/@asker", f"/v1/flights/{asked['flightId']}"]
        assert "nightingale" in read("/v1/flights")
        assert "nightingale" in read("/v1/attention", asker["token"])
        for path in lists:
            assert "nightingale" not in read(path, other["token"]), path
        for message in (asked["messageId"], answered.json["messageId"]):
            assert scout.call("POST", f"/v1/messages/{message}/redact", {}).status == 200
        item = needed.json["id"]
        assert scout.call("GET", f"/v1/attention/{item}?at={seq}", token=other["token"]).status == 404
        for moment in (seq, "now"):
            flights = scout.call("GET", f"/v1/flights?at={moment}").json
            assert "nightingale" not in str(flights["items"])
            assert flights["moment"]["seq"] >= seq
        assert scout.call("GET", "/v1/activity", token=other["token"]).status == 403


@pytest.mark.rows("R6.h-2", "R6.h-4", "R6.h-5")
@pytest.mark.timeout(300)
def test_a_history_that_is_being_built_survives_kill_9(tmp_path: Path) -> None:
    chance = random.Random(run_seed())
    with a_shell() as shell:
        scout = Daemon(shell.home, start_daemon(shell))
        agent = shell.data("agent", "register", "dreamer")["agent"]["id"]
        shell.say("down")
        last = _change_state_often(shell.home / "scout.db", agent, 24_000)
        refused = 0
        for _ in range(4):
            scout = Daemon(shell.home, start_daemon(shell))
            progress = scout.call("GET", "/v1/status").json.get("history")
            if progress is not None:
                told = scout.call("GET", f"/v1/agents?at={last}")
                refused += told.status == 503 and told.json["code"] == "history_behind"
            more = chance.randrange(1000, 4000) + (progress["indexed"] if progress else 0)
            eventually(lambda scout=scout, more=more: _is_beyond(scout, more))
            kill(scout.running.pid)
        assert refused
        scout = Daemon(shell.home, start_daemon(shell))
        eventually(lambda: "history" not in scout.call("GET", "/v1/status").json, 120)
        for seq in sorted(chance.sample(range(last - 20_000, last), 20)):
            (shown,) = scout.call("GET", f"/v1/agents?at={seq}").json["items"]
            assert (shown["lifecycle"] == "sleeping") == bool(seq % 2)
        assert "clean: the tables match the log" in shell.say("verify")


def _is_beyond(scout: Daemon, seq: int) -> bool:
    progress = scout.call("GET", "/v1/status").json.get("history")
    return progress is None or progress["indexed"] >= seq


def _change_state_often(path: Path, agent_id: str, count: int) -> int:
    """Append events to the log, as an earlier version would have left them: asleep at odd numbers."""
    store = connect(path)
    agent: Agent | None = get_table(Agent).get(store, agent_id)
    assert agent is not None
    store.execute("BEGIN")
    last = store.execute("SELECT max(seq) FROM history_mark").fetchone()[0]
    for _ in range(count):
        asleep = Lifecycle.SLEEPING if (last + 1) % 2 else Lifecycle.ACTIVE
        last = fact(store, AgentUpdated, agent.id, Changed(record=replace(agent, lifecycle=asleep))).seq
    store.execute("COMMIT")
    store.close()
    return last
