"""The lifecycles over HTTP: which moves are accepted from which state, and what the log says of them."""

from typing import Any, NamedTuple

import pytest

from tests.daemon.daemons import Daemon, Reply

BODIES: dict[str, dict[str, str]] = {
    "wait": {"on": "actor", "ref": "operator", "reason": "which one?"},
    "complete": {"output": "done"},
    "fail": {"reason": "broken"},
    "answer": {"answer": "80"},
    "reopen": {"reason": "not yet"},
}


class Mover(NamedTuple):
    """One record, moved with one credential."""

    daemon: Daemon
    path: str
    token: str

    def move(self, name: str, **body: str) -> Reply:
        return self.daemon.call("POST", f"{self.path}/{name}", body or BODIES.get(name, {}), token=self.token)

    def moves(self, *names: str) -> str:
        """The state after these moves, each of which is accepted."""
        for name in names:
            reply = self.move(name)
            assert reply.status == 200, (name, reply.body)
        return str(self.record["state"])

    def refuses(self, *names: str) -> None:
        """None of these is accepted, even of the operator, whom all but a flight obeys; and nothing changes."""
        token = self.token if "/flights/" in self.path else self.daemon.token
        before = self.record
        for name in names:
            reply = self._replace(token=token).move(name)
            assert (reply.status, reply.json.get("code")) == (409, "wrong_state"), (name, reply.body)
            assert name not in reply.json["accepts"]
        assert self.record["state"] == before["state"]
        assert self.record["revision"] == before["revision"]

    @property
    def record(self) -> Any:
        return self.daemon.call("GET", self.path, token=self.token).json


def _worker(live: Daemon, name: str) -> str:
    token = str(live.register(name)["token"])
    assert live.call("POST", "/v1/endpoints", {}, token=token).status == 201
    return token


def _flight(live: Daemon, name: str, token: str) -> Mover:
    asked = live.call("POST", "/v1/asks", {"to": f"@{name}", "body": "go"})
    assert asked.status == 201, asked.body
    return Mover(live, f"/v1/flights/{asked.json['flightId']}", token)


@pytest.mark.rows("R2.2-2", "R2.2-12", "R2.2-13", "R2.2-15")
def test_the_moves_of_a_flight(live: Daemon) -> None:
    token = _worker(live, "mover")
    ways: dict[str, tuple[str, ...]] = {"queued": (), "running": ("start",), "waiting": ("start", "wait")}
    wrong = {
        "queued": ("resume", "wait"),
        "running": ("start", "resume"),
        "waiting": ("start", "wait"),
    }
    for state, way in ways.items():
        assert _flight(live, "mover", token).moves(*way) == state
        for end, after in (("fail", "failed"), ("cancel", "cancelled")):
            flight = _flight(live, "mover", token)
            flight.moves(*way)
            flight.refuses(*wrong[state])
            assert flight.moves(end) == after
            flight.refuses("start", "resume", "wait", "fail")
    assert _flight(live, "mover", token).moves("start", "wait", "resume") == "running"
    assert _flight(live, "mover", token).moves("start", "complete") == "completed"
    assert _flight(live, "mover", token).moves("start", "wait", "complete") == "completed"


@pytest.mark.rows("R2.2-3", "R2.2-40", "R2.2-41", "R2.2-42", "R2.2-58")
def test_how_a_flight_ends_and_begins_again(live: Daemon) -> None:
    token, other = _worker(live, "ender"), str(live.register("bystander")["token"])
    flight = _flight(live, "ender", token)
    for _ in ("queued", "running"):
        assert flight.record["reason"]
        assert flight.record["nextCheckAt"]
        foreign = flight._replace(token=other).move("complete")
        assert foreign.json["code"] in ("forbidden", "not_owner", "not_found")
        if flight.record["state"] == "queued":
            flight.moves("start")
    assert flight.move("wait", on="actor").status == 400  # on whom?
    flight.moves("complete")
    flight.refuses("fail")
    assert flight.record["output"] == "done"
    ask = flight.record["askId"]
    failed = _flight(live, "ender", token)
    failed.moves("fail")
    again = live.call("POST", f"{failed.path}/retry", {})
    assert again.status == 201, again.body
    assert again.json["askId"] == failed.record["askId"] != ask
    assert again.json["flightId"] not in failed.path


@pytest.mark.rows("R2.2-4", "R2.2-5", "R2.2-6", "R2.2-31", "R2.2-33", "R2.2-34", "R2.2-35", "R2.2-36")
def test_the_moves_of_work(live: Daemon) -> None:
    maker, doer = str(live.register("maker")["token"]), str(live.register("doer")["token"])
    third = live.register("third")

    def work(token: str = doer) -> Mover:
        made = live.call("POST", "/v1/work", {"title": "Build", "ownerId": "@doer"}, token=maker).json
        return Mover(live, f"/v1/work/{made['id']}", token)

    item = work()
    item.refuses("resume", "accept", "reopen")
    assert item.moves("start") == "working"
    assert item.record["revision"] == 2
    stale = live.call("POST", f"{item.path}/submit", {"revision": 1}, token=doer)
    assert (stale.status, stale.json["code"], stale.json["current"]) == (409, "wrong_revision", 2)
    assert item.moves("submit") == "review"
    item.refuses("submit", "resume")
    asker = item._replace(token=maker)
    assert asker.moves("accept") == "done"
    assert asker.moves("reopen") == "working"
    assert item.moves("submit") == "review"
    assert asker.moves("reopen") == "working"
    assert item.move("hand_over", to="@third").status == 200
    assert asker.record["ownerId"] == third["agent"]["id"]
    assert work().moves("submit") == "review"  # begun and done at once
    over = work(maker)
    assert over.moves("cancel") == "cancelled"
    over.refuses("start", "submit", "accept")


@pytest.mark.rows("R2.2-28", "R2.2-29", "R2.1-16")
def test_the_moves_of_a_question(live: Daemon) -> None:
    asks, knows = live.register("asks"), live.register("knows")

    def question() -> Mover:
        made = live.call(
            "POST", "/v1/questions", {"to": "@knows", "body": "Which?"}, token=asks["token"]
        ).json
        return Mover(live, f"/v1/questions/{made['id']}", str(knows["token"]))

    one = question()
    asker = one._replace(token=str(asks["token"]))
    assert one.record["nextMoveOwnerId"] == knows["agent"]["id"]
    one.refuses("reopen")
    assert one.moves("answer") == "answered"
    assert one.record["nextMoveOwnerId"] == asks["agent"]["id"]
    one.refuses("answer", "decline")
    assert asker.moves("reopen") == "open"
    assert one.moves("decline") == "declined"
    one.refuses("answer")
    other = question()
    assert other._replace(token=str(asks["token"])).moves("close") == "closed"
    other.refuses("answer", "decline")


@pytest.mark.rows("R2.2-39")
def test_the_moves_of_attention(live: Daemon) -> None:
    token = str(live.register("needs")["token"])
    decisions = {"approve": "resolved", "deny": "denied", "dismiss": "dismissed"}
    answers = {"answer": "answered", "dismiss": "dismissed"}
    for kind, ends in (("permission", decisions), ("question", answers)):
        for move, after in ends.items():
            made = live.call("POST", "/v1/attention", {"title": "may I?", "kind": kind}, token=token)
            assert made.status == 201, made.body
            item = Mover(live, f"/v1/attention/{made.json['id']}", live.token)
            assert item.moves(move) == after
            item.refuses(*ends)


@pytest.mark.rows("R2.3-2", "R2.3-3", "R2.3-5", "R2.3-6", "R2.3-7", "R2.3-10", "R2.3-11", "R2.3-15")
def test_the_log_says_what_happened(live: Daemon) -> None:
    oak, elm = live.register("oaken"), _worker(live, "elmen")
    live.call("POST", "/v1/messages", {"to": "@oaken", "body": "hello there"})
    flight = _flight(live, "elmen", elm)
    flight.moves("start", "complete")
    session = live.call("POST", "/v1/sessions", {"agent": "@oaken", "harness": "echo"})
    assert session.status == 201, session.body
    token = live.call("POST", "/v1/tokens", {"kind": "agent", "agent": "@oaken"}).json
    work = live.call("POST", "/v1/work", {"title": "x", "ownerId": "@oaken"}).json
    live.call("POST", f"/v1/work/{work['id']}/start", {}, token=oak["token"])
    for ends in (("answer", "reopen", "decline"), ("close",)):
        made = live.call("POST", "/v1/questions", {"to": "@elmen", "body": "Which?"}).json
        for move in ends:
            by = elm if move in ("answer", "decline") else live.token
            assert Mover(live, f"/v1/questions/{made['id']}", by).moves(move)
    events = live.call("GET", "/v1/log?newest=true&limit=200").json["items"]
    fields = {"id", "seq", "time", "type", "v", "source", "target", "payload", "metadata"}
    for event in events:
        assert fields >= {*event} >= fields - {"metadata"}, event
        assert all(event[end].partition(":")[1] == ":" for end in ("source", "target")), event
    types = {event["type"] for event in events}
    questions = ("created", "answered", "closed", "declined", "reopened")
    assert {f"collab.question.{what}" for what in questions} <= types
    assert {"collab.work_item.created", "collab.work_item.updated", "collab.ask.created"} <= types
    assert {"flight", "endpoint", "session", "token"} <= {name.split(".")[1] for name in types}
    posted = next(
        event
        for event in events
        if event["type"] == "collab.message.posted" and "hello there" in str(event["payload"])
    )
    assert posted["payload"]["kind"] == "chat", posted
    assert token["secret"] not in str(events)
