"""`scout runtimes --check`: the real Claude Code and Codex keep what the checklist promises, or it says so."""

import json
import re
from collections.abc import Generator
from typing import Any

import pytest

from tests.live.machine import Machine, a_machine, processes_in
from tests.live.model.script import Answer, Call, Heard

# The first to come here installs the programs; once they are there, a test takes under a minute.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BOTH = ("claude", "codex")
ASKED = re.compile("without using a tool: |Count from one|if you need it: ")


def obey(heard: Heard) -> Answer:
    """A model that does what it was asked last, as a real one would."""
    asked = max(at for at, turn in enumerate(heard.turns) if turn.by == "user" and ASKED.search(turn.text))
    text, later = heard.turns[asked].text, heard.turns[asked + 1 :]
    if number := re.findall(r"without using a tool: (\d+)", text):
        return Answer((number[-1],))
    if "Count from one" in text:
        return Answer(("one",), stall=120.0)
    if (line := re.search(r"if you need it: (dd \S+ \S+)", text)) and not any(
        one.by == "tool" for one in later
    ):
        return Answer((shell(heard, line[1]),))
    return Answer(("as you wish",))


def shell(heard: Heard, line: str) -> Call:
    """The call that runs something in a shell, which the program may not run unasked."""
    if "Bash" in heard.offered:
        return Call("Bash", {"command": line, "description": "try"})
    wish = {"cmd": line, "sandbox_permissions": "require_escalated", "justification": "try"}
    return Call("exec_command", wish)


@pytest.fixture
def machine() -> Generator[Machine]:
    with a_machine(*BOTH) as made:
        made.model.unscripted = obey
        yield made


def verdicts(shown: Any) -> dict[str, str]:
    return {one["line"]: one["verdict"] for one in shown["checks"]}


@pytest.mark.rows("R5.1-1", "R5.1-2")
@pytest.mark.parametrize("harness", BOTH)
def test_each_promise_is_tried_with_the_real_program(machine: Machine, harness: str) -> None:
    # Without consent nothing is asked of the model,
    unasked = machine.type("runtimes", "--check", harness, "--json", within=90)
    assert unasked.returncode == 6
    free = json.loads(unasked.stdout)
    assert machine.model.log == []
    assert {"passed", "not tried"} == {*verdicts(free).values()}
    # with it every promise is kept,
    done = machine.type("runtimes", "--check", harness, "--yes", "--json", within=240)
    whole = json.loads(done.stdout)
    assert set(verdicts(whole).values()) == {"passed"}, whole["checks"]
    assert done.returncode == 0
    assert len(machine.model.log) >= whole["turns"] - 1  # the one that is cancelled may end before it is sent
    # and nothing of it is left: no process, no folder, no record in any list.
    assert not (machine.home / "trials").exists()
    assert [line for line in processes_in(machine.folder).values() if "trials" in line] == []
    for noun in ("flight", "session", "who", "latest"):
        assert machine.data(noun)["items"] == [], noun
    assert machine.get(f"/v1/runtimes?check={harness}")["items"][0]["checks"] == whole["checks"]
