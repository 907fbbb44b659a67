import pytest

from scout.base.refusal import BadRequest, Refused
from scout.model.alias import (
    ALIAS,
    AliasState,
    AliasTarget,
    break_alias,
    check_target,
    end_with_session,
    remove_alias,
    repair_alias,
    retarget_alias,
)
from tests.model.samples import ALICE, BOB, T1, an_alias
from tests.model.table import cells, check_cell

TABLE = """
          retarget  break   repair  remove
active    active    broken  -       removed
broken    active    -       active  removed
removed   -         -       -       -
"""


@pytest.mark.parametrize(("state", "move", "after"), cells(ALIAS, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(ALIAS, state, move, after)


@pytest.mark.parametrize(
    "target",
    [
        AliasTarget(agent_id=ALICE),
        AliasTarget(agent_id=ALICE, harness="codex", model="gpt-5-5", node="mini"),
        AliasTarget(session_id="ses_1"),
    ],
)
def test_an_alias_names_an_agent_or_one_session(target: AliasTarget) -> None:
    assert check_target(target) is target


@pytest.mark.parametrize(
    "target",
    [
        AliasTarget(),
        AliasTarget(harness="codex"),
        AliasTarget(agent_id=ALICE, session_id="ses_1"),
        AliasTarget(session_id="ses_1", harness="codex"),
        AliasTarget(session_id="ses_1", model="opus"),
        AliasTarget(session_id="ses_1", node="mini"),
    ],
)
def test_any_other_target_is_refused(target: AliasTarget) -> None:
    with pytest.raises(Refused) as refused:
        retarget_alias(an_alias(), target, T1)
    assert isinstance(refused.value.diagnostic, BadRequest)


def test_each_change_is_a_revision() -> None:
    broken = break_alias(an_alias(), "its target is gone", T1)
    assert (broken.state, broken.reason, broken.revision) == (AliasState.BROKEN, "its target is gone", 2)
    repaired = repair_alias(broken, T1, seen=2)
    assert (repaired.state, repaired.reason, repaired.revision) == (AliasState.ACTIVE, "", 3)
    moved = retarget_alias(repaired, AliasTarget(agent_id=BOB), T1, seen=3)
    assert (moved.target.agent_id, moved.revision) == (BOB, 4)
    removed = remove_alias(moved, T1, seen=4, reason="not needed")
    assert (removed.state, removed.reason, removed.revision) == (AliasState.REMOVED, "not needed", 5)


def test_a_new_target_mends_a_broken_alias() -> None:
    mended = retarget_alias(break_alias(an_alias(), "two", T1), AliasTarget(agent_id=BOB), T1)
    assert (mended.state, mended.reason) == (AliasState.ACTIVE, "")


def test_a_sessions_own_alias_ends_with_it() -> None:
    own = an_alias(target=AliasTarget(session_id="ses_1"), until_session_ends=True)
    ended = end_with_session(own, "ses_1", T1)
    assert (ended.state, ended.reason) == (AliasState.REMOVED, "its session ended")
    assert end_with_session(ended, "ses_1", T1) is ended
    assert end_with_session(own, "ses_2", T1) is own
    persons = an_alias(target=AliasTarget(session_id="ses_1"))
    assert end_with_session(persons, "ses_1", T1) is persons
