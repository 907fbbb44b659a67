"""A daemon that is killed at any step of a finish: the finish is completed or was never begun, and nothing is half."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest

from scout.daemon.start import start
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
from tests.tree.repositories import commit, git, head

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MERGE, DISCARD, KEEP = ("--merge",), ("--discard", "--reason", "no"), ("--keep",)
CHOICES = pytest.mark.parametrize("choice", [MERGE, DISCARD], ids=["merge", "discard"])
ALL_CHOICES = pytest.mark.parametrize("choice", [MERGE, DISCARD, KEEP], ids=["merge", "discard", "keep"])


@pytest.fixture
def me() -> Generator[Shell]:
    with a_shell() as shell:
        yield shell


class Doomed(NamedTuple):
    """A child with a commit, and a file that is not committed if it is to be discarded."""

    slug: str
    address: str
    agent_id: str
    tree: Path
    commit: str


def grow(me: Shell, arc: Path, slug: str, choice: tuple[str, ...]) -> Doomed:
    made = me.data("spawn", slug, "--no-wait", cwd=arc, within=60)["agents"][0]
    tree = Path(made["workingDir"])
    commit(tree, f"{slug}.txt", f"{slug}\n")
    if choice == DISCARD:
        (tree / "new.txt").write_text("new\n")
    return Doomed(slug, made["address"], made["agent"]["id"], tree, head(tree))


def request_of(child: Doomed, choice: tuple[str, ...]) -> tuple[str, ...]:
    return ("finish", child.address, *choice, "--idempotency-key", child.slug)


def begin(me: Shell, arc: Path, words: tuple[str, ...]) -> "subprocess.Popen[bytes]":
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-m", "scout", *words],
        cwd=arc,
        env=me.environ,
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
    )


# -- what holds after a kill -----------------------------------------------------------------------------


def check_whole(me: Shell, arc: Path, child: Doomed) -> None:
    """After the restart the child is there as it was, or its finish is complete."""
    # A finish that had changed nothing begins again, and may be running now: it is left out.
    assert me.data("tree", "--reconcile", cwd=arc, within=60).get("findings", []) == []
    eventually(lambda: list((me.home / "trees" / "journal").glob("*.json")) == [])
    if any(one["address"] == child.address for one in me.data("who")["items"]):
        assert child.tree.is_dir()
        assert f"main.{child.slug}" in branches(arc)
        assert str(child.tree) in trees_of(arc)
        assert not (arc / f"{child.slug}.txt").exists()
    assert git(arc, "status", "--porcelain") == ""


def check_finished(me: Shell, arc: Path, child: Doomed, choice: tuple[str, ...]) -> None:
    """The same request again completes the finish once, whatever had happened before."""
    words = request_of(child, choice)
    report = me.data(*words, cwd=arc, within=60)
    assert report == me.data(*words, cwd=arc, within=60)
    assert report["state"] == "finished", report
    assert git(arc, "status", "--porcelain") == ""
    assert child.address not in [one["address"] for one in me.data("who")["items"]]
    if choice == KEEP:
        assert (child.tree.is_dir(), f"main.{child.slug}" in branches(arc)) == (True, True)
        return
    assert (child.tree.exists(), f"main.{child.slug}" in branches(arc)) == (False, False)
    assert str(child.tree) not in trees_of(arc)
    if choice == MERGE:
        assert (arc / f"{child.slug}.txt").exists()
        merges = git(arc, "log", "--first-parent", "--format=%s", "--merges").splitlines()
        assert sum(f"'main.{child.slug}'" in line for line in merges) == 1
    else:
        assert git(arc, "cat-file", "-t", child.commit) == "commit"
        assert git(arc, "show", f"{report['saved']}:new.txt") == "new"


# -- before git commands ---------------------------------------------------------------------------------


@pytest.mark.rows("R10.6-10")
@CHOICES
def test_a_kill_before_some_git_commands_loses_nothing(me: Shell, choice: tuple[str, ...]) -> None:
    kill_before_commands(me, choice)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@ALL_CHOICES
def test_a_kill_before_any_git_command_loses_nothing(
    me: Shell, choice: tuple[str, ...], soaked: soak.Soaked
) -> None:
    soaked(kills=kill_before_commands(me, choice))


def kill_before_commands(me: Shell, choice: tuple[str, ...]) -> int:
    """Kill the daemon before git commands of a finish; how often it was killed."""
    arc, paused = project(me), PausedGit(me.folder / "git")
    pid = start_with(me, paused)
    child = grow(me, arc, "count", choice)
    paused.arm(-1)
    me.say(*request_of(child, choice), within=60)
    paused.disarm()
    kills = 0
    for step in choose_steps(len(paused.commands), 3, all_of_them=soak.is_soak()):
        child = grow(me, arc, f"k{step}", choice)
        (paused.folder / "reached").unlink(missing_ok=True)
        paused.arm(step)
        typed = begin(me, arc, request_of(child, choice))
        if stopped := wait_for_stop(paused, typed):
            kill(pid)
            os.kill(stopped, signal.SIGKILL)
            pid = start_with(me, paused)
            kills += 1
        typed.wait(60)
        check_whole(me, arc, child)
        check_finished(me, arc, child, choice)
    assert "clean" in me.say("verify", within=60)
    return kills


def wait_for_stop(paused: PausedGit, typed: "subprocess.Popen[bytes]") -> int:
    """The git that stopped, once it has; 0 if the command ended without reaching it."""
    eventually(lambda: paused.reached or typed.poll() is not None)
    paused.disarm()
    return paused.reached


@pytest.mark.rows("R10.5-2")
@CHOICES
def test_a_running_finish_is_left_out_of_a_comparison(me: Shell, choice: tuple[str, ...]) -> None:
    arc, paused = project(me), PausedGit(me.folder / "git")
    start_with(me, paused)
    child = grow(me, arc, "count", choice)
    paused.arm(-1)
    me.say(*request_of(child, choice), within=60)
    for step in choose_steps(len(paused.commands), 2, all_of_them=soak.is_soak()):
        child = grow(me, arc, f"s{step}", choice)
        (paused.folder / "reached").unlink(missing_ok=True)
        paused.arm(step)
        typed = begin(me, arc, request_of(child, choice))
        stopped = wait_for_stop(paused, typed)
        told = me.data("tree", "--reconcile", "--fix", cwd=arc, within=60)
        assert told.get("findings", []) == [], (step, told)
        if stopped:
            (paused.folder / "go").write_text("go\n")
        assert typed.wait(60) == 0
        assert "leftOut" not in me.data("tree", "--reconcile", cwd=arc, within=60)
        check_finished(me, arc, child, choice)


# -- before the writes of the daemon itself --------------------------------------------------------------


@pytest.mark.rows("R10.6-10")
@CHOICES
def test_a_kill_before_some_writes_loses_nothing(me: Shell, choice: tuple[str, ...]) -> None:
    kill_before_writes(me, choice)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@ALL_CHOICES
def test_a_kill_before_any_write_loses_nothing(
    me: Shell, choice: tuple[str, ...], soaked: soak.Soaked
) -> None:
    soaked(kills=kill_before_writes(me, choice))


def kill_before_writes(me: Shell, choice: tuple[str, ...]) -> int:
    """Kill the daemon before writes of a finish: pages, commits, journal entries, removals; how often it was."""
    arc = project(me)
    pid = start_daemon(me).pid
    child = grow(me, arc, "count", choice)
    writes = trace_of(me, child)
    writes.begin(pid)
    me.say(*request_of(child, choice), within=120)
    count = writes.end()
    assert count > 5
    kills, steps = 0, choose_steps(count, 3, all_of_them=soak.is_soak())
    for number, step in enumerate(steps):
        child = grow(me, arc, f"w{number}", choice)
        writes = trace_of(me, child)
        writes.begin(pid, kill_at=step)
        typed = begin(me, arc, request_of(child, choice))
        eventually(lambda: is_dead(pid) or typed.poll() is not None, 120)  # noqa: B023 (used at once)
        writes.end()
        if is_dead(pid):
            pid = start(str(me.home), environ=me.environ, timeout=60)[0].pid
            kills += 1
        else:
            replace_missed_step(steps, number, kills)
        typed.wait(60)
        check_whole(me, arc, child)
        check_finished(me, arc, child, choice)
    assert kills >= LEAST_KILLS
    assert "clean" in me.say("verify", within=60)
    return kills


def trace_of(me: Shell, child: Doomed) -> TracedWrites:
    journal = me.home / "trees" / "journal"
    files = (me.home / "scout.db-wal", journal, journal / f"fin_{child.agent_id}.json", child.tree)
    return TracedWrites(me.folder / "strace", files)
