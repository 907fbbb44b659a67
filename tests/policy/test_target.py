"""Whom a message is for."""

import pytest

from scout.base.refusal import BadRequest, Refused
from scout.identity.problem import MalformedAddress
from scout.model.problems.target import UnknownTarget
from scout.policy.directory import OUTSIDE
from scout.policy.resolver.resolve import Resolution, Targeting, decide_target, list_soft_mentions, resolve
from tests.policy.fleets import NOW, agent, fleet

ROSTER = fleet(agent("arc"), agent("bow"))


def look(text: str) -> Resolution:
    return resolve(text, ROSTER, OUTSIDE, NOW)


def decide(body: str, to: str | None = None, elsewhere: bool = False) -> Targeting:
    return decide_target(body, to, elsewhere, look)


def refusal(body: str, to: str | None = None):
    with pytest.raises(Refused) as caught:
        decide(body, to)
    return caught.value.diagnostic


def who(decision: Targeting) -> str | None:
    return decision.target.agent.id if decision.target else None


@pytest.mark.rows("R1.3-59")
def test_a_structured_target_wins_over_mentions() -> None:
    decision = decide("@arc look at @bow", "@bow")
    assert (who(decision), decision.rule) == ("bow@mini", "structured target")
    assert (decision.soft, decision.unresolved) == (("@bow",), ())
    assert decide("no mention", "@bow").unresolved == ()


@pytest.mark.rows("R1.3-54", "R1.3-55")
def test_a_leading_mention_is_the_target_and_the_others_are_hints() -> None:
    decision = decide("@arc, ask @bow and @nobody")
    assert (who(decision), decision.rule) == ("arc@mini", "leading mention")
    assert decision.soft == ("@bow", "@nobody")
    assert decide("@arc hi", elsewhere=True).rule == "leading mention"


@pytest.mark.rows("R1.3-57")
def test_a_leading_mention_that_leads_nowhere_is_refused() -> None:
    assert isinstance(refusal("@nobody hi"), UnknownTarget)
    assert isinstance(refusal("@arc.a.b hi"), MalformedAddress)


@pytest.mark.rows("R1.3-58")
@pytest.mark.parametrize(
    ("body", "code"), [("@nobody hi", "unknown_target"), ("@arc.a.b hi", "malformed_address")]
)
def test_with_a_structured_target_it_is_only_noted(body: str, code: str) -> None:
    decision = decide(body, "@bow")
    assert who(decision) == "bow@mini"
    assert [noted.code for noted in decision.unresolved] == [code]


def test_a_conversation_needs_no_target() -> None:
    decision = decide("hello @arc", elsewhere=True)
    assert (who(decision), decision.rule, decision.soft) == (None, "conversation", ("@arc",))


def test_nobody_is_never_guessed() -> None:
    told = refusal("hello @arc")
    assert isinstance(told, BadRequest)
    assert told.field == "to"
    assert [remedy.operation for remedy in told.remedies] == ["who", "send"]


def test_soft_mentions_are_those_after_the_beginning() -> None:
    assert list_soft_mentions("@arc please ask @bow and @hal.main") == ("@bow", "@hal.main")
    assert list_soft_mentions("nobody is meant") == ()
