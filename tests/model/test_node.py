import pytest

from scout.model.node import (
    NODE,
    NodeMove,
    NodeState,
    Pause,
    move_node,
    pause_node,
    resume_node,
    update_node,
)
from tests.model.samples import T1, a_node
from tests.model.table import cells, check_cell

TABLE = """
             lose         recover  leave  remove   admit
online       unreachable  -        left   removed  -
unreachable  -            online   left   removed  -
left         -            online   -      removed  -
removed      -            -        -      -        online
"""


@pytest.mark.parametrize(("state", "move", "after"), cells(NODE, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(NODE, state, move, after)


def test_a_removed_node_comes_back_only_by_invitation_with_its_new_key() -> None:
    removed = move_node(a_node(public_key="old"), NodeMove.REMOVE, T1, seen=1)
    assert (removed.state, removed.public_key) == (NodeState.REMOVED, "old")
    admitted = move_node(removed, NodeMove.ADMIT, T1, public_key="new")
    assert (admitted.state, admitted.public_key) == (NodeState.ONLINE, "new")
    assert NODE.settled == {NodeState.LEFT, NodeState.REMOVED}


def test_what_a_node_says_of_itself_may_change() -> None:
    known = update_node(a_node(), T1, seen=1, version="1", url="nats://x", public_key="k1")
    assert (known.version, known.url, known.public_key, known.revision) == ("1", "nats://x", "k1", 2)
    later = update_node(known, T1, public_key="k2")
    assert (later.version, later.url, later.public_key) == ("1", "nats://x", "k2")
    assert update_node(later, T1, version="2").public_key == "k2"


def test_a_pause_keeps_its_first_reason_and_ends_once() -> None:
    paused = pause_node(a_node(), "agt_1", T1, reason="battery")
    assert paused.paused == Pause(since=T1, by="agt_1", reason="battery")
    assert pause_node(paused, "agt_2", T1) is paused
    short = pause_node(a_node(), "agt_1", T1, until_restart=True)
    assert short.paused is not None
    assert short.paused.words.endswith("it starts after `scout resume` or `scout restart`")
    resumed = resume_node(paused, T1)
    assert (resumed.paused, resumed.revision) == (None, paused.revision + 1)
    assert resume_node(resumed, T1) is resumed
    assert "(battery): it starts after `scout resume`" in Pause(since=T1, by="a", reason="battery").words
    assert "UTC: it starts" in Pause(since=T1, by="a").words
