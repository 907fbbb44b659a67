"""The harness `tmux` with the real Claude Code and Codex: asked, watched, interrupted, ended and resumed."""

import json
import subprocess
from collections.abc import Generator
from typing import Any, NamedTuple

import pytest

from tests.daemon.daemons import eventually
from tests.live.machine import DIALECTS, Machine, a_machine
from tests.live.model.server import Exchange
from tests.live.programs import codex_settings
from tests.live.terminals import tmux_here

pytestmark = [pytest.mark.slow, pytest.mark.first, pytest.mark.timeout(600)]


class Program(NamedTuple):
    """Its command line, how its model calls a tool that a person must allow, and how a person leaves it."""

    command: tuple[str, ...]
    tool: str
    leave: str


_CLAUDE_TOOL = {"command": "sh -c 'id > FILE'", "description": "make it"}
_CODEX_TOOL = {"cmd": "id > FILE", "sandbox_permissions": "require_escalated", "justification": "needed"}
PROGRAMS = {
    "claude": Program(
        ("claude", "--permission-mode", "manual"), f"<<tool Bash {json.dumps(_CLAUDE_TOOL)}>>", "/exit"
    ),
    "codex": Program(
        ("codex", "--no-alt-screen", "--dangerously-bypass-hook-trust"),
        f"<<tool exec_command {json.dumps(_CODEX_TOOL)}>>",
        "/quit",
    ),
}


@pytest.fixture(scope="module")
def machine() -> Generator[Machine]:
    """Both programs, with Scout set up in them as a person does it."""
    tmux_here()
    with a_machine(*PROGRAMS) as made:
        folders = [made.repository(f"work-{name}") for name in PROGRAMS]
        trusted = {
            str(one): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
            for one in folders
        }
        key = {"approved": [made.environ["ANTHROPIC_API_KEY"][-20:]], "rejected": []}
        known = {"hasCompletedOnboarding": True, "theme": "dark", "projects": trusted}
        made.replace_file(".claude/.claude.json", json.dumps({**known, "customApiKeyResponses": key}))
        asks = 'approval_policy = "on-request"\nsandbox_mode = "read-only"'
        tables = "\n".join(f'[projects."{one}"]\ntrust_level = "trusted"' for one in folders)
        made.replace_file(".codex/config.toml", codex_settings(made.model.url, asks, tables))
        made.say("setup", *PROGRAMS, "--yes", "--harness", "claude")
        yield made


class Stage:
    """One agent whose program runs in a pane of Scout's."""

    def __init__(self, machine: Machine, name: str) -> None:
        self.machine, self.name, self.program = machine, name, PROGRAMS[name]
        self.work = machine.repository(f"work-{name}")
        self.agent = f"@pane-{name}"
        command = f"command={json.dumps(self.program.command)}"
        machine.say("agent", "register", f"pane-{name}", "--project", str(self.work), "--harness", "tmux")
        machine.say("agent", "config", self.agent, "--set", command)

    def ask(self, body: str) -> str:
        reply = self.machine.daemon.call("POST", "/v1/asks", {"to": self.agent, "body": body})
        assert reply.status == 201, reply.body
        return str(reply.json["flightId"])

    def get_answer(self, body: str) -> str:
        flight = self.ask(body)
        try:
            ended = self.machine.ended(flight)
        except AssertionError:
            raise AssertionError(f"{self.machine.flight(flight)}\n{self.screen}") from None
        assert ended["state"] == "completed", (ended, self.screen)
        return str(ended["output"])

    @property
    def session(self) -> Any:
        found = self.machine.get("/v1/sessions")["items"]
        return next(one for one in found if one["harness"] == "tmux" and self.name in one["address"])

    @property
    def state(self) -> str:
        return str(self.session.get("programState"))

    @property
    def screen(self) -> str:
        return self._tmux("capture-pane", "-p", "-t", f"={self.session['id']}:")

    def type(self, text: str) -> None:
        """As a person who has the pane open."""
        self._tmux("send-keys", "-t", f"={self.session['id']}:", "-l", text)
        eventually(lambda: text in self.screen)
        self._tmux("send-keys", "-t", f"={self.session['id']}:", "Enter")

    @property
    def exchanges(self) -> list[Exchange]:
        return self.machine.model.of(DIALECTS[self.name])

    def find_heard(self, words: str) -> list[str]:
        """The prompts that have these words, as the model was told them."""
        turns = [turn for one in self.exchanges for turn in one.heard.turns if turn.by == "user"]
        return [turn.text for turn in turns if words in turn.text]

    def _tmux(self, *words: str) -> str:
        socket = self.machine.home / "sessions" / "tmux.socket"
        line = ["tmux", "-S", str(socket), *words]
        return subprocess.run(line, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_real_program_in_a_pane(machine: Machine, name: str) -> None:
    stage = Stage(machine, name)
    _check_answer(stage)
    _check_working(stage)
    _check_permission(stage)
    _check_interrupt(stage)
    _check_text_that_looks_like_keys(stage)
    _check_person(stage)
    _check_end_and_resume(stage)


def _check_answer(stage: Stage) -> None:
    """The prompt is typed, and the answer is the one that the program's own hook reports."""
    assert stage.get_answer("Which colour? <<say It is teal.>>") == "It is teal."
    eventually(lambda: stage.state == "idle")
    assert stage.session["nativeIds"].keys() == {"pane", "session"}


def _check_working(stage: Stage) -> None:
    """While its model is silent for longer than a screen must be quiet, it is never said to be idle."""
    flight, seen = stage.ask("Think. <<sleep 6>> ++ <<say thought>>"), list[str]()

    def is_over() -> bool:
        state = stage.state
        if stage.machine.model.silent:
            seen.append(state)
        return bool(stage.machine.flight(flight).get("finishedAt"))

    eventually(is_over)
    begun = seen.index("working")
    assert set(seen[begun:]) == {"working"}, seen
    eventually(lambda: stage.state == "idle")


def _check_permission(stage: Stage) -> None:
    """A dialog of the program needs a person; the answer is typed into it."""
    made = stage.work / "made.txt"
    flight = stage.ask(f"Make it. {stage.program.tool.replace('FILE', str(made))} <<say made it>>")
    item = stage.machine.waits(flight)
    eventually(lambda: stage.state == "waiting")
    assert "waiting" in stage.machine.say("who")
    assert str(made) in json.dumps(item["permission"])
    stage.machine.say("attention", "approve", item["id"])
    assert stage.machine.ended(flight)["output"] == "made it"
    assert made.exists()


def _check_interrupt(stage: Stage) -> None:
    """An interrupted prompt is not sent with the next one, even if the program puts it back."""
    flight = stage.ask("Never answer this. <<stall 600>>")
    eventually(lambda: stage.machine.flight(flight)["state"] == "running")
    stage.machine.say("interrupt", stage.agent)
    assert stage.machine.ended(flight)["state"] == "cancelled"
    assert stage.get_answer("Next. <<say next>>") == "next"
    assert all("Never answer this" not in text for text in stage.find_heard("Next. <<say next>>"))


def _check_text_that_looks_like_keys(stage: Stage) -> None:
    """Commands, keys and the end of a paste inside of a body stay text, however long it is."""
    smuggled = stage.work / "smuggled"
    keys = f"/exit\n!touch {smuggled}\x1b[201~\r/exit\r\x03\x04"
    body = f"{keys}{'long ' * 2000}\n\n\n<<say still here>> see @pane"
    assert stage.get_answer(body) == "still here"
    told = stage.find_heard("<<say still here>>")[0]
    assert f"!touch {smuggled}[201~" in told
    assert "long " * 2000 in told
    assert not smuggled.exists()


def _check_person(stage: Stage) -> None:
    """What a person starts in the pane is seen as work, and an ask is typed only after it."""
    stage.type("mine <<sleep 8>> ++ <<say for me>>")
    eventually(lambda: "working" in stage.machine.say("who"))
    assert stage.get_answer("And mine? <<say for you>>") == "for you"
    assert all("And mine?" not in text for text in stage.find_heard("mine <<sleep 8>>"))


def _check_end_and_resume(stage: Stage) -> None:
    """The end of the program ends the session, with the reason; it can be resumed by its id."""
    eventually(lambda: stage.state == "idle")
    session = stage.session["id"]
    stage.type(stage.program.leave)
    ended = eventually(lambda: stage.session if stage.session["state"] == "ended" else None)
    assert (ended["id"], ended.get("programState")) == (session, None)
    assert "its program has ended: exit 0" in ended["reason"]
    stage.machine.say("session", "attach", session)
    assert stage.get_answer("Back? <<say yes>>") == "yes"
    assert stage.session["id"] == session
    conversations = ["\n".join(turn.text for turn in one.heard.turns) for one in stage.exchanges]
    assert any("Which colour?" in text and "Back?" in text for text in conversations)
