"""A lifecycle as a literal table, and the records that change by it.

Each (state, move) cell gives the next state or is refused. A change checks the revision that the caller read,
and increments it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

from scout.base.record import Record
from scout.base.refusal import Refused, WrongRevision, WrongState
from scout.base.time import Time

S = TypeVar("S", bound=StrEnum)
M = TypeVar("M", bound=StrEnum)


class Machine(Generic[S, M]):
    """The states of one noun and the moves between them.

    `table` names every state; final states have no moves. In a `settled` state no next move is owed,
    although the record may still be reopened (such as a done work item).
    """

    def __init__(
        self, noun: str, initial: S, table: Mapping[S, Mapping[M, S]], settled: frozenset[S] | None = None
    ) -> None:
        self.noun = noun
        self.initial = initial
        self.table = table
        self.states: tuple[S, ...] = tuple(type(initial))
        assert set(table) == set(self.states), f"{noun}: the table must name every state"
        self.terminal = frozenset(state for state, moves in table.items() if not moves)
        self.settled = self.terminal if settled is None else settled

    def accepts(self, state: S) -> tuple[M, ...]:
        """Return the moves that this state allows."""
        return tuple(self.table[state])

    def after(self, state: S, move: M) -> S:
        """Return the state that `move` leads to; refuse a move that the state does not allow."""
        following = self.table[state].get(move)
        if following is None:
            raise Refused(
                WrongState(
                    noun=self.noun,
                    state=state,
                    move=move,
                    accepts=self.accepts(state),
                    terminal=state in self.terminal,
                )
            )
        return following

    def mermaid(self) -> str:
        """Return the table as a Mermaid state diagram for the docs."""
        arrows: dict[tuple[str, str], list[str]] = {}
        for state, moves in self.table.items():
            for move, following in moves.items():
                arrows.setdefault((state, following), []).append(move)
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial}"]
        lines += [f"    {a} --> {b}: {', '.join(moves)}" for (a, b), moves in arrows.items()]
        lines += [f"    {state} --> [*]" for state in self.states if state in self.settled]
        return "\n".join(lines)


class Mutable(Record):
    """The common fields of records that change in place."""

    id: str
    revision: int = 1
    created_at: Time
    updated_at: Time


R = TypeVar("R", bound=Mutable)


def change_record(noun: str, record: R, now: Time, *, seen: int | None = None, **changes: Any) -> R:
    """Return the record with `changes`; refuse if it changed after the caller read revision `seen`."""
    if seen is not None and seen != record.revision:
        raise Refused(WrongRevision(noun=noun, id=record.id, seen=seen, current=record.revision))
    return msgspec.structs.replace(record, revision=record.revision + 1, updated_at=now, **changes)


def move_record(
    machine: Machine[S, M],
    record: R,
    move: M,
    now: Time,
    *,
    seen: int | None = None,
    field: str = "state",
    **changes: Any,
) -> R:
    """Return the record after `move`; `field` is the name of its state field."""
    following = machine.after(getattr(record, field), move)
    return change_record(machine.noun, record, now, seen=seen, **{field: following}, **changes)
