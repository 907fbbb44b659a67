"""Who waits for whom: circles and long chains are refused, a question to a waiting asker is not."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import Refused, Remedy
from scout.model.problems.session import AskLoop
from scout.policy.directory import Party
from scout.policy.limits import ChainDecision, Limits, Link, check_chain, find_clarification, raise_limit

LIMITS = Limits()


def party(text: str) -> Party:
    """`a` is an agent, `a/1` one session of it."""
    agent_id, _, session_id = text.partition("/")
    return Party(agent_id=agent_id, session_id=session_id or None)


def link(asker: str, target: str, body_hash: str = "h", flight_id: str = "") -> Link:
    return Link(
        asker=party(asker),
        asker_address=f"@{asker}",
        target=party(target),
        target_address=f"@{target}",
        flight_id=flight_id or f"flt_{asker}{target}",
        body_hash=body_hash,
    )


def build_chain(names: str) -> tuple[Link, ...]:
    return tuple(link(asker, target) for asker, target in pairwise(names))


def expect_refusal(
    lineage: tuple[Link, ...], ask: Link, *open_asks: Link, limits: Limits = LIMITS
) -> AskLoop:
    with pytest.raises(Refused) as caught:
        check_chain(lineage, ask, limits, open_asks)
    assert isinstance(caught.value.diagnostic, AskLoop)
    return caught.value.diagnostic


def question_to(name: str, flight_id: str) -> Remedy:
    return Remedy(
        operation="question.create",
        parameters={"to": f"@{name}", "flightId": flight_id, "body": "…"},
        why=f"@{name} waits in that flight: a question there is not a loop",
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a", "a", True),
        ("a/1", "a", True),
        ("a/1", "a/1", True),
        ("a/1", "a/2", False),
        ("a", "a/2", False),
        ("a", "b", False),
        ("a/1", "b/1", False),
    ],
)
def test_a_session_is_a_party_of_its_own(one: str, other: str, same: bool) -> None:
    assert party(one).is_same(party(other)) is same


def test_an_ask_on_its_own() -> None:
    assert check_chain((), link("a", "b"), LIMITS) == ChainDecision(
        rule="first ask", chain=("@a", "@b"), length=1, limit=6
    )


def test_an_ask_inside_of_others() -> None:
    assert check_chain(build_chain("abc"), link("c", "d"), LIMITS) == ChainDecision(
        rule="within another ask", chain=("@a", "@b", "@c", "@d"), length=3, limit=6
    )


@pytest.mark.rows("R3.3-21", "R3.5-22")
def test_the_chain_has_a_limit() -> None:
    assert check_chain(build_chain("abcdef"), link("f", "g"), LIMITS).length == 6
    told = expect_refusal(build_chain("abcdefg"), link("g", "h"))
    assert (told.chain, told.limit) == (("@a", "@b", "@c", "@d", "@e", "@f", "@g", "@h"), 6)
    assert told.remedies == (question_to("f", "flt_fg"), raise_limit("askChain", 6))
    assert expect_refusal(build_chain("ab"), link("b", "c"), limits=Limits(ask_chain=1)).limit == 1


@pytest.mark.rows("R3.3-21", "R3.3-24", "R3.5-22")
@pytest.mark.parametrize(("back_to", "flight_id"), [("a", "flt_ab"), ("b", "flt_bc")])
def test_going_back_to_a_waiting_asker_is_a_loop_whose_remedy_is_a_question(
    back_to: str, flight_id: str
) -> None:
    told = expect_refusal(build_chain("abc"), link("c", back_to))
    assert told.chain == ("@a", "@b", "@c", f"@{back_to}")
    assert told.remedies == (question_to(back_to, flight_id),)


@pytest.mark.rows("R3.3-23")
def test_a_question_to_a_waiting_asker_finds_its_flight_and_is_no_loop() -> None:
    lineage = build_chain("abc")
    assert find_clarification(lineage, party("a")) == lineage[0]
    assert find_clarification(lineage, party("b")) == lineage[1]
    assert find_clarification(lineage, party("c")) is None
    again = (*lineage, link("a/2", "d"))
    assert find_clarification(again, party("a")) == again[-1]


def test_an_agent_that_asks_itself_is_told_to_use_another_session() -> None:
    new = Remedy(
        operation="ask",
        parameters={"to": "@a", "sessionPolicy": "new", "body": "TEXT"},
        why="you are the target: use a new session",
    )
    assert expect_refusal((), link("a", "a")) == AskLoop(chain=("@a", "@a"), limit=6, remedies=(new,))
    told = expect_refusal(build_chain("ba"), link("a", "a"))
    assert told.remedies == (new,)


@pytest.mark.rows("R1.1-53")
def test_two_sessions_of_one_agent_may_ask_each_other_but_not_in_a_circle() -> None:
    there = link("a/1", "a/2")
    assert check_chain((), there, LIMITS).rule == "first ask"
    assert expect_refusal((there,), link("a/2", "a/1")).chain == ("@a/1", "@a/2", "@a/1")


def test_the_same_ask_is_not_made_twice_at_a_time() -> None:
    first = link("a", "b", "hash-1")
    wait = Remedy(
        operation="flight.wait", parameters={"flightId": "flt_ab"}, why="the same ask is already running"
    )
    told = expect_refusal((), link("a", "b", "hash-1"), link("a", "c", "hash-1"), first)
    assert told == AskLoop(chain=("@a", "@b"), limit=6, remedies=(wait,))
    assert check_chain((), link("a", "b", "hash-2"), LIMITS, (first,)).rule == "first ask"
    assert check_chain((), link("a", "c", "hash-1"), LIMITS, (first,)).rule == "first ask"


@given(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=9))
def test_an_accepted_chain_is_short_and_names_each_agent_once(names: list[str]) -> None:
    lineage: tuple[Link, ...] = ()
    for asker, target in pairwise(names):
        ask = link(asker, target)
        try:
            decision = check_chain(lineage, ask, LIMITS)
        except Refused:
            seen = names[: len(lineage) + 1]
            assert target in seen or len(lineage) == 6
            return
        assert decision.length <= 6
        assert len(set(decision.chain)) == len(decision.chain)
        lineage = (*lineage, ask)
