"""The nouns and their names on the wire (2.1): each record as HTTP, MCP and the command line give it."""

import concurrent.futures
import re
from typing import Any, cast

import pytest

from tests.daemon.daemons import eventually
from tests.surface.site import Agent, Site

pytestmark = pytest.mark.slow

_ID = re.compile(r"[a-z]{3}_[0-9a-z]{26}")


def list_keys(answer: Any) -> set[str]:
    """Every name in an answer, however deep; native ids aside."""
    values = [answer]
    names: set[str] = set()
    while values:
        one: Any = values.pop()
        if isinstance(one, list):
            values += one
        if isinstance(one, dict):
            found = cast(dict[str, Any], one)
            names |= found.keys()
            values += [value for name, value in found.items() if name != "nativeIds"]
    return names


@pytest.mark.rows("R2.1-4", "R2.1-6", "R2.1-11", "R2.1-13", "R2.1-20", "R2.1-37", "R0-3", "R0-8")
def test_each_noun_has_its_prefix_and_wire_names_are_camel_case(site: Site) -> None:
    made = site.agent("nouns", harness="echo")
    asked = site.ask("@nouns", wait=20, workItem="the form")
    shown = site.show("@nouns")
    question = made.post("/v1/questions", to="operator", body="Which?")
    card = site.post("/v1/cards", agent="@nouns")
    need = made.post("/v1/attention/notify", message="look")
    site.post("/v1/users", user="nouns-user")
    grant = site.post("/v1/grants", action="read", agent="@nouns", user="nouns-user")
    token = site.post("/v1/tokens", agent="@nouns")["token"]
    delivery = made.get("/v1/deliveries")["items"][0]
    usage = made.post("/v1/usage", promptTokens=1)
    node = site.get("/v1/nodes")["items"][0]
    alias = site.post("/v1/aliases", name="nouns-alias", target="@nouns")
    ids = {
        "agt": made.id,
        "ept": shown["endpoints"][0]["id"],
        "ses": shown["sessions"][0]["id"],
        "cnv": asked["conversationId"],
        "msg": asked["messageId"],
        "ask": asked["askId"],
        "flt": asked["flightId"],
        "wrk": asked["workItemId"],
        "dlv": delivery["id"],
        "qst": question["id"],
        "crd": card["id"],
        "att": need["id"],
        "grt": grant["id"],
        "tok": token["id"],
        "usg": usage["id"],
        "nod": node["id"],
        "als": alias["id"],
    }
    assert all(_ID.fullmatch(one) and one.startswith(f"{prefix}_") for prefix, one in ids.items()), ids
    answers = [asked, shown, question, card, need, grant, token, delivery, usage, node, alias]
    names = {name for one in answers for name in list_keys(one)}
    assert {name for name in names if not re.fullmatch(r"[a-z][a-zA-Z0-9]*", name)} == set()
    # Times have exactly three decimals and are UTC.
    times = [value for one in answers for key, value in one.items() if key.endswith("At") and value]
    assert len(times) > 10
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", one) for one in times), times
    # Scout makes every id; a request that brings its own is refused.
    for path, body in (
        ("/v1/agents", {"definitionId": "own-id", "id": made.id}),
        ("/v1/messages", {"to": "@nouns", "body": "x", "id": asked["messageId"]}),
        ("/v1/work", {"title": "x", "id": asked["workItemId"]}),
    ):
        told = site.refused("POST", path, **body)
        assert (told["code"], told["field"]) == ("bad_request", "id")


@pytest.mark.rows("R2.1-7", "R2.1-8", "R2.1-9", "R3.1-2")
def test_the_kinds_of_a_conversation_and_one_dm_for_a_pair(site: Site) -> None:
    pair = [site.agent("pair-one"), site.agent("pair-two")]

    def send(number: int) -> str:
        here, there = pair[number % 2], pair[(number + 1) % 2]
        return here.post("/v1/messages", to=there.address, body=str(number))["conversationId"]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(send, range(12)))
    (dm,) = ids
    channel = pair[0].post("/v1/channels", name="pair", members=["@pair-two"])
    assert channel["id"] == pair[1].post("/v1/channels", name="Pair")["id"]  # the same name, the same channel
    said = pair[0].post("/v1/messages", channel="pair", body="root")
    thread = pair[1].post("/v1/messages", thread=said["messageId"], body="below")["conversationId"]
    everybody = site.post("/v1/messages", broadcast=True, body="to everybody")["conversationId"]
    kinds = [site.get(f"/v1/conversations/{one}")["kind"] for one in (dm, channel["id"], thread, everybody)]
    assert kinds == ["dm", "channel", "thread", "broadcast"]


@pytest.mark.rows("R2.1-10")
@pytest.mark.parametrize("kind", ["chat", "status", "final", "question", "answer"])
def test_a_message_has_a_kind_and_status_and_final_wake_nobody(site: Site, kind: str) -> None:
    one, other = site.agent(f"kind-{kind}", harness="echo"), site.agent(f"kinds-{kind}")
    sent = other.post("/v1/messages", to=one.address, body="x", kind=kind, wake=True, followUp=True)
    shown = site.get(f"/v1/messages/{sent['messageId']}")
    assert (shown["kind"], shown["followUp"]) == (kind, True)
    (delivery,) = site.get("/v1/deliveries", target=one.address)["items"]
    assert delivery["wake"] is (kind not in ("status", "final"))
    told = other.refused("POST", "/v1/messages", to=one.address, body="x", kind="shout")
    assert (told["code"], told["field"]) == ("bad_request", "kind")


@pytest.mark.rows("R2.1-12")
def test_each_further_flight_of_an_ask_is_a_retry(site: Site) -> None:
    site.agent("again", command=["false"])
    asked = site.ask("@again", wait=30)
    assert asked["state"] == "failed"
    again = site.post(f"/v1/flights/{asked['flightId']}/retry")
    assert (again["askId"], again["flightId"] != asked["flightId"]) == (asked["askId"], True)
    flights = site.get(f"/v1/asks/{asked['askId']}")["flights"]
    assert [(one["id"], one["attempt"]) for one in flights] == [
        (asked["flightId"], 1),
        (again["flightId"], 2),
    ]


@pytest.mark.rows("R2.1-13", "R2.1-14", "R2.1-15", "R0-79", "R2.2-23", "R2.2-24")
def test_a_delivery_has_one_target_an_origin_and_a_lease(site: Site) -> None:
    puller, sender = site.agent("puller"), site.agent("sender")
    sender.post("/v1/messages", to="@puller", body="mail")
    (item,) = puller.claim()
    found = item["delivery"]
    assert (found["target"], found["sender"], found["state"]) == (puller.id, sender.id, "leased")
    assert found["messageId"].startswith("msg_")
    assert puller.id in found["leasedBy"]  # who pulls holds the lease itself
    assert "attempts" in found
    lasts = (_seconds(found["leasedUntil"]) - _seconds(found["updatedAt"])) % 86_400
    assert lasts == pytest.approx(60, abs=0.1)
    # A nack gives it back, and `retryAfter` is honoured.
    (settled,) = puller.post("/v1/inbox/nack", deliveryIds=[found["id"]], retryAfter=3600)["items"]
    assert (settled["state"], settled["attempts"]) == ("pending", 1)
    assert puller.claim() == []
    # A program's delivery is leased by the broker's dispatcher.
    site.agent("carried", command=["sh", "-c", "cat >/dev/null; sleep 5; echo done"])
    asked = site.ask("@carried")
    events = eventually(lambda: _list_leased(site, asked["flightId"]))
    assert events[0]["payload"]["record"]["leasedBy"] not in (None, puller.id)
    assert "agt_" not in str(events[0]["payload"]["record"]["leasedBy"])
    site.post(f"/v1/flights/{asked['flightId']}/cancel")


def _seconds(text: str) -> float:
    hours, minutes, seconds = text[11:-1].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _list_leased(site: Site, flight: str) -> list[Any]:
    events = site.log(family="collab.delivery.leased")
    return [event for event in events if event["payload"]["record"]["flightId"] == flight]


@pytest.mark.rows("R2.1-18", "R2.1-19")
def test_an_answer_brings_its_work_item_in_the_same_transaction(site: Site) -> None:
    asker, responder = site.agent("q-asker"), site.agent("q-responder")
    question = asker.post("/v1/questions", to="@q-responder", body="Which colour?")
    assert "progress" not in question
    told = asker.refused("POST", "/v1/questions", to="@q-responder", body="x", progress={"percent": 5})
    assert told["field"] == "progress"
    before = site.end_of_log()
    refused = responder.refused(
        "POST",
        f"/v1/questions/{question['id']}/answer",
        answer="red",
        spawnWork={"title": "paint", "ownerId": "@nobody-here"},
    )
    assert refused["code"] == "unknown_target"
    assert (
        site.events_about(before, question["id"], "collab.work_item") == []
    )  # neither the answer nor the item
    answered = responder.post(
        f"/v1/questions/{question['id']}/answer",
        answer="red",
        spawnWork={"title": "paint", "ownerId": "@q-responder"},
    )
    assert (answered["state"], answered["workItem"]["title"]) == ("answered", "paint")
    events = site.log(before)
    wanted = [event for event in events if event["type"].startswith(("collab.question", "collab.work_item"))]
    assert {event["type"] for event in wanted} == {
        "collab.question.answered",
        "collab.work_item.created",
    }
    assert len({event["time"] for event in wanted}) == 1


@pytest.mark.rows("R2.1-21", "R2.1-22", "R2.2-78")
def test_attention_has_kinds_sources_risks_and_actions(site: Site) -> None:
    made = site.agent("needy")
    kinds = ("approval", "question", "permission", "waiting", "review", "failure", "setup")
    for kind in kinds:
        raised = made.post("/v1/attention", title=f"a {kind}", kind=kind, risk="high")
        assert (raised["kind"], raised["risk"], raised["state"] in ("open", "notified")) == (
            kind,
            "high",
            True,
        )
        assert raised["source"] == f"agent:{made.id}" or made.id in str(raised["source"])
        assert raised["actions"]
        assert raised["returnPath"] is not None
    consult = made.post("/v1/attention/consult", question="tabs?", defaultAction="spaces")
    assert (consult["kind"], consult["defaultAction"]) == ("consult", "spaces")
    told = made.refused("POST", "/v1/attention/consult", question="tabs?")
    assert "defaultAction" in told["message"]
    notice = made.post("/v1/attention/notify", message="done")
    assert notice["kind"] == "notify"
    assert {action["move"] for action in notice["actions"]} == {"dismiss"}  # no answer is expected
    # Each move from the table.
    moves: tuple[tuple[str, dict[str, str], str], ...] = (
        ("approve", {}, "resolved"),
        ("deny", {}, "denied"),
        ("dismiss", {}, "dismissed"),
    )
    for move, body, state in (*moves, ("answer", {"answer": "yes"}, "answered")):
        item = made.post("/v1/attention", title=move, options=["yes", "no"])
        settled = site.post(f"/v1/attention/{item['id']}/{move}", **body)
        assert settled["state"] == state
        told = site.refused("POST", f"/v1/attention/{item['id']}/dismiss")
        assert told["code"] == "wrong_state"


@pytest.mark.rows("R2.1-24", "R2.1-25", "R2.1-27", "R3.5-23")
def test_a_card_is_a_return_address_without_a_session(site: Site) -> None:
    made = site.agent("carded")
    card = made.post("/v1/cards")
    names = ("expiresAt", "maxUses", "uses", "createdBy", "replyToSessionId", "cleanupReason")
    assert all(name in card for name in names)
    assert (card["maxUses"], card["uses"], card["createdBy"], card["state"]) == (1, 0, made.id, "active")
    assert made.get("/v1/sessions", agent="@carded")["items"] == []  # nobody runs
    site.post("/v1/messages", to=card["id"], body="once")
    assert made.texts() == ["once"]
    assert site.get(f"/v1/cards/{card['id']}")["state"] == "used"
    told = site.refused("POST", "/v1/messages", to=card["id"], body="twice")
    assert (told["code"], told["state"], told["uses"]) == ("expired_card", "used", 1)
    assert told["remedies"]
    revoked = made.post("/v1/cards", maxUses=5)
    assert made.post(f"/v1/cards/{revoked['id']}/revoke")["state"] == "revoked"
    short = made.post("/v1/cards", expiresIn=0.2, maxUses=100000)
    told = eventually(lambda: _get_expired(site, short["id"]))
    assert (told["code"], told["state"]) == ("expired_card", "expired")


def _get_expired(site: Site, card: str) -> Any:
    status, answer = site.call("POST", "/v1/messages", to=card, body="late")
    return answer if status >= 400 else None


@pytest.mark.rows("R2.1-35", "R2.1-36")
def test_talk_and_work_are_apart(site: Site) -> None:
    made = site.agent("worker-apart")
    item = site.post("/v1/work", title="the form", ownerId="@worker-apart")
    told = [one for one in made.get("/v1/inbox")["items"] if one.get("message")]
    message = told[-1]["message"]
    assert message["workItemId"] == item["id"]
    assert not {"title", "state", "progress", "ownerId", "nextMoveOwnerId"} & message.keys()
    made.post(f"/v1/work/{item['id']}/start")
    made.post(f"/v1/work/{item['id']}/progress", summary="half of it", percent=50)
    assert site.get(f"/v1/messages/{message['id']}")["body"] == message["body"]
    assert site.get(f"/v1/work/{item['id']}")["progress"]["percent"] == 50


# The name that is sent, the request that takes it, and the names under which the answer gives it.
@pytest.mark.rows("R2.1-38", "R2.1-39", "R2.1-40", "R2.1-41", "R2.1-42", "R2.1-44", "R2.1-47")
@pytest.mark.rows("R2.1-48", "R2.1-49", "R2.1-52")
def test_seed_names_are_read_and_sent(site: Site) -> None:
    folder = str(site.shell.project("seeds"))
    wish = {"definitionId": "seeds", "workspaceQualifier": "w", "profile": "p", "projectPath": folder}
    made = Agent(site, site.post("/v1/agents", **wish))
    record = made.record
    assert record["projectPath"] == record["projectRoot"] == folder
    assert (record["definitionId"], record["workspaceQualifier"], record["profile"]) == ("seeds", "w", "p")
    assert record["logicalAgentId"] == "@seeds.w.profile:p"
    assert record["authorityNode"] == record["node"]
    assert record["workspaceId"].startswith("prj_")
    assert record["status"] == "offline"
    endpoint = made.endpoint(harnessType="codex", model="gpt-5.5", authorityNode=record["node"])
    names = ("agentId", "authorityNode", "harness", "model", "transport", "sessionId", "state", "preferred")
    assert all(name in endpoint for name in (*names, "permissionProfile", "wakePolicy", "lastSeen"))
    assert (endpoint["harness"], endpoint["harnessType"]) == ("codex", "codex")
    assert (endpoint["transport"], endpoint["agentId"]) == ("pull", made.id)
    for transport in ("process", "socket", "acp", "tmux", "pull"):
        assert made.endpoint(harness="codex", transport=transport)["transport"] == transport
    told = made.refused("POST", "/v1/endpoints", transport="pigeon")
    assert told["field"] == "transport"
    # What makes it this endpoint never changes; another process is another endpoint.
    for field, value in (("harness", "claude"), ("node", "elsewhere"), ("agentId", "agt_x")):
        told = site.refused("PATCH", f"/v1/endpoints/{endpoint['id']}", **{field: value})
        assert told["field"] == field
    assert made.endpoint(harness="codex", model="gpt-5.5")["id"] != endpoint["id"]

    asked = made.post("/v1/asks", to="operator", body="Which?")
    assert asked["invocationId"] == asked["askId"]
    flight = site.flight(asked["invocationId"])  # the one is read where the other is
    assert (flight["invocationId"], flight["askId"], flight["flightId"]) == (asked["askId"],) * 2 + (
        asked["flightId"],
    )
    item = site.post("/v1/work", title="x", ownerId=made.address)
    assert item["ownerId"] == item["nextMoveOwnerId"] == made.id
    waits = made.post(f"/v1/work/{item['id']}/start")
    waits = made.post(f"/v1/work/{item['id']}/wait", on="actor", ref="operator", nextMoveOwnerId="operator")
    assert waits["nextMoveOwnerId"] == site.resolve("operator")["agentId"]
    sent = site.post("/v1/messages", to=made.address, body="hi", inReplyTo=asked["messageId"])
    shown = site.get(f"/v1/messages/{sent['messageId']}")
    assert (shown["inReplyTo"], shown["conversationId"]) == (asked["messageId"], sent["conversationId"])
    assert (shown["targetAgents"], shown["mentions"]) == ([made.id], [])


@pytest.mark.rows("R2.1-45", "R2.1-46", "R0-66")
def test_the_status_of_an_agent(site: Site) -> None:
    made = site.agent("stat")
    assert site.show("@stat")["status"] == "offline"
    endpoint = made.endpoint()
    for state, status in (("idle", "online"), ("working", "online"), ("unreachable", "unreachable")):
        site.patch(f"/v1/endpoints/{endpoint['id']}", state=state) if state != "idle" else None
        assert site.show("@stat")["status"] == status, state
    made.post(f"/v1/endpoints/{endpoint['id']}/heartbeat")
    assert site.show("@stat")["status"] == "online"
    site.patch(f"/v1/endpoints/{endpoint['id']}", state="idle")
    asked = site.ask("@stat")
    made.claim()
    made.post(f"/v1/flights/{asked['flightId']}/start")
    made.post(f"/v1/flights/{asked['flightId']}/wait", on="actor", ref="operator", reason="needs a word")
    assert site.show("@stat")["status"] == "waiting"
    made.post("/v1/attention/need", question="may I?")
    assert site.show("@stat")["status"] == "needs_attention"
    site.agent("stat-waking").endpoint(state="waking")
    assert site.show("@stat-waking")["status"] == "waking"
    # Wakeable is another word: this one is offline and can be woken.
    site.agent("sleeper", harness="echo")
    assert site.show("@sleeper")["status"] == "offline"
    assert site.resolve("@sleeper")["action"] == "start"
    assert site.post("/v1/agents/%40sleeper/wake")["sessionId"]


@pytest.mark.rows("R2.1-50")
def test_an_endpoints_wake_policy_comes_before_its_agents(site: Site) -> None:
    made = site.agent("policy", wakePolicy="manual", command=["cat"])
    held = site.ask("@policy")
    assert (held["state"], held["phase"]) == ("queued", "held")
    made.endpoint(harness="command", wakePolicy="on_demand")
    assert site.ask("@policy")["phase"] != "held"


@pytest.mark.rows("R2.1-32", "R3.7-1", "R3.7-3", "R3.7-4", "R3.7-5", "R3.7-6", "R3.7-8")
def test_usage_is_in_one_of_two_ledgers(site: Site) -> None:
    made = site.agent("spender", harness="echo")
    asked = site.ask("@spender", wait=20)
    names = ("dispatchAttempts", "wakeFailures", "diagnosticsGenerated", "orientationCommandsAvoided")
    counters = dict.fromkeys(names, 2)
    refs = {"messageId": asked["messageId"], "askId": asked["askId"], "flightId": asked["flightId"]}
    for ledger in ("protocol_overhead", "harness_execution"):
        for kind in (
            "boilerplate",
            "routing",
            "diagnostic",
            "onboarding",
            "feature_guidance",
            "work_context",
        ):
            found = made.post(
                "/v1/usage", category=ledger, valueClass=kind, promptTokens=2, completionTokens=3, model="m",
                harness="echo", usageSource="tokenizer_estimate", counters=counters, **refs,
            )  # fmt: skip
            facts = (found["category"], found["valueClass"], found["totalTokens"], found["estimated"])
            assert facts == (ledger, kind, 5, True)
            assert refs.items() <= found.items()
            assert (found["invocationId"], found["counters"]) == (asked["askId"], counters)
    sources = {
        "provider_exact": False,
        "tokenizer_estimate": True,
        "char_heuristic": True,
        "manual_estimate": True,
    }
    for source, estimated in sources.items():
        found = made.post("/v1/usage", usageSource=source, promptTokens=1)
        assert (found["usageSource"], found["estimated"]) == (source, estimated)
    told = made.refused("POST", "/v1/usage", category="both")
    assert told["field"] == "category"
    report = site.get("/v1/usage", agent="@spender")
    assert {*report["totals"]} == {"protocol_overhead", "harness_execution"}  # no sum mixes them
    assert all({"key", "protocolOverhead", "harnessExecution"} == one.keys() for one in report["trend"])
