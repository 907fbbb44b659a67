"""A merge that conflicts, sent to the real Claude Code and Codex: their models read the request and follow it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.live.machine import Machine, a_machine
from tests.live.model.script import Answer, Call, Heard
from tests.stories.spawning import branches, trees_of
from tests.tree.repositories import commit, git

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_STEP = re.compile(r"^> ?\d\. Run `(?P<command>.+)`\.$", re.MULTILINE)
_FOLDER = re.compile(r"In the work tree (?P<folder>\S+):")
_FILE = re.compile(r"^> ?- (?P<name>\S+)$", re.MULTILINE)
_MARKS = "sed -i -e '/^<<<<<<<\\|^=======\\|^>>>>>>>/d'"


def follow_request(heard: Heard) -> Answer:
    """What a model does that reads the request: merge, keep the lines of both sides, commit, report."""
    asked = [at for at, turn in enumerate(heard.turns) if "has conflicts in these files" in turn.text]
    if not asked:
        return Answer(("Ready.",))
    prompt, later = heard.turns[asked[-1]].text, heard.turns[asked[-1] + 1 :]
    if any(turn.by == "tool" for turn in later):
        return Answer(("I kept the lines of both sides.",))
    merge, finish = (one["command"] for one in _STEP.finditer(prompt))
    files = " ".join(one["name"] for one in _FILE.finditer(prompt))
    folder = _FOLDER.search(prompt)
    assert folder is not None, prompt
    line = f"cd {folder['folder']} && ({merge}; {_MARKS} {files} && {finish})"
    given = {"command": line, "description": "resolve"}
    return Answer((Call("Bash", given) if "Bash" in heard.offered else Call("exec_command", {"cmd": line}),))


def prepare(machine: Machine, harness: str) -> Path:
    """A project whose agent api and whose main branch have changed the same line."""
    machine.model.unscripted = follow_request
    arc = machine.repository("arc", harness)
    for name, value in (("user.name", "p"), ("user.email", "p@localhost")):
        git(arc, "config", name, value)  # theirs is the identity of every commit
    commit(arc, "a.txt", "first\n")
    machine.say("agent", "register", "arc", "--project", str(arc), "--harness", harness)
    if harness == "claude":
        machine.say("agent", "config", "@arc", "--set", "permissionProfile=trusted")
    machine.say("spawn", "api", "docs", "--no-wait", cwd=arc, within=60)
    commit(arc / ".scout" / "worktrees" / "api", "a.txt", "child\n")
    commit(arc, "a.txt", "parent\n")
    return arc


def finish(machine: Machine, *words: str) -> Any:
    """What a finish of the agent says, whether it merged or not."""
    return json.loads(machine.type("finish", "@arc.api", "--merge", "--json", *words, within=60).stdout)


@pytest.mark.rows("R10.6-4")
@pytest.mark.parametrize(
    ("harness", "words", "resolver"),
    [
        ("claude", (), "@arc.api"),
        ("codex", (), "@arc.api"),
        ("claude", ("--resolver", "@arc.docs"), "@arc.docs"),
    ],
    ids=["claude", "codex", "resolver"],
)
def test_a_conflict_is_resolved_by_an_agent_and_then_merged(
    harness: str, words: tuple[str, ...], resolver: str
) -> None:
    with a_machine(harness, IS_SANDBOX="1") as machine:
        arc = prepare(machine, harness)
        before = git(arc, "rev-parse", "main")
        told = finish(machine, *words)
        assert (told["state"], told["conflicts"], told["resolver"]) == ("conflict", ["a.txt"], resolver)
        assert git(arc, "rev-parse", "main") == before
        done = machine.ended(told["flightId"], 120)
        assert (done["state"], done["targetAddress"]) == ("completed", resolver), done
        assert done["output"] == "I kept the lines of both sides."
        assert finish(machine, *words)["state"] == "finished"
        assert sorted((arc / "a.txt").read_text().splitlines()) == ["child", "parent"]
        assert git(arc, "status", "--porcelain") == ""
        assert (branches(arc), trees_of(arc)) == (
            ["main", "main.docs"],
            [str(arc / ".scout" / "worktrees" / "docs")],
        )
        assert machine.attention() == []
