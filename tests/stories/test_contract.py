"""What the contract tells an agent to type is typed, by the agent, in its shell."""

import re
import shlex
from collections.abc import Generator
from typing import Any

import pytest

from scout.policy.prompt import template
from tests.cli.running import Shell, a_shell, start_daemon

pytestmark = pytest.mark.slow

TAUGHT = sorted(set(re.findall(r"`(scout .*?)`", template("tmux"))))


@pytest.fixture(scope="module")
def me() -> Generator[Shell]:
    with a_shell() as shell:
        start_daemon(shell)
        yield shell


class Agent:
    """One agent that types commands with its own credential."""

    def __init__(self, shell: Shell, name: str) -> None:
        self.shell = shell
        self.own = {"SCOUT_TOKEN": shell.data("agent", "register", name)["token"]}
        shell.data("token", "list")

    def does(self, *words: str) -> Any:
        return self.shell.data(*words, **self.own)

    def says(self, *words: str) -> str:
        return self.shell.say(*words, **self.own)


@pytest.mark.parametrize("line", TAUGHT)
def test_a_command_of_the_contract_works_as_taught(me: Shell, line: str) -> None:
    number = TAUGHT.index(line)
    other = f"other{number}"
    me.say("agent", "register", other, "--harness", "echo")
    arc = Agent(me, f"arc{number}")
    name = f"@arc{number}"
    asked = me.data("ask", name, "Please.", "--if-unreachable", "queue", "--no-wait")
    arc.does("inbox", "claim")
    question = me.data("question", "create", name, "Which port?")
    item = me.data("work", "create", "Fix it", "--owner", name)
    arc.does("work", "start", item["id"])
    values = {
        "ADDRESS": f"@{other}",
        "TEXT": "here it is",
        "TITLE": "More of it",
        "FLIGHT": asked["flightId"],
        "QUESTION": question["id"],
        "ITEM": item["id"],
    }
    words = [values.get(word, word) for word in shlex.split(line)[1:]]
    if "need" in words:
        words += ["--no-wait"]
    if words[:2] == ["flight", "wait"]:
        words = ["flight", "get", *words[2:]]
    arc.says(*words)
