"""The lifecycles (2.2): every state and every move, and what stands beside the states."""

import re
from pathlib import Path

import pytest

from scout.base.refusal import Refused
from scout.model.noun import NOUNS
from scout.model.ref import RefKind
from scout.model.session import SessionClass, SessionState, check_class, end_session, resume_session
from tests.contract.stories import STORIES
from tests.model.samples import T1, a_session


@pytest.mark.rows("R2.2-1")
@pytest.mark.parametrize("kind", STORIES)
def test_no_state_and_no_move_is_left_out(kind: RefKind) -> None:
    story, machine = STORIES[kind], NOUNS[kind].machine
    assert machine is not None
    cells = story.cells()
    assert {state for state, _, _ in cells} == set(machine.states)
    assert {move for _, move, _ in cells} == {move for moves in machine.table.values() for move in moves}
    assert len(cells) == len({cell[:2] for cell in cells})


@pytest.mark.rows("R2.2-1", "R2.2-2")
@pytest.mark.rows("R2.2-8")  # agents
@pytest.mark.rows("R2.2-11", "R2.2-12", "R2.2-13", "R2.2-14", "R2.2-15")  # flights
@pytest.mark.rows("R2.2-17", "R2.2-18", "R2.2-19")  # endpoints
@pytest.mark.rows("R2.2-20")  # sessions
@pytest.mark.rows("R2.2-23", "R2.2-24")  # deliveries
@pytest.mark.rows("R2.2-28")  # questions
@pytest.mark.rows("R2.2-30", "R2.2-31", "R2.2-33", "R2.2-34", "R2.2-35")  # work items
@pytest.mark.rows("R2.2-38", "R2.2-39")  # attention
@pytest.mark.parametrize(
    ("kind", "state", "move", "after"),
    [(kind, *cell) for kind, story in STORIES.items() for cell in story.cells()],
)
def test_a_move_leads_to_its_state_or_is_refused(kind: RefKind, state: str, move: str, after: str) -> None:
    STORIES[kind].check(state, move, after)


@pytest.mark.rows("R2.2-7")
def test_the_docs_draw_every_lifecycle_once() -> None:
    page = (Path(__file__).parents[2] / "docs/lifecycles.md").read_text()
    drawn = re.findall(r"<!-- machine: scout\.model\.([\w.]+:\w+) -->\n```mermaid\nstateDiagram-v2\n", page)
    assert len(drawn) == len(set(drawn)) == page.count("```mermaid")
    wanted = "agent:AGENT flight:FLIGHT endpoint:ENDPOINT session:SESSION delivery:DELIVERY question:QUESTION"
    assert {*wanted.split(), "work_item:WORK_ITEM", "attention:ATTENTION"} <= set(drawn)


@pytest.mark.rows("R2.2-20")
def test_a_session_ends_with_a_reason() -> None:
    ended = end_session(a_session(pid=7), "the terminal was closed", T1)
    assert (ended.reason, ended.ended_at) == ("the terminal was closed", T1)


@pytest.mark.rows("R2.2-21")
@pytest.mark.parametrize(
    ("word", "resumes"),
    [("resumable", True), ("reachability_unknown", True), ("not_attachable", False), ("terminal", False)],
)
@pytest.mark.parametrize("state", SessionState)
def test_a_sessions_class_stands_beside_its_state(state: SessionState, word: str, resumes: bool) -> None:
    found = check_class(a_session(state=state), SessionClass(word), T1)
    assert (found.state, found.session_class.value) == (state, word)
    ended = end_session(a_session(), "over", T1, ending=SessionClass(word))
    if resumes:
        assert resume_session(ended, T1).state is SessionState.STARTING
    else:
        with pytest.raises(Refused, match="session_not_attachable"):
            resume_session(ended, T1)
    assert len(SessionClass) == 4
