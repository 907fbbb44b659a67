"""Whom to wake: the order of 3.3, its exceptions, and its laws over random rosters."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.codec import decode, encode
from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.identity.mention import find_mentions
from scout.model.agent import Lifecycle, WakePolicy
from scout.model.conversation import ConversationKind, MessageKind, SoftMentions
from scout.model.events.envelope import Metadata, PassedOver, WakeFact
from scout.model.events.event_types import ALL, get_event_type
from scout.policy.directory import Party
from scout.policy.limits import Limits, Routing, raise_limit
from scout.policy.obligation import Obligation
from scout.policy.wake import (
    Cause,
    Considered,
    Occasion,
    Reach,
    Role,
    WakeAction,
    WakeContext,
    WakeDecision,
    WakeFacts,
    apply_wake_budget,
    decide_wake,
    may_suggest,
)

NOW = Time.parse("2026-11-15T12:00:00.000Z")
NAMES = ("sender", "target", "other", "mover", "owner", "master", "boss", "router")
SENDER = Party(agent_id="sender", session_id="s1")
ON = Routing(model_assisted=True)


def party(text: str) -> Party:
    agent_id, _, session_id = text.partition("/")
    return Party(agent_id=agent_id, session_id=session_id or None)


def roster(**changes: dict[str, Any]) -> dict[str, Reach]:
    """Everybody is there and wakeable, unless the changes say otherwise."""
    plain = {name: Reach(agent_id=name, address=f"@{name}") for name in NAMES}
    return {name: msgspec.structs.replace(reach, **changes.get(name, {})) for name, reach in plain.items()}


def work(**changes: Any) -> Obligation:
    item = Obligation(
        noun="work item", id="wrk_1", state="working", owner_id="owner", next_move_owner_id="mover"
    )
    return msgspec.structs.replace(item, **changes)


def channel(**changes: Any) -> WakeContext:
    place = WakeContext(
        conversation_id="cnv_1",
        kind=ConversationKind.CHANNEL,
        others=3,
        master_id="master",
        channel_owner_id="boss",
    )
    return msgspec.structs.replace(place, **changes)


def occasion(cause: Cause = Cause.WAKE, **changes: Any) -> Occasion:
    return msgspec.structs.replace(Occasion(cause=cause, sender=SENDER), **changes)


def decide(what: Occasion, routing: Routing = Routing(), **changes: dict[str, Any]) -> WakeDecision:
    return decide_wake(what, roster(**changes), routing)


def list_passed(decision: WakeDecision) -> dict[str, str]:
    return {f"{one.role} {one.party.agent_id}": one.why_not for one in decision.considered if one.why_not}


# ------------------------------------------------------------------------------------- the order


@pytest.mark.rows("R3.3-1", "R3.3-8", "R3-3")
def test_an_explicit_target_comes_first() -> None:
    what = occasion(Cause.ASK, targets=(party("target"), party("other")), duty=work(), place=channel())
    decision = decide(what)
    assert decision == WakeDecision(
        action=WakeAction.WAKE,
        rule="explicit target",
        holder=party("target"),
        considered=(Considered(role=Role.TARGET, party=party("target")),),
        facts=WakeFacts(occasion=what, reaches=(roster()["target"],), routing=Routing()),
    )
    assert decision.woken == party("target")


@pytest.mark.rows("R3.3-1", "R1.3-54", "R3.1-7")
def test_a_leading_mention_wakes_even_in_a_plain_send() -> None:
    decision = decide(occasion(Cause.SEND, leading=party("target"), duty=work()))
    assert (decision.action, decision.rule, decision.holder) == (
        WakeAction.WAKE, "leading mention", party("target"),
    )  # fmt: skip


@pytest.mark.rows("R1.3-59")
def test_a_structured_target_wins_over_a_mention() -> None:
    what = occasion(Cause.SEND, targets=(party("target"),), leading=party("other"))
    decision = decide(what)
    assert (decision.action, decision.rule, decision.holder) == (
        WakeAction.DELIVER, "explicit target", party("target"),
    )  # fmt: skip
    assert [one.party for one in decision.considered] == [party("target")]


@pytest.mark.rows("R3.1-7")
def test_a_mention_of_the_structured_target_wakes_it() -> None:
    targets = (party("other"), party("target"))
    assert decide(occasion(Cause.SEND, targets=targets, leading=party("target"))).action is WakeAction.WAKE


@pytest.mark.rows("R3.3-2", "R3.7-13")
def test_without_a_target_the_next_move_owner_is_woken_and_the_owner_is_not() -> None:
    decision = decide(occasion(Cause.MOVE, duty=work(), place=channel()))
    assert (decision.action, decision.rule, decision.holder) == (
        WakeAction.WAKE, "next-move owner", party("mover"),
    )  # fmt: skip
    assert [one.role for one in decision.considered] == [Role.NEXT_MOVE_OWNER]


@pytest.mark.rows("R3.3-2")
@pytest.mark.parametrize("mover", [None, "sender"])
def test_without_a_next_move_owner_the_owner_is_woken(mover: str | None) -> None:
    decision = decide(occasion(Cause.MOVE, duty=work(next_move_owner_id=mover), place=channel()))
    assert (decision.rule, decision.holder, decision.instead_of) == ("owner", party("owner"), None)


@pytest.mark.rows("R3.3-3")
def test_then_the_master_then_the_channel_owner_then_nobody() -> None:
    nobody_owes = work(owner_id=None, next_move_owner_id="sender")
    for duty in (None, nobody_owes):
        decision = decide(occasion(duty=duty, place=channel()))
        assert (decision.rule, decision.holder) == ("conversation master", party("master"))
    decision = decide(occasion(place=channel(master_id=None)))
    assert (decision.rule, decision.holder) == ("channel owner", party("boss"))
    for place in (None, channel(master_id=None, channel_owner_id=None)):
        decision = decide(occasion(place=place))
        assert (decision.action, decision.rule, decision.holder) == (
            WakeAction.NOBODY, "no other agent owns the next move", None,
        )  # fmt: skip
        assert (decision.considered, decision.reason, decision.remedies) == ((), "", ())


@pytest.mark.rows("R3.3-4")
@pytest.mark.parametrize("kind", [MessageKind.STATUS, MessageKind.FINAL])
@pytest.mark.parametrize("cause", [Cause.SEND, Cause.WAKE, Cause.ASK])
def test_status_and_final_wake_nobody_at_all(kind: MessageKind, cause: Cause) -> None:
    decision = decide(
        occasion(cause, kind=kind, targets=(party("target"),), duty=work(), follow_up=True, place=channel())
    )
    assert (decision.action, decision.rule, decision.holder) == (
        WakeAction.NOBODY,
        f"a {kind} message wakes no agent",
        None,
    )
    assert list_passed(decision) == {
        "explicit target target": f"a {kind} message wakes no agent",
        "next-move owner mover": f"a {kind} message wakes no agent",
        "owner owner": f"a {kind} message wakes no agent",
        "conversation master master": f"a {kind} message wakes no agent",
        "channel owner boss": f"a {kind} message wakes no agent",
    }
    assert (decision.reason, decision.instead_of, decision.remedies) == ("", None, ())


@pytest.mark.parametrize("kind", [MessageKind.CHAT, MessageKind.QUESTION, MessageKind.ANSWER])
def test_other_kinds_may_wake(kind: MessageKind) -> None:
    assert decide(occasion(kind=kind, duty=work())).action is WakeAction.WAKE


@pytest.mark.rows("R3.3-4")
def test_a_settled_record_wakes_nobody_but_an_explicit_target() -> None:
    settled = work(state="done", settled=True)
    decision = decide(occasion(duty=settled, place=channel()))
    assert (decision.action, decision.rule, decision.considered) == (
        WakeAction.NOBODY, "no other agent owns the next move", (),
    )  # fmt: skip
    assert decide(occasion(duty=settled, targets=(party("target"),))).holder == party("target")


@pytest.mark.rows("R3.3-6")
@pytest.mark.parametrize("cause", [Cause.SEND, Cause.WAKE])
@pytest.mark.parametrize(
    ("place", "rule"),
    [
        (channel(kind=ConversationKind.BROADCAST), "a broadcast wakes no agent"),
        (channel(quiet=True), "a quiet conversation wakes no agent"),
    ],
)
def test_a_broadcast_or_a_quiet_conversation_wakes_nobody(
    cause: Cause, place: WakeContext, rule: str
) -> None:
    decision = decide(occasion(cause, leading=party("target"), soft=(party("other"),), place=place))
    assert (decision.action, decision.rule, decision.holder) == (WakeAction.NOBODY, rule, None)
    assert list_passed(decision)["leading mention target"] == rule


@pytest.mark.parametrize(
    "cause", [Cause.ASK, Cause.QUESTION, Cause.ANSWER, Cause.ASSIGNMENT, Cause.MOVE, Cause.NUDGE]
)
def test_an_ask_or_a_move_has_one_holder_wherever_it_is_made(cause: Cause) -> None:
    for place in (channel(kind=ConversationKind.BROADCAST), channel(quiet=True)):
        decision = decide(occasion(cause, targets=(party("target"),), place=place))
        assert (decision.action, decision.holder) == (WakeAction.WAKE, party("target"))


# ------------------------------------------------------------------------------------ plain sends


@pytest.mark.rows("R3.1-5")
@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("policy", list(WakePolicy))
def test_a_plain_send_wakes_nobody(live: bool, policy: WakePolicy) -> None:
    what = occasion(Cause.SEND, targets=(party("target"),))
    decision = decide(what, target={"live": live, "policy": policy, "wakeable": live})
    assert (decision.action, decision.holder, decision.woken) == (WakeAction.DELIVER, party("target"), None)
    assert decision.remedies == ()


@pytest.mark.rows("R3.1-5")
def test_a_plain_send_about_work_is_for_whoever_owes_the_next_move() -> None:
    decision = decide(occasion(Cause.SEND, duty=work()), mover={"wakeable": False})
    assert (decision.action, decision.rule, decision.holder) == (
        WakeAction.DELIVER, "next-move owner", party("mover"),
    )  # fmt: skip


@pytest.mark.rows("R3.1-7")
@pytest.mark.parametrize("cause", [cause for cause in Cause if cause is not Cause.SEND])
def test_everything_else_wakes(cause: Cause) -> None:
    assert decide(occasion(cause, targets=(party("target"),))).woken == party("target")


@pytest.mark.rows("R3.1-7")
def test_a_question_wakes_also_when_it_is_only_a_message() -> None:
    what = occasion(Cause.SEND, kind=MessageKind.QUESTION, targets=(party("target"),))
    assert decide(what).action is WakeAction.WAKE


@pytest.mark.rows("R1.3-55", "R1.3-56")
def test_a_soft_mention_wakes_only_where_the_channel_says_so() -> None:
    soft = (party("sender"), party("other"), party("target"))
    quiet = decide(occasion(Cause.SEND, soft=soft, place=channel()))
    assert (quiet.action, quiet.rule) == (WakeAction.DELIVER, "conversation master")
    assert decide(occasion(Cause.SEND, soft=soft)).rule == "no other agent owns the next move"
    loud = decide(occasion(Cause.SEND, soft=soft, place=channel(soft_mentions=SoftMentions.WAKE)))
    assert (loud.action, loud.rule, loud.holder) == (WakeAction.WAKE, "soft mention", party("other"))
    assert list_passed(loud) == {"soft mention sender": "it is the sender"}


@pytest.mark.rows("R3.7-12", "R1.3-49")
@pytest.mark.parametrize(
    ("body", "canonical"),
    [
        ("@target, please look", "@target"),
        (
            "@target.main.profile:dev#codex?5.5 please look",
            "@target.main.profile:dev.harness:codex.model:5-5",
        ),
    ],
)
def test_a_mention_may_be_bare_or_fully_qualified(body: str, canonical: str) -> None:
    leading = find_mentions(body).leading
    assert leading is not None
    assert leading.address is not None
    assert leading.address.canonical == canonical
    what = occasion(Cause.SEND, leading=party(leading.address.definition_id))
    assert decide(what).woken == party("target")


@pytest.mark.rows("R3.7-15", "R1.3-61")
def test_a_mention_is_metadata_and_no_event() -> None:
    assert [event for event in ALL if "mention" in get_event_type(event)] == []
    assert Metadata(mentions=("@target",)).mentions == ("@target",)


def test_a_target_comes_before_a_soft_mention_that_wakes() -> None:
    place = channel(soft_mentions=SoftMentions.WAKE)
    what = occasion(leading=party("target"), soft=(party("other"),), place=place)
    assert decide(what).holder == party("target")
    assert decide(what, target={"lifecycle": Lifecycle.RETIRED}).holder == party("other")


# ------------------------------------------------------------------------------------- the tie-break


def is_router_asked(what: Occasion, routing: Routing = ON, **changes: dict[str, Any]) -> bool:
    return may_suggest(decide(what, routing, **changes).facts)


@pytest.mark.rows("R3.7-14")
def test_a_router_is_asked_only_where_the_rules_found_nobody_and_would_listen() -> None:
    alone = channel(master_id=None, channel_owner_id=None)
    assert is_router_asked(occasion(place=alone))
    assert is_router_asked(occasion(Cause.SEND, kind=MessageKind.QUESTION, place=alone))
    assert is_router_asked(occasion(place=channel(master_id=None, channel_owner_id="sender")))
    assert not is_router_asked(occasion(place=alone), Routing())
    assert not is_router_asked(occasion(place=channel()))
    assert not is_router_asked(occasion(place=alone, kind=MessageKind.FINAL))
    assert not is_router_asked(occasion(Cause.SEND, place=alone))
    assert not is_router_asked(occasion(place=channel(master_id=None, channel_owner_id=None, others=1)))
    gone = {"lifecycle": Lifecycle.RETIRED}
    assert not is_router_asked(occasion(leading=party("target"), place=alone), target=gone)


# ----------------------------------------------------------------------------------- never oneself


@pytest.mark.rows("R3.3-5")
def test_the_sender_is_passed_over_wherever_it_stands() -> None:
    duty = work(owner_id="sender", next_move_owner_id="sender")
    place = channel(master_id="sender", channel_owner_id="boss")
    decision = decide(occasion(targets=(party("sender"),), duty=duty, place=place))
    assert (decision.rule, decision.holder) == ("channel owner", party("boss"))
    assert list_passed(decision) == {"explicit target sender": "it is the sender"}
    alone = decide(occasion(targets=(party("sender"),), duty=duty))
    assert (alone.action, alone.rule, alone.reason, alone.instead_of) == (
        WakeAction.NOBODY, "no other agent owns the next move", "", None,
    )  # fmt: skip


@pytest.mark.rows("R3.3-5")
def test_the_first_target_that_is_not_the_sender_is_taken() -> None:
    decision = decide(occasion(targets=(party("sender/s1"), party("other"), party("target"))))
    assert (decision.rule, decision.holder) == ("explicit target", party("other"))


@pytest.mark.rows("R3.3-5")
def test_follow_up_lets_the_sender_be_woken() -> None:
    decision = decide(occasion(follow_up=True, duty=work(next_move_owner_id="sender")))
    assert (decision.rule, decision.holder) == ("next-move owner", party("sender"))


@pytest.mark.rows("R1.1-53")
def test_two_sessions_of_one_agent_can_talk() -> None:
    decision = decide(occasion(targets=(party("sender/s2"),)))
    assert (decision.action, decision.holder) == (WakeAction.WAKE, party("sender/s2"))
    assert decide(occasion(targets=(party("sender/s1"),))).holder is None


# ----------------------------------------------------------------------------- waiting, out of reach


@pytest.mark.rows("R3.3-7")
def test_a_waiting_item_wakes_the_dependency_owner_and_nobody_else() -> None:
    waiting = work(state="waiting", waiting=True)
    decision = decide(occasion(Cause.MOVE, duty=waiting, place=channel()))
    assert (decision.rule, decision.holder) == ("dependency owner", party("mover"))
    own = work(state="waiting", waiting=True, next_move_owner_id="sender")
    decision = decide(occasion(Cause.MOVE, duty=own, place=channel()))
    assert (decision.action, list_passed(decision)) == (
        WakeAction.NOBODY,
        {"dependency owner sender": "it is the sender"},
    )
    nobody = work(state="waiting", waiting=True, next_move_owner_id=None)
    assert decide(occasion(Cause.MOVE, duty=nobody, place=channel())).considered == ()
    decision = decide(occasion(duty=waiting, targets=(party("target"),)))
    assert decision.rule == "explicit target"


@pytest.mark.rows("R3.3-11")
@pytest.mark.parametrize(
    ("fate", "why"),
    [
        ({"lifecycle": Lifecycle.RETIRED}, "it is retired"),
        ({"wakeable": False, "why_not": "claude is not installed"}, "claude is not installed"),
    ],
)
@pytest.mark.parametrize(("waiting", "role"), [(False, "next-move owner"), (True, "dependency owner")])
def test_if_the_next_move_owner_is_out_of_reach_the_owner_is_told_why(
    fate: dict[str, Any], why: str, waiting: bool, role: str
) -> None:
    decision = decide(occasion(Cause.MOVE, duty=work(waiting=waiting), place=channel()), mover=fate)
    assert (decision.action, decision.rule, decision.holder) == (WakeAction.WAKE, "owner", party("owner"))
    assert (decision.instead_of, decision.reason) == (party("mover"), f"{role} @mover: {why}")
    assert decision.considered == (
        Considered(role=Role(role), party=party("mover"), why_not=why, unreachable=True),
        Considered(role=Role.OWNER, party=party("owner")),
    )


@pytest.mark.rows("R3.3-11")
@pytest.mark.parametrize("waiting", [False, True])
def test_if_the_owner_is_out_of_reach_too_the_master_is_told(waiting: bool) -> None:
    gone = {"lifecycle": Lifecycle.RETIRED}
    decision = decide(
        occasion(Cause.MOVE, duty=work(waiting=waiting), place=channel()), mover=gone, owner=gone
    )
    assert (decision.rule, decision.instead_of) == ("conversation master", party("mover"))


def test_a_dependency_owner_of_whom_nothing_is_known_is_out_of_reach() -> None:
    reaches = roster()
    del reaches["mover"]
    decision = decide_wake(occasion(Cause.MOVE, duty=work(waiting=True)), reaches)
    assert (decision.rule, decision.instead_of) == ("owner", party("mover"))
    assert decision.reason == "dependency owner mover: it is not a known agent"


def test_a_dependency_owner_that_speaks_is_not_lost() -> None:
    own = work(state="waiting", waiting=True, next_move_owner_id="sender")
    gone = {"wakeable": False}
    assert decide(occasion(Cause.MOVE, duty=own), sender=gone).holder is None
    again = decide(occasion(Cause.MOVE, duty=own, follow_up=True), sender=gone)
    assert (again.rule, again.instead_of) == ("owner", party("sender"))


def test_a_plain_message_to_a_waiting_item_needs_nobody_woken() -> None:
    what = occasion(Cause.SEND, duty=work(waiting=True))
    decision = decide(what, mover={"wakeable": False})
    assert (decision.action, decision.holder) == (WakeAction.DELIVER, party("mover"))


@pytest.mark.rows("R3.3-9", "R3.3-10")
def test_a_changed_target_leaves_the_message_as_it_was_and_says_why() -> None:
    what = occasion(leading=party("target"), soft=(party("other"),), duty=work())
    decision = decide(what, target={"lifecycle": Lifecycle.RETIRED})
    assert (decision.holder, decision.instead_of) == (party("mover"), party("target"))
    assert decision.reason == "leading mention @target: it is retired"
    assert decision.facts.occasion == what
    assert (decision.stored.agent_id, decision.stored.instead_of) == ("mover", "target")
    assert decision.stored.reason == "leading mention @target: it is retired"


def test_when_nobody_can_be_reached_the_remedy_brings_up_the_first() -> None:
    what = occasion(targets=(party("target"),))
    decision = decide(what, target={"wakeable": False, "harness": "codex"})
    assert (decision.action, decision.rule, decision.holder) == (
        WakeAction.NOBODY, "no agent can be reached", None,
    )  # fmt: skip
    assert (decision.instead_of, decision.reason) == (
        party("target"), "explicit target @target: it cannot be woken",
    )  # fmt: skip
    assert decision.remedies == (
        Remedy(operation="session.start", parameters={"agent": "@target", "harness": "codex"}),
    )
    decision = decide(what, target={"lifecycle": Lifecycle.RETIRED})
    assert decision.remedies == (Remedy(operation="agent.revive", parameters={"address": "@target"}),)
    unknown = decide_wake(what, {})
    assert (unknown.reason, unknown.remedies) == ("explicit target target: it is not a known agent", ())
    assert unknown.facts.reaches == ()


# --------------------------------------------------------------------------------- policies, people


@pytest.mark.rows("R3.3-12")
def test_a_manual_agent_waits_for_the_operator_with_the_start_command() -> None:
    what = occasion(Cause.ASK, targets=(party("target"),))
    decision = decide(what, target={"policy": WakePolicy.MANUAL, "harness": "claude"})
    assert (decision.action, decision.holder, decision.woken) == (WakeAction.HOLD, party("target"), None)
    assert decision.remedies == (
        Remedy(operation="session.start", parameters={"agent": "@target", "harness": "claude"}),
    )
    live = decide(what, target={"policy": WakePolicy.MANUAL, "live": True})
    assert (live.action, live.remedies) == (WakeAction.WAKE, ())


@pytest.mark.rows("R3.3-13")
def test_an_agent_on_demand_is_woken_when_there_is_something() -> None:
    decision = decide(
        occasion(Cause.ASK, targets=(party("target"),)), target={"policy": WakePolicy.ON_DEMAND}
    )
    assert decision.woken == party("target")


def test_a_person_finds_it_in_the_inbox() -> None:
    person = {"person": True, "wakeable": False}
    decision = decide(occasion(Cause.MOVE, duty=work()), mover=person)
    assert (decision.action, decision.holder) == (WakeAction.DELIVER, party("mover"))


# ------------------------------------------------------------------------------------- the router


@pytest.mark.rows("R3-4", "R3-5", "R3-6", "R3.7-14")
def test_the_router_breaks_a_tie_in_a_channel_only_if_it_is_on_and_is_recorded() -> None:
    place = channel(master_id=None, channel_owner_id=None)
    what = occasion(place=place, suggestion=party("router"))
    assert decide(what).action is WakeAction.NOBODY
    decision = decide(what, ON)
    assert (decision.action, decision.rule, decision.holder) == (
        WakeAction.WAKE, "model suggestion", party("router"),
    )  # fmt: skip
    assert decision.stored.rule == "model suggestion"
    assert decision.facts.routing == ON


@pytest.mark.rows("R3-4", "R3-6")
@pytest.mark.parametrize(
    "changes",
    [
        {"place": channel(master_id=None, channel_owner_id=None, others=1)},
        {"place": channel(master_id=None, channel_owner_id=None, kind=ConversationKind.DM)},
        {"place": None},
        {"cause": Cause.SEND},
        {"duty": work(settled=True)},
        {"duty": work(waiting=True, next_move_owner_id=None)},
        {"suggestion": None},
        {"suggestion": party("sender")},
    ],
)
def test_the_router_has_no_say_elsewhere(changes: dict[str, Any]) -> None:
    base = occasion(place=channel(master_id=None, channel_owner_id=None), suggestion=party("router"))
    assert decide(msgspec.structs.replace(base, **changes), ON).holder is None


@pytest.mark.rows("R3-4", "R3-6")
def test_the_router_never_overrules_the_rules() -> None:
    what = occasion(duty=work(), place=channel(), suggestion=party("router"))
    assert decide(what, ON).holder == party("mover")
    unsettled = work(owner_id=None, next_move_owner_id=None)
    place = channel(master_id=None, channel_owner_id=None, others=2)
    assert decide(occasion(duty=unsettled, place=place, suggestion=party("router")), ON).holder == party(
        "router"
    )


# --------------------------------------------------------------------------------- budget, storing


@pytest.mark.rows("R3.3-20")
def test_a_conversation_over_its_budget_wakes_nobody() -> None:
    decision = decide(occasion(duty=work(), place=channel()))
    wakes, limits = [NOW] * 30, Limits(wakes_per_hour=30)
    assert apply_wake_budget(decision, wakes[:29], limits, NOW) == decision
    held = apply_wake_budget(decision, wakes, limits, NOW, name="#builds")
    assert held == msgspec.structs.replace(
        decision,
        action=WakeAction.HOLD,
        rule="wake_budget",
        reason="agents used 30 of 30 wakes per hour in #builds: none left until 2026-11-15T13:00:00.000Z",
        remedies=(raise_limit("wakesPerHour", 30),),
    )
    assert held.woken is None


def test_the_budget_is_about_wakes_in_a_conversation() -> None:
    told = decide(occasion(Cause.SEND, targets=(party("target"),), place=channel()))
    assert apply_wake_budget(told, [NOW] * 99, Limits(), NOW) == told
    nowhere = decide(occasion(targets=(party("target"),)))
    assert apply_wake_budget(nowhere, [NOW] * 99, Limits(), NOW) == nowhere


@pytest.mark.rows("R2.3-21")
def test_the_decision_is_stored_with_who_rule_facts_and_who_was_passed_over() -> None:
    what = occasion(targets=(party("sender/s1"), party("other")), leading=party("target"), duty=work())
    decision = decide(what, other={"lifecycle": Lifecycle.RETIRED}, mover={"policy": WakePolicy.MANUAL})
    assert decision.stored == WakeFact(
        agent_id="mover",
        action="hold",
        rule="next-move owner",
        reason="explicit target @other: it is retired",
        instead_of="other",
        passed_over=(
            PassedOver(agent_id="sender", session_id="s1", role="explicit target", why="it is the sender"),
            PassedOver(agent_id="other", role="explicit target", why="it is retired"),
        ),
        facts=decode(encode(decision.facts), dict[str, Any]),
    )
    assert decode(encode(decision.stored), WakeFact) == decision.stored
    session = decide(occasion(targets=(party("target/s9"),))).stored
    assert (session.agent_id, session.session_id, session.instead_of) == ("target", "s9", None)
    nobody = decide(occasion()).stored
    assert (nobody.agent_id, nobody.session_id, nobody.action) == (None, None, "nobody")


# ---------------------------------------------------------------------------------------- the laws

_parties = st.builds(
    Party, agent_id=st.sampled_from(NAMES), session_id=st.sampled_from([None, None, "s1", "s2"])
)
_agents = st.sampled_from([None, *NAMES])
_duties = st.builds(
    work,
    settled=st.booleans(),
    waiting=st.booleans(),
    owner_id=_agents,
    next_move_owner_id=_agents,
)
_places = st.builds(
    channel,
    kind=st.sampled_from(ConversationKind),
    quiet=st.booleans(),
    soft_mentions=st.sampled_from(SoftMentions),
    master_id=_agents,
    channel_owner_id=_agents,
    others=st.integers(0, 3),
)
_occasions = st.builds(
    Occasion,
    cause=st.sampled_from(Cause),
    sender=_parties,
    kind=st.sampled_from(MessageKind),
    follow_up=st.booleans(),
    targets=st.lists(_parties, max_size=2).map(tuple),
    leading=st.none() | _parties,
    soft=st.lists(_parties, max_size=2).map(tuple),
    duty=st.none() | _duties,
    place=st.none() | _places,
    suggestion=st.none() | _parties,
)
_reaches = st.fixed_dictionaries(
    {},
    optional={
        name: st.builds(
            Reach,
            agent_id=st.just(name),
            address=st.just(f"@{name}"),
            lifecycle=st.sampled_from(Lifecycle),
            policy=st.sampled_from(WakePolicy),
            live=st.booleans(),
            wakeable=st.booleans(),
            person=st.booleans(),
        )
        for name in NAMES
    },
)
_routings = st.builds(Routing, model_assisted=st.booleans())


@pytest.mark.rows("R3.3-5", "R3.3-8")
@given(_occasions, _reaches, _routings)
def test_one_decision_names_one_holder_and_never_the_sender(
    what: Occasion, reaches: dict[str, Reach], routing: Routing
) -> None:
    decision = decide_wake(what, reaches, routing)
    chosen = [one.party for one in decision.considered if not one.why_not]
    assert chosen == ([] if decision.holder is None else [decision.holder])
    assert (decision.action is WakeAction.NOBODY) == (decision.holder is None)
    if decision.holder is not None and not what.follow_up:
        assert not what.sender.is_same(decision.holder)


@pytest.mark.rows("R3.5-28")
@given(_occasions, _reaches, _routings)
def test_never_nobody_while_somebody_else_owes(
    what: Occasion, reaches: dict[str, Reach], routing: Routing
) -> None:
    """Somebody who holds the next move (or owns what nobody holds) and can be told is told."""
    duty, decision = what.duty, decide_wake(what, reaches, routing)
    silent = what.kind in (MessageKind.STATUS, MessageKind.FINAL) or (
        what.cause in (Cause.SEND, Cause.WAKE)
        and what.place is not None
        and (what.place.quiet or what.place.kind is ConversationKind.BROADCAST)
    )
    if duty is None or duty.settled or silent:
        return
    owing = duty.next_move_owner_id if duty.waiting else duty.next_move_owner_id or duty.owner_id
    reach = reaches.get(owing or "")
    if reach is None or what.sender.agent_id == owing:
        return
    if reach.lifecycle is not Lifecycle.RETIRED and (reach.live or reach.person or reach.wakeable):
        assert decision.holder is not None


@pytest.mark.rows("R3.3-7", "R3.3-11")
@given(_occasions, _reaches, _routings)
def test_of_a_waiting_item_others_hear_only_when_its_dependency_owner_is_lost(
    what: Occasion, reaches: dict[str, Reach], routing: Routing
) -> None:
    decision = decide_wake(what, reaches, routing)
    if what.duty is None or not what.duty.waiting:
        return
    dependency = Party(agent_id=what.duty.next_move_owner_id or "")
    lost = [one.party for one in decision.considered if one.unreachable]
    if decision.rule in (Role.OWNER, Role.MASTER, Role.CHANNEL_OWNER, Role.SUGGESTION):
        assert dependency in lost


@pytest.mark.rows("R3-3", "R2.3-21")
@given(_occasions, _reaches, _routings)
def test_a_decision_follows_from_its_stored_facts_alone(
    what: Occasion, reaches: dict[str, Reach], routing: Routing
) -> None:
    decision = decide_wake(what, reaches, routing)
    facts = decode(decision.stored.facts, WakeFacts)
    again = decide_wake(facts.occasion, {reach.agent_id: reach for reach in facts.reaches}, facts.routing)
    assert again == decision
