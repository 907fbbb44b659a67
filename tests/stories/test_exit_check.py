"""Claude Code and Codex are about to stop with open work: they are told once what they owe."""

from pathlib import Path

import pytest

from tests.daemon.daemons import eventually
from tests.live.terminals import TERMINALS
from tests.stories.test_open_sessions import Desk, a_desk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
OWED = "before you stop, you still owe"


def reminders(desk: Desk) -> int:
    """How often the model behind the program has been told what it owes."""
    last = desk.model.log[-1].heard if desk.model.log else None
    return sum(OWED in turn.text for turn in last.turns) if last else 0


def give_work(desk: Desk, title: str) -> str:
    """A work item of the session's agent, whose first message it has read."""
    (session,) = desk.sessions()
    item = desk.shell.data("work", "create", title, "--owner", session["agentId"])
    return str(item["id"])


@pytest.mark.rows("R10.7-1")
@pytest.mark.parametrize("name", TERMINALS)
def test_an_open_session_is_told_once_what_it_owes(tmp_path: Path, name: str) -> None:
    with a_desk(tmp_path, name) as desk:
        item = give_work(desk, "Fix it. <<say I will.>>")
        eventually(lambda: reminders(desk) == 1, within=90)
        eventually(desk.is_idle)
        # Another turn of the person's ends without being told again.
        desk.program.type("And now? <<say Nothing more.>>")
        eventually(lambda: desk.is_on_screen("Nothing more."))
        eventually(desk.is_idle)
        assert reminders(desk) == 1
        assert desk.shell.data("work", "show", item)["state"] == "open"


@pytest.mark.rows("R10.7-2")
@pytest.mark.parametrize(("setting", "told"), [("nudge", True), ("clean", False)])
def test_the_setting_lets_it_stop(tmp_path: Path, setting: str, told: bool) -> None:
    with a_desk(tmp_path, "claude") as desk:
        desk.shell.say("config", "set", "exitCheck", setting)
        give_work(desk, "Fix it. <<say I will.>>")
        eventually(lambda: desk.is_on_screen("I will."), within=90)
        eventually(desk.is_idle)
        if told:
            eventually(lambda: desk.is_on_screen(OWED))
        assert reminders(desk) == 0
        assert desk.is_on_screen(OWED) == told
