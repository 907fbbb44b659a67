"""What a spawned agent may do unasked: the real programs, each under the profile that was set for it."""

import json
from pathlib import Path

import pytest

from tests.live.machine import Machine, a_machine
from tests.live.programs import codex_settings
from tests.tree.repositories import git

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COMMIT = (
    "date +%N > work.txt && git add work.txt && git -c user.name=a -c user.email=a@localhost commit -qm work"
)
# What would make git run something later, or in another work tree, if the agent could write it.
GUARDED = ("config", "hooks/pre-commit", "HEAD", "packed-refs", "info/attributes")
OWN = ("commondir", "gitdir", "config.worktree")


def spawn(machine: Machine, arc: Path, harness: str, *commands: str) -> tuple[str, Path]:
    """A child with these commands as its task; its flight and its work tree."""
    tool = {"claude": "Bash", "codex": "exec_command"}[harness]
    given = [
        {"command": one, "description": "x"} if harness == "claude" else {"cmd": one} for one in commands
    ]
    steps = " ".join(f"<<tool {tool} {json.dumps(one)}>>" for one in given)
    words = ("spawn", "api", "--harness", harness, "--no-wait", "--task", f"Commit. {steps} <<echo>>")
    (made,) = machine.data(*words, cwd=arc, within=60)["agents"]
    return made["flightId"], Path(made["workingDir"])


def try_writes(*files: Path) -> str:
    """A command that says for each file whether it could be opened for writing."""
    lines = [f"(exec 3>>'{one}') 2>/dev/null && echo 'WROTE {one.name}'" for one in files]
    return "; ".join((*lines, "echo tried"))


@pytest.mark.rows("R10.1-9")
def test_codex_commits_in_its_work_tree_and_cannot_change_what_git_runs() -> None:
    with a_machine("codex") as machine:
        # The machine's folder is below /tmp, which Codex's sandbox would let the agent write.
        narrow = "[sandbox_workspace_write]\nexclude_slash_tmp = true"
        machine.replace_file(".codex/config.toml", codex_settings(machine.model.url, last=narrow))
        arc = machine.repository("arc", "codex")
        common = arc / ".git"
        guarded = [common / one for one in GUARDED] + [common / "worktrees" / "api" / one for one in OWN]
        outside = [arc / "new.txt", arc / ".scout" / "worktrees" / "api" / ".git"]
        flight, tree = spawn(machine, arc, "codex", COMMIT, try_writes(*guarded, *outside))
        done = machine.ended(flight, 120)
        assert done["state"] == "completed", done
        assert "tried" in done["output"]
        assert "WROTE" not in done["output"], done["output"]
        assert machine.attention() == []
        assert git(tree, "log", "--format=%s", "main..main.api") == "work"
        assert git(tree, "status", "--porcelain") == ""
        # A program that resumes the thread has the same access.
        machine.say("session", "stop", done["sessionId"])
        again = machine.data(
            "ask", "@arc.api", f"<<tool exec_command {json.dumps({'cmd': COMMIT})}>> <<echo>>"
        )
        assert again["state"] == "completed", again
        assert git(tree, "rev-list", "--count", "main..main.api") == "2"
        merged = machine.data("finish", "@arc.api", "--merge", within=60)
        assert merged["state"] == "finished"
        assert git(arc, "status", "--porcelain") == ""


@pytest.mark.rows("R10.1-10")
@pytest.mark.parametrize("sandbox", ["", "1"], ids=["root", "sandbox"])
def test_a_child_of_a_trusted_parent_runs_commands_unasked_where_claude_code_allows_it(sandbox: str) -> None:
    """As root, Claude Code refuses to run unasked, unless it is told that the machine is a sandbox."""
    with a_machine("claude", IS_SANDBOX=sandbox) as machine:
        arc = machine.repository("arc", "claude")
        machine.say("agent", "register", "arc", "--project", str(arc), "--harness", "claude")
        machine.say("agent", "config", "@arc", "--set", "permissionProfile=trusted")
        flight, tree = spawn(machine, arc, "claude", COMMIT)
        asks = is_root() and not sandbox
        if asks:
            item = machine.waits(flight)
            assert "git add work.txt" in item["title"] + item["body"]
            machine.say("attention", "approve", item["id"])
        done = machine.ended(flight, 120)
        assert done["state"] == "completed", done
        assert git(tree, "log", "--format=%s", "main..main.api") == "work"
        told = machine.data("ask", "@arc.api", "Hello. <<say hi>>", "--no-wait")
        assert any("refuses it for root" in note for note in told.get("notes", ())) == asks
        machine.ended(told["flightId"])


def is_root() -> bool:
    return Path("/proc/self").stat().st_uid == 0
