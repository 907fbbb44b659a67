"""The recipes of CONTRIBUTING.md work: each is followed in a copy of the tree, as a machine would.

The line before a block says what to do with it: `<!-- recipe: FILE, new -->` is a whole file; `at the end`, `after: TEXT`
and `instead of: TEXT` name the place (the first line that holds TEXT); `run` is played in the changed tree.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scout.daemon.start import stop
from tests.house.test_docs import Block, blocks, check_turns

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")

_STEP = re.compile(
    r"<!-- recipe: (?P<file>\S+?), (?P<place>new|at the end|after: (?P<after>.+)|instead of: (?P<old>.+)) -->"
)
_RUN = "<!-- recipe: run -->"


def recipes() -> dict[str, list[Block]]:
    """The blocks of each recipe, by its title."""
    sections = re.split(
        r"^### (Add .+)$", PAGE.partition("## Recipes")[2].partition("\n## ")[0], flags=re.MULTILINE
    )
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    return {title: blocks(title, text) for title, text in found.items() if "<!-- recipe: " in text}


def apply(block: Block, tree: Path) -> None:
    """Do one step."""
    step = _STEP.fullmatch(block.before)
    assert step is not None, f"{block} does not say what to do: {block.before}"
    file = tree / step["file"]
    if step["place"] == "new":
        assert not file.exists()
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{block.text}\n")
        return
    lines = file.read_text("utf-8").splitlines()
    file.write_text("\n".join(place_text(lines, block.text, step["after"], step["old"])) + "\n", "utf-8")


def place_text(lines: list[str], text: str, after: str | None, old: str | None) -> list[str]:
    """The lines with the text in its place."""
    if after is None and old is None:
        return [*lines, "", "", text]
    at = next(number for number, line in enumerate(lines) if (after or old or "") in line)
    return [*lines[: at + (after is not None)], text, *lines[at + 1 :]]


def environment(tree: Path, home: Path) -> dict[str, str]:
    """A shell in which `scout` and `python` are those of the tree."""
    bin_folder = tree / "bin"
    bin_folder.mkdir()
    for name, words in {"scout": "-m scout", "python": ""}.items():
        (bin_folder / name).write_text(f"#!/bin/sh\nexec '{sys.executable}' {words} \"$@\"\n")
        (bin_folder / name).chmod(0o755)
    return {
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(tree / "src"),
        "SCOUT_HOME": str(home),
        "SCOUT_PORT": "0",
        "SCOUT_MCP_PRELOAD": "false",
    }


def play(block: Block, environ: dict[str, str]) -> None:
    if block.language == "console":
        check_turns(block.text, environ)
        return
    result = subprocess.run(
        ["python", "-c", block.text],
        env=environ,
        capture_output=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_every_recipe_is_followed() -> None:
    titles = {"operation", "MCP tool", "event", "diagnostic", "setting", "notification sink", "harness"}
    titles |= {"connector"}
    assert {re.sub(r"Add (an?) ", "", title) for title in recipes()} == titles


@pytest.mark.slow
@pytest.mark.parametrize("title", recipes())
def test_a_recipe_works_as_written(title: str, tmp_path: Path) -> None:
    tree, home = tmp_path / "tree", tmp_path / "home"
    # With what is compiled, so that only changed files are compiled again; `*.pyc.*` are being written.
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("*.pyc.*"))
    home.mkdir(mode=0o700)
    *steps, last = recipes()[title]
    assert last.before == _RUN
    for step in steps:
        apply(step, tree)
    environ = environment(tree, home)
    try:
        subprocess.run(["scout", "up"], env=environ, check=True, capture_output=True, timeout=50)
        play(last, environ)
    finally:
        stop(str(home), timeout=60)
