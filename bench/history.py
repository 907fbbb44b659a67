"""Runs of the benchmark, kept in a file: one JSON object a line, so that runs can be compared and drawn.

A line holds the commit, the date, the load of the machine and the figures. The load is the most important of them: two
runs at different loads say nothing about two commits. `--against` runs both in turn for that reason.
"""

import datetime as dt
import json
import os
import subprocess
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from bench.figure import Figure

FILE = Path(__file__).parents[1] / ".bench" / "history.jsonl"
_BARS = "▁▂▃▄▅▆▇█"
_SHOWN = 40  # runs in a drawing
_WIDTH, _HEIGHT, _LABEL, _VALUE = 300, 36, 430, 130


class Run(NamedTuple):
    """One run of some figures."""

    commit: str
    date: str
    load: float
    figures: dict[str, dict[str, Any]]


def add_run(figures: Sequence[Figure], tree: Path = FILE.parents[1], file: Path = FILE) -> Run:
    """Add a run of the commit in a work tree to the history."""
    plain = {figure.name: _trim(figure.plain()) for figure in figures}
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    run = Run(read_commit(tree), now, round(os.getloadavg()[0], 2), plain)
    file.parent.mkdir(exist_ok=True)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(run._asdict()) + "\n")
    return run


def read_runs(file: Path = FILE) -> list[Run]:
    """Return the stored runs, oldest first."""
    if not file.exists():
        return []
    return [Run(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]


def read_commit(tree: Path) -> str:
    """Return the commit of a work tree; a plus sign follows if files have changed since."""
    commit = _ask_git(tree, "rev-parse", "--short", "HEAD")
    return f"{commit}+" if _ask_git(tree, "status", "--porcelain", "--untracked-files=no") else commit


def render_lines(runs: Sequence[Run]) -> str:
    """Return a line of bars for each figure: the oldest run on the left."""
    rows: list[str] = []
    for name, values in _list_series(runs).items():
        known = [one for one in values if one is not None]
        low, high = min(known), max(known)
        bars = "".join(
            " " if one is None else _BARS[_scale(one, low, high, len(_BARS) - 1)] for one in values
        )
        rows.append(f"{name[:70]:70}  {bars}  {known[-1]:,.2f} {_find_unit(runs, name)}")
    return "\n".join(rows)


def draw(runs: Sequence[Run]) -> str:
    """Return the history as an SVG: a curve for each figure, its goal as a dashed line."""
    series = _list_series(runs)
    height = _HEIGHT * len(series) + 40
    size = f'width="{_LABEL + _WIDTH + _VALUE}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="10" y="20" fill="#555">{escape(_describe(runs))}</text>',
    ]
    for row, (name, values) in enumerate(series.items()):
        goal = next((run.figures[name].get("goal") for run in reversed(runs) if name in run.figures), None)
        parts += _draw_row(row, name, values, goal, _find_unit(runs, name))
    return "\n".join((*parts, "</svg>", ""))


def _draw_row(row: int, name: str, values: list[float | None], goal: float | None, unit: str) -> list[str]:
    known = [one for one in values if one is not None]
    low, high = min((*known, *([goal] if goal else ()))), max((*known, *([goal] if goal else ())))
    top = 32 + row * _HEIGHT

    def place(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return top + _HEIGHT - 8 - share * (_HEIGHT - 12)

    step = _WIDTH / max(len(values) - 1, 1)
    points = [(_LABEL + n * step, place(one)) for n, one in enumerate(values) if one is not None]
    parts = [f'<text x="10" y="{top + _HEIGHT / 2}" fill="#222">{escape(name[:66])}</text>']
    if goal is not None:
        ends = f'x1="{_LABEL}" x2="{_LABEL + _WIDTH}" y1="{place(goal):.1f}" y2="{place(goal):.1f}"'
        parts.append(f'<line {ends} stroke="#999" stroke-dasharray="4 3"/>')
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts.append(f'<polyline points="{line}" fill="none" stroke="#1f6feb" stroke-width="1.5"/>')
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="#1f6feb"/>' for x, y in points]
    last = f"{known[-1]:,.2f} {unit}"
    parts.append(f'<text x="{_LABEL + _WIDTH + 8}" y="{top + _HEIGHT / 2}" fill="#222">{escape(last)}</text>')
    return parts


def _describe(runs: Sequence[Run]) -> str:
    first, last = runs[0], runs[-1]
    loads = f"load {min(run.load for run in runs):g} to {max(run.load for run in runs):g}"
    return (
        f"{len(runs)} runs, {first.commit} ({first.date[:10]}) to {last.commit} ({last.date[:10]}), {loads}"
    )


def _list_series(runs: Sequence[Run]) -> dict[str, list[float | None]]:
    """Return the results of each figure, one place for each run that was drawn."""
    shown = runs[-_SHOWN:]
    names = dict.fromkeys(name for run in shown for name in run.figures)
    return {name: [run.figures.get(name, {}).get("result") for run in shown] for name in names}


def _find_unit(runs: Sequence[Run], name: str) -> str:
    return next(run.figures[name]["unit"] for run in reversed(runs) if name in run.figures)


def _scale(value: float, low: float, high: float, most: int) -> int:
    return round((value - low) / (high - low) * most) if high > low else most // 2


def _trim(figure: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in figure.items() if key in {"result", "unit", "goal", "at_least"}}


def _ask_git(tree: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=tree, check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()
