"""Who edits what: agents reserve files, see each other's, and are told when they changed the same one."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.hosting import Hosted
from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon, eventually
from tests.stories.mcp_client import over_mcp

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as made:
        start_daemon(made)
        yield made


@pytest.fixture(scope="module")
def desk() -> Generator[tuple[Shell, Path]]:
    """A daemon and a repository for the tests that only meet refusals."""
    with a_shell() as made:
        start_daemon(made)
        yield made, a_repository(made, "desk")


def git(folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    own = ["git", "-c", "user.name=p", "-c", "user.email=p@localhost", *words]
    env = {**os.environ, **environ}
    return subprocess.run(own, cwd=folder, env=env, capture_output=True, text=True, check=False)


def a_repository(shell: Shell, name: str) -> Path:
    folder = shell.project(name)
    assert git(folder, "init", "-q", "-b", "main").returncode == 0
    (folder / "shared.txt").write_text("0\n")
    git(folder, "add", "-A")
    assert git(folder, "commit", "-qm", "begin").returncode == 0
    return folder


def an_agent(shell: Shell, name: str, project: Path, command: str = "cat") -> None:
    shell.say("agent", "register", name, "--project", str(project), "--command", command)


def token_of(shell: Shell, name: str) -> str:
    return str(shell.data("token", "create", "--agent", f"@{name}")["secret"])


def tool(shell: Shell, token: str, name: str, **arguments: Any) -> Any:
    return over_mcp(shell, token, lambda client: client.call_tool(name, arguments))


# -- reserving -------------------------------------------------------------------------------------------


@pytest.mark.rows("R10.w-1", "R10.w-2", "R10.w-6", "R10.w-7")
def test_files_are_reserved_and_seen_on_every_surface(shell: Shell) -> None:
    desk = a_repository(shell, "desk")
    an_agent(shell, "arc", desk)
    an_agent(shell, "bow", desk)
    arc, bow = token_of(shell, "arc"), token_of(shell, "bow")
    daemon = Daemon(shell.home, start_daemon(shell))

    # The command line says what was done first, and how to undo it.
    done = shell.type(
        "reserve", "add", "src/**", "--for", "10m", "--why", "moving it", "--as", "@arc", cwd=desk
    )
    assert done.stdout.startswith("reserved src/** until "), done
    ident = done.stderr.split()[-1]
    assert "scout reserve release" in done.stderr

    # HTTP and MCP show the same.
    wish = {"paths": ["src/a.py", "b.py"], "folder": str(desk)}
    answer = daemon.call("POST", "/v1/reservations/check", wish, token=bow).json
    assert [one["allowed"] for one in answer["paths"]] == [False, True]
    assert "src/a.py is reserved by @arc until" in answer["message"]
    assert "moving it" in answer["message"]
    assert "scout ask @arc" in answer["message"]
    assert daemon.call("POST", "/v1/reservations/check", wish, token=arc).json["allowed"]
    listed = tool(shell, bow, "files_status").structured_content["items"]
    assert [(one["address"], one["globs"], one["exclusive"]) for one in listed] == [
        ("@arc", ["src/**"], True)
    ]
    made = tool(shell, bow, "files_reserve", globs=["src/a.py"], exclusive=False, minutes=5)
    assert made.structured_content["root"] == str(desk)
    assert "@arc has reserved src/a.py too" in made.content[0].text
    assert tool(shell, bow, "files_release").structured_content["state"] == "released"

    # So does the agent's page, the list within 80 columns, and the log as sentences.
    assert f"reserved {ident}  src/**" in shell.say("show", "@arc")
    table = shell.say("reserve", COLUMNS="80")
    assert all(len(line) <= 80 for line in table.splitlines())
    assert "src/**: moving it" in table
    assert "@arc reserved src/**" in shell.say("log")
    assert shell.data("reserve", "list", "--agent", "@bow")["items"] == []

    assert "moving it" in shell.say("reserve", "show", ident)
    assert daemon.call("GET", f"/v1/reservations/{ident}").json["address"] == "@arc"

    # Another agent's stays; the refusal says whom to ask. The holder releases its only one without an id.
    refused = shell.type("reserve", "release", ident, "--as", "@bow")
    assert "not_owner" in refused.stderr
    assert "try: scout ask" in refused.stderr
    assert "@arc" in refused.stderr
    assert "released" in shell.say("reserve", "release", "--as", "@arc")
    assert "released" in shell.say("reserve", "release", ident, "--as", "@arc")  # again: nothing changes
    assert "No files are reserved" in shell.say("reserve")
    assert [one["state"] for one in shell.data("reserve", "list", "--all")["items"]] == ["released"] * 2
    none = shell.type("reserve", "release", "--as", "@arc")
    assert "there is no active reservation" in none.stderr
    assert "clean" in shell.say("verify")


@pytest.mark.rows("R10.w-3")
def test_a_reservation_is_for_one_work_tree_or_for_all_of_a_repository(shell: Shell) -> None:
    desk = a_repository(shell, "desk")
    linked = desk / ".scout" / "worktrees" / "side"
    assert git(desk, "worktree", "add", "-q", "-b", "side", str(linked)).returncode == 0
    an_agent(shell, "arc", desk)
    an_agent(shell, "bow", desk)

    def may(path: Path) -> bool:
        return shell.type("reserve", "check", str(path), "--as", "@bow", cwd=desk).returncode == 0

    held = shell.data("reserve", "add", "*.txt", "--as", "@arc", cwd=desk)
    assert held["scope"] == "work_tree"
    assert (may(desk / "shared.txt"), may(desk / "new.txt"), may(linked / "shared.txt")) == (
        False,
        False,
        True,
    )
    shell.say("reserve", "release", held["id"])
    whole = shell.data("reserve", "add", "shared.txt", "--repo", "--as", "@arc", cwd=linked)
    assert (whole["scope"], whole["root"]) == ("repository", str(desk / ".git"))
    assert (may(desk / "shared.txt"), may(linked / "shared.txt"), may(linked / "x.txt")) == (
        False,
        False,
        True,
    )
    shell.say("reserve", "release", whole["id"])

    # A link leads to the file that is edited, and a folder below is what globs are relative to.
    (desk / "sub").mkdir()
    (desk / "sub" / "link.txt").symlink_to("../shared.txt")
    below = shell.data("reserve", "add", "link.txt", "../shared.txt", "--as", "@arc", cwd=desk / "sub")
    assert below["globs"] == ["/sub/**/link.txt", "/shared.txt"]
    assert (may(desk / "sub" / "link.txt"), may(desk / "link.txt"), may(desk / "shared.txt")) == (
        False,
        True,
        False,
    )

    # Without git there is the project's folder.
    plain = shell.project("plain")
    (plain / "in").mkdir()
    folder = shell.data("reserve", "add", "/in/**", "--as", "@arc", cwd=plain)
    assert (folder["scope"], folder["root"]) == ("folder", str(plain))
    assert (may(plain / "in" / "x"), may(plain / "x")) == (False, True)
    alone = shell.type("reserve", "add", "x", "--repo", cwd=plain)
    assert "is not in a git repository" in alone.stderr
    assert "--repo" not in alone.stderr.partition("try:")[2]


@pytest.mark.rows("R10.w-5")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["../outside.txt"], "outside of the work tree"),
        ([""], "a glob is empty"),
        (["#note"], "is a comment"),
        (["!a"], "only takes files out"),
        (["/"], "matches nothing"),
        (["a\x1b[31m"], "control characters"),
        (["x", "--for", "9d"], "the maximum is 86400"),
        (["x", "--for", "soon"], "expected a duration"),
        (["x", "--exclusive", "--shared"], "not both"),
    ],
)
def test_what_cannot_be_reserved_is_said_with_what_can(
    desk: tuple[Shell, Path], words: list[str], says: str
) -> None:
    shell, folder = desk
    refused = shell.type("reserve", "add", *words, cwd=folder)
    assert refused.returncode == 2, refused
    assert says in refused.stderr
    assert "try: scout reserve add" in refused.stderr
    assert "\x1b" not in refused.stderr


@pytest.mark.rows("R10.w-5")
def test_there_is_a_limit_and_it_is_named(shell: Shell) -> None:
    desk = a_repository(shell, "desk")
    shell.say("config", "set", "limits.reservations", "2")
    for name in ("a", "b"):
        shell.say("reserve", "add", name, cwd=desk)
    refused = shell.type("reserve", "add", "c", cwd=desk)
    assert "rate_limited: too many reservations of" in refused.stderr
    assert "try: scout config set limits.reservations 4" in refused.stderr
    ambiguous = shell.type("reserve", "release")
    assert ambiguous.stderr.count("try: scout reserve release rsv_") == 2
    assert "released" in shell.say("reserve", "release", "last")


# -- the end ---------------------------------------------------------------------------------------------


@pytest.mark.rows("R10.w-4")
def test_a_reservation_ends_with_its_time_its_session_its_flight_and_its_agent() -> None:
    with a_shell() as made:
        start_daemon(made)
        shell = Hosted(made.folder)
        shell.make_token()
        desk = a_repository(shell, "talkie")

        def ended() -> dict[str, str]:
            items = shell.data("reserve", "list", "--all")["items"]
            return {
                one["why"]: f"{one['state']}: {one['reason']}" for one in items if one["state"] != "active"
            }

        # The session of a host: reserved inside of it, released when it is closed.
        shell.told("session_start", "SessionStart")
        inside = {"SCOUT_TOKEN": shell.kept()["token"], "CLAUDECODE": "1"}
        bound = shell.data("reserve", "add", "a", "--why", "session", cwd=desk, **inside)
        assert bound["sessionId"] == shell.kept()["sessionId"]
        shell.hook("session_end", "SessionEnd")
        assert ended()["session"].startswith("released: its session ended")

        # A flight of a program that runs once: released when the flight ends.
        line = f"{shlex.quote(sys.executable)} -m scout reserve add b --why flight"
        an_agent(shell, "once", desk, line)
        shell.say("ask", "@once", "go")
        assert ended()["flight"].startswith("released: flight flt_")

        # An agent that connects by itself and has taken an ask.
        token = shell.data("agent", "register", "own")["token"]
        flight = shell.data("ask", "@own", "go", "--if-unreachable", "queue")["flightId"]
        shell.say("inbox", "claim", SCOUT_TOKEN=token)
        shell.say("flight", "start", flight, SCOUT_TOKEN=token)
        mine = shell.data("reserve", "add", "c", "--why", "taken", cwd=desk, SCOUT_TOKEN=token)
        assert (mine["sessionId"], mine["flightId"]) == (None, flight)
        shell.say("reply", "--to", flight, "done", SCOUT_TOKEN=token)
        assert ended()["taken"] == f"released: flight {flight} is completed"

        # Its time, and its agent.
        shell.say("reserve", "add", "d", "--for", "1s", "--why", "time", cwd=desk)
        eventually(lambda: ended().get("time") == "expired: it expired")
        shell.say("reserve", "add", "e", "--why", "agent", "--as", "@own", cwd=desk)
        shell.say("agent", "retire", "@own")
        assert ended()["agent"] == "released: its agent is retired"
        assert "clean" in shell.say("verify")


@pytest.mark.rows("R10.w-9")
def test_the_hook_fails_open_in_time_when_the_daemon_is_away_or_silent() -> None:
    with a_shell() as made:
        running = start_daemon(made)
        shell = Hosted(made.folder)
        shell.make_token()
        desk = a_repository(shell, "talkie")
        an_agent(shell, "arc", shell.project("arc"))
        shell.told("session_start", "SessionStart")
        shell.say("reserve", "add", "*.txt", "--as", "@arc", cwd=desk)
        edit = {"tool_name": "Edit", "tool_input": {"file_path": str(desk / "shared.txt")}}
        patient = {"SCOUT_EDIT_WAIT": "20"}  # a busy machine is no reason to allow an edit
        denied = shell.told("pre-edit", "PreToolUse", environ=patient, **edit)["hookSpecificOutput"]
        assert denied["permissionDecision"] == "deny"
        assert "shared.txt is reserved by @arc" in denied["permissionDecisionReason"]
        free: list[dict[str, Any]] = [
            {"tool_input": {"file_path": str(desk / "x.md")}},
            {"tool_input": {}},
            {},
        ]
        for other in free:
            assert shell.told("pre-edit", "PreToolUse", environ=patient, **other) is None

        shell.say("down")
        away = min(timed(lambda: shell.told("pre-edit", "PreToolUse", **edit)) for _ in range(5))
        running = start_daemon(made)
        os.kill(running.pid, signal.SIGSTOP)
        try:
            # The rest is the start of Python, which depends on the machine: bench/typed.py measures the whole.
            # On a busy machine one hook may take longer; a hook that waits longer is never in time.
            eventually(lambda: timed(lambda: shell.told("pre-edit", "PreToolUse", **edit)) - away < 0.15, 90)
        finally:
            os.kill(running.pid, signal.SIGCONT)


def timed(act: Callable[[], Any]) -> float:
    start = time.monotonic()
    assert not getattr(act(), "stdout", None)
    return time.monotonic() - start


# -- the same file ---------------------------------------------------------------------------------------


def a_writer(shell: Shell, name: str, folder: Path, file: str) -> None:
    """An agent whose program writes a file once `go` is there, and ends once `end` is there."""
    wait = "while [ ! -e {0}/{1} ]; do sleep 0.02; done"
    at = shell.folder
    steps = [wait.format(at, "go"), f"echo {name} >> {file}", wait.format(at, "end"), f"echo {name} is done"]
    an_agent(shell, name, folder, f"sh -c '{'; '.join(steps)}'")


def told(shell: Shell, name: str) -> list[str]:
    items = shell.data("inbox", "--all", "--as", f"@{name}")["items"]
    bodies = [str(one["message"]["body"]) for one in items if one.get("message")]
    return [body for body in bodies if "while you did" in body]


def ask_both(shell: Shell, *names: str) -> list[str]:
    flights = [str(shell.data("ask", f"@{name}", "go", "--no-wait")["flightId"]) for name in names]
    eventually(lambda: all(shell.data("flight", "get", one)["state"] == "running" for one in flights))
    return flights


def wait_for(shell: Shell, flights: list[str]) -> None:
    eventually(lambda: all(shell.data("flight", "get", one)["state"] == "completed" for one in flights))


@pytest.mark.rows("R10.w-10")
def test_two_flights_that_changed_the_same_file_are_told_once_each(shell: Shell) -> None:
    desk = a_repository(shell, "desk")
    a_writer(shell, "arc", desk, "shared.txt")
    a_writer(shell, "bow", desk, "shared.txt")
    flights = ask_both(shell, "arc", "bow")
    (shell.folder / "go").touch()
    eventually(lambda: (desk / "shared.txt").read_text().count("\n") == 3)
    (shell.folder / "end").touch()
    wait_for(shell, flights)
    eventually(lambda: told(shell, "arc") and told(shell, "bow"))
    for name, other, flight in (("arc", "@bow", flights[1]), ("bow", "@arc", flights[0])):
        (text,) = told(shell, name)
        assert text.startswith(f"{other} ({flight}) worked in {desk} while you did")
        assert "- shared.txt" in text

    # A restart compares again, and says nothing twice.
    shell.say("restart")
    assert "clean" in shell.say("verify")
    assert [len(told(shell, name)) for name in ("arc", "bow")] == [1, 1]

    # Flights one after the other have nothing to tell.
    for name in ("arc", "bow"):
        shell.say("ask", f"@{name}", "again")
    shell.say("restart")
    assert [len(told(shell, name)) for name in ("arc", "bow")] == [1, 1]


@pytest.mark.rows("R10.w-10")
def test_a_killed_daemon_tells_it_after_its_start_and_other_trees_are_left_alone(shell: Shell) -> None:
    desk = a_repository(shell, "desk")
    linked = shell.folder / "work" / "linked"
    assert git(desk, "worktree", "add", "-q", "-b", "side", str(linked)).returncode == 0
    shell.say("config", "set", "limits.runningTurns", "4")
    shell.say("restart")
    a_writer(shell, "arc", desk, "shared.txt")
    a_writer(shell, "bow", desk, "shared.txt")
    a_writer(shell, "cat", linked, "shared.txt")
    flights = ask_both(shell, "arc", "bow", "cat")
    os.kill(int(shell.data("status")["pid"]), signal.SIGKILL)
    (shell.folder / "go").touch()
    eventually(lambda: (desk / "shared.txt").read_text().count("\n") == 3)
    shell.say("up")
    (shell.folder / "end").touch()
    wait_for(shell, flights)
    eventually(lambda: told(shell, "arc") and told(shell, "bow"))
    os.kill(int(shell.data("status")["pid"]), signal.SIGKILL)
    shell.say("up")
    assert [len(told(shell, name)) for name in ("arc", "bow", "cat")] == [1, 1, 0]
    assert (linked / "shared.txt").read_text().endswith("cat\n")


# -- the guard -------------------------------------------------------------------------------------------


@pytest.mark.rows("R10.w-11")
def test_the_guard_refuses_a_commit_and_leaves_the_repository_as_it_was(shell: Shell) -> None:
    desk = a_repository(shell, "desk")
    linked = shell.folder / "work" / "linked"
    assert git(desk, "worktree", "add", "-q", "-b", "side", str(linked)).returncode == 0
    an_agent(shell, "arc", desk)
    hook = desk / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho own hook ran >&2\n")
    hook.chmod(0o755)
    before = (hook.read_bytes(), hook.stat().st_mode, hook.stat().st_mtime_ns)

    said = shell.type("tree", "guard", "install", cwd=linked)  # of the whole repository
    assert said.stdout == f"installed {hook}\n", said
    assert "is kept and runs after it" in said.stderr
    assert "installed already" in shell.say("tree", "guard", "install", cwd=desk)

    shell.say("reserve", "add", "shared.txt", "--as", "@arc", "--why", "mine", cwd=desk)

    def commit(folder: Path) -> subprocess.CompletedProcess[str]:
        return git(folder, "commit", "-qam", "change", **shell.environ)

    (desk / "shared.txt").write_text("1\n")
    refused = commit(desk)
    assert refused.returncode != 0
    assert "shared.txt is reserved by @arc" in refused.stdout + refused.stderr
    assert "own hook ran" not in refused.stderr
    (linked / "shared.txt").write_text("1\n")  # another work tree
    passed = commit(linked)
    assert (passed.returncode, passed.stderr) == (0, "own hook ran\n")

    # Without a daemon the commit passes, with one line that says so.
    shell.say("down")
    open_ = commit(desk)
    assert open_.returncode == 0, open_
    assert open_.stderr.count("scout: reservations were not checked") == 1

    assert shell.say("tree", "guard", "remove", cwd=desk) == f"removed {hook}\n"
    assert (hook.read_bytes(), hook.stat().st_mode, hook.stat().st_mtime_ns) == before
    assert sorted(
        path.name for path in hook.parent.iterdir() if "pre-commit" in path.name and path.suffix == ""
    ) == ["pre-commit"]
    assert "removed already" in shell.say("tree", "guard", "remove", cwd=desk)


@pytest.mark.rows("R10.w-11")
def test_the_guard_honours_hooks_path_and_names_what_is_in_its_way(shell: Shell) -> None:
    desk = a_repository(shell, "desk")
    git(desk, "config", "core.hooksPath", "tools/hooks")
    told_ = shell.data("tree", "guard", "install", cwd=desk)
    assert (told_["hook"], told_["everywhere"]) == (str(desk / "tools" / "hooks" / "pre-commit"), True)
    kept = desk / "tools" / "hooks" / "pre-commit.before-scout"
    hook = Path(told_["hook"])
    kept.write_text("old")
    hook.write_text("somebody else's")
    for word in ("install", "remove"):
        refused = shell.type("tree", "guard", word, cwd=desk)
        assert refused.returncode == 2
        assert str(kept) in refused.stderr
    assert (hook.read_text(), kept.read_text()) == ("somebody else's", "old")
    git(desk, "config", "core.hooksPath", os.devnull)
    assert "git config --unset core.hooksPath" in shell.type("tree", "guard", "install", cwd=desk).stderr
    nowhere = shell.type("tree", "guard", "install", cwd=shell.project("plain"))
    assert "not a git repository" in nowhere.stderr


@pytest.mark.rows("R10.w-12")
def test_a_hostile_repository_runs_nothing_and_prints_nothing_raw(shell: Shell) -> None:
    desk = a_repository(shell, "desk")
    an_agent(shell, "arc", desk)
    trap = shell.folder / "trap"
    script = shell.folder / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    script.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "filter.x.clean", "diff.x.textconv", "core.pager"):
        git(desk, "config", key, str(script))
    (desk / ".gitattributes").write_text("* filter=x diff=x\n")
    name = "evil\x1b[31m\u202ename.txt"
    (desk / name).write_text("x")
    assert subprocess.run(
        ["git", "-c", "core.fsmonitor=false", "-c", "filter.x.clean=cat", "add", "-A"], cwd=desk, check=True
    )
    trap.unlink(missing_ok=True)
    shell.say("reserve", "add", "*.txt", "--as", "@arc", cwd=desk)
    shown = shell.type("reserve", "check", "--staged", cwd=desk)
    assert shown.returncode == 7, shown
    assert "\x1b" not in shown.stdout
    assert "\u202e" not in shown.stdout
    assert "is reserved by @arc" in shown.stdout
    flights = ask_both_quick(shell, desk)
    wait_for(shell, flights)
    assert not trap.exists()
    assert json.loads(shell.say("reserve", "check", "--json", name, "--as", "@arc", cwd=desk))["allowed"]


def ask_both_quick(shell: Shell, folder: Path) -> list[str]:
    """Two flights whose snapshots are compared."""
    a_writer(shell, "one", folder, "shared.txt")
    a_writer(shell, "two", folder, "shared.txt")
    flights = ask_both(shell, "one", "two")
    (shell.folder / "go").touch()
    (shell.folder / "end").touch()
    return flights
