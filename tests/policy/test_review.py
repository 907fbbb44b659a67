"""A stored decision is decided again from its own facts: the same, or what today's policy says instead."""

import msgspec
import pytest

from scout.model.agent import Lifecycle, WakePolicy
from scout.model.events.envelope import WakeFact
from scout.policy.limits import Limits
from scout.policy.wake import Cause, WakeDecision, apply_wake_budget, compare_decision, describe_decision
from tests.policy.test_wake import NOW, channel, decide, occasion, party, work

DECISIONS = {
    "a mention": decide(occasion(Cause.SEND, leading=party("target"))),
    "a session": decide(occasion(targets=(party("target/s9"),))),
    "a holder": decide(occasion(Cause.MOVE, duty=work(), place=channel())),
    "a lost holder": decide(occasion(duty=work()), mover={"lifecycle": Lifecycle.RETIRED}),
    "by hand": decide(occasion(duty=work()), mover={"policy": WakePolicy.MANUAL}),
    "nobody": decide(occasion()),
    "over budget": apply_wake_budget(
        decide(occasion(duty=work(), place=channel())), [NOW] * 120, Limits(), NOW
    ),
}


@pytest.mark.parametrize("decision", DECISIONS.values(), ids=DECISIONS)
def test_what_was_decided_by_todays_policy_does_not_differ(decision: WakeDecision) -> None:
    assert compare_decision(decision.stored) == ""


@pytest.mark.parametrize(
    ("decision", "field"),
    [
        pytest.param(decision, field, id=f"{name} {field}")
        for name, decision in DECISIONS.items()
        for field in ("agent_id", "action", "rule", "instead_of")
        if field != "rule" or decision.holder is not None
    ],
)
def test_another_outcome_is_said_with_what_is_decided_today(decision: WakeDecision, field: str) -> None:
    today = compare_decision(msgspec.structs.replace(decision.stored, **{field: "another"}))
    unheld = "wake mover (next-move owner)"  # of another rule, no budget was looked at
    assert today == (
        unheld if (decision.rule, field) == ("wake_budget", "rule") else describe_decision(decision.stored)
    )


def test_another_session_counts() -> None:
    stored = DECISIONS["a session"].stored
    assert (
        compare_decision(msgspec.structs.replace(stored, session_id="s8"))
        == "wake target in s9 (explicit target)"
    )


def test_who_was_passed_over_counts() -> None:
    stored = DECISIONS["a lost holder"].stored
    assert (
        describe_decision(stored)
        == "wake owner (owner), instead of mover; not mover (next-move owner: it is retired)"
    )
    assert compare_decision(msgspec.structs.replace(stored, passed_over=())) == describe_decision(stored)


def test_reworded_sentences_are_the_same_decision() -> None:
    silent = DECISIONS["nobody"].stored
    assert compare_decision(msgspec.structs.replace(silent, rule="nobody else owes anything")) == ""
    lost = DECISIONS["a lost holder"].stored
    reworded = tuple(msgspec.structs.replace(one, why="gone") for one in lost.passed_over)
    assert compare_decision(msgspec.structs.replace(lost, reason="gone", passed_over=reworded)) == ""


def test_what_the_budget_held_is_a_wake_today() -> None:
    held = DECISIONS["over budget"].stored
    assert (held.action, held.rule) == ("hold", "wake_budget")
    other = decide(occasion(duty=work(settled=True))).stored
    assert (
        compare_decision(msgspec.structs.replace(held, facts=other.facts))
        == "nobody (no other agent owns the next move)"
    )


def test_facts_that_cannot_be_read_are_said() -> None:
    assert compare_decision(WakeFact(rule="owner")).startswith("cannot be decided again: the field")
