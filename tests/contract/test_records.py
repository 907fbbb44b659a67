"""The nouns (2.1): their ids, what each record holds, and what it leaves to others."""

import json
import re
from typing import Any

import pytest

from scout.base.codec import decode, encode, to_plain
from scout.base.refusal import BadRequest, Refused
from scout.model.alias import AliasTarget, break_alias, check_target, repair_alias, retarget_alias
from scout.model.attention import (
    Attention,
    AttentionKind,
    AttentionMove,
    AttentionState,
    check_attention,
    decide_attention,
    expire_attention,
    is_blocking,
)
from scout.model.card import CardState, check_card, expire_card, get_default_max_uses, revoke_card, use_card
from scout.model.conversation import (
    Conversation,
    ConversationKind,
    Message,
    MessageKind,
    check_kind,
    derive_dm_id,
)
from scout.model.delivery import Delivery, check_origin
from scout.model.events import event_types
from scout.model.flight import FlightState, cancel_flight, create_flight, retry_flight
from scout.model.noun import NOUNS
from scout.model.people.binding import Binding, Surface, check_binding
from scout.model.people.user import User
from scout.model.ref import Ref, RefKind
from scout.model.schema import build_model_schema
from scout.model.session import mark_ready
from scout.model.usage import Usage, UsageLedger, get_day, sum_ledgers
from scout.model.work_item import WorkItem
from scout.policy.directory import OUTSIDE
from scout.policy.resolver.resolve import decide_target, resolve
from tests.model.generate import wire_names
from tests.model.samples import (
    ALICE,
    ASK,
    BOB,
    CAROL,
    CONVERSATION,
    OPERATOR,
    T0,
    T1,
    a_binding,
    a_card,
    a_conversation,
    a_delivery,
    a_message,
    a_session,
    a_usage,
    a_user,
    an_alias,
    an_ask,
    an_attention,
    ident,
)
from tests.policy.fleets import NOW, agent, alias, endpoint, fleet, session

NOUN_PREFIXES = """
agent agt  endpoint ept  session ses  conversation cnv  message msg  ask ask  flight flt  delivery dlv
question qst  work wrk  attention att  binding bnd  card crd  alias als  usage usg
node nod  user usr  token tok  grant grt  schedule sch
"""
PAIRS = list(zip(NOUN_PREFIXES.split()[::2], NOUN_PREFIXES.split()[1::2], strict=True))


def expect_refusal(change: Any, *arguments: Any, **named: Any) -> BadRequest:
    with pytest.raises(Refused) as caught:
        change(*arguments, **named)
    told = caught.value.diagnostic
    assert isinstance(told, BadRequest)
    return told


def list_stored_definitions() -> dict[str, Any]:
    """The schema of everything that is kept: the nouns, the events and what they are made of."""
    defined = build_model_schema()["$defs"]
    todo = [noun.record.__name__ for noun in NOUNS.values()] + [kind.__name__ for kind in event_types.ALL]
    kept: dict[str, Any] = {}
    while todo:
        name = todo.pop()
        if name not in kept:
            kept[name] = defined[name]
            todo += re.findall(r'"#/\$defs/([^"]+)"', json.dumps(defined[name]))
    return kept


def find_places(pattern: str) -> set[str]:
    """Where a stored field's name matches, as `Record.field`."""
    fields = (
        (kind, name) for kind, one in list_stored_definitions().items() for name in one.get("properties", {})
    )
    return {f"{kind}.{name}" for kind, name in fields if re.search(pattern, name, re.IGNORECASE)}


@pytest.mark.rows("R2.1-4", "R2.1-6", "R2.1-11", "R2.1-13", "R2.1-16", "R2.1-20")
@pytest.mark.rows("R2.1-21", "R2.1-23", "R2.1-24", "R2.1-28", "R2.1-32", "R2.1-33")
@pytest.mark.parametrize(("noun", "prefix"), PAIRS)
def test_each_noun_has_its_record_and_its_prefix(noun: str, prefix: str) -> None:
    assert Ref.to(ident(prefix)) == f"{noun}:{ident(prefix)}"
    assert NOUNS[RefKind(noun)].prefix == prefix
    assert len({known.record for known in NOUNS.values()}) == len(NOUNS)
    other = "ept" if prefix == "agt" else "agt"
    with pytest.raises(Refused):
        Ref.parse(f"{noun}:{ident(other)}")


@pytest.mark.rows("R2.1-5")
def test_a_providers_own_id_is_only_in_its_session() -> None:
    chats = {"ChatPlace.threadId"}  # a thread of people, not of a harness
    assert find_places("native|thread|provider") - chats == {"Session.nativeIds"}
    live = mark_ready(a_session(), T1, native_ids={"codex": "0199-thread"})
    assert to_plain(live)["nativeIds"] == {"codex": "0199-thread"}
    bound = a_binding(surface=Surface.HARNESS, name="codex", external_id=live.id)
    assert check_binding(bound) is bound
    provider = a_binding(surface=Surface.HARNESS, name="codex", external_id="0199-thread")
    assert expect_refusal(check_binding, provider).field == "externalId"


@pytest.mark.rows("R2.1-7")
def test_the_kinds_of_a_conversation() -> None:
    made = {
        "dm": a_conversation(kind=ConversationKind.DM),
        "channel": a_conversation(kind=ConversationKind.CHANNEL, name="dev", owner="u1"),
        "thread": a_conversation(kind=ConversationKind.THREAD, parent_id=CONVERSATION),
        "broadcast": a_conversation(kind=ConversationKind.BROADCAST),
    }
    assert {kind: to_plain(check_kind(one))["kind"] for kind, one in made.items()} == {
        kind: kind for kind in made
    }
    with pytest.raises(Refused):
        decode({**to_plain(made["dm"]), "kind": "group"}, Conversation)


@pytest.mark.rows("R2.1-8")
def test_a_pair_has_one_dm() -> None:
    assert derive_dm_id(ALICE, BOB) == derive_dm_id(BOB, ALICE)
    assert len({derive_dm_id(ALICE, BOB), derive_dm_id(ALICE, CAROL), derive_dm_id(BOB, CAROL)}) == 3


@pytest.mark.rows("R2.1-10")
def test_a_message_has_a_kind_and_may_want_a_follow_up() -> None:
    sent = to_plain(a_message(follow_up=True))
    assert sent["followUp"] is True
    kinds = ["chat", "status", "final", "question", "answer"]
    assert [decode({**sent, "kind": kind}, Message).kind.value for kind in kinds] == kinds
    assert len(MessageKind) == len(kinds)
    with pytest.raises(Refused):
        decode({**sent, "kind": "thought"}, Message)


@pytest.mark.rows("R2.1-12", "R2.2-42")
def test_each_further_flight_of_an_ask_is_a_retry() -> None:
    ask = an_ask(work_item_id="wrk_1")
    flights = [create_flight(ident("flt", 1), ask, T0)]
    for number in (2, 3):
        over = cancel_flight(flights[-1], "again", T1)
        flights.append(retry_flight(over, ask, ident("flt", number), T1))
        assert over.state is FlightState.CANCELLED, "the one before stays as it ended"
    assert [(one.ask_id, one.attempt, one.state) for one in flights] == [
        (ASK, 1, "queued"),
        (ASK, 2, "queued"),
        (ASK, 3, "queued"),
    ]
    assert len({one.id for one in flights}) == 3


@pytest.mark.rows("R2.1-13")
@pytest.mark.parametrize("origin", ["message_id", "ask_id", "work_item_id"])
def test_a_delivery_has_one_target_and_an_origin(origin: str) -> None:
    source: dict[str, Any] = {"message_id": None, origin: "x"}
    assert check_origin(a_delivery(**source)).target == BOB
    assert (
        "derives from" in expect_refusal(check_origin, a_delivery(message_id=None, flight_id="flt_1")).problem
    )
    stored = to_plain(a_delivery())
    for target in ([BOB, CAROL], None):
        with pytest.raises(Refused):
            decode({**stored, "target": target}, Delivery)


@pytest.mark.rows("R2.1-21")
def test_the_kinds_of_attention() -> None:
    kinds = "approval question permission waiting review failure setup notify consult"
    assert [kind.value for kind in AttentionKind] == kinds.split()
    for kind in kinds.split():
        item = an_attention(AttentionKind(kind))
        assert decode(encode(item), Attention).kind.value == kind


@pytest.mark.rows("R2.1-22")
def test_a_consult_has_a_default_and_a_notice_wants_nothing() -> None:
    assert expect_refusal(check_attention, an_attention(AttentionKind.CONSULT)).field == "defaultAction"
    consult = check_attention(an_attention(AttentionKind.CONSULT, default_action="merge"))
    assert (expire_attention(consult, T1).answer, is_blocking(consult)) == ("merge", False)
    notice = check_attention(an_attention(AttentionKind.NOTIFY))
    assert [action.move for action in notice.actions] == [AttentionMove.DISMISS]
    assert not is_blocking(notice)
    assert (
        "takes dismiss"
        in expect_refusal(decide_attention, notice, AttentionMove.ANSWER, OPERATOR, T1, answer="yes").problem
    )
    put_away = decide_attention(notice, AttentionMove.DISMISS, OPERATOR, T1)
    assert put_away.state is AttentionState.DISMISSED


@pytest.mark.rows("R2.1-23")
@pytest.mark.parametrize(
    ("surface", "name", "external"),
    [("connector", "telegram", "123456"), ("harness", "codex", ident("ses")), ("a2a", "peer", "task-9")],
)
def test_a_binding_leads_from_outside_to_one_place_inside(surface: str, name: str, external: str) -> None:
    wire = {**to_plain(a_binding()), "surface": surface, "name": name, "externalId": external}
    for inside in (
        {"conversationId": CONVERSATION, "agentId": None},
        {"conversationId": None, "agentId": BOB},
    ):
        bound = check_binding(decode({**wire, **inside}, Binding))
        assert (bound.surface.value, bound.name, bound.external_id) == (surface, name, external)
    for wrong in (
        {"conversationId": None, "agentId": None},
        {"conversationId": CONVERSATION, "agentId": BOB},
    ):
        expect_refusal(check_binding, decode({**wire, **wrong}, Binding))


@pytest.mark.rows("R2.1-24", "R2.1-27")
def test_a_card_is_a_return_address_without_a_session() -> None:
    wanted = {"expiresAt", "maxUses", "uses", "createdBy", "replyToSessionId", "cleanupReason"}
    assert wanted <= set(to_plain(a_card()))
    alone = check_card(a_card(reply_to_session_id=None))
    assert "sessionId" not in to_plain(alone)
    assert use_card(alone, T1).uses == 1
    full = a_card(reply_to_session_id=ident("ses"), expires_at=T1)
    assert (to_plain(full)["replyToSessionId"], to_plain(full)["expiresAt"]) == (ident("ses"), str(T1))


@pytest.mark.rows("R2.1-25")
def test_a_card_is_active_used_expired_or_revoked() -> None:
    used = use_card(a_card(), T1)
    found = [a_card(), used, expire_card(a_card(), T1), revoke_card(a_card(), T1)]
    assert [to_plain(one)["state"] for one in found] == ["active", "used", "expired", "revoked"]
    assert len(CardState) == 4
    assert [one.cleanup_reason for one in found] == [None, "used up", "expired", "revoked"]


@pytest.mark.rows("R2.1-26")
def test_an_agents_card_is_for_one_use() -> None:
    once = a_card(max_uses=get_default_max_uses(made_by_agent=True))
    with pytest.raises(Refused, match="expired_card"):
        use_card(use_card(once, T1), T1)
    assert a_card().max_uses == 1
    thrice = a_card(max_uses=3)
    for state in ("active", "active", "used"):
        thrice = use_card(thrice, T1)
        assert thrice.state.value == state


@pytest.mark.rows("R2.1-28")
def test_an_alias_names_an_agent_or_one_session() -> None:
    narrow = AliasTarget(agent_id=ALICE, harness="codex", model="gpt-5-5", node="mini")
    for target in (AliasTarget(agent_id=ALICE), narrow, AliasTarget(session_id="ses_1")):
        assert retarget_alias(an_alias(), target, T1).target == target
    for target in (
        AliasTarget(),
        AliasTarget(agent_id=ALICE, session_id="ses_1"),
        AliasTarget(session_id="ses_1", harness="codex"),
    ):
        expect_refusal(check_target, target)


@pytest.mark.rows("R2.1-29", "R2.1-30")
def test_an_alias_has_a_revision_and_a_resolution_says_which_it_used() -> None:
    arc = agent("arc")
    first = alias("boss", AliasTarget(agent_id=arc.id))
    broken = break_alias(first, "two readings", NOW)
    again = retarget_alias(repair_alias(broken, NOW), AliasTarget(agent_id=arc.id, harness="claude"), NOW)
    assert [one.revision for one in (first, broken, again)] == [1, 2, 4]
    for known in (first, again):
        directory = fleet(arc)
        directory.add_alias(known)
        found = resolve("boss", directory, OUTSIDE, NOW)
        assert (found.alias_id, found.alias_revision) == (first.id, known.revision)
    assert resolve("@arc", fleet(arc), OUTSIDE, NOW).alias_revision is None


@pytest.mark.rows("R2.1-30")
def test_an_alias_of_a_session_is_pinned_too() -> None:
    arc = agent("arc")
    directory = fleet((arc, [endpoint(arc, session_id="ses_1")]))
    directory.add_session(session(arc, "ses_1"))
    directory.add_alias(alias("pane", AliasTarget(session_id="ses_1"), revision=7))
    found = resolve("pane", directory, OUTSIDE, NOW)
    assert (found.agent.id, found.alias_id, found.alias_revision) == (arc.id, "als_pane", 7)


@pytest.mark.rows("R2.1-32")
def test_a_report_of_usage_is_in_one_of_two_ledgers() -> None:
    assert [ledger.value for ledger in UsageLedger] == ["protocol_overhead", "harness_execution"]
    own = a_usage(category=UsageLedger.PROTOCOL_OVERHEAD, prompt_tokens=3, total_tokens=3)
    work = a_usage(category=UsageLedger.HARNESS_EXECUTION, prompt_tokens=40, total_tokens=50)
    sums = {
        ledger.value: one.total_tokens for ledger, one in sum_ledgers([get_day(own), get_day(work)]).items()
    }
    assert sums == {"protocol_overhead": 3, "harness_execution": 50}
    assert {"promptTokens", "completionTokens", "totalTokens", "counters"} <= wire_names(Usage)
    for category in (None, "both"):
        with pytest.raises(Refused):
            decode({**to_plain(work), "category": category}, Usage)


@pytest.mark.rows("R2.1-34")
def test_a_user_is_a_person_or_a_group() -> None:
    stored = to_plain(a_user())
    assert [decode({**stored, "kind": kind}, User).kind.value for kind in ("person", "group")] == [
        "person",
        "group",
    ]
    with pytest.raises(Refused):
        decode({**stored, "kind": "robot"}, User)


@pytest.mark.rows("R2.1-35")
def test_a_message_refers_to_work_and_holds_none_of_it() -> None:
    sent = to_plain(a_message(work_item_id=ident("wrk")))
    assert sent["workItemId"] == ident("wrk")
    work_state = (
        "title state acceptance progress ownerId nextMoveOwnerId reviewerId waitingOn dueAt settledAt"
    )
    assert not set(work_state.split()) & set(sent)
    assert set(work_state.split()) <= wire_names(WorkItem)


@pytest.mark.rows("R0-98")
def test_what_is_kept_is_an_id_or_canonical_text() -> None:
    assert find_places("address|minimal|shortest|candidate") == set()
    assert "Candidate" not in list_stored_definitions()
    directory = fleet(agent("arc.main"))
    assert resolve("@arc", directory, OUTSIDE, NOW).canonical == "@arc.main.harness:claude.node:mini"
    said = decide_target(
        "@arc look, @Arc#Claude said so", None, False, lambda text: resolve(text, directory, OUTSIDE, NOW)
    )
    assert said.target is not None
    assert said.target.canonical == "@arc.main.harness:claude.node:mini"
    assert said.soft == ("@arc.harness:claude",), "a mention is kept as the canonical text of what was said"
