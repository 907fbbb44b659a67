"""Decisions that everything rests on (0): ids, bodies, and how records live and end."""

from collections.abc import Callable
from typing import Any

import pytest

from scout.base.codec import decode, encode, encode_for_store, to_plain
from scout.base.machine import Mutable
from scout.base.refusal import Refused
from scout.model import (
    agent,
    alias,
    attention,
    card,
    conversation,
    delivery,
    endpoint,
    flight,
    node,
    question,
    session,
    work_item,
)
from scout.model.access import grant, token
from scout.model.conversation import Message, check_body, derive_channel_id, derive_dm_id
from scout.model.endpoint import EndpointState, is_online
from scout.model.events.event_types import read_event
from scout.model.events.talk import MessagePosted, build_post, read_message
from scout.model.people import binding, link_code, schedule, user
from scout.model.ref import Ref
from scout.policy.sweep import find_due_action
from scout.policy.sweep_actions import MarkStale, Round, SweepSubject
from tests.model.samples import (
    ALICE,
    CONVERSATION,
    OPERATOR,
    T0,
    T1,
    a_binding,
    a_card,
    a_conversation,
    a_delivery,
    a_flight,
    a_grant,
    a_key,
    a_link_code,
    a_message,
    a_node,
    a_question,
    a_schedule,
    a_session,
    a_token,
    a_user,
    a_work_item,
    an_agent,
    an_alias,
    an_attention,
    an_endpoint,
    ident,
)

# --------------------------------------------------------------------------------------------- ids


@pytest.mark.rows("R0-4")
def test_the_id_of_a_dm_comes_from_its_two_members_alone() -> None:
    assert derive_dm_id("a", "b") == derive_dm_id("b", "a") == "cnv_0feb4yhx0nhk59v52rcdw1xtsk"
    assert len({derive_dm_id("a", "b"), derive_dm_id("a", "c"), derive_dm_id("ab", "")}) == 3


@pytest.mark.rows("R0-5")
def test_the_id_of_a_channel_comes_from_its_owner_and_name_alone() -> None:
    assert derive_channel_id("u1", "dev") == "cnv_2dtr69vz0zg70a02d8tcwggfg2"
    assert (
        len(
            {
                derive_channel_id("u1", "dev"),
                derive_channel_id("u2", "dev"),
                derive_channel_id("u1", "ops"),
                derive_dm_id("u1", "dev"),
            }
        )
        == 4
    )


# -------------------------------------------------------------------------------------------- body

KIB = 1024
BODIES = [
    "",
    "  two spaces before and behind  ",
    "line\nline\r\nline\rend",
    "\ttab \u00a0 no-break \u200b zero-width \ufeff mark",
    "\u00e9 and e\u0301 are not made one",
    "# Title\n\n- [ ] task\n",
    "```\nnever closed, [link](, <b>, **, |||",
    "\U0001f600 日本語 \u202eright to left",
    "\x01\x7f",
]


@pytest.mark.rows("R0-67", "R0-70")
@pytest.mark.parametrize("body", BODIES)
def test_a_body_comes_back_byte_for_byte(body: str) -> None:
    assert check_body(body) == body
    message = a_message(body=body)
    assert decode(encode(message), Message).body.encode() == body.encode()
    event = MessagePosted(
        id=ident("evt"),
        seq=1,
        time=T0,
        source=Ref.to(ALICE),
        target=Ref.to(CONVERSATION),
        payload=build_post(message),
    )
    again = read_event(encode_for_store(event))
    assert isinstance(again, MessagePosted)
    assert read_message(again).body.encode() == body.encode()


@pytest.mark.rows("R0-67")
def test_a_body_is_utf_8() -> None:
    sent = encode(a_message(body="hello"))
    assert decode(sent.replace(b"hello", "h\u00e9llo".encode()), Message).body == "h\u00e9llo"
    with pytest.raises(Refused):
        decode(sent.replace(b"hello", "h\u00e9llo".encode("latin-1")), Message)


@pytest.mark.rows("R0-68")
@pytest.mark.parametrize(
    ("body", "fits"),
    [
        ("x" * 256 * KIB, True),
        ("\u00e9" * 128 * KIB, True),
        ("x" * (256 * KIB + 1), False),
        ("\u00e9" * 128 * KIB + "x", False),
        ("\U0001f600" * (64 * KIB + 1), False),
    ],
    ids=["256 KiB", "two bytes each", "one more", "two bytes each and one", "four bytes each"],
)
def test_a_body_has_at_most_256_kib(body: str, fits: bool) -> None:
    if fits:
        assert check_body(body) is body
        return
    with pytest.raises(Refused) as caught:
        check_body(body)
    told: Any = caught.value.diagnostic
    assert (told.code, told.size, told.limit) == ("too_large", len(body.encode()), 262_144)
    assert [(one.operation, "attachments" in one.parameters) for one in told.remedies] == [("send", True)]


@pytest.mark.rows("R0-69")
@pytest.mark.parametrize("body", ["\0", "a\0b", "\ud800", "a\udfff", "\udc00\ud800"])
def test_a_body_that_is_no_text_is_refused(body: str) -> None:
    with pytest.raises(Refused) as caught:
        check_body(body)
    assert caught.value.diagnostic.code == "bad_request"


# ------------------------------------------------------------------------------------- life and end


@pytest.mark.rows("R0-65")
def test_a_process_that_the_broker_holds_needs_no_heartbeat() -> None:
    later = T0.plus(10**6)
    for state in (EndpointState.IDLE, EndpointState.WORKING):
        held = an_endpoint(state=state, held=True)
        assert is_online(held, later)
        assert find_due_action(SweepSubject(record=held), Round(now=later, operator_id=OPERATOR)) is None
        silent = an_endpoint(state=state)
        assert not is_online(silent, later)
        assert isinstance(
            find_due_action(SweepSubject(record=silent), Round(now=later, operator_id=OPERATOR)), MarkStale
        )


# record, how it ends, its state then, what else the end changes
ENDS: dict[str, tuple[Mutable, Callable[[Any], Mutable], str, str]] = {
    "agent": (
        an_agent(),
        lambda one: agent.move_agent(one, agent.AgentMove.RETIRE, T1),
        "retired",
        "lifecycle lastActiveAt",
    ),
    "endpoint": (
        an_endpoint(),
        lambda one: endpoint.move_endpoint(one, endpoint.EndpointMove.STOP, T1),
        "stopped",
        "state",
    ),
    "session": (
        a_session(),
        lambda one: session.end_session(one, "over", T1),
        "ended",
        "state reason endedAt",
    ),
    "conversation": (
        a_conversation(),
        lambda one: conversation.archive_conversation(one, T1),
        "",
        "archivedAt",
    ),
    "flight": (
        a_flight(),
        lambda one: flight.cancel_flight(one, "over", T1),
        "cancelled",
        "state phase reason nextCheckAt nextMoveOwnerId finishedAt",
    ),
    "delivery": (
        a_delivery(),
        lambda one: delivery.dead_letter(one, "over", T1),
        "dead_lettered",
        "state problem",
    ),
    "question": (
        a_question(),
        lambda one: question.close_question(one, T1, reason="over"),
        "closed",
        "state reason nextMoveOwnerId",
    ),
    "work item": (
        a_work_item(),
        lambda one: work_item.cancel_work(one, "over", T1),
        "cancelled",
        "state reason nextMoveOwnerId settledAt",
    ),
    "attention": (an_attention(), lambda one: attention.expire_attention(one, T1), "expired", "state"),
    "alias": (an_alias(), lambda one: alias.remove_alias(one, T1, reason="over"), "removed", "state reason"),
    "card": (a_card(), lambda one: card.expire_card(one, T1), "expired", "state cleanupReason"),
    "binding": (
        a_binding(),
        lambda one: binding.move_binding(one, binding.BindingMove.CLOSE, T1),
        "closed",
        "state",
    ),
    "user": (a_user(), lambda one: user.move_user(one, user.UserMove.RETIRE, T1), "retired", "state"),
    "link_code": (
        a_link_code(),
        lambda one: link_code.revoke_code(one, "over", T1),
        "revoked",
        "state reason",
    ),
    "key": (a_key(), lambda one: user.free_key(one, "over", T1), "freed", "state reason"),
    "token": (a_token(), lambda one: token.expire_token(one, T1), "expired", "state reason"),
    "grant": (a_grant(), lambda one: grant.end_grant(one, grant.GrantMove.EXPIRE, T1), "expired", "state"),
    "node": (a_node(), lambda one: node.move_node(one, node.NodeMove.REMOVE, T1), "removed", "state"),
    "schedule": (
        a_schedule(),
        lambda one: schedule.end_schedule(one, "over", T1),
        "ended",
        "state reason nextAt",
    ),
}


@pytest.mark.rows("R0-91")
@pytest.mark.parametrize("noun", ENDS)
def test_what_ends_stays(noun: str) -> None:
    before, end, state, changes = ENDS[noun]
    after = to_plain(end(before))
    assert after.get("lifecycle" if noun == "agent" else "state", "") == state
    different = {name for name, value in to_plain(before).items() if after[name] != value}
    assert different == {*changes.split(), "revision", "updatedAt"}
