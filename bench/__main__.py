"""`python -m bench [--json FILE]`: run every figure; exit 1 when a goal is missed."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from bench import (
    agent_tree,
    called,
    chats,
    decisions,
    edits,
    names,
    schedules,
    served,
    spawn,
    store,
    sweeps,
    typed,
    woken,
    worktrees,
)
from bench.figure import Figure, table

_PARTS: dict[str, Callable[[float], Iterable[Figure]]] = {
    "names": lambda _: names.figures(),
    "decisions": lambda _: decisions.figures(),
    "store": lambda _: store.figures(),
    "sweeps": lambda _: sweeps.figures(),
    "schedules": schedules.figures,
    "tree": agent_tree.figures,
    "called": called.figures,
    "served": served.figures,
    "woken": woken.figures,
    "typed": typed.figures,
    "reserve": edits.figures,
    "chats": chats.figures,
    "spawn": spawn.figures,
    "worktrees": worktrees.figures,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description="Measure Scout.")
    parser.add_argument("--json", metavar="FILE", type=Path, help="store the figures, to compare two commits")
    parser.add_argument("--only", choices=sorted(_PARTS), action="append", help="these parts instead of all")
    parser.add_argument("--scale", type=float, default=1.0, help="make large stores smaller, as in 0.01")
    options = parser.parse_args()
    figures: list[Figure] = []
    for part in options.only or _PARTS:
        for figure in _PARTS[part](options.scale):
            figures.append(figure)
            print(table([figure]).splitlines()[-1], flush=True)  # progress; the table comes at the end
    print(f"\n{table(figures)}")
    if options.json:
        options.json.write_text(json.dumps([figure.plain() for figure in figures], indent=2) + "\n")
    missed = [figure.name for figure in figures if not figure.met]
    print(f"\n{len(missed)} goals missed" + (f": {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
