"""Tasks survive kill -9: of the daemon that serves them, and of the daemon that asked for them."""

import contextlib
import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from a2a.client import Client
from a2a.types import a2a_pb2

from scout.daemon import lock, start
from tests.a2a.stage import BINDINGS, Asker, Stage, play, say, send, staged
from tests.daemon.daemons import Daemon, daemon, environment, eventually

pytestmark = pytest.mark.slow  # daemons and the SDK
COMPLETED, WORKING = a2a_pb2.TASK_STATE_COMPLETED, a2a_pb2.TASK_STATE_WORKING


def kill_and_start(running: Daemon) -> None:
    """The daemon is killed without warning, and started again in the same folder."""
    os.kill(running.running.pid, signal.SIGKILL)
    eventually(lambda: not lock.is_held(str(running.home)))
    running.running, _ = start.start(str(running.home), environ=environment(running.home), timeout=60)


def waiting_program(fifo: Path) -> list[str]:
    """A program that answers with what is written to a pipe."""
    os.mkfifo(fifo)
    return ["cat", str(fifo)]


def get_task(ident: str) -> Callable[[Client], Any]:
    return lambda client: client.get_task(a2a_pb2.GetTaskRequest(id=ident))


@pytest.mark.rows("R4.5-5")
def test_a_task_is_true_after_kill_9_and_ends(tmp_path: Path) -> None:
    now = a2a_pb2.SendMessageConfiguration(return_immediately=True)
    with staged(tmp_path) as stage:
        url = stage.publish("slow", command=waiting_program(tmp_path / "answer"))
        begun = play(
            url, stage.guest, BINDINGS[0], lambda client: send(client, say("Go.", configuration=now))
        )
        eventually(lambda: play(url, stage.guest, BINDINGS[0], get_task(begun.id)).status.state == WORKING)
        kill_and_start(stage.daemon)
        url = stage.daemon.call("GET", "/v1/agents/@slow/publication").json["url"]
        for binding in BINDINGS:
            task = play(url, stage.guest, binding, get_task(begun.id))
            assert (task.status.state, task.context_id) == (WORKING, begun.context_id)
            assert [one.message_id for one in task.history] == ["m-1"]

        async def finish(client: Client) -> list[a2a_pb2.StreamResponse]:
            stream = client.subscribe(a2a_pb2.SubscribeToTaskRequest(id=begun.id))
            first = await anext(stream)
            (tmp_path / "answer").write_text("it is done")
            return [first, *[event async for event in stream]]

        events = play(url, stage.guest, BINDINGS[1], finish)
        assert events[-1].status_update.status.state == COMPLETED
        done = play(url, stage.guest, BINDINGS[0], get_task(begun.id))
        assert done.artifacts[0].parts[0].text == "it is done"


# -- two daemons ---------------------------------------------------------------------------------------


class Pair:
    """One daemon that publishes agents, and one that has them as its own."""

    def __init__(self, folder: Path, there: Stage, here: Daemon) -> None:
        self.folder, self.there, self.here = folder, there, here
        self.credential = folder / "credential"
        self.credential.write_text(there.guest)
        self.credential.chmod(0o600)

    def register(self, name: str, url: str) -> None:
        self.here.register(name, transport="a2a", url=url, credentialFile=str(self.credential))

    def ask(self, name: str, body: str) -> str:
        reply = self.here.call("POST", "/v1/asks", {"to": f"@{name}", "body": body})
        assert reply.status == 201, reply.body
        return str(reply.json["flightId"])

    def flight(self, ident: str) -> Any:
        return self.here.call("GET", f"/v1/flights/{ident}").json

    def reaches(self, ident: str, state: str) -> Any:
        """The flight once it is in this state."""

        def look() -> Any:
            found = self.flight(ident)
            return found if found["state"] == state else None

        return eventually(look)

    def list_there(self) -> list[str]:
        """The states of the flights of the other daemon, newest first."""
        return [one["state"] for one in self.there.daemon.call("GET", "/v1/flights").json["items"]]


@pytest.fixture
def pair(tmp_path: Path) -> Generator[Pair]:
    with contextlib.ExitStack() as stack:
        for name in ("there", "here"):
            (tmp_path / name).mkdir()
        there = stack.enter_context(staged(tmp_path / "there"))
        here = stack.enter_context(daemon(tmp_path / "here" / "home"))
        yield Pair(tmp_path, there, here)


@pytest.mark.rows("R4.5-6")
def test_an_agent_of_another_system_is_asked_like_any_other(pair: Pair) -> None:
    pair.register("wright", pair.there.publish("echoes", harness="echo"))
    done = pair.reaches(pair.ask("wright", "hello"), "completed")
    assert (done["output"], done["harnessObserved"]) == ("hello", "a2a")
    shown = pair.here.call("GET", "/v1/agents/@wright").json
    assert [one["transport"] for one in shown["endpoints"]] == ["a2a"]
    failed = pair.reaches(pair.ask("wright", "!fail no luck"), "failed")
    assert failed["error"]["message"].endswith("no luck")
    hanging = pair.ask("wright", "!hang")
    pair.reaches(hanging, "running")
    assert pair.here.call("POST", f"/v1/flights/{hanging}/cancel", {}).status == 200
    eventually(lambda: pair.list_there()[0] == "cancelled")


def test_its_question_waits_for_a_person_and_the_answer_goes_back(pair: Pair) -> None:
    pair.register("painter", pair.there.publish("asker"))
    with Asker(pair.there, pair.there.daemon.make_token("@asker")):
        flight = pair.ask("painter", "Paint the shed.")
        pair.reaches(flight, "waiting")
        (item,) = pair.here.call("GET", "/v1/attention").json["items"]
        assert (item["kind"], item["title"]) == ("question", "Which colour?")
        kill_and_start(pair.here)
        assert pair.here.call("POST", f"/v1/attention/{item['id']}/answer", {"answer": "blue"}).status == 200
        assert pair.reaches(flight, "completed")["output"] == "painted it blue"
    assert pair.list_there() == ["completed"]


@pytest.mark.rows("R4.5-6")
def test_a_task_is_followed_after_kill_9_of_the_daemon_that_asked(pair: Pair) -> None:
    fifo = pair.folder / "answer"
    pair.register("slow", pair.there.publish("slow", command=waiting_program(fifo)))
    flight = pair.ask("slow", "Go.")
    pair.reaches(flight, "running")
    kill_and_start(pair.here)
    eventually(lambda: pair.list_there() == ["running"])
    fifo.write_text("it is done")
    assert pair.reaches(flight, "completed")["output"] == "it is done"
    assert pair.list_there() == ["completed"]


def test_a_credential_that_is_not_accepted_needs_the_operator(pair: Pair) -> None:
    pair.register("wright", pair.there.publish("echoes", harness="echo"))
    pair.credential.write_text("sct_nonsense")
    failed = pair.reaches(pair.ask("wright", "hello"), "failed")
    assert "does not accept the credential (HTTP 401)" in failed["error"]["message"]
    (item,) = pair.here.call("GET", "/v1/attention").json["items"]
    assert item["title"] == "a2a: its login is missing"
