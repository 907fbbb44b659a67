"""The W3C context of an ask, and ids that are the same whoever derives them."""

import pytest

from scout.model.ask import Ask
from scout.model.trace import TraceContext, TraceStep, build_context, choose_parent, parse_traceparent
from tests.model.samples import T0

TRACE, STEP = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = f"00-{TRACE}-{STEP}-01"


def an_ask(traceparent: str | None = None) -> Ask:
    return Ask(
        id="ask_1",
        conversation_id="cnv_1",
        message_id="msg_1",
        sender="agt_1",
        target="agt_2",
        created_at=T0,
        traceparent=traceparent,
    )


@pytest.mark.parametrize(
    ("text", "sampled"),
    [(GIVEN, True), (f"00-{TRACE}-{STEP}-00", False), (f"cc-{TRACE}-{STEP}-03-more", True)],
)
def test_a_context_is_read(text: str, sampled: bool) -> None:
    assert parse_traceparent(text) == TraceContext(TRACE, STEP, sampled)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        GIVEN.upper(),
        f"{GIVEN}-more",
        f"ff-{TRACE}-{STEP}-01",
        f"00-{'0' * 32}-{STEP}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[1:]}-{STEP}-01",
        f"{GIVEN}\n",
    ],
)
def test_anything_else_is_none(text: str | None) -> None:
    assert parse_traceparent(text) is None


def test_a_context_is_written_as_it_is_read() -> None:
    for text in (GIVEN, f"00-{TRACE}-{STEP}-00"):
        assert str(parse_traceparent(text)) == text


def test_the_steps_of_an_ask_share_a_trace_that_depends_on_the_ask_alone() -> None:
    here = build_context(an_ask(), "nod_1", TraceStep.ASK, "flt_1")
    there = build_context(an_ask(), "nod_2", TraceStep.ASK, "flt_1")
    turn = build_context(an_ask(), "nod_1", TraceStep.TURN, "dlv_1")
    assert here.trace_id == there.trace_id == turn.trace_id
    assert len({here.step_id, there.step_id, turn.step_id}) == 3
    assert here == build_context(an_ask(), "nod_1", TraceStep.ASK, "flt_1")
    assert parse_traceparent(str(here)) == here


def test_an_ask_with_a_parent_is_in_its_trace_and_as_sampled() -> None:
    found = build_context(an_ask(f"00-{TRACE}-{STEP}-00"), "nod_1", TraceStep.ASK, "flt_1")
    assert (found.trace_id, found.sampled) == (TRACE, False)


def test_the_parent_of_a_new_ask() -> None:
    other = TraceContext("a" * 32, "b" * 16)
    same = TraceContext(TRACE, "b" * 16)
    assert choose_parent(None, None) is None
    assert choose_parent("nonsense", None) is None
    assert choose_parent(GIVEN, None) == GIVEN
    assert choose_parent(GIVEN, same) == GIVEN  # a step of the program itself, within the turn
    assert choose_parent(GIVEN, other) == str(other)  # left over from an earlier turn
    assert choose_parent(None, same) == str(same)
