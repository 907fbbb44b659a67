"""The program of an agent types what its contract taught it, in each role, and every command works."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import pytest

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROLES = ("worker", "dev", "tl", "host")
_CALL = re.compile(r"`(scout [^`]*)`")
# It writes down what it was given, and works until the person says that it may end.
_PROGRAM = """\
import json, os, pathlib, time
pathlib.Path("given.part").write_text(json.dumps(dict(os.environ)))
os.rename("given.part", "given.json")
while os.path.exists("given.json") and not os.path.exists("end"):  # its folder goes with the test
    time.sleep(0.05)
print("done")
"""


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as one:
        start_daemon(one)
        for name in ("hudson", "parrot"):
            one.say("agent", "register", name, "--project", ".", "--harness", "echo", cwd=one.project(name))
        yield one


class Agent:
    """An agent in the middle of a turn, and what its program types there."""

    def __init__(self, shell: Shell, role: str) -> None:
        self.shell, self.folder = shell, shell.project("arc")
        (self.folder / "program.py").write_text(_PROGRAM)
        program = shlex.join([sys.executable, str(self.folder / "program.py")])
        shell.say(
            "agent",
            "register",
            "arc",
            "--project",
            ".",
            "--tool-role",
            role,
            "--command",
            program,
            cwd=self.folder,
        )
        self.flight = str(shell.data("ask", "@arc", "Please.", "--no-wait")["flightId"])
        self.given: dict[str, str] = eventually(self._given)

    def _given(self) -> Any:
        file = self.folder / "given.json"
        return json.loads(file.read_text()) if file.exists() else None

    def begin(self, command: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-W", "error", "-m", "scout", *shlex.split(command)[1:]]
        pipe = subprocess.PIPE
        return subprocess.Popen(words, cwd=self.folder, env=self.given, stdout=pipe, stderr=pipe, text=True)

    def type(self, command: str) -> str:
        done = self.begin(command)
        said, problem = done.communicate(timeout=60)
        assert done.returncode == 0, (command, said, problem)
        return said

    def end(self) -> str:
        (self.folder / "end").touch()
        return self.shell.say("wait", self.flight).strip()


def ident(text: str, prefix: str) -> str:
    found = re.search(rf"{prefix}_\w+", text)
    assert found, text
    return found[0]


def fill_command(agent: Agent, command: str) -> str:
    """The command as an agent would type it: each word in capitals stands for something at hand."""
    make = {
        "ADDRESS": lambda: "@hudson",
        "TEXT": lambda: "'Which port? Ünïcode.'",
        "TITLE": lambda: "'More of it'",
        "FLIGHT": lambda: agent.flight if "question" in command else _flight_it_asked_for(agent),
        "QUESTION": lambda: str(agent.shell.data("question", "create", "@arc", "Which port?")["id"]),
        "ITEM": lambda: _work_it_began(agent),
    }
    return re.sub(r"\b[A-Z]{4,}\b", lambda found: make[found[0]](), command)


def _flight_it_asked_for(agent: Agent) -> str:
    return str(json.loads(agent.type("scout ask @parrot hello --no-wait --json"))["flightId"])


def _work_it_began(agent: Agent) -> str:
    item = str(agent.shell.data("work", "create", "Fix it", "--owner", "@arc")["id"])
    agent.type(f"scout work start {item}")
    return item


def answer_the_agent(shell: Shell) -> None:
    """A person answers what the agent needs, as soon as it shows."""
    item = eventually(lambda: shell.data("attention")["items"])[0]["id"]
    shell.say("answer", item, "8080")


@pytest.mark.rows("R5.3-2")
@pytest.mark.parametrize("role", ROLES)
def test_every_command_of_the_contract_works_as_taught(shell: Shell, role: str) -> None:
    taught = [
        call
        for harness in ("command", "tmux")
        for call in _CALL.findall(shell.say("contract", "--harness", harness))
    ]
    agent = Agent(shell, role)
    # What the program was given teaches these commands, and no other.
    own = _CALL.findall(agent.given["SCOUT_CONTRACT"])
    assert len(set(own)) >= 10
    assert {*own} <= {*taught}
    # `scout reply` ends the flight, so it is the last.
    for call in sorted(dict.fromkeys(taught), key=lambda one: "reply" in one):
        command = fill_command(agent, call)
        process = agent.begin(command)
        if call.startswith("scout need"):
            answer_the_agent(shell)
        said, problem = process.communicate(timeout=60)
        assert process.returncode == 0, (command, said, problem)
        assert said.strip(), command
        if call.startswith("scout question create"):
            # Its flight waits for whoever asked; the answer lets it go on.
            waiting = shell.data("flight", "get", agent.flight)
            assert waiting["state"] == "waiting"
            shell.say("question", "answer", ident(said, "qst"), "8080")
            assert shell.data("flight", "get", agent.flight)["state"] == "running"
    assert shell.say("wait", agent.flight).strip() == "Which port? Ünïcode."
    agent.end()
