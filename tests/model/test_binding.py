import pytest

from scout.base.refusal import Refused
from scout.model.people.binding import (
    BINDING,
    BindingMove,
    BindingState,
    Surface,
    check_binding,
    move_binding,
)
from tests.model.samples import ALICE, T1, a_binding, ident
from tests.model.table import cells, check_cell

TABLE = """
         close   reopen
active   closed  -
closed   -       active
"""


@pytest.mark.parametrize(("state", "move", "after"), cells(BINDING, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(BINDING, state, move, after)


def test_a_binding_leads_to_one_place() -> None:
    to_agent = a_binding(conversation_id=None, agent_id=ALICE)
    assert check_binding(to_agent) is to_agent
    assert check_binding(a_binding()) == a_binding()
    for wrong in (a_binding(agent_id=ALICE), a_binding(conversation_id=None)):
        with pytest.raises(Refused, match="either a conversation or an agent"):
            check_binding(wrong)


def test_a_harness_thread_is_bound_by_its_session() -> None:
    bound = a_binding(surface=Surface.HARNESS, external_id=ident("ses"))
    assert check_binding(bound) is bound


def test_closing_says_why() -> None:
    closed = move_binding(a_binding(), BindingMove.CLOSE, T1, seen=1, reason="the group is gone")
    assert (closed.state, closed.reason, closed.revision) == (BindingState.CLOSED, "the group is gone", 2)
    assert move_binding(closed, BindingMove.REOPEN, T1).state is BindingState.ACTIVE
    assert BINDING.settled == {BindingState.CLOSED}
