"""Finishing agents, as a person or a lead types it: what is shown, merged, sent back, kept, discarded and undone."""

import concurrent.futures
import contextlib
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.stories.spawning import branches, project, trees_of
from tests.surface.site import Site
from tests.tree.repositories import commit, git, head

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SCOUT = 'scout() { "$SCOUT_PYTHON" -m scout "$@"; }\n'


@pytest.fixture
def me() -> Generator[Shell]:
    with a_shell() as shell:
        yield shell


def child(me: Shell, arc: Path, slug: str, *words: str) -> tuple[str, Path]:
    """A new child of the root agent, or of --from: its address and its work tree."""
    made = me.data("spawn", slug, "--no-wait", *words, cwd=arc, within=60)["agents"][0]
    return made["address"], Path(made["workingDir"])


def grown(me: Shell, arc: Path, slug: str, *words: str) -> tuple[str, Path]:
    """A child with one commit."""
    address, tree = child(me, arc, slug, *words)
    commit(tree, f"{slug}.txt", f"{slug}\n")
    return address, tree


def paste(me: Shell, command: str, cwd: Path) -> None:
    """A command as it was printed."""
    done = subprocess.run(
        ["bash", "-c", SCOUT + command],
        cwd=cwd,
        env={**me.environ, "SCOUT_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)


def answer(me: Shell, line: str, *words: str) -> tuple[int, str]:
    """What a terminal shows when a person answers with a line."""
    near, far = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "scout", *words],
        cwd=me.folder,
        env={**me.environ, "TERM": "dumb"},
        stdin=far,
        stdout=far,
        stderr=far,
    )
    os.close(far)
    os.write(near, f"{line}\n".encode())
    shown = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while data := os.read(near, 65536):
            shown += data
    os.close(near)
    return process.wait(60), shown.decode()


def undo_of(shown: str) -> list[str]:
    """The commands that a finish printed to take it back."""
    lines = shown.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("undo: "))
    rest = [line.strip() for line in lines[first + 1 :] if line.startswith("      ")]
    return [lines[first].removeprefix("undo: "), *rest]


@pytest.mark.rows("R10.6-1", "R10.6-2", "R10.6-8")
def test_a_person_looks_merges_and_takes_it_back(me: Shell) -> None:
    arc = project(me)
    start_daemon(me)
    address, tree = grown(me, arc, "api")
    before = head(arc)
    seen = me.say("finish", address)
    for words in ("unmerged     1 commit", "main.api", f"scout finish --merge {address}", str(tree)):
        assert words in seen, seen
    assert head(arc) == before
    done = me.type("finish", address, "--merge", within=60)
    assert done.returncode == 0, done.stderr
    assert f"finished {address}: merged main.api into main" in done.stdout
    assert (arc / "api.txt").read_text() == "api\n"
    assert (branches(arc), trees_of(arc)) == (["main"], [])
    assert address not in me.say("who")
    for command in undo_of(done.stderr):
        paste(me, command, arc)
    assert head(arc) == before
    assert not (arc / "api.txt").exists()
    assert (tree / "api.txt").read_text() == "api\n"
    assert address in me.say("who")


@pytest.mark.rows("R1.5-33", "R10.6-3", "R10.6-7", "R10.6-8")
def test_uncommitted_work_is_refused_kept_or_discarded_by_name(me: Shell) -> None:
    arc = project(me)
    start_daemon(me)
    address, tree = grown(me, arc, "api")
    (tree / "new.txt").write_text("new\n")
    refused = me.type("finish", address, "--merge")
    assert (refused.returncode, refused.stderr.partition(":")[0]) == (7, "uncommitted_changes")
    assert "new.txt" in refused.stderr
    # On a terminal a discard is asked about first; No is the default.
    code, shown = answer(me, "n", "finish", address, "--discard", "--reason", "no")
    assert (code, "1 uncommitted file and 1 unmerged commit" in shown) == (1, True), shown
    assert tree.exists()
    done = me.type("finish", address, "--discard", "--reason", "The idea did not work.")
    assert done.returncode == 0, done.stderr
    assert not tree.exists()
    assert branches(arc) == ["main"]
    assert "The idea did not work." in me.say("log")
    for command in undo_of(done.stderr):
        paste(me, command, arc)
    assert (tree / "new.txt").read_text() == "new\n"
    assert (tree / "api.txt").exists()
    kept = me.data("finish", address, "--keep")
    assert (kept["state"], tree.exists()) == ("finished", True)
    assert address not in me.say("who")


@pytest.mark.rows("R10.6-3", "R10.6-4")
def test_a_conflict_goes_back_and_a_dirty_parent_is_refused(me: Shell) -> None:
    arc = project(me)
    start_daemon(me)
    address, tree = child(me, arc, "api")
    commit(tree, "a.txt", "child\n")
    commit(arc, "a.txt", "parent\n")
    merged = me.type("finish", address, "--merge", within=60)
    assert merged.returncode == 7, merged.stderr
    assert "both changed:\n  a.txt" in merged.stdout
    flight = next(word for word in merged.stdout.split() if word.startswith("flt_"))
    # Its harness echoes what it was asked.
    answer = me.say("wait", flight)
    assert "git merge main" in answer
    assert "- a.txt" in answer
    nobody = me.type("finish", address, "--merge", "--no-ask")
    assert (nobody.returncode, nobody.stderr.partition(":")[0]) == (7, "merge_conflict")
    git(tree, "merge", "-q", "main", check=False)
    commit(tree, "a.txt", "both\n")
    (arc / "a.txt").write_text("mine\n")
    dirty = me.type("finish", address, "--merge")
    assert (dirty.returncode, dirty.stderr.partition(":")[0]) == (7, "uncommitted_changes")
    assert (arc / "a.txt").read_text() == "mine\n"
    git(arc, "checkout", "-q", "--", "a.txt")
    me.say("finish", address, "--merge", within=60)
    assert (arc / "a.txt").read_text() == "both\n"


@pytest.mark.rows("R10.6-6")
def test_the_check_command_of_the_operator_decides(me: Shell) -> None:
    arc = project(me)
    start_daemon(me)
    me.say("project", "set", "worktree.check", "cat api.txt && test -e fine", cwd=arc)
    address, tree = grown(me, arc, "api")
    before = head(arc)
    failed = me.type("finish", address, "--merge", within=60)
    assert (failed.returncode, "check_failed" in failed.stderr) == (7, True), failed.stderr
    assert "  | api" in failed.stderr
    assert head(arc) == before
    commit(tree, "fine", "yes\n")
    me.say("finish", address, "--merge", within=60)
    assert (arc / "fine").exists()


@pytest.mark.rows("R10.6-9", "R10.6-11")
def test_a_lead_finishes_its_children_from_its_own_session(me: Shell) -> None:
    arc = project(me)
    daemon = Daemon(me.home, start_daemon(me))
    site = Site(me, daemon)
    lead, lead_tree = grown(me, arc, "api", "--role", "tl")
    below, tree = child(me, arc, "db", "--from", lead)
    commit(tree, "db.txt", "db\n")
    other, _ = grown(me, arc, "docs")
    token = site.post("/v1/tokens", agent=lead)["secret"]

    def as_lead(*words: str) -> "subprocess.CompletedProcess[str]":
        return me.type(*words, cwd=lead_tree, within=60, SCOUT_TOKEN=token)

    assert as_lead("finish", "self", "--merge").returncode == 6
    assert as_lead("finish", other, "--keep").returncode == 6
    refused = as_lead("finish", other)
    assert refused.returncode == 6
    done = as_lead("finish", "main.api.db", "--merge")
    assert done.returncode == 0, done.stderr
    assert (lead_tree / "db.txt").exists()
    assert below not in me.say("who")
    # A person finishes the rest, leaves first.
    told = me.data("finish", "--all-done", cwd=arc, within=60)
    assert {one["address"] for one in told["items"]} == {lead, other}
    assert (arc / "db.txt").exists()


@pytest.mark.rows("R10.6-5")
def test_five_finishes_at_once_are_merged_one_after_another(me: Shell) -> None:
    arc = project(me)
    start_daemon(me)
    children = [grown(me, arc, slug)[0] for slug in ("one", "two", "three", "four", "five")]

    def finish(address: str) -> Any:
        return me.data("finish", address, "--merge", within=120)

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        done = list(pool.map(finish, children))
    assert {one["state"] for one in done} == {"finished"}
    merged = git(arc, "log", "--first-parent", "--merges", "--format=%H").split()
    assert sorted(merged) == sorted(one["merged"] for one in done)
    assert (git(arc, "status", "--porcelain"), branches(arc), trees_of(arc)) == ("", ["main"], [])


# -- a repository that nobody trusts -------------------------------------------------------------------


@pytest.mark.rows("R10.6-12")
def test_nothing_of_the_repository_runs_during_a_finish(me: Shell) -> None:
    """Merge drivers, filters, hooks and a monitor would leave a mark; a person's own git would run them."""
    arc = project(me)
    start_daemon(me)
    address, tree = child(me, arc, "api")
    commit(tree, "a.txt", "child\n")
    commit(arc, "b.txt", "parent\n")
    second, second_tree = child(me, arc, "docs")
    (second_tree / "new.txt").write_text("new\n")
    mark, trap = me.folder / "mark", me.folder / "trap.sh"
    trap.write_text(f"#!/bin/sh\necho ran >> {shlex.quote(str(mark))}\nexit 0\n")
    trap.chmod(0o755)
    with (arc / ".git" / "config").open("a") as file:
        file.write(
            f'[merge "x"]\n\tdriver = {trap} %A\n[filter "x"]\n\tclean = {trap}\n\tsmudge = {trap}\n'
            f"[core]\n\tfsmonitor = {trap}\n\tpager = {trap}\n\teditor = {trap}\n[gpg]\n\tprogram = {trap}\n"
            "[commit]\n\tgpgSign = true\n"
        )
    (arc / ".git" / "info").mkdir(exist_ok=True)
    (arc / ".git" / "info" / "attributes").write_text("* merge=x filter=x\n")
    hooks = arc / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-merge-commit", "post-merge", "post-checkout", "pre-commit", "reference-transaction"):
        (hooks / name).write_text(trap.read_text())
        (hooks / name).chmod(0o755)
    me.say("finish", address)
    me.say("finish", address, "--merge", within=60)
    done = me.data("finish", second, "--discard", "--reason", "no", within=60)
    assert not mark.exists(), mark.read_text()
    assert (arc / "a.txt").read_text() == "child\n"
    hooks.rename(me.folder / "hooks")
    shown = git(arc, "cat-file", "-p", f"{done['saved']}:new.txt")
    assert shown == "new"
