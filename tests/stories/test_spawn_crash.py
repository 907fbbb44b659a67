"""A daemon that is killed at any step of a spawn: the agent is there as a whole, or nothing of it is."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from scout.daemon.start import start
from tests.cli.running import Shell, a_shell
from tests.daemon.daemons import eventually
from tests.stories.spawning import PausedGit, branches, project, trees_of
from tests.tree.repositories import git

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def me() -> Generator[Shell]:
    with a_shell() as shell:
        yield shell


def up(me: Shell, paused: PausedGit) -> int:
    """The daemon, which meets the git that stops; its process."""
    return start(str(me.home), environ={**me.environ, "PATH": paused.path})[0].pid


def begin_spawn(me: Shell, arc: Path) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "scout", "spawn", "api", "--no-wait"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(words, cwd=arc, env=me.environ, stdin=quiet, stdout=quiet, stderr=quiet)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{pid}").exists() or _is_dead(pid))


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def has_agent(me: Shell) -> bool:
    return "@arc.api" in [one["address"] for one in me.data("who")["items"]]


def check_whole(me: Shell, arc: Path) -> bool:
    """Whether the child exists: with branch, work tree, identity and journal alike, or without any of them."""
    there = has_agent(me)
    tree = arc / ".scout" / "worktrees" / "api"
    assert branches(arc) == (["main", "main.api"] if there else ["main"])
    assert trees_of(arc) == ([str(tree)] if there else [])
    assert (tree / ".scout" / "identity.json").exists() == there
    assert tree.exists() == there
    assert list((me.home / "trees" / "journal").glob("*.json")) == []
    assert git(arc, "status", "--porcelain") == ""
    if there:
        assert git(tree, "status", "--porcelain") == ""
        assert (tree / "a.txt").read_text() == "a\n"
    return there


@pytest.mark.rows("R10.1-6")
def test_a_kill_before_each_git_command_leaves_nothing_half(me: Shell) -> None:
    arc, paused = project(me), PausedGit(me.folder / "git")
    pid = up(me, paused)
    paused.arm(-1)
    me.say("spawn", "count", "--no-wait", cwd=arc)
    paused.disarm()
    steps = len(paused.commands)
    assert any("worktree" in command for command in paused.commands)
    me.say("agent", "retire", "@arc.count")
    git(arc, "worktree", "remove", "--force", str(arc / ".scout/worktrees/count"))
    git(arc, "branch", "-D", "main.count")
    for step in range(steps):
        (paused.folder / "reached").unlink(missing_ok=True)
        paused.arm(step)
        typed = begin_spawn(me, arc)
        stopped = eventually(lambda: paused.reached or None, 30)
        kill(pid)
        os.kill(stopped, signal.SIGKILL)
        typed.wait(30)
        paused.disarm()
        pid = up(me, paused)
        assert not check_whole(me, arc), paused.commands[step]
    assert "main.api" in json.dumps(me.data("attention")["items"])
    me.say("spawn", "api", "--no-wait", cwd=arc)
    assert check_whole(me, arc)


def test_git_that_outlives_the_daemon_changes_nothing(me: Shell) -> None:
    arc, paused = project(me), PausedGit(me.folder / "git")
    pid = up(me, paused)
    paused.arm(-1)
    me.say("spawn", "count", "--no-wait", cwd=arc)
    step = next(number for number, one in enumerate(paused.commands) if "worktree add" in one)
    me.say("agent", "retire", "@arc.count")
    git(arc, "worktree", "remove", "--force", str(arc / ".scout/worktrees/count"))
    git(arc, "branch", "-D", "main.count")
    paused.arm(step)
    typed = begin_spawn(me, arc)
    stopped = eventually(lambda: paused.reached or None, 30)
    kill(pid)
    paused.disarm()
    (paused.folder / "go").write_text("on\n")
    eventually(lambda: _is_dead(stopped), 30)
    typed.wait(30)
    up(me, paused)
    assert not check_whole(me, arc)


def test_a_kill_during_the_setup_ends_the_command_and_undoes_the_child(me: Shell) -> None:
    arc, paused = project(me), PausedGit(me.folder / "git")
    pid = up(me, paused)
    mark = me.folder / "setup.pid"
    me.say("project", "set", "worktree.setup", f"echo $$ > {mark}; echo half > built; sleep 600", cwd=arc)
    typed = begin_spawn(me, arc)
    running = eventually(lambda: int(mark.read_text() or 0) if mark.exists() else None, 30)
    kill(pid)
    eventually(lambda: _is_dead(running), 10)
    typed.wait(30)
    up(me, paused)
    assert not check_whole(me, arc)
    (item,) = [one for one in me.data("attention")["items"] if "main.api" in one["title"]]
    saved = next(word.strip(".") for word in item["body"].split() if len(word.strip(".")) == 40)
    assert git(arc, "show", f"{saved}:built") == "half"


def test_a_stop_during_the_setup_is_quick_and_leaves_nothing(me: Shell) -> None:
    arc, paused = project(me), PausedGit(me.folder / "git")
    up(me, paused)
    mark = me.folder / "setup.pid"
    me.say("project", "set", "worktree.setup", f"echo $$ > {mark}; sleep 600", cwd=arc)
    typed = begin_spawn(me, arc)
    running = eventually(lambda: int(mark.read_text() or 0) if mark.exists() else None, 30)
    began = time.monotonic()
    me.say("down")
    assert time.monotonic() - began < 20
    assert _is_dead(running)
    typed.wait(30)
    up(me, paused)
    assert not check_whole(me, arc)


def test_a_child_that_is_registered_is_completed(me: Shell) -> None:
    """Its identity file cannot be written, because the setup has put something in its place."""
    arc, paused = project(me), PausedGit(me.folder / "git")
    pid = up(me, paused)
    me.say("project", "set", "worktree.setup", "rm -r .scout; echo x > .scout", cwd=arc)
    made = me.data("spawn", "api", cwd=arc)["agents"][0]
    assert "identity file" in made["notes"][0]
    assert has_agent(me)
    kill(pid)
    tree = arc / ".scout" / "worktrees" / "api"
    (tree / ".scout").unlink()
    git(tree, "checkout", "--", ".scout")
    up(me, paused)
    assert check_whole(me, arc)
    assert json.loads((tree / ".scout/identity.json").read_text())["id"] == made["agent"]["id"]
    assert any("completed" in one["title"] for one in me.data("attention")["items"])
