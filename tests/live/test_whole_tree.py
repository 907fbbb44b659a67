"""A whole tree, from its birth to its end: a lead and three agents, run by the real Claude Code and Codex.

The lead spawns all three. Each commits on its branch; then one fails, one asks the lead, one is killed. The lead is
told of each, answers, merges and finishes, and in between the database is deleted.
"""

import json
import os
import shlex
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.daemons import eventually
from tests.live.machine import Machine, a_machine, processes_in
from tests.stories.spawning import branches, trees_of
from tests.tree.repositories import git

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WHO = "-c user.name=a -c user.email=a@localhost"
SAME = ("id", "path", "parentId", "birthBranch", "toolRole", "workingDir", "address")


@pytest.fixture
def machine() -> Generator[Machine]:
    # Root may run commands unasked only in a sandbox. The lead calls `scout` in the shell of its session.
    with a_machine("claude", "codex", IS_SANDBOX="1") as made:
        scout = made.folder / "bin" / "scout"
        scout.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m scout "$@"\n')
        scout.chmod(0o755)
        yield made


# -- what each is asked ----------------------------------------------------------------------------------


def bash(line: str) -> str:
    return f"<<tool Bash {json.dumps({'command': line, 'description': 'work'})}>>"


def commit(name: str) -> str:
    """A command that commits a file of this name."""
    return f"echo {name} > {name}.txt && git add {name}.txt && git {WHO} commit -qm {name}"


def call(tool: str, **arguments: Any) -> str:
    """A call of one of Scout's tools; Claude Code offers some of them only after a search."""
    return f"<<force mcp__scout_run__{tool} {json.dumps(arguments)}>>"


ANSWER = f"Blue. {bash(commit('colour'))} <<say It is painted.>>"
QUESTION = f"Which colour? {call('question_answer', questionId='$question', answer=ANSWER)} <<say Answered.>>"
ASK_BACK = call("question_create", flightId="$flight", body=QUESTION)
TASKS = {
    "api": f"Add the API.\n<<tool exec_command {json.dumps({'cmd': commit('api')})}>> <<error 500 no idea>>",
    "ui": f"Paint the page.\n{bash(commit('ui'))} {ASK_BACK} <<say I wait.>>",
    "docs": f"Write the docs.\n{bash(commit('docs'))} <<stall 600>> <<say never>>",
}
HARNESSES = {"api": "codex", "ui": "claude", "docs": "claude"}


# -- the story -------------------------------------------------------------------------------------------


@pytest.mark.rows("R10.1-5", "R10.4-3", "R10.5-1", "R10.6-2", "R10.6-11")
def test_a_lead_its_three_devs_and_a_lost_database(machine: Machine) -> None:
    arc = machine.repository("arc", "claude")
    machine.say("agent", "register", "arc", "--project", str(arc), "--harness", "claude")
    machine.say("agent", "config", "@arc", "--set", "permissionProfile=trusted")
    flights = spawn_all(machine, arc)
    # One fails, one asks the lead and goes on with its answer, one is killed.
    assert machine.ended(flights["api"], 120)["state"] == "failed"
    assert machine.ended(flights["ui"], 120)["output"].endswith("It is painted.")
    kill_program(machine, arc / ".scout" / "worktrees" / "docs", "docs")
    assert machine.ended(flights["docs"], 60)["state"] == "failed"
    check_lead_was_told(machine)
    (asked,) = machine.data("question", "list")["items"]
    facts = (asked["askerAddress"], asked["responderAddress"], asked["state"], asked["answer"][:5])
    assert facts == ("@arc.ui", "@arc", "answered", "Blue.")
    for slug in TASKS:
        assert git(arc, "show", f"main.{slug}:{slug}.txt") == slug
    # The lead merges what is done, in its own name.
    merged = ask_lead(machine, arc, "scout finish @arc.ui --merge")
    assert "finished @arc.ui: merged main.ui into main" in merged["output"]
    assert (arc / "colour.txt").read_text() == "colour\n"
    before = read_tree(machine, arc)
    assert set(before) == {"@arc", "@arc.api", "@arc.docs"}
    lose_database(machine)
    assert read_tree(machine, arc) == before
    assert branches(arc) == ["main", "main.api", "main.docs"]
    # A trusted profile is not found on the disk: now the person is asked.
    more = machine.data("ask", "@arc.docs", f"Go on.\n{bash(commit('more'))} <<say Written.>>", "--no-wait")
    assert approve(machine, more["flightId"])["output"] == "Written."
    ended = "scout finish @arc.docs --merge; scout finish @arc.api --discard --reason 'no idea'"
    finished = ask_lead(machine, arc, ended)
    assert finished["state"] == "completed", finished
    assert "finished @arc.docs: merged main.docs into main" in finished["output"], finished
    assert "finished @arc.api: its work was discarded" in finished["output"], finished
    check_end(machine, arc, finished["output"])


def spawn_all(machine: Machine, arc: Path) -> dict[str, str]:
    """The flights of three agents that the lead spawns with its tool, by slug."""
    calls = [
        call("agent_spawn", slugs=[slug], harness=HARNESSES[slug], task=task) for slug, task in TASKS.items()
    ]
    lead = machine.ask(arc, f"Build the shop.\n{' '.join(calls)} <<say All three work.>>")
    assert machine.ended(lead, 120)["output"].startswith("All three work.")
    made = [one for one in machine.get("/v1/flights")["items"] if one["requesterAddress"] == "@arc"]
    return {one["targetAddress"].removeprefix("@arc."): one["id"] for one in made}


def kill_program(machine: Machine, tree: Path, slug: str) -> None:
    """Kill the program that works in a work tree, once it has committed."""
    eventually(lambda: git(tree, "log", "--format=%s", f"main..main.{slug}") == slug)
    real = (machine.folder / "bin" / HARNESSES[slug]).resolve()
    found = [pid for pid in processes_in(tree) if Path(f"/proc/{pid}/exe").resolve() == real]
    assert found
    for pid in found:
        os.kill(pid, signal.SIGKILL)


def check_lead_was_told(machine: Machine) -> None:
    """The model of the lead has heard of each child; the other models of nobody."""
    news = ("@arc.api failed:", "Which colour?", "@arc.ui finished: Paint the page.", "@arc.docs failed:")
    eventually(lambda: all(one in heard_by(machine, "@arc") for one in news))
    for slug in TASKS:
        heard = heard_by(machine, f"@arc.{slug}")
        assert not [one for one in news if one in heard and one != "Which colour?"], slug


def heard_by(machine: Machine, address: str) -> str:
    """Everything that the model of an agent was told as a user's text."""
    said = f"You are {address} (path"
    own = [one for one in tuple(machine.model.log) if said in json.dumps(one.body)]
    return "\n".join(turn.text for one in own for turn in one.heard.turns if turn.by == "user")


def ask_lead(machine: Machine, arc: Path, line: str) -> Any:
    """The lead's answer after it ran a command; a person approves it if need be."""
    return approve(machine, machine.ask(arc, f"Finish.\n{bash(line)} <<echo>>"))


def approve(machine: Machine, flight: str) -> Any:
    """A flight once it has ended, with whatever it asks for approved."""

    def look() -> Any:
        for item in machine.attention():
            if item["state"] == "open" and item["kind"] == "permission":
                machine.type("approve", item["id"])
        found = machine.flight(flight)
        return found if found["finishedAt"] else None

    return eventually(look, 120)


def read_tree(machine: Machine, arc: Path) -> dict[str, Any]:
    """Who each agent is and where, by its address."""
    shown = machine.data("tree", cwd=arc)["agents"]
    full = [machine.get(f"/v1/agents/{one['id']}") for one in shown]
    return {one["address"]: {name: one[name] for name in SAME} | _harness(one) for one in full}


def _harness(agent: dict[str, Any]) -> dict[str, Any]:
    return {"harness": agent["config"]["harness"]}


def lose_database(machine: Machine) -> None:
    """Stop the daemon, delete its database, start it again. Programs that nobody knows any more are gone."""
    machine.say("down")
    for file in machine.home.glob("scout.db*"):
        file.unlink()
    daemon = machine.up()
    assert machine.get("/v1/flights")["items"] == []
    assert set(processes_in(machine.folder)) == {daemon.running.pid}


def check_end(machine: Machine, arc: Path, printed: str) -> None:
    """Everything that was merged is in the main branch, the rest can be brought back, and nothing is left over."""
    assert (branches(arc), trees_of(arc)) == (["main"], [])
    names = ("api", "colour", "docs", "more", "ui")
    assert [name for name in names if (arc / f"{name}.txt").exists()] == ["colour", "docs", "more", "ui"]
    assert git(arc, "status", "--porcelain") == ""
    undo = next(line.strip() for line in printed.splitlines() if " branch main.api " in line)
    assert git(arc, "show", f"{undo.split()[-1]}:api.txt") == "api"
    assert list(read_tree(machine, arc)) == ["@arc"]
    assert "clean" in machine.say("tree", "--reconcile", cwd=arc)
    assert "clean" in machine.say("verify", within=60)
