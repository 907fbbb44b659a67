"""The stored screens: every view of a small fleet, at two sizes. Run as a program, it takes them again."""

import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.tui.stage import Fleet, Stage, mask, play

__all__ = ["SIZES", "VIEWS", "read_screen", "set_up", "take_screen"]

SIZES = ((80, 24), (120, 40))
_FOLDER = Path(__file__).with_name("screens")


class Visit(NamedTuple):
    """How a view is reached, and what it shows when it is read."""

    keys: tuple[str, ...]
    shows: tuple[str, ...]


VIEWS = {
    "now": Visit((), ("Publish 1.4.0?", "Working", "HELLO, SCOUT", "of 4 agents")),
    "inbox": Visit(("2",), ("@talkie asks", "y approve")),
    "agents": Visit(("3",), ("@hudson", "@talkie", "@upper")),
    "agent": Visit(("3", "end", "enter"), ("Feed", "Flights", "flight completed")),
    "flights": Visit(("4",), ("Review our API.", "HELLO, SCOUT")),
    "flight": Visit(("4", "end", "enter"), ("Timeline", "Answer", "│ HELLO, SCOUT")),
    "diff": Visit(("4", "home", "down", "d"), ("Diff · flt_", "+++ b/note.txt", "│ +A note.")),
    "conversations": Visit(("5",), ("@upper: HELLO, SCOUT", "@hudson")),
    "conversation": Visit(("5", "end", "enter"), ("│ HELLO, SCOUT", "Enter sends an ask")),
    "work": Visit(("6",), ("Fix the flaky test", "next: @hudson")),
    "work-item": Visit(("6", "home", "enter"), ("History", "s start", "create")),
    "log": Visit(("7", "slash", *"asked", "enter"), ("filter: asked", "you asked @hudson")),
    "keys": Visit(("?",), ("Keys", "List the keys")),
    "ask": Visit(("c",), ("Enter sends", "@talkie")),
    "find": Visit(("ctrl+k", *"upper"), ("@upper", "hello, scout")),
    "go-to": Visit(("g",), ("Go to", "Work items")),
    "why": Visit(("4", "end", "w"), ("Why", "flight.completed")),
}


def set_up(fleet: Fleet) -> None:
    """Four agents: one has answered, one has written a file, one works, one needs the person."""
    fleet.register("upper", harness="command", command=["tr", "a-z", "A-Z"])
    fleet.register("hudson", harness="command", command=["sleep", "600"])
    token = fleet.register("talkie")
    folder = fleet.shell.project("writer")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    fleet.register("writer", harness="command", command=["sh", "-c", "cat > note.txt; echo written"])
    fleet.ask("@upper", "hello, scout")
    fleet.ask("@writer", "A note.")
    fleet.ask("@hudson", "Review our API.", wait=0)
    fleet.call("POST", "/v1/work", {"title": "Fix the flaky test", "ownerId": "@hudson"})
    fleet.raise_item(
        token, "Publish 1.4.0?", kind="approval", risk="high", body="npm publish --access public"
    )


def take_screen(fleet: Fleet, view: str, size: tuple[int, int]) -> str:
    """What a view shows, without what differs from run to run."""
    visit, taken = VIEWS[view], list[str]()

    async def scene(stage: Stage) -> None:
        await stage.shows(*VIEWS["now"].shows)
        for key in visit.keys:
            await stage.press(key)
            await stage.settle()
        await stage.shows(*visit.shows)
        await stage.settle()
        taken.append(mask(stage.screen))

    play(fleet.shell, scene, size)
    return taken[0]


def _name(view: str, size: tuple[int, int]) -> Path:
    return _FOLDER / f"{view}-{size[0]}x{size[1]}.txt"


def read_screen(view: str, size: tuple[int, int]) -> str:
    """The stored screen."""
    return _name(view, size).read_text("utf-8")


def main() -> None:
    """Take every screen again."""
    with a_shell(ends_runs=True) as shell:
        fleet = Fleet(shell, Daemon(shell.home, start_daemon(shell)))
        set_up(fleet)
        for view in VIEWS:
            for size in SIZES:
                _name(view, size).write_text(take_screen(fleet, view, size), "utf-8")
                print(_name(view, size).name)


if __name__ == "__main__":
    main()
