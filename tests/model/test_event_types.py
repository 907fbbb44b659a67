import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout.base.codec import decode, encode, encode_for_store, to_plain
from scout.base.refusal import BadRequest, Refused
from scout.model.access.token import Token
from scout.model.delivery import DeliveryMove
from scout.model.events import event_types
from scout.model.events.asks import DELIVERY_EVENTS, FLIGHT_EVENTS, FlightStarted
from scout.model.events.directory import (
    ALIAS_EVENTS,
    BINDING_EVENTS,
    CARD_EVENTS,
    GRANT_EVENTS,
    KEY_EVENTS,
    NODE_EVENTS,
    SCHEDULE_EVENTS,
    TOKEN_EVENTS,
    USER_EVENTS,
    TokenCreated,
    UserCreated,
    UserEvent,
    UserRetired,
    UserRevived,
)
from scout.model.events.envelope import Changed, Event, Metadata, PassedOver, WakeFact
from scout.model.events.event_types import get_event_type, read_event
from scout.model.events.presence import AGENT_EVENTS, ENDPOINT_EVENTS, SESSION_EVENTS
from scout.model.events.reservations import RESERVATION_EVENTS
from scout.model.events.talk import (
    ATTENTION_EVENTS,
    QUESTION_EVENTS,
    MessagePosted,
    Posted,
    build_post,
    read_message,
)
from scout.model.flight import Flight, FlightMove
from scout.model.people.user import UserState
from scout.model.ref import Ref
from tests.model.generate import TIMES, records, wire_names
from tests.model.samples import ALICE, BOB, CONVERSATION, T0, a_flight, a_message, a_user, ident

TYPES = """
collab.agent.heartbeat collab.agent.moved collab.agent.offline collab.agent.online collab.agent.published
collab.agent.registered collab.agent.retired collab.agent.revived collab.agent.sleeping collab.agent.unpublished
collab.agent.updated collab.agent.woken
collab.alias.broken collab.alias.created collab.alias.removed collab.alias.repaired collab.alias.retargeted
collab.allowance.created collab.allowance.revoked
collab.ask.created
collab.attachment.stored
collab.attention.answered collab.attention.created collab.attention.denied collab.attention.dismissed
collab.attention.expired collab.attention.notified collab.attention.resolved
collab.archive.created collab.archive.purged collab.archive.replaced collab.archive.rewritten
collab.binding.closed collab.binding.created collab.binding.reopened
collab.card.created collab.card.expired collab.card.revoked collab.card.used
collab.chat.failed collab.chat.queued collab.chat.received collab.chat.replaced collab.chat.sending
collab.chat.sent collab.chat.stranger
collab.conversation.archived collab.conversation.created collab.conversation.cursor
collab.conversation.member collab.conversation.policy
collab.delivery.acked collab.delivery.cancelled collab.delivery.dead_lettered collab.delivery.failed
collab.delivery.leased collab.delivery.nacked collab.delivery.requested collab.delivery.woken
collab.endpoint.attaching collab.endpoint.claimed collab.endpoint.failed collab.endpoint.lost
collab.endpoint.ready collab.endpoint.recovered collab.endpoint.registered collab.endpoint.released
collab.endpoint.stale collab.endpoint.stopped collab.endpoint.updated collab.endpoint.waking
collab.envelope.accepted collab.envelope.delivered collab.envelope.expired collab.envelope.forgotten collab.envelope.forwarded
collab.envelope.queued collab.envelope.received collab.envelope.refused
collab.flight.cancelled collab.flight.completed collab.flight.failed collab.flight.queued
collab.flight.resumed collab.flight.started collab.flight.updated collab.flight.waiting
collab.grant.created collab.grant.expired collab.grant.revoked
collab.key.code_issued collab.key.code_redeemed collab.key.code_revoked collab.key.freed collab.key.linked
collab.key.updated
collab.message.posted collab.message.redacted
collab.invitation.created collab.invitation.expired collab.invitation.revoked collab.invitation.used
collab.node.admitted collab.node.created collab.node.key_rotated collab.node.left collab.node.lost
collab.node.paused collab.node.recovered collab.node.refused collab.node.removed collab.node.renamed
collab.node.resumed collab.node.updated
collab.question.answered collab.question.closed collab.question.created collab.question.declined
collab.question.reopened
collab.reservation.created collab.reservation.expired collab.reservation.released
collab.schedule.created collab.schedule.ended collab.schedule.failed collab.schedule.fired
collab.schedule.held collab.schedule.paused collab.schedule.resumed collab.schedule.skipped
collab.schedule.updated
collab.session.ended collab.session.lost collab.session.ready collab.session.resumed
collab.session.started collab.session.updated
collab.sweep.nudged collab.sweep.settled
collab.token.created collab.token.expired collab.token.revoked
collab.usage.reported
collab.user.created collab.user.retired collab.user.revived collab.user.updated
collab.work_item.created collab.work_item.updated
"""

FAMILIES: list[Mapping[Any, type[Event]]] = [
    AGENT_EVENTS,
    ALIAS_EVENTS,
    ATTENTION_EVENTS,
    BINDING_EVENTS,
    CARD_EVENTS,
    DELIVERY_EVENTS,
    ENDPOINT_EVENTS,
    FLIGHT_EVENTS,
    GRANT_EVENTS,
    KEY_EVENTS,
    NODE_EVENTS,
    QUESTION_EVENTS,
    RESERVATION_EVENTS,
    SCHEDULE_EVENTS,
    SESSION_EVENTS,
    TOKEN_EVENTS,
    USER_EVENTS,
]


def a_posting(**metadata: Any) -> MessagePosted:
    return MessagePosted(
        id=ident("evt"),
        seq=7,
        time=T0,
        source=Ref.to(ALICE),
        target=Ref.to(CONVERSATION),
        payload=build_post(a_message()),
        metadata=Metadata(**metadata),
    )


def test_every_type_is_there_once() -> None:
    assert sorted(map(get_event_type, event_types.ALL)) == sorted(TYPES.split())


def test_there_is_no_mention_event() -> None:
    assert not [name for name in map(get_event_type, event_types.ALL) if "mention" in name]


def test_each_type_has_its_own_version_and_says_what_it_is() -> None:
    for kind in event_types.ALL:
        assert {"id", "seq", "time", "v", "source", "target", "payload", "metadata"} == wire_names(kind)
        assert (kind.__doc__ or "").strip()


@pytest.mark.parametrize("kind", event_types.ALL, ids=get_event_type)
@settings(max_examples=3)
@given(data=st.data())
def test_sent_or_stored_an_event_comes_back(kind: type[Event], data: st.DataObject) -> None:
    one = data.draw(records(kind))
    assert read_event(encode(one)) == one
    assert read_event(encode_for_store(one)) == one
    assert decode(to_plain(one), event_types.AnyEvent) == one  # pyright: ignore[reportArgumentType] (a union of types)
    assert json.loads(encode(one))["type"] == get_event_type(kind)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_move_has_its_event(family: Mapping[StrEnum, type[Event]]) -> None:
    (moves,) = {type(move) for move in family}
    assert set(family) == set(moves.__members__.values())
    nouns = {get_event_type(kind).split(".")[1] for kind in family.values()}
    assert len(nouns) == 1


def test_a_move_is_told_apart_from_an_equal_word_of_another_noun() -> None:
    assert get_event_type(FLIGHT_EVENTS[FlightMove.CANCEL]) == "collab.flight.cancelled"
    assert get_event_type(DELIVERY_EVENTS[DeliveryMove.CANCEL]) == "collab.delivery.cancelled"


def test_a_message_is_posted_as_text_and_kind() -> None:
    wire = json.loads(encode(a_posting()))
    assert wire["type"] == "collab.message.posted"
    assert wire["payload"] == {"messageId": ident("msg"), "text": "hello", "kind": "chat"}
    assert (wire["source"], wire["target"]) == (f"agent:{ALICE}", f"conversation:{CONVERSATION}")


@given(records(Posted), TIMES)
def test_a_message_comes_back_from_its_event(payload: Posted, time: Any) -> None:
    written = time if payload.imported_from is msgspec.UNSET else payload.written_at or T0
    payload = msgspec.structs.replace(payload, written_at=None if written is time else written)
    one = MessagePosted(
        id=ident("evt"),
        seq=1,
        time=time,
        source=Ref.to(ALICE),
        target=Ref.to(CONVERSATION),
        payload=payload,
        metadata=Metadata(mentions=("@hudson",), target_agents=(BOB,), in_reply_to="msg_1"),
    )
    message = read_message(one)
    assert build_post(message) == payload
    assert (message.sender, message.conversation_id, message.created_at) == (ALICE, CONVERSATION, written)
    assert (message.mentions, message.target_agents, message.in_reply_to) == (("@hudson",), (BOB,), "msg_1")


def test_metadata_explains_the_wake() -> None:
    wake = WakeFact(
        agent_id=BOB,
        rule="next-move owner",
        reason="it owes the review",
        passed_over=(PassedOver(agent_id=ALICE, role="owner", why="the sender"),),
        facts={"duty": {"owner": ALICE}},
    )
    wire = json.loads(encode(a_posting(wake=wake, alias_id=ident("als"), alias_revision=3)))["metadata"]
    assert wire["wake"]["passedOver"] == [{"agentId": ALICE, "role": "owner", "why": "the sender"}]
    assert wire["wake"]["facts"] == {"duty": {"owner": ALICE}}
    assert (wire["aliasId"], wire["aliasRevision"]) == (ident("als"), 3)


def test_what_is_not_known_is_left_out_of_the_metadata() -> None:
    assert json.loads(encode(a_posting()))["metadata"] == {}


def test_no_token_event_has_a_field_for_the_secret() -> None:
    payload: Any = TokenCreated.__annotations__.get("payload", Changed[Token])
    assert payload == Changed[Token]
    assert not {name for name in wire_names(Token) if "secret" in name.lower()}


def test_a_field_of_a_later_version_is_ignored() -> None:
    one = a_posting()
    newer = encode(one).replace(b'"payload":{', b'"mood":"good","payload":{"tone":"loud",')
    assert newer != encode(one)
    assert read_event(newer) == one


@pytest.mark.parametrize("member", ["source", "target"])
@pytest.mark.parametrize("value", ["openagents:codex-luna", "agent:bob", "", None, 5])
def test_source_and_target_are_one_reference_each(member: str, value: object) -> None:
    wire = {**json.loads(encode(a_posting())), member: value}
    with pytest.raises(Refused) as refused:
        read_event(json.dumps(wire))
    assert isinstance(refused.value.diagnostic, BadRequest)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"type": 5}', b'{"type":"collab.banana.eaten"}'])
def test_what_is_no_event_is_refused(data: bytes) -> None:
    with pytest.raises(Refused) as refused:
        read_event(data)
    assert isinstance(refused.value.diagnostic, BadRequest)


# ----------------------------------------------------------------------------------------- versions


def _v2(fields: dict[str, Any]) -> dict[str, Any]:
    """Version 1 called the record `flight`."""
    payload = dict(fields["payload"])
    payload["record"] = payload.pop("flight")
    return {**fields, "payload": payload}


def _v3(fields: dict[str, Any]) -> dict[str, Any]:
    """Version 2 had no reason."""
    return {**fields, "payload": {**fields["payload"], "reason": "unknown"}}


UPCASTS = {("collab.flight.started", 1): _v2, ("collab.flight.started", 2): _v3}


def _started(flight: Flight, **more: Any) -> FlightStarted:
    return FlightStarted(
        id=ident("evt"),
        seq=1,
        time=T0,
        source=Ref.to(ALICE),
        target=Ref.to(flight.id),
        payload=Changed(record=flight, **more),
    )


@pytest.mark.parametrize("version", [None, 1, 2, 3])
def test_an_old_version_is_lifted_step_by_step_when_it_is_read(version: int | None) -> None:
    flight = a_flight()
    fields = to_plain(_started(flight, move="start", reason="" if version != 3 else "said"))
    fields.pop("v")
    if version is not None:
        fields["v"] = version
    if version in (None, 1):
        fields["payload"]["flight"] = fields["payload"].pop("record")
    one = read_event(json.dumps(fields), UPCASTS)
    assert one.v == 3
    assert isinstance(one, FlightStarted)
    assert (one.payload.record, one.payload.move) == (flight, "start")
    assert one.payload.reason == ("said" if version == 3 else "unknown")


@pytest.mark.parametrize(("old", "new"), [("deleted", UserRetired), ("restored", UserRevived)])
def test_a_renamed_type_is_read_under_its_new_name(old: str, new: type[UserEvent]) -> None:
    user = a_user(state=UserState.RETIRED)
    event = UserCreated(
        id=ident("evt"),
        seq=1,
        time=T0,
        source=Ref.to(ALICE),
        target=Ref.to(user.id),
        payload=Changed(record=user, move=old),
    )
    fields: dict[str, Any] = {**to_plain(event), "type": f"collab.user.{old}"}
    fields["payload"]["record"]["state"] = "deleted"
    read = read_event(json.dumps(fields))
    assert isinstance(read, new)
    assert read.payload.record == user


def test_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    fields = to_plain(_started(a_flight()))
    assert read_event(json.dumps({**fields, "v": 9}), UPCASTS).v == 9
