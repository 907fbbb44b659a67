from enum import StrEnum

import pytest

from scout.base.machine import Machine
from scout.base.refusal import Refused, WrongState


class State(StrEnum):
    OPEN = "open"
    SHUT = "shut"
    GONE = "gone"


class Move(StrEnum):
    SHUT = "shut"
    OPEN = "open"
    REMOVE = "remove"


DOOR = Machine(
    "door",
    State.OPEN,
    {
        State.OPEN: {Move.SHUT: State.SHUT, Move.REMOVE: State.GONE},
        State.SHUT: {Move.OPEN: State.OPEN, Move.REMOVE: State.GONE},
        State.GONE: {},
    },
)


def test_a_move_leads_to_its_state() -> None:
    assert DOOR.after(State.OPEN, Move.SHUT) is State.SHUT


def test_an_illegal_move_says_what_would_be_accepted() -> None:
    with pytest.raises(Refused) as refused:
        DOOR.after(State.OPEN, Move.OPEN)
    assert refused.value.diagnostic == WrongState(
        noun="door", state="open", move="open", accepts=("shut", "remove"), terminal=False
    )
    assert (
        str(refused.value) == "wrong_state: a door that is open does not allow 'open'; allowed: shut, remove"
    )


def test_a_final_state_takes_nothing() -> None:
    with pytest.raises(Refused) as refused:
        DOOR.after(State.GONE, Move.OPEN)
    assert refused.value.diagnostic.message == "a door that is gone does not allow 'open': gone is final"


def test_terminal_states_are_settled_unless_said_otherwise() -> None:
    assert DOOR.terminal == DOOR.settled == {State.GONE}
    other = Machine("door", State.OPEN, DOOR.table, settled=frozenset({State.SHUT, State.GONE}))
    assert (other.terminal, other.settled) == ({State.GONE}, {State.SHUT, State.GONE})


def test_the_table_names_every_state() -> None:
    with pytest.raises(AssertionError, match="door: the table must name every state"):
        Machine("door", State.OPEN, {State.OPEN: {Move.SHUT: State.SHUT}, State.SHUT: {}})


def test_the_diagram_is_the_table() -> None:
    assert DOOR.mermaid().splitlines() == [
        "stateDiagram-v2",
        "    [*] --> open",
        "    open --> shut: shut",
        "    open --> gone: remove",
        "    shut --> open: open",
        "    shut --> gone: remove",
        "    gone --> [*]",
    ]


def test_moves_between_the_same_states_share_an_arrow() -> None:
    both = Machine(
        "door",
        State.OPEN,
        {State.OPEN: {Move.SHUT: State.SHUT, Move.REMOVE: State.SHUT}, State.SHUT: {}, State.GONE: {}},
    )
    assert "    open --> shut: shut, remove" in both.mermaid().splitlines()
