"""A lead that spawns agents: the real Claude Code and Codex, each in its work tree, with a scripted model behind."""

import json
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.daemon.daemons import eventually
from tests.live.machine import Machine, a_machine
from tests.tree.repositories import git

# The first to come here installs the programs; once they are there, a test takes a few seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def machine() -> Generator[Machine]:
    with a_machine("claude", "codex") as made:
        yield made


def commits(harness: str, name: str) -> str:
    """A task for a model: commit a file, then say who and where it is."""
    who = "-c user.name=a -c user.email=a@localhost"
    line = f"pwd > {name}.txt && git add {name}.txt && git {who} commit -qm {name}"
    if harness == "claude":
        shell = f"<<tool Bash {json.dumps({'command': line, 'description': 'commit'})}>>"
    else:
        shell = f"<<tool exec_command {json.dumps({'cmd': line})}>>"
    return f"{shell} <<tool whoami {{}}>> <<echo>>"


@pytest.mark.rows("R10.1-5")
def test_a_lead_spawns_three_devs_and_each_commits_on_its_branch(machine: Machine) -> None:
    arc = machine.repository("arc", "claude")
    machine.say("agent", "register", "arc", "--project", str(arc), "--harness", "claude")
    machine.say("agent", "config", "@arc", "--set", "permissionProfile=trusted")
    two = {"slugs": ["one", "two"], "harness": "claude", "task": commits("claude", "work")}
    third = {"slugs": ["three"], "harness": "codex", "task": commits("codex", "work")}
    script = f"<<tool agent_spawn {json.dumps(two)}>> <<tool agent_spawn {json.dumps(third)}>> <<echo>>"
    lead = machine.ended(machine.ask(arc, script), 120)
    assert lead["state"] == "completed", lead
    assert '"address":"@arc.three"' in lead["output"], lead

    flights = [
        one["flightId"] for one in machine.get("/v1/flights")["items"] if one["targetAddress"] != "@arc"
    ]
    assert len(flights) == 3
    eventually(lambda: _approve_all(machine, flights), 180)
    for flight in map(machine.flight, flights):
        slug = flight["targetAddress"].removeprefix("@arc.")
        tree = arc / ".scout" / "worktrees" / slug
        assert flight["state"] == "completed", flight
        assert flight["requesterAddress"] == "@arc"
        assert f"@arc.{slug}" in flight["output"]
        assert git(tree, "show", f"main.{slug}:work.txt") == str(tree)
        assert git(tree, "log", "--format=%s", f"main..main.{slug}") == "work"
        assert git(tree, "status", "--porcelain") == ""
    assert git(arc, "status", "--porcelain") == ""
    sessions = {one["cwd"]: one["harness"] for one in machine.data("session", "list")["items"]}
    trees = {str(arc / ".scout" / "worktrees" / slug): harness for slug, harness in _HARNESSES.items()}
    assert {**trees, **sessions} == sessions


def _approve_all(machine: Machine, flights: list[str]) -> bool:
    """Whether the flights have ended; the person approves what their programs want to run."""
    for item in machine.attention():
        if item["state"] == "open" and item["kind"] == "permission":
            machine.type("approve", item["id"])
    return all(machine.flight(ident)["finishedAt"] for ident in flights)


_HARNESSES = {"one": "claude", "two": "claude", "three": "codex"}


_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}


def _load_mcp(machine: Machine, host: str, folder: Path) -> None:
    """Have the daemon load MCP, as it does when it is idle: Codex begins a turn without a server that is slow."""
    words = ["scout", "mcp", "--host", host]
    hello = f"{json.dumps(_HELLO)}\n"
    env = machine.environ
    told = subprocess.run(words, cwd=folder, env=env, input=hello, capture_output=True, text=True, check=True)
    assert "serverInfo" in told.stdout


@pytest.mark.rows("R10.1-8")
@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_a_session_that_a_person_opens_in_the_work_tree_is_the_agents(machine: Machine, harness: str) -> None:
    arc = machine.repository("arc", harness)
    made = machine.data("spawn", "api", cwd=arc)["agents"][0]
    machine.say("setup", harness, "--yes")
    tree = Path(made["workingDir"])
    script = "Who am I? <<tool whoami {}>> <<echo>>"
    words = {
        "claude": ["claude", "-p", script, "--allowedTools", "mcp__scout__whoami"],
        "codex": ["codex", "exec", "--skip-git-repo-check", script],
    }[harness]
    _load_mcp(machine, harness, tree)
    shown = subprocess.run(
        words,
        cwd=tree,
        env=machine.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "@arc.api" in shown.stdout, shown
    sessions = [one for one in machine.data("session", "list")["items"] if one["origin"] == "enrolled"]
    assert {(one["agentId"], one["cwd"]) for one in sessions} == {(made["agent"]["id"], str(tree))}
    told = machine.data("ask", "--project", str(tree), "Hello. <<say hi>>", "--no-wait")
    assert told["target"] == made["agent"]["id"]
    machine.ended(told["flightId"], 120)
