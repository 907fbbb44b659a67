"""Lifecycles as literal text: the expectation is written out, not computed from the code under test."""

from enum import StrEnum
from typing import Any

import pytest

from scout.base.machine import Machine
from scout.base.refusal import Refused, WrongState


def cells(machine: Machine[Any, Any], text: str) -> list[tuple[str, str, str]]:
    """(state, move, state after or '-') for each cell; the text must name every state and every move."""
    lines = [line.split() for line in text.strip().splitlines()]
    moves, rows = lines[0], lines[1:]
    assert [row[0] for row in rows] == [str(state) for state in machine.states]
    kinds: set[type[StrEnum]] = {type(move) for known in machine.table.values() for move in known}
    assert [set(map(str, kind)) for kind in kinds] == [set(moves)]
    return [(row[0], move, after) for row in rows for move, after in zip(moves, row[1:], strict=True)]


def check_cell(machine: Machine[Any, Any], state: str, move: str, after: str) -> None:
    """The cell moves to `after`, or refuses with what would be accepted."""
    here = type(machine.initial)(state)
    if after != "-":
        assert machine.after(here, move) == after
        return
    with pytest.raises(Refused) as refused:
        machine.after(here, move)
    problem = refused.value.diagnostic
    assert isinstance(problem, WrongState)
    assert (problem.noun, problem.state, problem.move) == (machine.noun, state, move)
    assert problem.accepts == machine.accepts(here)
    assert problem.terminal == (problem.accepts == ())
