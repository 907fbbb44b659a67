"""A day with Claude Code and Codex open in a terminal: they are asked, they answer, they are closed."""

import contextlib
import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Shell
from tests.daemon.daemons import Daemon, daemon, eventually
from tests.live.model.server import Model, scripted_model
from tests.live.terminals import TERMINALS, Terminal, tmux_here

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Desk:
    """A person's terminal with a program open in it, another terminal beside it, and the daemon."""

    def __init__(self, program: Terminal, shell: Shell, broker: Daemon, model: Model) -> None:
        self.program = program
        self.model = model
        self.shell = shell
        self._broker = broker

    def sessions(self) -> list[Any]:
        return [one for one in self._broker.call("GET", "/v1/sessions").json["items"] if one["nativeIds"]]

    def is_idle(self) -> bool:
        found = self.sessions()
        ready = bool(found) and self.program.ready in self.program.screen
        agent = f"/v1/agents/{found[0]['agentId']}" if ready else ""
        return ready and [one["state"] for one in self._broker.call("GET", agent).json["endpoints"]] == [
            "idle"
        ]

    def ask(self, body: str, *words: str) -> Any:
        return self.shell.data("ask", "--project", str(self.program.work), body, *words)

    def flight(self, ident: str) -> Any:
        return self.shell.data("flight", "get", ident)

    def is_on_screen(self, text: str) -> bool:
        return text in " ".join(self.program.screen.split())


@contextlib.contextmanager
def a_desk(folder: Path, name: str) -> Generator[Desk]:
    tmux_here()
    with scripted_model() as model:
        program = TERMINALS[name](folder / "t", model.url)
        path = f"{folder / 't' / 'bin'}:/usr/bin:/bin"
        with daemon(folder / "home", PATH=path, **program.environ) as broker:
            shell = Shell(folder)
            program.seed()
            shell.say("setup", name, "--yes", **program.environ)
            with program.open():
                desk = Desk(program, shell, broker, model)
                try:
                    eventually(desk.is_idle)
                except AssertionError:
                    raise AssertionError(program.screen) from None
                yield desk


@pytest.mark.parametrize("name", TERMINALS)
def test_i_ask_my_open_session_and_it_answers_in_plain_text(tmp_path: Path, name: str) -> None:
    with a_desk(tmp_path, name) as desk:
        # I ask from another terminal. The model calls no tool of Scout's: it just answers.
        done = desk.ask("What is 2+2? <<say It is 4.>>", "--wait", "60")
        assert (done["state"], done["output"]) == ("completed", "It is 4."), desk.program.screen
        # The session shows the question, the answer, and that it was sent.
        assert "What is 2+2?" in desk.program.screen
        eventually(lambda: desk.is_on_screen("Scout: sent this answer to you."))
        # Nothing else was started, and the session waits for me again.
        assert len(desk.sessions()) == 1
        eventually(desk.is_idle)


@pytest.mark.rows("R5.2-7")
@pytest.mark.parametrize("name", TERMINALS)
def test_i_kill_the_program_in_the_middle_and_the_ask_says_so(tmp_path: Path, name: str) -> None:
    with a_desk(tmp_path, name) as desk:
        asked = desk.ask("Think. <<stall 600>> <<say Done.>>", "--no-wait")
        eventually(lambda: desk.flight(asked["flightId"])["state"] == "running")
        (session,) = desk.sessions()
        os.kill(session["pid"], signal.SIGKILL)
        waited = desk.shell.type("wait", asked["flightId"], "--timeout", "60")
        assert f"try: scout flight retry {asked['flightId']}" in waited.stderr
        over = desk.flight(asked["flightId"])
        assert over["state"] == "failed"
        assert over["reason"].startswith(f"session {session['id']} failed in the ")
        assert over["error"]["remedies"][0]["operation"] == "flight.retry"
        assert [one["state"] for one in desk.sessions()] == ["ended"]
        assert desk.shell.data("now")["open"] == []


def test_i_leave_the_program_in_the_middle_and_the_ask_says_so(tmp_path: Path) -> None:
    with a_desk(tmp_path, "claude") as desk:
        asked = desk.ask("Think. <<stall 600>> <<say Done.>>", "--no-wait")
        eventually(lambda: desk.flight(asked["flightId"])["state"] == "running")
        # I stop the turn and leave with the program's own command.
        desk.program.press("Escape")
        eventually(lambda: desk.is_on_screen("Interrupted"))
        desk.program.type("/exit")
        eventually(lambda: [one["state"] for one in desk.sessions()] == ["ended"])
        over = desk.flight(asked["flightId"])
        assert over["state"] == "failed"
        assert "its claude session was closed" in over["reason"]
        assert over["error"]["remedies"][0]["operation"] == "flight.retry"
        assert desk.shell.data("now")["open"] == []


def read_bottom(screen: str) -> str:
    """The last lines of a screen: the input line, and the status line below it."""
    return "\n".join([line for line in screen.splitlines() if line.strip()][-4:])


@pytest.mark.rows("R1.1-51")
def test_two_claudes_in_one_repository_have_two_names_and_talk(tmp_path: Path) -> None:
    with a_desk(tmp_path, "claude") as desk, desk.program.beside("second"):
        eventually(lambda: len(desk.sessions()) == 2)
        second, first = desk.sessions()  # the newest first
        # Each is reached by its name.
        for address, word, session in (("@work-2", "second", second), ("@work", "first", first)):
            done = desk.shell.data("ask", address, f"Who? <<say I am the {word}>>", "--wait", "60")
            assert done["output"] == f"I am the {word}"
            assert done["sessionId"] == session["id"]
        # The status line of each says its own name. The program draws it again with every turn: at its start, it may
        # have been drawn before the session had a name.
        eventually(lambda: "@work-2" in read_bottom(desk.program.screen_of("second")))
        eventually(lambda: "@work" in read_bottom(desk.program.screen))
        assert "@work-2" not in desk.program.screen
