"""Two commits in one run: the same parts, in turn, so that what else the machine does meets both alike.

The other commit is checked out into a work tree of its own, with its own environment, and measures itself with its own
`bench`. Only figures that both have are compared.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path

from bench.figure import Figure
from bench.history import FILE, add_run

ROUNDS = 3
_HERE = Path(__file__).parents[1]


class Side:
    """One of the two commits: its work tree, and what it has measured."""

    def __init__(self, tree: Path, python: Path) -> None:
        self.tree = tree
        self.python = python
        self.measured: dict[str, list[Figure]] = {}

    def measure(self, part: str, scale: float) -> None:
        """Run one part once."""
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            words = [
                str(self.python),
                "-m",
                "bench",
                "--only",
                part,
                "--scale",
                str(scale),
                "--json",
                file.name,
            ]
            environ = {
                **os.environ,
                "PYTHONPATH": f"{self.tree / 'src'}:{self.tree}",
                "SCOUT_BENCH_HISTORY": "0",
            }
            done = subprocess.run(
                words, cwd=self.tree, env=environ, capture_output=True, text=True, check=False
            )
            stored = Path(file.name).read_text()
        if not stored:
            raise SystemExit(
                f"bench: {part} failed in {self.tree}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        for one in json.loads(stored):
            one.pop("verdict", None)
            self.measured.setdefault(one["name"], []).append(Figure(**one))

    def list_medians(self) -> list[Figure]:
        return [_find_median(figures) for figures in self.measured.values()]


def compare(revision: str, parts: Sequence[str], scale: float, rounds: int = ROUNDS) -> None:
    """Measure this tree and another commit in turn and print the table. Both are added to the history."""
    with check_out(revision) as tree:
        note("setting up its environment (a minute or two)")
        subprocess.run(["./dev", "setup"], cwd=tree, check=True, stdout=subprocess.DEVNULL, timeout=1800)
        other, here = Side(tree, tree / ".venv/bin/python"), Side(_HERE, Path(sys.executable))
        for turn in range(rounds):
            for part in parts:
                for side in (other, here) if turn % 2 else (here, other):
                    side.measure(part, scale)
                    note(f"round {turn + 1} of {rounds}: {part}, {'here' if side is here else revision}")
        before, after = other.list_medians(), here.list_medians()
        runs = add_run(before, tree), add_run(after)
        print(render_table(before, after, (runs[0].commit, runs[1].commit), runs[1].load), flush=True)


def render_table(
    before: Sequence[Figure], after: Sequence[Figure], commits: tuple[str, str], load: float
) -> str:
    """Return the medians of both commits side by side, and how they differ."""
    known = {figure.name: figure for figure in before}
    rows = [("figure", *commits, "change")]
    for figure in after:
        if figure.name in known:
            was = known[figure.name].result
            change = f"{100 * (figure.result / was - 1):+.0f} %" if was else ""
            rows.append((figure.name, f"{was:,.2f}", f"{figure.result:,.2f} {figure.unit}", change))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join(
        (*lines, f"\nmedians of the rounds; load of the machine at the end {load:g}; kept in {FILE}")
    )


@contextlib.contextmanager
def check_out(revision: str) -> Generator[Path]:
    """A work tree of a commit, for as long as the context is open."""
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(_HERE), "worktree"]
        subprocess.run(
            [*git, "add", "--quiet", "--detach", str(tree), revision],
            check=True,
            stdout=sys.stderr,
            timeout=300,
        )
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True, timeout=300)


def note(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _find_median(figures: Sequence[Figure]) -> Figure:
    middle = statistics.median_low(figure.result for figure in figures)
    return next(figure for figure in figures if figure.result == middle)
