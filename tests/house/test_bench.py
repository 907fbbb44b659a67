"""The history of the benchmark: runs are kept, drawn and compared."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench import __main__ as bench
from bench.compare import render_table
from bench.figure import Figure
from bench.history import add_run, draw, read_runs, render_lines

ROOT = Path(__file__).parents[2]


def build_figures(rate: float) -> list[Figure]:
    return [
        Figure(name="messages & more", result=rate, unit="/s", goal=2000, at_least=True),
        Figure(name="p99", result=20.0, unit="ms"),
    ]


def test_a_run_is_kept_with_its_commit_and_load(tmp_path: Path) -> None:
    file = tmp_path / "new" / "history.jsonl"
    assert read_runs(file) == []
    for rate in (1000.0, 1500.0):
        add_run(build_figures(rate), ROOT, file)
    runs = read_runs(file)
    assert [run.figures["messages & more"]["result"] for run in runs] == [1000.0, 1500.0]
    assert all(run.commit and run.date and run.load >= 0 for run in runs)


def test_runs_are_drawn_with_a_place_for_each(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    for rate in (1000.0, 1500.0, 1250.0):
        add_run(build_figures(rate), ROOT, file)
    add_run(build_figures(900.0)[1:], ROOT, file)  # a run without the first figure
    runs = read_runs(file)
    first, second = render_lines(runs).splitlines()
    assert "▁█▅   1,250.00 /s" in first
    assert second.endswith("20.00 ms")
    drawing = ET.fromstring(draw(runs))
    names = [one.text for one in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert "messages & more" in names
    assert len(list(drawing.iter("{http://www.w3.org/2000/svg}circle"))) == 3 + 4
    assert len(list(drawing.iter("{http://www.w3.org/2000/svg}line"))) == 1  # the goal


def test_two_commits_are_shown_side_by_side() -> None:
    before, after = build_figures(1000.0), [*build_figures(1500.0), Figure(name="new", result=1.0, unit="x")]
    shown = render_table(before, after, ("aaa", "bbb"), 1.5)
    head, rate, *_ = shown.splitlines()
    assert head.split() == ["figure", "aaa", "bbb", "change"]
    assert rate.split() == ["messages", "&", "more", "1,000.00", "1,500.00", "/s", "+50", "%"]
    assert "new" not in shown.split("\n\n")[0]
    assert "load of the machine at the end 1.5" in shown


@pytest.mark.rows("R8.f-2")
def test_every_part_has_a_command_of_its_own() -> None:
    assert {"served", "floor", "large", "resolving", "typed", "mesh", "fleet"} <= bench.PARTS.keys()
