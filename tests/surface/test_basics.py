"""Decisions that everything rests on (0), events (2.3) and what refusals carry (3.5), read at the surface."""

import base64
import datetime as dt
import hashlib
import json
import re
import socket
from typing import Any

import pytest

from tests.surface.site import Site

pytestmark = pytest.mark.slow


# -- bodies and attachments -------------------------------------------------------------------------

BODIES = [
    ("R0-67", "# Not *closed\n- [x"),
    ("R0-70", "  white space \t\n\n  stays  \n"),
    ("R0-70", "line\r\nends\rand\nothers"),
    ("R0-70", "e\u0301 is not \u00e9; \u2066a\u2069; \U0001f9ed"),
    ("R0-70", '{"json": "\\u0041"}'),
]


@pytest.mark.parametrize(("row", "body"), BODIES)
def test_a_body_comes_back_as_it_was_given(site: Site, row: str, body: str) -> None:
    agent = site.agent(f"body-{hashlib.sha256(body.encode()).hexdigest()[:8]}")
    sent = site.post("/v1/messages", to=agent.address, body=body)
    assert site.get(f"/v1/messages/{sent['messageId']}")["body"] == body
    assert agent.texts() == [body]
    (item,) = agent.tool("messages_inbox")["items"]
    assert item["body"] == body


@pytest.mark.rows("R0-69")
def test_a_body_has_256_kib_of_text(site: Site) -> None:
    agent = site.agent("long-body")
    site.post("/v1/messages", to=agent.address, body="x" * 262_144)
    site.post("/v1/messages", to=agent.address, body="é" * 131_072)  # bytes count
    for body in ("x" * 262_145, "é" * 131_073):
        told = site.refused("POST", "/v1/messages", to=agent.address, body=body)
        assert (told["code"], told["limit"]) == ("too_large", 262_144)
        assert told["size"] > 262_144
    told = site.refused("POST", "/v1/messages", to=agent.address, body="a\0b")
    assert told["code"] == "bad_request"
    raw = json.dumps({"to": agent.address, "body": "a\ud800b"}).encode()
    assert site.daemon.call("POST", "/v1/messages", raw).json["code"] == "bad_request"
    assert len(agent.texts()) == 2


@pytest.mark.rows("R0-71", "R0-72", "R0-73")
def test_an_attachment_is_stored_under_its_hash(site: Site) -> None:
    data = b"the bytes of a file"
    sha = hashlib.sha256(data).hexdigest()
    put = site.post("/v1/attachments", name="a.txt", data=base64.b64encode(data).decode())
    assert (put["sha256"], put["size"]) == (sha, len(data))
    stored = [file for file in (site.shell.home / "blobs").rglob("*") if file.is_file()]
    assert data in [file.read_bytes() for file in stored]
    assert any(sha in file.as_posix().replace("/", "") for file in stored)
    large = base64.b64encode(b"\0" * (10 * 1024 * 1024 + 1)).decode()
    told = site.refused("POST", "/v1/attachments", name="b", data=large)
    assert (told["code"], told["limit"]) == ("too_large", 10 * 1024 * 1024)


# -- defaults ---------------------------------------------------------------------------------------

DEFAULTS = [
    ("R0-6", "periods.idempotencyKeys", 24 * 3600),
    ("R0-72", "limits.attachment", 10 * 1024 * 1024),
    ("R0-74", "limits.openFlights", 32),
    ("R0-75", "limits.asksPerMinute", 120),
    ("R0-76", "limits.wakesPerHour", 120),
    ("R0-77", "limits.askChain", 6),
    ("R0-78", "limits.fanOut", 8),
    ("R0-79", "periods.lease", 60),
    ("R0-81", "limits.attempts", 8),
    ("R0-81", "periods.backOffFirst", 2),
    ("R0-81", "periods.backOffMost", 300),
    ("R1.5-15", "limits.depthCap", 2),
    ("R3.1-20", "periods.queueExpiry", 24 * 3600),
]


@pytest.fixture(scope="module")
def settings(site: Site) -> Any:
    """The settings of a home without a file of its own."""
    home = site.shell.folder / "plain-home"
    home.mkdir(mode=0o700, exist_ok=True)
    return site.shell.data("config", SCOUT_HOME=str(home))["settings"]


@pytest.mark.parametrize(("row", "key", "value"), DEFAULTS)
def test_a_default(settings: Any, row: str, key: str, value: Any) -> None:
    assert (settings[key]["value"], settings[key]["source"]) == (value, "default")


@pytest.mark.rows("R0-43")
def test_no_setting_configures_workers(settings: Any) -> None:
    assert not [key for key in settings if "worker" in key.lower() or "process" in key.lower()]


@pytest.mark.rows("R0-10")
def test_durations_are_seconds(site: Site) -> None:
    card = site.agent("seconds").post("/v1/cards", expiresIn=90)
    made, over = (dt.datetime.fromisoformat(card[key]) for key in ("createdAt", "expiresAt"))
    assert (over - made).total_seconds() == 90


@pytest.mark.rows("R0-59")
def test_the_node_is_the_folded_host_name(site: Site) -> None:
    host = re.sub(r"[^a-z0-9]+", "-", socket.gethostname().lower()).strip("-")
    assert site.get("/v1/status")["node"] == host
    assert site.get("/v1/nodes")["items"][0]["name"] == host


@pytest.mark.rows("R0-46")
def test_lists_are_newest_first_and_talk_is_oldest_first(site: Site) -> None:
    made = [site.agent(f"order{number}") for number in range(3)]
    listed = [one["path"] for one in site.get("/v1/agents", query="order")["items"]]
    assert listed == [one.path for one in reversed(made)]
    for number in range(3):
        site.post("/v1/messages", to="@order0", body=str(number))
    said = site.get("/v1/messages", to="@order0")["items"]
    assert [one["body"] for one in said] == ["0", "1", "2"]
    seqs = [event["seq"] for event in site.get("/v1/log", agent="@order0")["items"]]
    assert seqs == sorted(seqs)
    work = [site.post("/v1/work", title=str(number), ownerId="@order0")["id"] for number in range(2)]
    assert [one["id"] for one in site.get("/v1/work", ownerId="@order0")["items"]] == work[::-1]


@pytest.mark.rows("R0-82")
def test_the_limit_of_open_flights_is_in_the_refusal(site: Site) -> None:
    site.agent("brimful", wakePolicy="manual", command=["cat"])
    for _ in range(32):
        site.ask("@brimful")
    told = site.refused("POST", "/v1/asks", to="@brimful", body="x")
    assert (told["code"], told["limit"]) == ("rate_limited", 32)


@pytest.mark.rows("R0-91")
def test_what_ends_stays(site: Site) -> None:
    agent = site.puller("stays")
    asked = site.ask("@stays")
    site.post(f"/v1/flights/{asked['flightId']}/cancel")
    channel = agent.post("/v1/channels", name="stays")
    agent.post("/v1/channels/stays/archive")
    card = agent.post("/v1/cards")
    agent.post(f"/v1/cards/{card['id']}/revoke")
    endpoint = agent.endpoint()
    site.call("DELETE", f"/v1/endpoints/{endpoint['id']}")
    site.post("/v1/agents/%40stays/retire")
    assert site.flight(asked["flightId"])["state"] == "cancelled"
    assert site.get(f"/v1/conversations/{channel['id']}")["archivedAt"]
    assert site.get(f"/v1/cards/{card['id']}")["state"] == "revoked"
    assert site.show(agent.id)["lifecycle"] == "retired"
    assert site.get(f"/v1/messages/{asked['messageId']}")["body"]
    paths: dict[str, Any] = site.get("/openapi.json")["paths"]
    assert [path for path, verbs in paths.items() if "delete" in verbs] == ["/v1/endpoints/{endpointId}"]


# -- events -----------------------------------------------------------------------------------------


@pytest.mark.rows("R2.3-12")
def test_each_change_is_an_event(site: Site) -> None:
    before = site.end_of_log()
    agent, other = site.agent("evented"), site.agent("evented2")
    agent.endpoint()
    site.patch("/v1/agents/%40evented", config={"name": "E"})
    agent.post("/v1/channels", name="evented", members=["@evented2"])
    agent.post("/v1/channels/evented/policy", quiet=True)
    sent = agent.post("/v1/messages", channel="evented", body="x")
    other.post(f"/v1/conversations/{sent['conversationId']}/read")
    item = agent.post("/v1/attention/need", question="may I?")
    site.post(f"/v1/attention/{item['id']}/answer", answer="yes")
    site.post("/v1/aliases", name="evented-alias", target="@evented")
    card = agent.post("/v1/cards")
    agent.post(f"/v1/cards/{card['id']}/revoke")
    agent.post("/v1/usage", promptTokens=1)
    site.post("/v1/agents/%40evented2/retire")
    site.post(f"/v1/agents/{other.id}/revive")
    types = {event["type"].removeprefix("collab.") for event in site.log(before)}
    wanted = {
        "agent.registered", "agent.updated", "agent.online", "agent.retired", "agent.revived",
        "conversation.created", "conversation.member", "conversation.cursor", "conversation.policy",
        "usage.reported",
    }  # fmt: skip
    assert wanted <= types, wanted - types
    for family in ("attention.", "alias.", "card.", "endpoint.", "message."):
        assert any(kind.startswith(family) for kind in types), family
    typed = site.shell.say("log", "--json", "--limit", "200", "--newest")
    assert "collab.usage.reported" in typed


@pytest.mark.rows("R2.3-17")
def test_a_sign_of_life_alone_is_no_event(site: Site) -> None:
    agent = site.agent("alive")
    endpoint = agent.endpoint()
    agent.post(f"/v1/endpoints/{endpoint['id']}/heartbeat")
    before = site.end_of_log()
    for _ in range(5):
        agent.post(f"/v1/endpoints/{endpoint['id']}/heartbeat")
    assert [event for event in site.log(before) if agent.id in str(event)] == []


@pytest.mark.rows("R2.3-18")
def test_a_heartbeat_that_brings_an_endpoint_back_is_an_event(site: Site) -> None:
    agent = site.agent("revenant")
    endpoint = agent.endpoint()
    site.patch(f"/v1/endpoints/{endpoint['id']}", state="unreachable", reason="silent")
    before = site.end_of_log()
    agent.post(f"/v1/endpoints/{endpoint['id']}/heartbeat")
    types = {event["type"] for event in site.log(before) if agent.id in str(event)}
    assert "collab.agent.heartbeat" in types
    assert "collab.agent.online" in types


# -- refusals ---------------------------------------------------------------------------------------

# A request that is refused, its code, and the facts that it carries.
REFUSALS: list[tuple[str, str, str, dict[str, Any], str, tuple[str, ...]]] = [
    ("R3.5-9", "GET", "/v1/resolve", {"address": "@a..b"}, "malformed_address", ("position", "expected")),
    ("R3.5-15", "POST", "/v1/asks", {"targetSessionId": "ses_01m7hqsxx3k4q5r6s7t8v9w0x1", "body": "x"}, "no_session", ("session",)),
    ("R3.5-20", "POST", "/v1/asks", {"to": "/system/sweeper", "body": "x"}, "target_offline", ("address", "reason")),
    ("R3.5-25", "GET", "/v1/flights/flt_01m7hqsxx3k4q5r6s7t8v9w0x1", {}, "not_found", ("noun", "id")),
    ("R3.5-25", "GET", "/v1/tokens", {"token": "not-a-token"}, "unauthenticated", ("needs",)),
    ("R3.5-27", "POST", "/v1/messages", {"to": "@x", "body": 5}, "bad_request", ("field", "problem")),
]  # fmt: skip


@pytest.mark.rows("R3.5-1", "R3.5-3", "R0-93", "R3.5-9", "R3.5-20", "R3.5-25")
def test_a_refusal_carries_its_facts(site: Site) -> None:
    operations = {
        one["operationId"]
        for routes in site.get("/openapi.json")["paths"].values()
        for one in routes.values()
    }
    for row, method, path, body, code, facts in REFUSALS:
        told = site.refused(method, path, **body)
        assert told["code"] == code, (row, told)
        assert isinstance(told["candidates"], list)
        assert all(told[name] not in (None, "", []) for name in facts), (row, told)
        for remedy in told["remedies"]:
            assert {"operation", "parameters", "command"} <= remedy.keys()
            assert remedy["command"].startswith("scout ")
            assert remedy["operation"] in operations or remedy["operation"] in (
                "explain",
                "doctor",
                "runtimes",
            )
        values = [str(told[name]) for name in facts if isinstance(told[name], str)]
        assert any(value in told["message"] for value in values) or not values, (row, told)


@pytest.mark.rows("R3.5-25")
def test_who_may_not_is_told_which_credential_would_do(site: Site) -> None:
    agent, other = site.agent("denied"), site.agent("denier")
    told = agent.refused("GET", "/v1/tokens")
    assert (told["code"], bool(told["needs"])) == ("forbidden", True)
    question = site.post("/v1/questions", to="@denier", body="Which?")
    told = agent.refused("POST", f"/v1/questions/{question['id']}/answer", answer="x")
    assert told["code"] in ("not_owner", "not_found")
    assert told["needs"] or told["remedies"]
    assert other.post(f"/v1/questions/{question['id']}/answer", answer="x")["state"] == "answered"


@pytest.mark.rows("R7-1", "R4.2-4")
def test_no_field_changes_who_sends_and_an_unknown_one_is_refused(site: Site) -> None:
    agent, other = site.agent("honest"), site.agent("framed")
    for name in ("sender", "from", "actor", "senderId", "createdBy"):
        told = agent.refused("POST", "/v1/messages", to="operator", body="x", **{name: other.id})
        assert (told["code"], told["field"]) == ("bad_request", name)
    sent = agent.post("/v1/messages", to="operator", body="it was me")
    assert site.get(f"/v1/messages/{sent['messageId']}")["sender"] == agent.id
    told = agent.refused("POST", "/v1/messages", to="operator", bdy="x")
    assert (told["code"], told["field"]) == ("bad_request", "bdy")
    assert told["candidates"] == [{"address": "body"}]


@pytest.mark.rows("R4.3-3")
def test_a_tools_result_is_structured_and_a_line_of_text(site: Site) -> None:
    agent = site.agent("liner")
    found = agent.result("agents_resolve", address="@liner")
    assert found.structured_content["path"] == agent.path
    (shown,) = found.content
    assert agent.address in shown.text
    assert len(shown.text.splitlines()) == 1
    refused = agent.result("agents_resolve", address="@linr")
    assert refused.is_error
    assert refused.structured_content["remedies"][0]["arguments"] == {"address": "@liner"}
