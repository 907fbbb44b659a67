"""One measured figure: what, how much, and whether it meets its goal."""

import gc
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

ROUNDS = 9


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A result beside its goal. Ratios have goals; absolute times are only shown."""

    name: str
    result: float
    unit: str
    goal: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool:
        if self.goal is None:
            return True
        return self.result >= self.goal if self.at_least else self.result <= self.goal

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return ""
        return "ok" if self.met else "MISSED"

    def row(self) -> tuple[str, str, str, str]:
        sign = ">=" if self.at_least else "<="
        goal = "" if self.goal is None else f"{sign} {self.goal:g} {self.unit}"
        return self.name, f"{self.result:,.2f} {self.unit}", goal, self.verdict

    def plain(self) -> dict[str, object]:
        return {**asdict(self), "verdict": self.verdict}


def microseconds(call: Callable[[], object], calls: int = 200) -> float:
    """The mean time of one call in the best round: what else the machine does only ever adds to it."""
    call()
    gc.collect()
    gc.disable()
    try:
        return min(_round(call, calls) for _ in range(ROUNDS))
    finally:
        gc.enable()


def _round(call: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls * 1e6


def table(figures: list[Figure]) -> str:
    """The figures as aligned text."""
    rows = [("figure", "result", "goal", "verdict"), *(figure.row() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
