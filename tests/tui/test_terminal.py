"""The real program in a real terminal, 80×24 over tmux: decide, open a session in place, and come back."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.live.terminals import tmux_here
from tests.stories.panes import a_pane
from tests.tui.stage import Fleet

pytestmark = pytest.mark.slow


@pytest.mark.rows("R4.4t-3", "R4.4t-13", "R4.4t-14")
def test_a_person_decides_opens_a_session_and_quits(monkeypatch: pytest.MonkeyPatch) -> None:
    tmux_here()
    with a_shell(ends_runs=True) as shell:
        monkeypatch.setenv("TMUX_TMPDIR", str(shell.folder))
        fleet = Fleet(shell, Daemon(shell.home, start_daemon(shell)))
        item = fleet.raise_item(fleet.register("talkie"), "Publish 1.4.0?", kind="approval", risk="high")
        fleet.register("pane", harness="tmux", command=["sh", "-c", "echo ready; exec cat"])
        with a_pane(shell, "tui") as pane:
            pane.shows("● live")
            pane.shows("Publish 1.4.0?")
            pane.type("2")
            pane.shows("y approve · n deny")
            pane.type("y")
            pane.shows("Approved: Publish 1.4.0?")
            assert fleet.item(item)["state"] == "resolved"
            pane.type("3")
            pane.shows("▌○ @pane")
            pane.type("o")
            pane.shows("ready")
            pane.type("hello", "Enter")
            pane.shows("hello\nhello")
            pane.type("C-b", "d")
            pane.shows("scout open @pane ended with 0")
            pane.type("q")
            pane.shows("ended with 0")


@pytest.mark.rows("R4.4t-9")
@pytest.mark.parametrize("wanted", [True, False])
def test_colours_are_those_of_the_terminal_and_no_color_is_honoured(wanted: bool) -> None:
    tmux_here()
    with a_shell() as shell:
        fleet = Fleet(shell, Daemon(shell.home, start_daemon(shell)))
        fleet.raise_item(fleet.register("talkie"), "Publish 1.4.0?", kind="approval", risk="high")
        environ = shell.environ if wanted else {**shell.environ, "NO_COLOR": "1"}
        with a_pane(_Machine(shell.folder, environ), "tui") as pane:
            pane.shows("● live")
            pane.shows("Publish 1.4.0?")
            drawn = _capture(shell.folder)
            codes = {code for part in re.findall(r"\x1b\[([0-9;]*)m", drawn) for code in part.split(";")}
            assert not codes & {"38", "48"}  # no colour of our own: only the sixteen of the palette
            assert bool(codes & {"31", "32", "36"}) is wanted
            assert "1" in codes  # what stands out is bold in either case
            pane.type("q")
            pane.shows("ended with 0")


class _Machine(NamedTuple):
    folder: Path
    environ: Mapping[str, str]


def _capture(folder: Path) -> str:
    words = ["tmux", "-S", str(folder / "tmux"), "capture-pane", "-p", "-e", "-t", "it"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
