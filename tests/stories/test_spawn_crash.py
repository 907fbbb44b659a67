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

from tests import soak
from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import eventually
from tests.stories.kill_points import (
    LEAST_KILLS,
    TracedWrites,
    choose_steps,
    is_dead,
    kill,
    replace_missed_step,
    start_with,
)
from tests.stories.spawning import PausedGit, branches, project, trees_of
from tests.tree.repositories import git

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def me() -> Generator[Shell]:
    with a_shell() as shell:
        yield shell


def begin_spawn(me: Shell, arc: Path, slug: str = "api") -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "scout", "spawn", slug, "--no-wait"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(words, cwd=arc, env=me.environ, stdin=quiet, stdout=quiet, stderr=quiet)


def has_agent(me: Shell, slug: str = "api") -> bool:
    return f"@arc.{slug}" in [one["address"] for one in me.data("who")["items"]]


def check_whole(me: Shell, arc: Path, slug: str = "api") -> bool:
    """Whether the child exists: with branch, work tree, identity and journal alike, or without any of them."""
    there = has_agent(me, slug)
    tree = arc / ".scout" / "worktrees" / slug
    assert branches(arc) == (["main", f"main.{slug}"] if there else ["main"])
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
    pid = start_with(me, paused)
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
        stopped = eventually(lambda: paused.reached or None)
        kill(pid)
        os.kill(stopped, signal.SIGKILL)
        typed.wait(60)
        paused.disarm()
        pid = start_with(me, paused)
        assert not check_whole(me, arc), paused.commands[step]
    assert "main.api" in json.dumps(me.data("attention")["items"])
    me.say("spawn", "api", "--no-wait", cwd=arc)
    assert check_whole(me, arc)


@pytest.mark.rows("R10.1-6")
def test_a_kill_before_some_writes_leaves_nothing_half(me: Shell) -> None:
    kill_before_writes(me)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_kill_before_any_write_leaves_nothing_half(me: Shell, soaked: soak.Soaked) -> None:
    soaked(kills=kill_before_writes(me))


def kill_before_writes(me: Shell) -> int:
    """Kill the daemon before writes of a spawn: pages, commits, journal entries, the identity; how often it was."""
    arc = project(me)
    pid = start_daemon(me).pid
    writes = trace_of(me, arc, "count")
    writes.begin(pid)
    assert begin_spawn(me, arc, "count").wait(120) == 0
    count = writes.end()
    assert count > 5
    discard(me, "count")
    kills, steps = 0, choose_steps(count, 3, all_of_them=soak.is_soak())
    for number, step in enumerate(steps):
        slug = f"w{number}"
        writes = trace_of(me, arc, slug)
        writes.begin(pid, kill_at=step)
        typed = begin_spawn(me, arc, slug)
        eventually(lambda: is_dead(pid) or typed.poll() is not None, 120)  # noqa: B023 (used at once)
        writes.end()
        if is_dead(pid):
            pid = start_daemon(me).pid
            kills += 1
        else:
            replace_missed_step(steps, number, kills)
        typed.wait(60)
        told = me.type("tree", "--reconcile", cwd=arc)
        assert (told.returncode, "clean" in told.stdout) == (0, True), (step, told)
        if check_whole(me, arc, slug):
            discard(me, slug)
    assert kills >= LEAST_KILLS
    assert "clean" in me.say("verify", within=60)
    return kills


def trace_of(me: Shell, arc: Path, slug: str) -> TracedWrites:
    tree = arc / ".scout" / "worktrees" / slug
    files = (me.home / "scout.db-wal", me.home / "trees" / "journal", tree, tree / ".scout")
    return TracedWrites(me.folder / "strace", files)


def discard(me: Shell, slug: str) -> None:
    me.say("finish", f"@arc.{slug}", "--discard", "--reason", "the next one", within=60)


def test_git_that_outlives_the_daemon_changes_nothing(me: Shell) -> None:
    arc, paused = project(me), PausedGit(me.folder / "git")
    pid = start_with(me, paused)
    paused.arm(-1)
    me.say("spawn", "count", "--no-wait", cwd=arc)
    step = next(number for number, one in enumerate(paused.commands) if "worktree add" in one)
    me.say("agent", "retire", "@arc.count")
    git(arc, "worktree", "remove", "--force", str(arc / ".scout/worktrees/count"))
    git(arc, "branch", "-D", "main.count")
    paused.arm(step)
    typed = begin_spawn(me, arc)
    stopped = eventually(lambda: paused.reached or None)
    kill(pid)
    paused.disarm()
    (paused.folder / "go").write_text("on\n")
    eventually(lambda: is_dead(stopped))
    typed.wait(60)
    start_with(me, paused)
    assert not check_whole(me, arc)


def test_a_kill_during_the_setup_ends_the_command_and_undoes_the_child(me: Shell) -> None:
    arc, paused = project(me), PausedGit(me.folder / "git")
    pid = start_with(me, paused)
    mark = me.folder / "setup.pid"
    me.say("project", "set", "worktree.setup", f"echo $$ > {mark}; echo half > built; sleep 600", cwd=arc)
    typed = begin_spawn(me, arc)
    running = eventually(lambda: int(mark.read_text() or 0) if mark.exists() else None)
    kill(pid)
    eventually(lambda: is_dead(running))
    typed.wait(60)
    start_with(me, paused)
    assert not check_whole(me, arc)
    (item,) = [one for one in me.data("attention")["items"] if "main.api" in one["title"]]
    saved = next(word.strip(".") for word in item["body"].split() if len(word.strip(".")) == 40)
    assert git(arc, "show", f"{saved}:built") == "half"


def test_a_stop_during_the_setup_is_quick_and_leaves_nothing(me: Shell) -> None:
    arc, paused = project(me), PausedGit(me.folder / "git")
    start_with(me, paused)
    mark = me.folder / "setup.pid"
    me.say("project", "set", "worktree.setup", f"echo $$ > {mark}; sleep 600", cwd=arc)
    typed = begin_spawn(me, arc)
    running = eventually(lambda: int(mark.read_text() or 0) if mark.exists() else None)
    began = time.monotonic()
    me.say("down")
    assert time.monotonic() - began < 20
    assert is_dead(running)
    typed.wait(60)
    start_with(me, paused)
    assert not check_whole(me, arc)


def test_a_child_that_is_registered_is_completed(me: Shell) -> None:
    """Its identity file cannot be written, because the setup has put something in its place."""
    arc, paused = project(me), PausedGit(me.folder / "git")
    pid = start_with(me, paused)
    me.say("project", "set", "worktree.setup", "rm -r .scout; echo x > .scout", cwd=arc)
    made = me.data("spawn", "api", cwd=arc)["agents"][0]
    assert "identity file" in made["notes"][0]
    assert has_agent(me)
    kill(pid)
    tree = arc / ".scout" / "worktrees" / "api"
    (tree / ".scout").unlink()
    git(tree, "checkout", "--", ".scout")
    start_with(me, paused)
    assert check_whole(me, arc)
    assert json.loads((tree / ".scout/identity.json").read_text())["id"] == made["agent"]["id"]
    assert any("completed" in one["title"] for one in me.data("attention")["items"])
