"""`python -m bench [--only PART] [--against REV] [--draw FILE]`: run every figure; exit 1 when a goal is missed.

Each run is added to `.bench/history.jsonl`. `--draw` shows that file instead of measuring.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from bench import (
    agent_tree,
    called,
    chats,
    compare,
    decisions,
    edits,
    history,
    names,
    page,
    pages,
    past,
    schedules,
    served,
    spawn,
    started,
    store,
    sweeps,
    telemetry,
    terminal,
    typed,
    woken,
    worktrees,
)
from bench.figure import Figure, table
from bench.mesh import directory, partition, simulation, talk, without


def _measure_mesh(scale: float) -> Iterator[Figure]:
    """The figures of a mesh in one run."""
    for part in (talk, partition, directory, without):
        yield from part.figures(scale)


PARTS: dict[str, Callable[[float], Iterable[Figure]]] = {
    "names": lambda _: names.figures(),
    "decisions": lambda _: decisions.figures(),
    "store": lambda _: store.figures(),
    "sweeps": lambda _: sweeps.figures(),
    "schedules": schedules.figures,
    "pages": pages.figures,
    "past": past.figures,
    "tree": agent_tree.figures,
    "called": called.figures,
    "served": served.figures,
    "floor": served.floor_figures,
    "large": served.large_figures,
    "resolving": served.resolving_figures,
    "woken": woken.figures,
    "started": started.figures,
    "typed": typed.figures,
    "stored": typed.stored_figures,
    "telemetry": telemetry.figures,
    "terminal": terminal.figures,
    "reserve": edits.figures,
    "chats": chats.figures,
    "spawn": spawn.figures,
    "worktrees": worktrees.figures,
    "page": page.figures,
    "mesh": _measure_mesh,
    "fleet": simulation.figures,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description="Measure Scout.")
    parser.add_argument("--json", metavar="FILE", type=Path, help="store the figures of this run")
    parser.add_argument("--only", choices=sorted(PARTS), action="append", help="these parts instead of all")
    parser.add_argument("--scale", type=float, default=1.0, help="make large stores smaller, as in 0.01")
    parser.add_argument("--against", metavar="REV", help="measure another commit in turn with this one")
    parser.add_argument("--rounds", type=int, default=compare.ROUNDS, help="rounds of --against")
    parser.add_argument(
        "--draw", metavar="FILE", type=Path, help="draw the history as an SVG; measure nothing"
    )
    options = parser.parse_args()
    if options.draw:
        return _draw(options.draw)
    parts = options.only or list(PARTS)
    if options.against:
        compare.compare(options.against, parts, options.scale, options.rounds)
        return 0
    return _measure(parts, options.scale, options.json)


def _measure(parts: Sequence[str], scale: float, file: Path | None) -> int:
    figures: list[Figure] = []
    for part in parts:
        for figure in PARTS[part](scale):
            figures.append(figure)
            print(table([figure]).splitlines()[-1], flush=True)  # progress; the table comes at the end
    print(f"\n{table(figures)}")
    if file:
        file.write_text(json.dumps([figure.plain() for figure in figures], indent=2) + "\n")
    if os.environ.get("SCOUT_BENCH_HISTORY") != "0":
        run = history.add_run(figures)
        print(f"\ncommit {run.commit}, load {run.load:g}, kept in {history.FILE}")
    missed = [figure.name for figure in figures if not figure.met]
    print(f"\n{len(missed)} goals missed" + (f": {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


def _draw(file: Path) -> int:
    runs = history.read_runs()
    if not runs:
        print(f"bench: {history.FILE} has no runs yet; run: ./dev bench --only typed", file=sys.stderr)
        return 1
    print(history.render_lines(runs))
    file.write_text(history.draw(runs), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
