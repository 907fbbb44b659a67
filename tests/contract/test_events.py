"""Events (2.3): the envelope, the families, what the metadata can explain, and how old versions are read."""

import json
from typing import Any

import pytest

from scout.base.codec import encode, encode_for_store
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.model.access.token import hash_secret
from scout.model.alias import AliasTarget
from scout.model.endpoint import EndpointMove, EndpointState, is_news, move_endpoint, record_heartbeat
from scout.model.events.asks import Nudge
from scout.model.events.envelope import Changed, Event, Metadata
from scout.model.events.event_types import ALL, get_event_type, read_event
from scout.model.events.presence import Reached
from scout.model.events.talk import MessagePosted, Opened, build_post, read_message
from scout.model.ref import Ref
from scout.model.schema import build_model_schema
from scout.policy.directory import OUTSIDE
from scout.policy.resolver.resolve import resolve
from tests.model.generate import wire_names
from tests.model.samples import (
    ALICE,
    BOB,
    CONVERSATION,
    MESSAGE,
    T0,
    a_binding,
    a_card,
    a_conversation,
    a_delivery,
    a_flight,
    a_grant,
    a_key,
    a_member,
    a_message,
    a_question,
    a_schedule,
    a_session,
    a_token,
    a_usage,
    a_user,
    a_work_item,
    an_agent,
    an_alias,
    an_ask,
    an_attention,
    an_endpoint,
    ident,
)
from tests.policy.fleets import NOW, agent, alias, fleet

ENVELOPE = {"id", "seq", "time", "type", "v", "source", "target", "payload", "metadata"}


def an_event(kind: str, payload: Record, **more: Any) -> dict[str, Any]:
    """An event as it is written, made by hand."""
    written: dict[str, Any] = {
        "id": ident("evt"),
        "seq": 7,
        "time": "2026-11-15T12:00:00.000Z",
        "type": kind,
        "v": 1,
        "source": f"agent:{ALICE}",
        "target": f"conversation:{CONVERSATION}",
        "payload": json.loads(encode(payload)),
        "metadata": {},
    }
    return {**written, **more}


def read(written: dict[str, Any], *more: Any) -> Event:
    return read_event(json.dumps(written), *more)


def build_changed(record: Any) -> Record:
    return Changed(record=record)


REACHED = Reached(agent_id=ALICE, endpoint_id=ident("ept"))
NUDGE = Nudge(holder_id=BOB, about=Ref.to(ident("wrk")), rule="work item in review", count=1)

# family, what is in it, a payload, its events
FAMILIES: list[tuple[str, Record, str]] = [
    ("message", build_post(a_message()), "posted"),
    ("question", build_changed(a_question()), "created answered closed declined reopened"),
    ("work_item", build_changed(a_work_item()), "created updated"),
    (
        "delivery",
        build_changed(a_delivery()),
        "requested leased woken acked nacked failed dead_lettered cancelled",
    ),
    ("agent", build_changed(an_agent()), "registered updated sleeping retired revived"),
    ("agent", REACHED, "heartbeat online offline"),
    ("ask", build_changed(an_ask()), "created"),
    ("flight", build_changed(a_flight()), "queued started waiting resumed completed failed cancelled"),
    ("endpoint", build_changed(an_endpoint()), "registered attaching waking ready lost failed stale stopped"),
    ("session", build_changed(a_session()), "started ready ended lost resumed"),
    ("conversation", Opened(record=a_conversation(), members=(a_member(),)), "created"),
    ("conversation", build_changed(a_conversation()), "policy"),
    ("conversation", build_changed(a_member()), "member cursor"),
    (
        "attention",
        build_changed(an_attention()),
        "created notified resolved denied answered expired dismissed",
    ),
    ("alias", build_changed(an_alias()), "created retargeted broken repaired removed"),
    ("card", build_changed(a_card()), "created used expired revoked"),
    ("binding", build_changed(a_binding()), "created closed"),
    ("user", build_changed(a_user()), "created updated retired revived"),
    ("key", build_changed(a_key()), "linked freed"),
    ("schedule", build_changed(a_schedule()), "created fired paused resumed ended"),
    ("grant", build_changed(a_grant()), "created revoked expired"),
    ("token", build_changed(a_token()), "created revoked expired"),
    ("usage", build_changed(a_usage()), "reported"),
    ("sweep", NUDGE, "nudged"),
]
WRITTEN = [
    pytest.param(f"collab.{family}.{word}", payload, id=f"{family}.{word}")
    for family, payload, words in FAMILIES
    for word in words.split()
]


@pytest.mark.rows("R2.3-6", "R2.3-7", "R2.3-8", "R2.3-9", "R2.3-10", "R2.3-11", "R2.3-12", "R2.3-13")
@pytest.mark.rows("R2.3-14", "R2.3-15", "R2.3-16", "R0-83")
@pytest.mark.parametrize(("kind", "payload"), WRITTEN)
def test_each_event_of_a_family_can_be_written_and_read(kind: str, payload: Record) -> None:
    found = read(an_event(kind, payload))
    assert (get_event_type(type(found)), found.v) == (kind, 1)
    assert found.payload == payload
    assert json.loads(encode(found))["type"] == kind


@pytest.mark.rows("R2.3-6")
def test_a_question_has_no_other_events() -> None:
    words = {get_event_type(kind).rpartition(".")[2] for kind in ALL if ".question." in get_event_type(kind)}
    assert words == {"created", "answered", "closed", "declined", "reopened"}


@pytest.mark.rows("R2.3-2")
@pytest.mark.parametrize("kind", ALL, ids=get_event_type)
def test_every_event_has_one_envelope(kind: Any) -> None:
    assert wire_names(kind) | {"type"} == ENVELOPE
    assert set(build_model_schema()["$defs"][kind.__name__]["properties"]) == ENVELOPE


@pytest.mark.rows("R2.3-2", "R2.3-5")
def test_a_posted_message_is_text_and_kind_in_the_envelope() -> None:
    event = MessagePosted(
        id=ident("evt"),
        seq=7,
        time=T0,
        source=Ref.to(ALICE),
        target=Ref.to(CONVERSATION),
        payload=build_post(a_message(body="Hello.\n")),
    )
    expected = an_event("collab.message.posted", build_post(a_message(body="Hello.\n")))
    assert json.loads(encode(event)) == expected
    assert expected["payload"] == {"messageId": MESSAGE, "text": "Hello.\n", "kind": "chat"}


@pytest.mark.rows("R2.3-3")
@pytest.mark.parametrize("end", ["source", "target"])
def test_an_event_has_one_source_and_one_target(end: str) -> None:
    written = an_event("collab.message.posted", build_post(a_message()))
    assert getattr(read({**written, end: f"work:{ident('wrk')}"}), end) == f"work:{ident('wrk')}"
    several = [f"agent:{ALICE}", f"agent:{BOB}"]
    for wrong in (None, several, "", "@arc", ALICE, f"agent:{ident('wrk')}", f"agents:{ALICE}", "agent:arc"):
        with pytest.raises(Refused) as caught:
            read({**written, end: wrong})
        assert isinstance(caught.value.diagnostic, BadRequest)
    del written[end]
    with pytest.raises(Refused):
        read(written)


# ----------------------------------------------------------------------------------------- versions


def lift_once(fields: dict[str, Any]) -> dict[str, Any]:
    """Version 1 called the text `body`."""
    payload = dict(fields["payload"])
    payload["text"] = payload.pop("body")
    return {**fields, "payload": payload}


def lift_twice(fields: dict[str, Any]) -> dict[str, Any]:
    """Version 2 had no kind."""
    return {**fields, "payload": {**fields["payload"], "kind": "chat"}}


POSTED = "collab.message.posted"
LIFTS = {(POSTED, 1): lift_once, (POSTED, 2): lift_twice}


@pytest.mark.rows("R2.3-4", "R0-84")
@pytest.mark.parametrize(
    ("version", "payload"),
    [
        (1, {"messageId": MESSAGE, "body": "hi"}),
        (2, {"messageId": MESSAGE, "text": "hi"}),
        (3, {"messageId": MESSAGE, "text": "hi", "kind": "chat"}),
    ],
)
def test_an_old_version_is_lifted_when_it_is_read(version: int, payload: dict[str, Any]) -> None:
    old = {**an_event(POSTED, build_post(a_message())), "v": version, "payload": payload}
    text = json.dumps(old)
    found = read_event(text, LIFTS)
    assert isinstance(found, MessagePosted)
    assert (found.v, found.payload.text, found.payload.kind.value) == (3, "hi", "chat")
    assert found == read_event(text, LIFTS), "the same bytes are read the same, again and again"
    assert json.loads(text) == old


@pytest.mark.rows("R0-83", "R2.3-4")
def test_a_version_belongs_to_one_type() -> None:
    other = an_event("collab.message.redacted", build_changed(a_message()))
    assert read(other, LIFTS).v == 1, "another type of version 1 is not lifted"
    assert read({**other, "v": 5}, LIFTS).v == 5
    with pytest.raises(Refused):
        read({**an_event(POSTED, build_post(a_message())), "v": "1"})


# ----------------------------------------------------------------------------------------- contents


@pytest.mark.rows("R2.3-15")
def test_no_token_event_holds_the_secret() -> None:
    secret = "a-very-secret-word"
    for word in ("created", "revoked", "expired"):
        event = read(an_event(f"collab.token.{word}", build_changed(a_token(hashed=hash_secret(secret)))))
        assert secret.encode() not in encode(event) + encode_for_store(event)
        told = an_event(f"collab.token.{word}", build_changed(a_token()))
        told["payload"]["record"]["secret"] = secret
        assert secret.encode() not in encode_for_store(read(told)), "there is no field that would keep it"


@pytest.mark.rows("R2.3-18")
def test_a_heartbeat_is_written_when_reachability_changes_or_every_ten_minutes() -> None:
    idle = an_endpoint(state=EndpointState.IDLE, last_seen=T0)

    def news(before: Any, seconds: float, written: Any = T0) -> bool:
        now = T0.plus(seconds)
        return is_news(before, record_heartbeat(before, now), now, written=written)

    assert news(idle, 1, written=None), "the first one"
    beats, last = [30 * n for n in range(1, 61)], 0  # half an hour of heartbeats
    heard, times = idle, list[int]()
    for second in beats:
        now = T0.plus(second)
        after = record_heartbeat(heard, now)
        if is_news(heard, after, now, written=T0.plus(last)):
            times.append(second)
            last = second
        heard = after
    assert times == [600, 1200, 1800]
    for move in (EndpointMove.LOSE, EndpointMove.EXPIRE):
        assert news(move_endpoint(idle, move, T0), 1), "it is back"
    assert news(idle, 91), "it had been silent for too long"
    assert not news(idle, 90)


@pytest.mark.rows("R2.3-20")
def test_metadata_says_who_was_named_and_what_is_answered() -> None:
    beside = {"mentions": ["@arc.main"], "targetAgents": [BOB], "inReplyTo": MESSAGE}
    found = read(an_event(POSTED, build_post(a_message()), metadata=beside))
    assert json.loads(encode(found))["metadata"] == beside
    assert isinstance(found, MessagePosted)
    message = read_message(found)
    assert (message.mentions, message.target_agents, message.in_reply_to) == (("@arc.main",), (BOB,), MESSAGE)


@pytest.mark.rows("R2.3-22")
def test_metadata_says_what_an_address_meant() -> None:
    arc = agent("arc.main")
    directory = fleet(arc)
    directory.add_alias(alias("boss", AliasTarget(agent_id=arc.id), revision=3))
    found = resolve("boss", directory, OUTSIDE, NOW)
    beside = Metadata(resolved=found.canonical, alias_id=found.alias_id, alias_revision=found.alias_revision)
    event = read(an_event(POSTED, build_post(a_message()), metadata=json.loads(encode(beside))))
    assert json.loads(encode_for_store(event))["metadata"] == {
        "resolved": "@arc.main.harness:claude.node:mini",
        "aliasId": "als_boss",
        "aliasRevision": 3,
    }
