"""Lifecycles (2.2): every move over HTTP with real agents, and what follows from it in the same transaction."""

from typing import Any

import pytest

from tests.daemon.daemons import eventually
from tests.surface.site import Agent, Site

pytestmark = pytest.mark.slow


# -- flights ----------------------------------------------------------------------------------------


def make_ask(site: Site, target: Agent, **more: Any) -> str:
    """A flight to an agent that pulls."""
    return str(site.ask(target.address, **more)["flightId"])


# From a new flight: the moves that the target makes, the state after each, and a move that is then refused.
FLIGHTS = [
    ("R2.2-11", (("start", "running"), ("complete", "completed")), "start"),
    ("R2.2-14", (("start", "running"), ("wait", "waiting"), ("complete", "completed")), "complete"),
    (
        "R2.2-11",
        (("start", "running"), ("wait", "waiting"), ("resume", "running"), ("fail", "failed")),
        "resume",
    ),
    ("R2.2-11", (("cancel", "cancelled"),), "start"),
    ("R2.2-11", (("start", "running"), ("cancel", "cancelled")), "fail"),
    ("R2.2-11", (("fail", "failed"),), "complete"),
]
BODIES: dict[str, dict[str, Any]] = {
    "complete": {"output": "done"},
    "fail": {"reason": "no"},
    "wait": {"on": "actor", "ref": "operator", "reason": "a word"},
}


@pytest.mark.parametrize(("row", "moves", "after"), FLIGHTS)
def test_a_flights_moves(site: Site, row: str, moves: Any, after: str) -> None:
    agent = site.puller("mover-" + "-".join(move for move, _ in moves))
    flight = make_ask(site, agent)
    assert site.flight(flight)["state"] == "queued"
    for move, state in moves:
        found = agent.post(f"/v1/flights/{flight}/{move}", **BODIES.get(move, {}))
        assert (found["state"], site.flight(flight)["state"]) == (state, state)
        if state == "waiting":  # it names whose move it is
            assert found["nextMoveOwnerId"] == site.resolve("operator")["agentId"]
        if state in ("queued", "running", "waiting"):
            assert found["reason"]
            assert found["nextCheckAt"] or state == "running"
    told = agent.refused("POST", f"/v1/flights/{flight}/{after}", **BODIES.get(after, {}))
    assert told["code"] == "wrong_state"
    assert site.flight(flight)["state"] == moves[-1][1]  # the first result wins


@pytest.mark.rows("R2.2-14", "R2.2-57", "R3.5-26")
def test_only_the_target_completes_a_flight_and_a_queued_one_is_started_first(site: Site) -> None:
    agent, other = site.puller("complete-me"), site.puller("meddler")
    flight = make_ask(site, agent)
    for stranger in (other.token, ""):  # not even the operator
        told = site.refused("POST", f"/v1/flights/{flight}/complete", token=stranger, output="x")
        assert told["code"] in ("forbidden", "not_owner", "not_found")
    told = agent.refused("POST", f"/v1/flights/{flight}/complete", output="x", revision=99)
    assert (told["code"], told["seen"]) == ("wrong_revision", 99)
    assert agent.post(f"/v1/flights/{flight}/complete", output="x")["output"] == "x"
    types = [event["type"] for event in site.log(family="collab.flight") if flight in str(event)]
    assert types[-2:] == ["collab.flight.started", "collab.flight.completed"]


@pytest.mark.rows("R2.2-43")
@pytest.mark.parametrize("output", ["", "  \n "])
def test_no_words_are_no_reply(site: Site, output: str) -> None:
    agent = site.puller(f"wordless{len(output)}")
    flight = make_ask(site, agent)
    agent.post(f"/v1/flights/{flight}/start")
    found = agent.post(f"/v1/flights/{flight}/complete", output=output)
    assert (found["state"], found["error"]["code"]) == ("failed", "empty_reply")


@pytest.mark.rows("R2.2-46", "R2.2-47", "R2.2-49", "R2.2-16", "R2.2-50", "R2.1-14")
def test_a_flight_follows_its_delivery(site: Site) -> None:
    site.agent("followed", command=["cat"])
    flight = site.ask("@followed", wait=20)["flightId"]

    def order() -> list[tuple[str, str, str]]:
        events = site.log(family="collab.delivery") + site.log(family="collab.flight")
        mine = [event for event in events if flight in str(event)]
        ordered = sorted(mine, key=lambda event: int(event["seq"]))
        return [
            (
                event["type"].removeprefix("collab."),
                event["time"],
                str(event["payload"]["record"].get("phase")),
            )
            for event in ordered
        ]

    found = eventually(lambda: [one for one in [order()] if "delivery.acked" in str(one)])[0]
    kinds = [kind for kind, _, _ in found]
    assert kinds.index("delivery.requested") < kinds.index("delivery.leased") < kinds.index("delivery.acked")
    # Leased: its flight is waking, in the same transaction; acked: it runs.
    leased = found[kinds.index("delivery.leased")][1]
    assert any(
        phase == "waking" and time == leased for kind, time, phase in found if kind.startswith("flight")
    )
    acked = found[kinds.index("delivery.acked")][1]
    assert ("flight.started", acked) in [(kind, time) for kind, time, _ in found]
    (delivery,) = [
        one for one in site.get("/v1/deliveries", target="@followed")["items"] if one["flightId"] == flight
    ]
    assert (delivery["attempts"], delivery["state"]) == (1, "acked")

    # A finished flight takes its open delivery with it.
    agent = site.puller("unfollowed")
    open_ = make_ask(site, agent)
    site.post(f"/v1/flights/{open_}/cancel")
    (delivery,) = agent.get("/v1/deliveries")["items"]
    assert delivery["state"] == "cancelled"


@pytest.mark.rows("R2.2-25", "R2.2-26", "R2.2-27", "R2.2-48", "R0-81", "R3.5-29")
def test_after_the_last_attempt_the_sender_gets_it_back(site: Site) -> None:
    agent, sender = site.puller("refuser"), site.puller("wants-it")
    sent = sender.post("/v1/messages", to="@refuser", body="take it")
    flight = sender.post("/v1/asks", to="@refuser", body="do it")["flightId"]
    pauses: list[float] = []
    for attempt in range(1, 9):
        items = eventually(lambda: agent.claim() or None)
        ids = [item["deliveryId"] for item in items]
        settled = agent.post("/v1/inbox/nack", deliveryIds=ids, retryAfter=0, problem="not today")["items"]
        assert {one["attempts"] for one in settled} == {attempt}
        states = {one["state"] for one in settled}
        assert states == ({"pending"} if attempt < 8 else {"dead_lettered"})
        pauses.append(attempt)
    assert len(pauses) == 8
    found = site.flight(flight)
    assert (found["state"], found["error"]["code"]) == ("failed", "wake_failed")
    assert found["error"]["remedies"]
    shown = site.get(f"/v1/messages/{sent['messageId']}")
    assert shown["deliveries"][0]["state"] == "dead_lettered"
    assert any("@refuser" in text and "not today" in text for text in sender.texts())


@pytest.mark.rows("R2.2-56", "R3.1-28")
def test_a_flight_is_completed_by_the_first_of_three(site: Site) -> None:
    agent = site.puller("three-ways")
    by_reply = site.ask("@three-ways")
    agent.post("/v1/replies", body="my reply", inReplyTo=by_reply["askId"])
    found = site.flight(by_reply["flightId"])
    assert (found["state"], found["completedBy"], found["output"]) == ("completed", "reply", "my reply")
    message = site.get(f"/v1/messages/{found['outputMessageId']}")
    assert (message["conversationId"], message["sender"]) == (by_reply["conversationId"], agent.id)
    assert message["inReplyTo"] == by_reply["messageId"]

    by_move = make_ask(site, agent)
    agent.post(f"/v1/flights/{by_move}/start")
    agent.post(f"/v1/flights/{by_move}/complete", output="done")
    agent.post("/v1/replies", body="later", inReplyTo=by_move)
    found = site.flight(by_move)
    assert (found["completedBy"], found["output"]) == ("complete", "done")

    site.agent("final", command=["cat"])
    found = site.finished(site.ask("@final", body="say this")["flightId"])
    assert (found["completedBy"], "say this" in found["output"]) == ("final_text", True)


# -- work -------------------------------------------------------------------------------------------

# Whose move it is, the move, and the state, acceptance and holder of the next move after it.
WORK: list[tuple[str, str, str, dict[str, Any], str, str]] = [
    ("R2.2-30", "owner", "start", {}, "working", "owner"),
    ("R2.2-32", "owner", "wait", {"on": "actor", "ref": "@wrk-third"}, "waiting", "third"),
    ("R2.2-30", "owner", "resume", {}, "working", "owner"),
    ("R2.2-32", "owner", "wait", {"on": "approval", "nextMoveOwnerId": "@wrk-third"}, "waiting", "third"),
    ("R2.2-30", "third", "resume", {}, "working", "owner"),
    ("R2.2-32", "owner", "wait", {"on": "artifact", "ref": "a.txt", "nextMoveOwnerId": "@wrk-third"}, "waiting", "third"),
    ("R2.2-30", "owner", "resume", {}, "working", "owner"),
    ("R2.2-32", "owner", "wait", {"on": "condition", "ref": "dry", "nextMoveOwnerId": "@wrk-third"}, "waiting", "third"),
    ("R2.2-30", "owner", "resume", {}, "working", "owner"),
    ("R2.2-73", "owner", "submit", {"summary": "there"}, "review", "requester"),
    ("R2.2-30", "requester", "reopen", {"reason": "more"}, "working", "owner"),
    ("R2.2-73", "owner", "submit", {"reviewerId": "@wrk-third"}, "review", "third"),
    ("R2.2-30", "third", "accept", {}, "done", ""),
]  # fmt: skip


@pytest.mark.rows("R2.2-30", "R2.2-32", "R2.2-70", "R2.2-71", "R2.2-73", "R2.3-24")
def test_a_work_items_way(site: Site) -> None:
    people = {name: site.puller(f"wrk-{name}") for name in ("owner", "requester", "third")}
    item = people["requester"].post("/v1/work", title="the form", ownerId="@wrk-owner")
    assert (item["state"], item["acceptance"]) == ("open", "pending")
    acceptances = [item["acceptance"]]
    for row, who, move, body, state, holder in WORK:
        item = people[who].post(f"/v1/work/{item['id']}/{move}", **body)
        assert item["state"] == state, (row, move)
        assert item["ownerId"] == people["owner"].id
        assert item["nextMoveOwnerId"] == (people[holder].id if holder else None), (row, move)
        acceptances.append(item["acceptance"])
    assert list(dict.fromkeys(acceptances)) == ["pending", "reopened", "accepted"]
    plain = people["requester"].post("/v1/work", title="x", ownerId="@wrk-owner", accepted=False)
    assert plain["acceptance"] == "none"
    told = people["owner"].refused("POST", f"/v1/work/{item['id']}/start")
    assert told["code"] == "wrong_state"


@pytest.mark.rows("R2.2-32", "R3.3-7")
def test_work_waits_on_another_item(site: Site) -> None:
    owner, other = site.puller("wi-owner"), site.puller("wi-other")
    first = owner.post("/v1/work", title="first", ownerId="@wi-other")
    second = site.post("/v1/work", title="second", ownerId="@wi-owner")
    owner.post(f"/v1/work/{second['id']}/start")
    waits = owner.post(f"/v1/work/{second['id']}/wait", on="work_item", ref=first["id"])
    assert (waits["state"], waits["nextMoveOwnerId"]) == ("waiting", other.id)


# How the flight of an item ends, the item's state then, and who holds its next move.
ENDS: list[tuple[str, str, dict[str, str], tuple[str, str | None]]] = [
    ("R2.2-75", "complete", {"output": "done"}, ("review", "operator")),
    ("R2.2-76", "fail", {"reason": "no"}, ("waiting", "operator")),
    ("R2.2-77", "cancel", {}, ("cancelled", None)),
]


@pytest.mark.rows("R2.2-37")
@pytest.mark.parametrize(("row", "move", "body", "after"), ENDS)
def test_an_item_follows_its_flight(site: Site, row: str, move: str, body: Any, after: Any) -> None:
    state, holder = after
    agent = site.puller(f"follows-{move}")
    receipt = site.ask(agent.address, workItem="the form")
    item = receipt["workItemId"]
    assert site.get(f"/v1/work/{item}")["state"] == "open"
    agent.post(f"/v1/flights/{receipt['flightId']}/start")
    assert site.get(f"/v1/work/{item}")["state"] == "working"
    agent.post(f"/v1/flights/{receipt['flightId']}/{move}", **body)
    found = site.get(f"/v1/work/{item}")
    assert found["state"] == state
    assert found["nextMoveOwnerId"] == (site.resolve(holder)["agentId"] if holder else None)


@pytest.mark.rows("R2.2-75")
def test_an_item_that_nobody_accepts_is_done(site: Site) -> None:
    agent = site.puller("no-review")
    item = site.post("/v1/work", title="x", ownerId="@no-review", accepted=False)
    receipt = site.ask("@no-review", workItemId=item["id"])
    agent.post(f"/v1/flights/{receipt['flightId']}/start")
    agent.post(f"/v1/flights/{receipt['flightId']}/complete", output="done")
    assert site.get(f"/v1/work/{item['id']}")["state"] == "done"


# -- endpoints --------------------------------------------------------------------------------------

ENDPOINTS = [
    ("registered", "attaching"),
    ("registered", "waking"),
    ("attaching", "idle"),
    ("waking", "idle"),
    ("idle", "working"),
    ("working", "idle"),
    ("working", "unreachable"),
    ("idle", "failed"),
    ("idle", "stopped"),
]


@pytest.mark.rows("R2.2-17", "R2.2-18")
@pytest.mark.parametrize(("before", "after"), ENDPOINTS)
def test_an_endpoints_moves(site: Site, before: str, after: str) -> None:
    agent = site.agent(f"ept-{before}-{after}")
    made = agent.endpoint(state=before)
    assert made["state"] == before
    moved = agent.site.patch(f"/v1/endpoints/{made['id']}", token=agent.token, state=after, reason="it is so")
    assert moved["state"] == after


@pytest.mark.rows("R2.2-18", "R2.2-19", "R2.2-68", "R2.2-69")
def test_a_failed_endpoint_keeps_what_it_did_and_recovers_by_waking(site: Site) -> None:
    agent = site.agent("ept-fails")
    made = agent.endpoint(state="idle")
    assert not {"task", "flightId", "workItemId", "askId"} & made.keys()
    site.patch(f"/v1/endpoints/{made['id']}", state="working")
    failed = site.patch(f"/v1/endpoints/{made['id']}", state="failed", reason="out of paper")
    assert failed["failure"] == {"reason": "out of paper", "was": "working"}
    assert site.patch(f"/v1/endpoints/{made['id']}", state="waking")["state"] == "waking"
    lost = agent.endpoint(state="idle")
    site.patch(f"/v1/endpoints/{lost['id']}", state="unreachable", reason="gone")
    assert site.patch(f"/v1/endpoints/{lost['id']}", state="attaching")["state"] == "attaching"
    # A move that the table does not have is refused and says what would be accepted.
    stopped = site.call("DELETE", f"/v1/endpoints/{lost['id']}")[1]
    assert stopped["state"] == "stopped"
    told = site.refused("PATCH", f"/v1/endpoints/{lost['id']}", state="idle")
    assert told["code"] == "wrong_state"


# -- sessions ---------------------------------------------------------------------------------------


def test_a_session_is_live_then_ended_with_a_reason(site: Site) -> None:
    site.agent("sess", harness="echo")
    woken = site.post("/v1/agents/%40sess/wake")
    found = site.get(f"/v1/sessions/{woken['sessionId']}")
    assert (found["state"], found["class"]) == ("live", "resumable")
    ended = site.post(f"/v1/sessions/{woken['sessionId']}/stop", reason="enough")
    assert (ended["state"], "enough" in ended["reason"]) == ("ended", True)
    assert ended["class"] in ("resumable", "terminal", "not_attachable")
    types = [event["type"] for event in site.log(family="collab.session") if woken["sessionId"] in str(event)]
    assert types[0] == "collab.session.starting" or "start" in types[0]
