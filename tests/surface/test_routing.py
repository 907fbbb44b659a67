"""Verbs, choosing and waking (3.1 to 3.3), as agents over HTTP and a person at the command line meet them."""

from pathlib import Path
from typing import Any

import pytest

from tests.daemon.daemons import eventually
from tests.surface.site import Site

pytestmark = pytest.mark.slow


# -- send -------------------------------------------------------------------------------------------


@pytest.mark.rows("R3.1-1", "R3.1-5", "R3.3-13")
def test_a_plain_send_is_kept_and_starts_nothing(site: Site) -> None:
    made = site.agent("plain", harness="echo")
    sent = site.post("/v1/messages", to="@plain", body="when you have time")
    assert sent["conversationId"].startswith("cnv_")
    assert sent["messageId"].startswith("msg_")
    assert [one["target"] for one in sent["deliveries"]] == [made.id]
    assert site.get("/v1/flights", agent="@plain")["items"] == []
    assert site.get("/v1/sessions", agent="@plain")["items"] == []
    assert made.texts() == ["when you have time"]
    # `--wake` wakes: its program is started.
    site.shell.say("send", "--wake", "@plain", "now")
    assert eventually(lambda: site.get("/v1/sessions", agent="@plain")["items"])


@pytest.mark.rows("R3.1-3", "R3.1-4", "R3.3-6")
def test_many_are_reached_by_a_channel_or_by_name_and_nobody_by_a_guess(site: Site) -> None:
    inside, outside = site.agent("grp-in", harness="echo"), site.agent("grp-out", harness="echo")
    told = site.refused("POST", "/v1/messages", body="hello")
    assert told["code"] == "bad_request"
    assert site.shell.type("send", "hello").returncode != 0
    site.post("/v1/channels", name="grp", members=["@grp-in"])
    site.post("/v1/messages", channel="grp", body="to the group")
    assert (inside.texts(), outside.texts()) == (["to the group"], [])
    before = site.end_of_log()
    sent = site.post("/v1/messages", broadcast=True, body="to all", wake=True)
    assert sent["deliveries"] == []  # everybody reads it, nobody is woken
    assert (inside.texts()[-1], outside.texts()[-1]) == ("to all", "to all")
    types = {event["type"] for event in site.log(before)}
    assert not any(kind.startswith(("collab.delivery", "collab.session")) for kind in types)


@pytest.mark.rows("R3.3-3", "R3.3-8", "R3.3-5", "R2.3-21")
def test_a_channel_wakes_its_master_then_its_owner_and_never_the_sender(site: Site) -> None:
    master, owner, member = (
        site.agent(f"chn-{name}", harness="echo") for name in ("master", "owner", "member")
    )
    names = [one.address for one in (master, owner, member)]
    owner.post("/v1/channels", name="chn", members=names, master="@chn-master")

    def woken(wish: dict[str, Any]) -> list[str]:
        sent = site.post("/v1/messages", channel="chn", body="who looks?", wake=True, **wish)
        why = site.get(f"/v1/why/{sent['messageId']}")
        assert why["decisions"]
        return [one["target"] for one in sent["deliveries"]]

    assert woken({"token": member.token}) == [master.id]
    assert woken({"token": master.token}) == [owner.id]  # not the sender itself
    assert woken({"token": master.token, "followUp": True}) == [master.id]  # unless it wants to be
    owner.post("/v1/channels/chn/policy", noMaster=True)
    assert woken({"token": member.token}) == [owner.id]
    owner.post("/v1/channels/chn/policy", quiet=True)
    assert woken({"token": member.token}) == []
    # The decision is in the log: who, by which rule, who was passed over.
    events = [event for event in site.log(family="collab.delivery.requested") if master.id in str(event)]
    wake = events[0]["metadata"]["wake"]
    assert (wake["agentId"], wake["rule"], wake["action"]) == (master.id, "conversation master", "wake")
    assert wake["facts"]["occasion"]["sender"]["agentId"] == member.id


# -- ask --------------------------------------------------------------------------------------------


@pytest.mark.rows("R3.1-8", "R3.1-9", "R3.1-10", "R3.1-11", "R3.1-16", "R3.2-5", "R3.2-14", "R0-98")
def test_an_asks_receipt_and_its_three_kinds_of_target(site: Site) -> None:
    made = site.agent("rcpt", harness="echo")
    asked = site.ask("@rcpt", wait=20)
    names = ("conversationId", "messageId", "askId", "invocationId", "flightId", "state", "phase", "target")
    assert all(asked[name] for name in names)
    assert not {"workItemId", "workId", "cardId"} & {key for key, value in asked.items() if value}
    shown = site.get(f"/v1/asks/{asked['askId']}")
    assert (shown["ask"]["messageId"], shown["flights"][0]["id"]) == (asked["messageId"], asked["flightId"])
    assert shown["ask"]["resolved"].startswith("@rcpt")
    assert ".node:" in shown["ask"]["resolved"]
    # What `resolve` says is where the next ask goes; and an exact session is a target.
    found = site.resolve("@rcpt")
    again = site.ask("@rcpt", wait=20)
    assert (again["endpointId"], again["sessionId"]) == (found["endpointId"], found["sessionId"])
    there = site.post("/v1/asks", targetSessionId=found["sessionId"], body="here", wait=20)
    assert (there["sessionId"], there["output"]) == (found["sessionId"], "here")
    told = site.refused("POST", "/v1/asks", targetSessionId="ses_01m7hqsxx3k4q5r6s7t8v9w0x1", body="x")
    assert told["code"] == "no_session"
    project = site.post("/v1/asks", projectPath=made.record["projectRoot"], body="x", wait=20)
    assert project["target"] == made.id
    item = site.ask("@rcpt", workItem="with work", wait=20)
    assert item["workItemId"] == item["workId"]


@pytest.mark.rows("R3.1-14")
def test_a_project_path_means_no_helper(site: Site) -> None:
    folder = str(site.shell.project("helped"))
    made = site.agent("helped", harness="echo", projectRoot=folder)
    site.agent("helped", profile="reviewer", harness="echo", projectRoot=folder)
    for path in ("sub/0", "memory", "search/0"):
        site.post("/v1/messages", to=f"{made.path}/{path}", body="x", create={"harness": "echo"})
    for _ in range(3):
        assert site.post("/v1/asks", projectPath=folder, body="x", wait=20)["target"] == made.id


@pytest.mark.rows("R3.1-17", "R3.1-18", "R0-63")
def test_an_ask_that_nothing_can_run_is_refused_and_stored_nowhere(site: Site) -> None:
    made = site.agent("stuck")
    before = site.end_of_log()
    told = site.refused("POST", "/v1/asks", to="@stuck", body="x")
    assert told["code"] == "ambiguous_endpoint"  # `echo` is ready, but never taken unless it is named
    assert told["remedies"]
    assert site.events_about(before, made.id) == []
    assert site.get("/v1/flights", agent="@stuck")["items"] == []


@pytest.mark.rows("R3.1-19", "R3.1-20")
def test_an_ask_may_be_queued_for_a_day(site: Site) -> None:
    site.agent("later-on")
    asked = site.ask("@later-on", ifUnreachable="queue")
    assert asked["state"] == "queued"
    flight = site.flight(asked["flightId"])
    assert flight["reason"]
    assert flight["nextCheckAt"]
    ask = site.get(f"/v1/asks/{asked['askId']}")["ask"]
    made, over = (ask[key] for key in ("createdAt", "expiresAt"))
    assert made[10:] == over[10:]  # the same time of day
    assert int(over[8:10]) != int(made[8:10])


@pytest.mark.rows("R3.1-22", "R3.1-15")
def test_an_agents_relative_project_path_begins_at_its_folder(site: Site) -> None:
    here = site.agent("rel-here")
    site.shell.project("rel-there")
    asked = here.post("/v1/asks", projectPath="../rel-there", body="hello", harness="echo", wait=20)
    shown = site.show(asked["target"])
    assert shown["projectRoot"] == str(site.shell.project("rel-there"))
    assert (asked["output"], shown["sessions"][0]["harness"]) == ("hello", "echo")


@pytest.mark.rows("R3.1-25", "R3.1-26", "R3.1-28", "R3.5-29")
def test_an_answer_goes_to_the_return_address(site: Site) -> None:
    asker, other, worker = (site.puller(f"ret-{name}") for name in ("asker", "other", "worker"))
    asked = asker.post("/v1/asks", to="@ret-worker", body="count", replyTo="@ret-other", replyMode="notify")
    worker.post("/v1/replies", body="42", inReplyTo=asked["askId"])
    assert "42" in other.texts()
    assert "42" not in asker.texts()
    # A failure comes to whoever asked and did not wait.
    asked = asker.post("/v1/asks", to="@ret-worker", body="count", replyMode="notify")
    worker.post(f"/v1/flights/{asked['flightId']}/fail", reason="no numbers left")
    assert any("no numbers left" in text for text in asker.texts())


@pytest.mark.rows("R3.1-35", "R0-7")
def test_every_write_takes_an_idempotency_key(site: Site) -> None:
    made, other = site.agent("once-one"), site.agent("once-two")
    wish = {"to": "operator", "body": "once", "idempotencyKey": "the-same"}
    first, again = made.post("/v1/messages", **wish), made.post("/v1/messages", **wish)
    assert first == again
    assert other.post("/v1/messages", **wish)["messageId"] != first["messageId"]  # another actor's key
    told = made.refused("POST", "/v1/messages", **{**wish, "body": "twice"})
    assert (told["code"], told["key"]) == ("key_reused", "the-same")
    channel = made.post("/v1/channels", name="once", idempotencyKey="the-same")  # another operation's key
    assert channel["name"] == "once"
    paths: dict[str, Any] = site.get("/openapi.json")["paths"]
    writes = [
        one
        for routes in paths.values()
        for verb, one in routes.items()
        if verb in ("post", "patch", "delete")
    ]
    assert len(writes) > 60
    silent = [one["operationId"] for one in writes if "IdempotencyKey" not in str(one["parameters"])]
    assert sorted(silent) == [
        "endpoint.heartbeat",
        "parse",
        "reserve.check",
    ]  # none leaves anything that could be there twice


# -- choosing ---------------------------------------------------------------------------------------

# Each endpoint of the agent, oldest first; the place of the one that is chosen, and what happens there.
CHOICES: list[tuple[str, list[dict[str, Any]], int, str]] = [
    ("R3.2-3", [{"state": "idle"}, {"state": "failed"}], 0, "deliver"),
    ("R3.2-3", [{"state": "idle"}, {"state": "unreachable"}], 0, "deliver"),
    ("R3.2-3", [{"state": "idle"}, {"state": "stopped"}], 0, "deliver"),
    ("R3.2-3", [{"state": "idle"}, {"state": "stale"}], 0, "deliver"),
    ("R3.2-4", [{"state": "failed"}], 0, "wake"),
    ("R3.2-4", [{"state": "unreachable"}], 0, "wake"),
    ("R3.2-6", [{"state": "idle"}, {"state": "registered"}], 0, "deliver"),
    ("R3.2-6", [{"state": "working"}, {"state": "registered"}], 0, "deliver"),
    ("R3.2-7", [{"state": "idle", "preferred": True}, {"state": "idle"}], 0, "deliver"),
    ("R3.2-7", [{"state": "idle"}, {"state": "idle", "preferred": True}], 1, "deliver"),
    ("R3.2-6", [{"state": "idle"}, {"state": "registered", "preferred": True}], 0, "deliver"),
    ("R3.2-9", [{"state": "idle"}, {"state": "idle"}], 1, "deliver"),
]


@pytest.mark.parametrize(("row", "endpoints", "chosen", "action"), CHOICES)
def test_an_endpoint_is_chosen(site: Site, row: str, endpoints: Any, chosen: int, action: str) -> None:
    number = sum(1 for _ in site.get("/v1/agents", query="choice", limit=200)["items"])
    agent = site.agent(f"choice-{number}-{abs(hash(str(endpoints)))}")
    made: list[str] = []
    for wish in endpoints:
        state = wish["state"]
        direct = state in ("idle", "working", "registered")
        found = agent.endpoint(harness="codex", **{**wish, "state": state if direct else "idle"})
        made.append(found["id"])
        if state == "stale":  # as the sweeper leaves it: through unreachable
            site.patch(f"/v1/endpoints/{found['id']}", state="unreachable", reason="silent")
        if not direct:
            site.patch(f"/v1/endpoints/{found['id']}", state=state, reason="it broke")
    found = site.resolve(agent.address)
    assert (found["endpointId"], found["action"]) == (made[chosen], action)


@pytest.mark.rows("R3.2-9", "R3.2-10", "R3.5-13")
def test_the_most_recently_seen_of_one_harness_and_else_an_ambiguity(site: Site) -> None:
    agent = site.agent("recent")
    made = [agent.endpoint(harness="codex")["id"] for _ in range(3)]
    assert site.resolve("@recent")["endpointId"] == made[-1]
    agent.endpoint(harness="claude")
    told = site.unresolved("@recent")
    assert told["code"] == "ambiguous_endpoint"
    addresses = [one["address"] for one in told["candidates"]]
    assert addresses == ["@recent.harness:codex", "@recent.harness:claude"]
    assert site.resolve(told["retry"])["harness"] == "codex"
    told = site.refused("POST", "/v1/asks", to="@recent", body="x")
    assert "scout ask --harness codex @recent x" in [one["command"] for one in told["remedies"]]


@pytest.mark.rows("R3.2-12", "R3.1-16")
def test_an_isolated_session_is_nobody_elses_route(site: Site) -> None:
    asker, worker = site.agent("iso-asker"), site.agent("iso", harness="echo")
    folder = worker.record["projectRoot"]
    asked = asker.post("/v1/asks", projectPath=folder, body="alone", isolated=True, wait=20)
    assert asked["cardId"].startswith("crd_")
    alone = site.finished(asked["flightId"])["sessionId"]
    assert alone.startswith("ses_")
    assert site.resolve("@iso").get("sessionId") != alone
    asked = site.ask("@iso", wait=20)
    assert site.finished(asked["flightId"])["sessionId"] != alone


def test_isolated_asks_to_one_agent_run_at_the_same_time(site: Site) -> None:
    script = "cat >seen.$$; until [ -e go ]; do sleep 0.05; done; echo done"
    worker = site.agent("iso-many", command=["sh", "-c", script])
    folder = Path(worker.record["projectRoot"])
    asked = [site.ask("@iso-many", sessionPolicy="new")["flightId"] for _ in range(2)]
    assert eventually(lambda: len(list(folder.glob("seen.*"))) == 2)
    (folder / "go").touch()
    assert len({site.finished(one)["sessionId"] for one in asked}) == 2


# -- waking -----------------------------------------------------------------------------------------


@pytest.mark.rows("R3.3-17", "R2.2-48")
def test_a_wake_that_fails_says_the_layer_and_what_to_do(site: Site) -> None:
    site.agent("absent-program", command=["/no/such/program"])
    asked = site.ask("@absent-program", wait=40)
    found = site.finished(asked["flightId"])
    assert (found["state"], found["error"]["code"]) == ("failed", "wake_failed")
    assert "/no/such/program" in found["error"]["message"]
    assert found["error"]["remedies"]
    assert 1 <= found["attempts"] <= 8


@pytest.mark.rows("R3.3-21", "R3.3-23", "R3.3-24")
def test_an_ask_in_a_circle_is_refused_and_a_question_is_the_way(site: Site) -> None:
    one, other = site.puller("circle-one"), site.puller("circle-two")
    asked = one.post("/v1/asks", to="@circle-two", body="do it")
    other.claim()
    other.post(f"/v1/flights/{asked['flightId']}/start")
    told = other.refused("POST", "/v1/asks", to="@circle-one", body="which?", within=asked["flightId"])
    assert (told["code"], told["status"]) == ("ask_loop", 409)
    assert len(told["chain"]) >= 2
    (remedy,) = [step for step in told["remedies"] if step["operation"] == "question.create"]
    question = other.post("/v1/questions", **remedy["parameters"])
    assert question["responderId"] == one.id
    assert site.flight(asked["flightId"])["state"] == "waiting"
    titles = [item["title"] for item in site.get("/v1/attention", limit=200)["items"]]
    assert any("circle" in title for title in titles), titles


@pytest.mark.rows("R3.3-19", "R2.3-26", "R2.3-27", "R2.3-23", "R2.3-1", "R0-83")
def test_the_log_of_all_this(site: Site) -> None:
    site.agent("logged", harness="echo")
    site.ask("@logged", wait=20)
    events = site.log()
    assert [event["seq"] for event in events] == sorted({event["seq"] for event in events})
    posted = {event["payload"]["messageId"]: event["seq"] for event in events if _posts(event)}
    asked = {one["payload"]["record"]["id"] for one in events if one["type"] == "collab.ask.created"}
    for event in events:
        assert event["v"] >= 1
        for end in ("source", "target"):
            kind, _, ident = event[end].partition(":")
            assert all((kind, ident)), event
        if event["type"] == "collab.delivery.requested":
            record = event["payload"]["record"]
            origin = record["messageId"] or record["askId"] or record["workItemId"]
            assert origin, record
            if record["messageId"]:
                assert posted[record["messageId"]] < event["seq"]
            if record["askId"]:
                assert record["askId"] in asked
    # Nothing at the surface writes into it, and reading it again gives the same.
    paths: dict[str, Any] = site.get("/openapi.json")["paths"]
    assert [*paths["/v1/log"]] == ["get"]
    assert [*paths["/v1/events"]] == ["get"]
    again = site.log()
    assert again[: len(events)] == events


def _posts(event: Any) -> bool:
    return event["type"] == "collab.message.posted"
