"""A lifecycle as a literal table. Every (state, move) cell either moves or refuses."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from scout.base.refusal import Refused, WrongState

S = TypeVar("S", bound=StrEnum)
M = TypeVar("M", bound=StrEnum)


class Machine(Generic[S, M]):
    """The states of one noun and the moves between them.

    `table` names every state, final ones with no moves. `settled` are the states in which nobody
    owes anything, even where a record can be taken up again (a done item can be reopened).
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
        """The moves that this state takes."""
        return tuple(self.table[state])

    def after(self, state: S, move: M) -> S:
        """The state that `move` leads to, or a refusal that says what would be accepted."""
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
        """The same table as a state diagram for the docs."""
        arrows: dict[tuple[str, str], list[str]] = {}
        for state, moves in self.table.items():
            for move, following in moves.items():
                arrows.setdefault((state, following), []).append(move)
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial}"]
        lines += [f"    {a} --> {b}: {', '.join(moves)}" for (a, b), moves in arrows.items()]
        lines += [f"    {state} --> [*]" for state in self.states if state in self.settled]
        return "\n".join(lines)
