"""A person archives months of history, looks at old things, redacts one, keeps a backup, and purges the rest."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from scout.daemon.start import start, stop
from tests import soak
from tests.cli.running import Shell, a_shell, start_daemon, type_in_terminal
from tests.daemon.daemons import Daemon, eventually
from tests.stories.kill_points import LEAST_KILLS, TracedWrites, choose_steps, is_dead, replace_missed_step

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DAY = 86_400
ARCHIVE = ("archive", "create", "--before", "3 days ago")


class Seeded(NamedTuple):
    """A home with months of history; its daemon is stopped."""

    shell: Shell
    flight: str
    message: str
    log: list[dict[str, Any]]


def move(clock: Path, days: int) -> None:
    fresh = clock.with_suffix(".new")
    fresh.write_text(str(days * DAY))
    fresh.rename(clock)


def read_log(shell: Shell) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = "0"
    while True:
        page = shell.data("log", "--after", after, "--limit", "200")
        found += page["items"]
        if page["next"] is None:
            return found
        after = page["next"]


@pytest.fixture
def seeded() -> Generator[Seeded]:
    with a_shell() as shell:
        clock = shell.folder / "clock"
        move(clock, -100)
        environ = {**shell.environ, "SCOUT_TEST_CLOCK_FILE": str(clock)}
        start(str(shell.home), environ=environ, timeout=60)
        shell.say("agent", "register", "parrot", "--harness", "echo")
        shell.say("agent", "register", "by-hand")
        made = shell.data("ask", "@parrot", "the password is swordfish")
        shell.say("work", "create", "Write the page")
        move(clock, -60)
        shell.say("ask", "@parrot", "how is it going?")
        move(clock, -10)
        shell.say("ask", "@parrot", "and now?")
        shell.say("question", "create", "@by-hand", "Which port?")
        log = read_log(shell)
        posted = next(one for one in log if one["type"] == "collab.message.posted")
        # The search index and the history follow the log within a second.
        eventually(lambda: shell.data("search", "swordfish")["items"])
        eventually(lambda: "history" not in shell.data("status"))
        shell.say("down")
        yield Seeded(shell, str(made["flightId"]), str(posted["payload"]["messageId"]), log)


@pytest.mark.rows("R0-92", "R6-8", "R6-9")
def test_a_person_archives_and_purges(seeded: Seeded, tmp_path: Path) -> None:
    shell, flight = seeded.shell, seeded.flight
    start_daemon(shell)
    for words in ((), ("--everything", "--before", "365 days ago")):
        assert "try: scout purge --everything --dry-run" in shell.type("purge", *words).stderr
    assert shell.say("purge", "--everything", "--dry-run") == "There is nothing to purge.\n"
    before = {words: shell.data(*words) for words in look_at(seeded)}
    eventually(lambda: "would archive" in shell.say(*ARCHIVE, "--dry-run"))
    last = eventually(lambda: archive_all(shell, seeded))
    assert "Nothing is archived" not in shell.say("archive")
    assert "clean" in (told := shell.say("verify"))
    assert f"after the snapshot at event {last}" in told
    assert read_log(shell)[: len(seeded.log)] == seeded.log
    assert {words: shell.data(*words) for words in look_at(seeded)} == before
    assert "Which port?" in shell.say("question", "list")
    assert "Write the page" in shell.say("work", "list")

    copy = tmp_path / "copy.db"
    shell.say("backup", str(copy))
    daemon = Daemon(shell.home, start(str(shell.home), environ=shell.environ, timeout=60)[0])
    stream = daemon.call("GET", "/v1/log?after=2&limit=3").json
    assert [one["seq"] for one in stream["items"]] == [3, 4, 5]

    answer = shell.data("flight", "get", flight)["outputMessageId"]
    for message in (seeded.message, answer):
        shell.say("redact", message)
    assert shell.data("search", "swordfish")["items"] == []
    assert "swordfish" not in json.dumps(read_log(shell))
    assert "clean" in shell.say("verify")

    shell.say("down")
    restored = shell.say("restore", str(copy))
    assert "redacted since: 2" in restored
    assert "clean" in shell.say("verify")
    start_daemon(shell)
    assert "swordfish" not in json.dumps(read_log(shell))
    assert shell.data("why", flight)["steps"]

    check_purge(shell, seeded, last)


def archive_all(shell: Shell, seeded: Seeded) -> int:
    """Archive until all of the seeded log is in files: the indexes may have to follow first."""
    shell.say(*ARCHIVE)
    last = max((one["last"] for one in shell.data("archive", "list")["items"]), default=0)
    return last if last == seeded.log[-1]["seq"] else 0


def look_at(seeded: Seeded) -> list[tuple[str, ...]]:
    """Commands about old things; their answers must not change."""
    return [
        ("flight", "get", seeded.flight),
        ("flight", "get", seeded.flight, "--at", "20"),
        ("why", seeded.flight),
        ("why", seeded.message),
        ("why", str(seeded.log[5]["id"])),
        ("message", "show", seeded.message),
        ("search", "swordfish"),
        ("feed", "@parrot", "--limit", "10"),
        ("log", "--before", "30", "--limit", "20"),
    ]


def check_purge(shell: Shell, seeded: Seeded, last: int) -> None:
    """Nothing goes without a yes; what went is refused with when, by whom and what is left."""
    script = shell.type("purge", "--everything")
    assert script.returncode == 2
    assert "Nothing was deleted" in script.stderr
    assert "try: scout purge --everything --yes" in script.stderr
    code, shown = type_in_terminal(shell, "purge", "--everything", until="[y/N]")  # then Ctrl-C
    assert code != 0
    assert "Delete them for good?" in shown
    assert shell.data("why", seeded.flight)["steps"]
    assert f"The first event that is left is {last + 1}" in shell.say("purge", "--everything", "--yes")
    for words in (("why", seeded.flight), ("log", "--after", "3"), ("who", "--at", "5")):
        refused = shell.type(*words)
        assert refused.returncode == 3, refused
        assert re.search(
            r"history_purged: .* was purged on 20\S+ by /\S+/direct; the first event", refused.stderr
        )
        assert f"is {last + 1}" in refused.stderr
    streamed = shell.type("watch", "--after", "3")
    assert "history_purged" in streamed.stderr
    assert shell.data("flight", "get", seeded.flight)["state"] == "completed"
    assert shell.data("log")["items"][0]["seq"] == last + 1
    assert list((shell.home / "scout.db.archive").glob("events-*")) == []
    assert "clean" in shell.say("verify")


# -- kill -9 -------------------------------------------------------------------------------------------


@pytest.mark.rows("R6-10")
def test_a_kill_at_some_writes_loses_nothing(seeded: Seeded) -> None:
    kill_before_writes(seeded, ARCHIVE)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_kill_at_any_write_loses_nothing(seeded: Seeded, soaked: soak.Soaked) -> None:
    soaked(kills=kill_before_writes(seeded, ARCHIVE))


@pytest.mark.rows("R6-10")
def test_a_kill_in_a_redaction_leaves_no_copy(seeded: Seeded) -> None:
    shell = seeded.shell
    start_daemon(shell)
    eventually(lambda: archive_all(shell, seeded))
    shell.say("down")
    kill_before_writes(seeded, ("redact", seeded.message))


def kill_before_writes(seeded: Seeded, words: tuple[str, ...]) -> int:
    """Kill the daemon before writes of a command, each time in a new copy of the home; how often it was."""
    count = count_writes(seeded, words)
    assert count > 5
    kills, steps = 0, choose_steps(count, 4, all_of_them=soak.is_soak())
    for number, step in enumerate(steps):
        with copied(seeded.shell) as shell:
            pid = start_indexed(shell, seeded, words)
            writes = trace_of(shell)
            writes.begin(pid, kill_at=step)
            typed = begin(shell, words)
            eventually(lambda: is_dead(pid) or typed.poll() is not None, 120)  # noqa: B023 (used at once)
            writes.end()
            died = is_dead(pid)
            typed.wait(60)
            if died:
                start_daemon(shell)
            shell.say(*words)
            check_whole(shell, seeded, words)
        if died:
            kills += 1
        else:
            replace_missed_step(steps, number, kills)
    assert kills >= LEAST_KILLS
    return kills


def count_writes(seeded: Seeded, words: tuple[str, ...]) -> int:
    with copied(seeded.shell) as shell:
        writes = trace_of(shell)
        writes.begin(start_indexed(shell, seeded, words))
        shell.say(*words)
        return writes.end()


def start_indexed(shell: Shell, seeded: Seeded, words: tuple[str, ...]) -> int:
    """Start a daemon; if it is to archive, wait until its indexes have followed and all of the log can go."""
    pid, last = start_daemon(shell).pid, seeded.log[-1]["seq"]
    if words == ARCHIVE:
        eventually(lambda: shell.data(*ARCHIVE, "--dry-run")["last"] == last)
    return pid


def copied(source: Shell) -> Any:
    """A copy of a home whose daemon is stopped."""
    import contextlib

    @contextlib.contextmanager
    def make() -> Generator[Shell]:
        with a_shell() as shell:
            stop(str(source.home), timeout=60)
            shutil.rmtree(shell.home)
            shutil.copytree(source.home, shell.home)
            yield shell

    return make()


def trace_of(shell: Shell) -> TracedWrites:
    folder = shell.home / "scout.db.archive"
    folder.mkdir(mode=0o700, exist_ok=True)
    return TracedWrites(shell.folder / "strace", (shell.home / "scout.db-wal", folder))


def begin(shell: Shell, words: tuple[str, ...]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "scout", *words],
        cwd=shell.folder,
        env=shell.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def check_whole(shell: Shell, seeded: Seeded, words: tuple[str, ...]) -> None:
    """Every event is there once, the store is clean, and only recorded files are left."""
    log = read_log(shell)[: len(seeded.log)]
    if words == ARCHIVE:
        assert log == seeded.log
    assert [one["seq"] for one in log] == [one["seq"] for one in seeded.log]
    assert "clean" in shell.say("verify")
    kept = {one["file"] for one in shell.data("archive", "list")["items"] if one["state"] == "kept"}
    files = {file.name for file in (shell.home / "scout.db.archive").iterdir()}
    assert kept == files
    if words != ARCHIVE:  # the answer repeats what was asked
        told = shell.data("why", seeded.flight)
        assert told["steps"]
        assert shell.data("message", "show", seeded.message)["redactedAt"]
