"""What an agent asks a person, and what the person answers, is read by those two and by nobody else."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.api.streams import Stream
from tests.daemon.daemons import Daemon, daemon, eventually

pytestmark = pytest.mark.slow

QUESTION = "Which password opens the vault of nightingales?"
ANSWER = "hunter2-nightingale"
SURFACES = (
    "/v1/attention",
    "/v1/attention?all=true",
    "/v1/attention?raised=true&all=true",
    "/v1/now",
    "/v1/brief",
    "/v1/log",
    "/v1/log?newest=true",
    "/v1/search?query=nightingale",
    "/v1/search?query=nightingales",
    "/v1/flights",
    "/v1/work",
    "/v1/inbox",
    "/v1/messages?to=@asker",
    "/v1/conversations",
    "/v1/latest",
    "/v1/agents/@asker/feed",
    "/v1/agents/@asker",
    "/v1/agents",
    "/v1/topology",
    "/v1/status",
    *(f"{path}at=now" for path in ("/v1/attention?all=true&", "/v1/now?", "/v1/flights?", "/v1/work?")),
    *(f"{path}?at=now" for path in ("/v1/agents", "/v1/agents/@asker", "/v1/questions", "/v1/sessions")),
)


def token(daemon: Daemon, **what: Any) -> str:
    reply = daemon.call("POST", "/v1/tokens", what)
    assert reply.status == 201, reply.body
    return str(reply.json["secret"])


def everything(daemon: Daemon, secret: str, *more: str) -> str:
    """All that a credential can read over HTTP."""
    return "\n".join(
        daemon.call("GET", path, token=secret).body.decode("utf-8", "replace") for path in (*SURFACES, *more)
    )


def leaks(text: str) -> list[str]:
    """What of the question or the answer stands in a text, with some words around it."""
    return [text[max(one.start() - 200, 0) : one.end() + 50] for one in re.finditer("nightingale", text)]


@pytest.mark.rows("R7-10")
@pytest.mark.parametrize("about", ["a flight", "a work item"])
def test_a_question_and_its_answer_are_private(tmp_path: Path, about: str) -> None:
    with daemon(tmp_path / "home") as scout:
        asker, boss = scout.register("asker"), scout.register("boss")
        assert scout.call("POST", "/v1/endpoints", {}, token=asker["token"]).status == 201
        others = {
            "the agent that asked for the work": boss["token"],
            "another agent": scout.register("other")["token"],
            "a guest": token(scout, kind="guest"),
            "a node": token(scout, kind="node", node="elsewhere"),
            "a connector": token(scout, kind="connector", connector="telegram"),
        }

        # The boss gives the asker something to do; in the middle of it the asker needs the person.
        wish: dict[str, Any] = {"question": QUESTION}
        if about == "a flight":
            ask = {"to": "@asker", "body": "open the vault"}
            flight = scout.call("POST", "/v1/asks", ask, token=boss["token"]).json["flightId"]
            started = scout.call("POST", f"/v1/flights/{flight}/start", {}, token=asker["token"])
            assert started.status == 200, started.body
            wish["flightId"] = thing = flight
        else:
            work = {"title": "open the vault", "ownerId": "@asker"}
            wish["workItemId"] = thing = scout.call("POST", "/v1/work", work, token=boss["token"]).json["id"]
        raised = scout.call("POST", "/v1/attention/need", wish, token=asker["token"])
        assert raised.status == 201, raised.body
        item = raised.json["id"]
        where = "flights" if about == "a flight" else "work"
        about_it = (f"/v1/attention/{item}", f"/v1/why/{item}", f"/v1/why/{thing}", f"/v1/{where}/{thing}")

        # The person reads it, the asker reads it, and nobody else learns a word of it.
        assert QUESTION in everything(scout, scout.token, *about_it)
        assert QUESTION in everything(scout, asker["token"], *about_it)
        for who, secret in others.items():
            assert not leaks(everything(scout, secret, *about_it)), who

        # The same of the answer.
        answered = scout.call("POST", f"/v1/attention/{item}/answer", {"answer": ANSWER})
        assert answered.status == 200, answered.body
        read = eventually(lambda: scout.call("GET", f"/v1/attention/{item}", token=asker["token"]).json)
        assert read["answer"] == ANSWER
        for who, secret in others.items():
            assert not leaks(everything(scout, secret, *about_it)), who
            if who != "the agent that asked for the work":
                continue
            with Stream(scout, "?after=0", token=secret) as stream:
                told = [stream.next()]
                while "resumed" not in json.dumps(told[-1].data) and '"resume"' not in json.dumps(
                    told[-1].data
                ):
                    told.append(stream.next())
            assert not leaks(json.dumps([one.data for one in told]))
        needs = json.loads(scout.call("GET", "/v1/now", token=boss["token"]).body)["needsMe"]
        assert needs == []
        decide = scout.call("POST", f"/v1/attention/{item}/dismiss", {}, token=boss["token"])
        assert decide.status == 404, decide.body
