"""The application over a real ssh connection, in a terminal of 80×24."""

import sys

import pytest

from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.live.terminals import tmux_here
from tests.stories.panes import Pane
from tests.tui.ssh_server import an_ssh_server
from tests.tui.stage import Fleet

pytestmark = pytest.mark.slow


@pytest.mark.rows("R4.4t-20")
def test_a_person_decides_and_asks_over_ssh() -> None:
    tmux_here()
    with a_shell() as shell, an_ssh_server(shell.folder / "ssh") as server:
        fleet = Fleet(shell, Daemon(shell.home, start_daemon(shell)))
        fleet.register("upper", harness="command", command=["tr", "a-z", "A-Z"])
        item = fleet.raise_item(fleet.register("talkie"), "Publish 1.4.0?", kind="approval", risk="high")
        line = server.build_line(shell.environ, sys.executable, "-m", "scout", "tui")
        with Pane(shell).open(shell.folder, f"{line}; echo ended with $?; cat", rows=24) as pane:
            pane.shows("● live")
            screen = pane.shows("Publish 1.4.0?")
            assert max(map(len, screen.splitlines())) <= 80
            assert len(screen.splitlines()) <= 24
            pane.type("2")
            pane.shows("y approve · n deny")
            pane.type("y")
            pane.shows("Approved: Publish 1.4.0?")
            assert fleet.item(item)["state"] == "resolved"
            pane.type("c")
            pane.shows("Enter sends")
            pane.type("@upper", "Enter", "hello, scout", "Enter")
            pane.shows("│ HELLO, SCOUT")
            pane.type("q")
            assert "● live" not in pane.shows("ended with 0")  # the screen is as it was
