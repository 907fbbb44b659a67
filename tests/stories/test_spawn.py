"""Three agents on three branches: what a person types, what a program posts, and what each of them sees."""

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.running import Shell, a_shell, start_daemon, type_in_terminal
from tests.daemon.daemons import Daemon, eventually
from tests.stories.spawning import branches, project, trees_of
from tests.tree.repositories import commit, git, head

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def me() -> Generator[Shell]:
    with a_shell(ends_runs=True) as shell:
        start_daemon(shell)
        yield shell


def daemon_of(me: Shell) -> Daemon:
    return Daemon(me.home, start_daemon(me))


def addresses(told: Any) -> list[str]:
    return [one["address"] for one in told["agents"]]


# -- what a person types -------------------------------------------------------------------------------


@pytest.mark.rows("R10.1-1", "R10.1-2", "R10.1-3", "R1.1-40", "R1.1-41", "R1.5-1", "R1.5-17")
def test_three_agents_on_three_branches_with_one_command(me: Shell) -> None:
    arc = project(me)
    done = me.type("spawn", "api", "ui", "docs", "--task", "Say hello.", cwd=arc)
    assert done.returncode == 0, done.stderr
    for slug in ("api", "ui", "docs"):
        assert f"@arc.{slug}" in done.stdout
        assert f"@arc.{slug}: completed" in done.stdout
        tree = arc / ".scout" / "worktrees" / slug
        assert git(tree, "branch", "--show-current") == f"main.{slug}"
    assert done.stdout.count("Say hello.") == 3
    assert done.stderr.count("completed after") == 3  # plain lines, because this is no terminal
    assert git(arc, "status", "--porcelain") == ""
    shown = me.data("show", "@arc.api")
    assert (shown["birthBranch"], shown["path"]) == ("main.api", "/me/agent/arc/sub/0")
    assert me.data("resolve", "@arc.api")["path"] == shown["path"]
    root = me.data("show", "@arc")
    assert (root["toolRole"], root["birthBranch"], shown["parentId"]) == ("tl", "main", root["id"])


@pytest.mark.rows("R10.1-4", "R1.1-17", "R1.5-2", "R1.5-3")
def test_the_same_slug_again_is_the_same_agent_and_a_retired_one_asks_for_revive(me: Shell) -> None:
    arc = project(me)
    first = me.data("spawn", "api", cwd=arc)["agents"][0]
    again = me.data("spawn", "api", cwd=arc)["agents"][0]
    assert (first["created"], again["created"]) == (True, False)
    assert first["agent"]["id"] == again["agent"]["id"]
    me.say("agent", "retire", "@arc.api")
    refused = me.type("spawn", "api", cwd=arc)
    assert "retired_target" in refused.stderr
    assert "try: scout agent revive /me/agent/arc/sub/0" in refused.stderr
    me.say("agent", "revive", "/me/agent/arc/sub/0")
    assert not me.data("spawn", "api", cwd=arc)["agents"][0]["created"]


@pytest.mark.rows(
    "R1.1-42", "R1.1-43", "R1.1-44", "R1.5-18", "R1.5-19", "R1.5-26", "R1.5-27", "R1.5-30", "R1.5-31"
)
def test_the_names_and_the_folders_of_spawned_agents(me: Shell) -> None:
    arc = project(me)
    me.say("spawn", "api", "ui", cwd=arc)
    one = me.data("spawn", "tests", "--from", "@arc.api", cwd=arc)["agents"][0]
    other = me.data("spawn", "tests", "--from", "@arc.ui", cwd=arc)["agents"][0]
    worker = me.data("spawn", "lint", "--role", "worker", cwd=arc)["agents"][0]
    below = me.data("spawn", "lint", "--role", "worker", "--from", "@arc.api", cwd=arc)["agents"][0]
    assert (one["path"], other["path"]) == ("/me/agent/arc/sub/0/sub/0", "/me/agent/arc/sub/1/sub/0")
    assert (worker["path"], worker["address"]) == ("/me/agent/arc/sub/2", "@arc.w-2")
    assert (below["address"], worker["agent"]["birthBranch"]) == ("@arc.api-1", None)
    hashed = hashlib.sha256(b"main.ui.tests").hexdigest()[:6]
    assert other["workingDir"] == str(arc / ".scout" / "worktrees" / f"tests-{hashed}")
    same = me.data("spawn", "api-tests", cwd=arc)["agents"][0]
    assert same["address"] == f"@arc.api-tests-{hashlib.sha256(b'main.api-tests').hexdigest()[:6]}"
    assert (arc / ".scout" / "agents" / "lint" / "identity.json").exists()
    facts = json.loads((Path(one["workingDir"]) / ".scout" / "identity.json").read_text())
    assert {"id", "path", "birthBranch", "parent", "role", "projectRoot", "createdAt", "mac"} <= {*facts}
    ignored = {"worktrees/", "agents/", "identity.json", ".gitignore"}
    assert ignored <= {*(arc / ".scout" / ".gitignore").read_text().split()}
    texts = [file.read_text("utf-8", "replace") for file in arc.rglob("*") if file.is_file()]
    assert not [text for text in texts if "sct_" in text]


@pytest.mark.rows(
    "R1.5-5", "R1.5-6", "R1.5-7", "R1.5-8", "R1.5-9", "R1.5-10", "R1.2-55", "R1.2-57", "R10.3-1"
)
def test_a_slug_is_refused_with_the_command_that_works(me: Shell) -> None:
    arc = project(me)
    for slug, other in {
        "Super Auth": "super-auth",
        "a.b": "a-b",
        "x" * 51: "x" * 50,
        "a..b~^:": "a-b",
        "root": "my-root",
    }.items():
        refused = me.type("spawn", slug, cwd=arc)
        assert refused.returncode != 0
        assert f"try: scout spawn {other}" in refused.stderr, refused.stderr
    assert branches(arc) == ["main"]
    assert me.data("who")["items"] == []


def test_json_has_the_agents_and_their_flights(me: Shell) -> None:
    arc = project(me)
    told = me.data("spawn", "fix", "--count", "2", "--task", "-", cwd=arc, stdin="Do it.")
    assert addresses(told) == ["@arc.fix-1", "@arc.fix-2"]
    assert [one["output"] for one in told["flights"]] == ["Do it.", "Do it."]
    left = me.data("spawn", "more", "--task", "Later.", "--no-wait", cwd=arc)
    assert me.say("wait", left["agents"][0]["flightId"]).strip() == "Later."


SLOW = ["sh", "-c", "cat; sleep 600"]


@pytest.mark.rows("R10.1-2")
def test_a_terminal_shows_one_picture_and_ctrl_c_leaves_the_work_running(me: Shell) -> None:
    arc = project(me)
    wish = {"definitionId": "arc", "projectRoot": str(arc), "command": SLOW}
    assert daemon_of(me).call("POST", "/v1/agents", wish).status == 201
    words = ("spawn", "api", "ui", "--project", str(arc), "--task", "Take your time.")
    code, shown = type_in_terminal(me, *words, until="\x1b[2A", COLUMNS="100")
    assert code == 130, shown
    assert "running" in shown
    assert "@arc.api" in shown
    assert "@arc.ui" in shown
    assert "the work continues; to wait again:" in shown
    flights = [word for word in shown.split() if word.startswith("flt_")]
    assert len(set(flights)) == 2
    states = {one["state"] for one in me.data("flight", "list", "--open")["items"]}
    assert states <= {"running", "queued"}
    for one in set(flights):
        me.say("flight", "cancel", one)


@pytest.mark.rows("R10.2-2")
def test_a_failure_of_one_is_said_and_the_others_are_there(me: Shell) -> None:
    arc = project(me)
    me.say(
        "project",
        "set",
        "worktree.setup",
        'case "$PWD" in *bad) echo no network; exit 3;; esac; echo ready',
        cwd=arc,
    )
    done = me.type("spawn", "good", "bad", cwd=arc)
    assert done.returncode == 9
    assert "@arc.good" in done.stdout
    assert "bad was not spawned: the setup command" in done.stderr
    assert "| no network" in done.stderr
    assert "| ready" in done.stderr
    assert "try: scout spawn --no-setup bad" in done.stderr
    assert branches(arc) == ["main", "main.good"]
    assert addresses(me.data("spawn", "bad", "--no-setup", cwd=arc)) == ["@arc.bad"]


# -- a work tree that can build ------------------------------------------------------------------------


@pytest.mark.rows("R10.2-1")
def test_the_operator_sets_up_fresh_work_trees_and_the_repository_cannot(me: Shell) -> None:
    arc = project(me)
    (arc / ".env.local").write_text("KEY=1\n")
    commit(arc, ".gitignore", ".env*\nbuilt\n")
    (arc / ".scout" / "project.toml").write_text(
        'name = "arc"\nharness = "echo"\n[worktree]\nsetup = "touch /tmp/never-sct"\ncopy = ["*"]\n'
    )
    git(arc, "commit", "-qam", "wishes of the repository")
    made = me.data("spawn", "one", cwd=arc)["agents"][0]
    assert "setup" not in made or made["setup"] is None
    assert not Path("/tmp/never-sct").exists()
    me.say("project", "set", "worktree.copy", ".env*", cwd=arc)
    shown = me.say("project", "set", "worktree.setup", "cp .env.local built; echo ready", cwd=arc)
    assert "worktree.setup = cp .env.local built; echo ready" in shown
    made = me.data("spawn", "two", cwd=arc)["agents"][0]
    assert (made["copied"], made["setup"]["output"]) == ([".env.local"], "ready\n")
    assert (Path(made["workingDir"]) / "built").read_text() == "KEY=1\n"
    assert git(Path(made["workingDir"]), "status", "--porcelain") == ""
    known = me.data("project")["items"]
    assert [one["root"] for one in known] == [str(arc)]
    config = me.data("config")
    assert config["projects"][str(arc)]["worktree"]["copy"] == [".env*"]
    token = daemon_of(me).make_token("@arc.one")
    refused = me.type("project", "set", "worktree.setup", "true", cwd=arc, SCOUT_TOKEN=token)
    assert "forbidden" in refused.stderr


@pytest.mark.rows("R1.5-25")
def test_a_known_project_survives_the_database(me: Shell) -> None:
    arc = project(me)
    me.say("spawn", "api", cwd=arc)
    me.say("down")
    for file in me.home.glob("scout.db*"):
        file.unlink()
    start_daemon(me)
    assert [one["root"] for one in me.data("project")["items"]] == [str(arc)]


# -- repositories of every kind ------------------------------------------------------------------------


def _shallow(me: Shell) -> Path:
    origin = project(me, "origin")
    commit(origin, "b.txt", "b\n")
    folder = me.folder / "work" / "shallow"
    git(me.folder, "clone", "-q", "--depth", "1", f"file://{origin}", str(folder))
    return folder


def _sparse(me: Shell) -> Path:
    folder = project(me, "sparse")
    commit(folder, "kept/k.txt", "k\n")
    commit(folder, "left/l.txt", "l\n")
    git(folder, "sparse-checkout", "set", "kept")
    return folder


def _with_submodule(me: Shell) -> Path:
    inner, folder = project(me, "inner"), project(me, "outer")
    git(folder, "submodule", "add", "-q", str(inner), "inner")
    git(folder, "commit", "-qm", "a submodule")
    return folder


def _linked(me: Shell) -> Path:
    main = project(me, "main-repo")
    folder = me.folder / "work" / "linked"
    git(main, "worktree", "add", "-q", "-b", "side", str(folder))
    return folder


def _renamed(me: Shell) -> Path:
    folder = project(me, "renamed")
    me.say("spawn", "first", cwd=folder)
    git(folder, "branch", "-m", "main", "trunk")
    return folder


def _spaced(me: Shell) -> Path:
    folder = me.folder / "work" / "ein Verzeichnis – ñ"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("a\n")
    git(folder, "init", "-q", "-b", "feature/x")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


def _detached(me: Shell) -> Path:
    folder = project(me, "detached")
    git(folder, "checkout", "-q", "--detach")
    return folder


@pytest.mark.parametrize(
    ("make", "branch"),
    [
        (_shallow, "main.api"),
        (_sparse, "main.api"),
        (_with_submodule, "main.api"),
        (_linked, "main.api"),
        (_renamed, "main.api"),
        (_spaced, "feature/x.api"),
        (_detached, "main.api"),
    ],
)
@pytest.mark.rows("R10.3-2")
def test_a_repository_of_any_kind(me: Shell, make: Any, branch: str) -> None:
    folder: Path = make(me)
    told = me.data("spawn", "api", "--harness", "echo", "--task", "Hello.", cwd=folder)
    made = told["agents"][0]
    tree = Path(made["workingDir"])
    assert made["birthBranch"] == git(tree, "branch", "--show-current") == branch
    assert made["base"] == head(tree)
    assert told["flights"][0]["state"] == "completed"
    assert git(tree, "status", "--porcelain") == ""
    if make is _sparse:
        assert not (tree / "left").exists()
    if make is _with_submodule:
        assert "git submodule update --init" in json.dumps(told)
    if make is _linked:
        assert tree.parent == me.folder / "work" / "main-repo" / ".scout" / "worktrees"


def test_a_disk_that_cannot_be_written_is_refused_and_nothing_is_made(me: Shell) -> None:
    arc = project(me)
    me.say("spawn", "one", cwd=arc)
    folder = arc / ".scout" / "worktrees"
    subprocess.run(["chattr", "+i", str(folder)], check=False, capture_output=True)
    if os.getuid() != 0:
        folder.chmod(0o500)
    try:
        with contextlib.suppress(OSError):
            (folder / "probe").mkdir()
            (folder / "probe").rmdir()
            pytest.skip("NOT PROVED HERE: no folder can be made unwritable on this file system")
        refused = me.type("spawn", "two", cwd=arc)
        assert "git_failed" in refused.stderr
    finally:
        subprocess.run(["chattr", "-i", str(folder)], check=False, capture_output=True)
        folder.chmod(0o755)
    assert branches(arc) == ["main", "main.one"]
    assert [one["address"] for one in me.data("who")["items"]] == ["@arc.one", "@arc"]
    me.say("spawn", "two", cwd=arc)


# -- hostile repositories ------------------------------------------------------------------------------


@pytest.mark.rows("R10.9-1")
def test_nothing_of_a_hostile_repository_runs_or_is_believed(me: Shell) -> None:
    arc = project(me)
    mark = me.folder / "pwned"
    evil = me.folder / "evil.sh"
    evil.write_text(f'#!/bin/sh\necho "$0 $*" >> {mark}\ncat\n')
    evil.chmod(0o755)
    hooks = arc / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in (
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "pre-commit",
        "fsmonitor-watchman",
    ):
        shutil.copy(evil, hooks / name)
    for key, value in {
        "core.fsmonitor": str(evil),
        "core.hooksPath": str(hooks),
        "filter.evil.smudge": str(evil),
        "filter.evil.clean": str(evil),
        "filter.evil.process": str(evil),
        "core.sshCommand": str(evil),
        "core.editor": str(evil),
        "diff.external": str(evil),
        "credential.helper": str(evil),
        "alias.worktree": f"!{evil}",
        "uploadpack.packObjectsHook": str(evil),
    }.items():
        git(arc, "config", key, value)
    (arc / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    forged = {
        "id": "agt_forged",
        "path": "/me/agent/evil",
        "birthBranch": "main.evil",
        "role": "host",
        "projectRoot": "/",
        "createdAt": "2026-01-01T00:00:00.000Z",
        "mac": "0" * 64,
    }
    (arc / ".scout" / "identity.json").write_text(json.dumps(forged))
    clean = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "filter.evil.process=")
    git(arc, *clean, "-c", "filter.evil.clean=cat", "add", "-Af")
    git(arc, *clean, "-c", "filter.evil.clean=cat", "commit", "-q", "--no-verify", "-m", "evil")
    mark.unlink(missing_ok=True)
    made = me.data("spawn", "api", "--task", "Hello.", "--allow-dirty", cwd=arc)
    assert made["flights"][0]["state"] == "completed"
    assert not mark.exists(), mark.read_text()
    tree = Path(made["agents"][0]["workingDir"])
    assert (tree / "a.txt").read_text() == "a\n"
    own = json.loads((tree / ".scout" / "identity.json").read_text())
    assert own["id"] == made["agents"][0]["agent"]["id"]
    assert stat.S_IMODE((tree / ".scout" / "identity.json").stat().st_mode) == 0o600
    assert {one["address"] for one in me.data("who")["items"]} == {"@arc", "@arc.api"}


# -- many at once --------------------------------------------------------------------------------------


def _post(me: Daemon, slug: str, arc: Path) -> Any:
    wish = {"slugs": [slug], "harness": "echo", "projectPath": str(arc)}
    return me.call("POST", "/v1/spawn", wish)


@pytest.mark.rows("R1.4-28", "R10.2-3")
def test_sixty_four_spawns_at_once_from_several_processes(me: Shell) -> None:
    arc = project(me)
    me.say("config", "set", "limits.fanOut", "64")
    words = [sys.executable, "-m", "scout", "spawn", "--json"]
    slugs = [[f"p{process}-{number}" for number in range(16)] for process in range(4)]
    running = [
        subprocess.Popen([*words, *mine], cwd=arc, env=me.environ, stdout=subprocess.PIPE) for mine in slugs
    ]
    told = [json.loads(one.communicate(timeout=400)[0]) for one in running]
    agents = [one for each in told for one in each["agents"]]
    assert [each.get("failed") or [] for each in told] == [[], [], [], []]
    numbers = sorted(int(one["path"].rpartition("/")[2]) for one in agents)
    assert numbers == list(range(64))
    assert len(trees_of(arc)) == len({one["workingDir"] for one in agents}) == 64
    assert len(branches(arc)) == 65


def test_the_default_caps_hold_under_concurrency(me: Shell) -> None:
    arc, one = project(me), daemon_of(me)
    with ThreadPoolExecutor(12) as pool:
        slugs = [f"n{number}" for number in range(12)]
        replies = list(pool.map(_post, [one] * 12, slugs, [arc] * 12))
    made = [reply.json for reply in replies if reply.status == 201]
    refused = [reply.json for reply in replies if reply.status != 201]
    assert (len(made), len(refused)) == (8, 4)
    assert {reply["code"] for reply in refused} == {"rate_limited"}
    assert all("scout config set limits.fanOut" in json.dumps(reply["remedies"]) for reply in refused)
    assert len(trees_of(arc)) == 8
    assert sorted(branches(arc)) == sorted(["main", *(each["agents"][0]["birthBranch"] for each in made)])


# -- an agent spawns -----------------------------------------------------------------------------------


async def _call(one: Daemon, token: str, path: str, tool: str, arguments: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{one.running.url}{path}", http_client=http)
        async with Client(transport) as client:
            listed = {each.name for each in (await client.list_tools()).tools}
            return listed, await client.call_tool(tool, arguments)


@pytest.mark.rows("R10.1-5")
def test_a_lead_spawns_through_its_tool_and_a_dev_has_no_such_tool(me: Shell) -> None:
    arc, one = project(me), daemon_of(me)
    me.say("spawn", "api", "--role", "tl", cwd=arc)
    lead = one.make_token("@arc.api")
    path = "/agents/tl/main.api/mcp"
    wish = {"slugs": ["tests", "docs"], "task": "Hello."}
    listed, result = asyncio.run(_call(one, lead, path, "agent_spawn", wish))
    assert {"agent_spawn", "spawn_subtree"} <= listed
    told = result.structured_content
    assert [each["birthBranch"] for each in told["agents"]] == ["main.api.tests", "main.api.docs"]
    assert result.content[0].text == "@arc.api-tests, @arc.api-docs below @arc.api."
    assert told["next"]["tool"] == "invocations_wait"
    _, again = asyncio.run(_call(one, lead, path, "spawn_subtree", {"slugs": ["tests"]}))
    assert "created" not in again.structured_content["agents"][0]
    _, refused = asyncio.run(_call(one, lead, path, "agent_spawn", {"slugs": ["Deep One"]}))
    assert refused.is_error
    assert refused.structured_content["remedies"][0]["arguments"] == {"slugs": ["deep-one"]}
    dev = one.make_token("@arc.api-tests")
    path = "/agents/dev/main.api.tests/mcp"
    listed, refused = asyncio.run(_call(one, dev, path, "agent_spawn", {"slugs": ["x"]}))
    assert not {"agent_spawn", "spawn_subtree"} & listed
    assert refused.is_error


# -- windows -------------------------------------------------------------------------------------------


@pytest.mark.rows("R10.1-7")
@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here: windows are not proved")
def test_panes_are_windows_in_the_work_trees(me: Shell) -> None:
    arc = project(me)
    tmux: dict[str, Any] = {"TMUX_TMPDIR": str(me.folder), "TMUX": "", "SHELL": "/bin/sh"}
    words = ["tmux", "list-windows", "-t", "scout-arc", "-F", "#{window_name} #{pane_current_path}"]
    try:
        done = me.type("spawn", "api", "ui", "--panes", cwd=arc, **tmux)
        assert done.returncode == 0, done.stderr
        assert "attach: tmux attach -t scout-arc" in done.stderr

        def windows() -> list[str]:
            environ = {**me.environ, **tmux}
            shown = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
            return sorted(shown.stdout.splitlines())

        expected = [f"{slug} {arc}/.scout/worktrees/{slug}" for slug in ("api", "ui")]
        assert eventually(lambda: windows() if windows() == expected else None)
    finally:
        environ = {**me.environ, **tmux}
        subprocess.run(["tmux", "kill-server"], env=environ, check=False, capture_output=True)


def test_panes_without_tmux_say_what_to_do(me: Shell) -> None:
    arc = project(me)
    bare = me.folder / "no-tmux"
    bare.mkdir()
    refused = me.type("spawn", "api", "--panes", cwd=arc, PATH=str(bare))
    assert refused.returncode == 2
    assert "--panes needs tmux" in refused.stderr
    assert "try: scout spawn api" in refused.stderr
    assert branches(arc) == ["main"]


# -- a disk that is nearly full ------------------------------------------------------------------------


@pytest.mark.skipif(os.getuid() != 0, reason="NOT PROVED HERE: needs root to mount a small disk")
def test_a_small_disk_has_no_room_for_a_work_tree(me: Shell) -> None:
    disk = me.folder / "work" / "disk"
    disk.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        pytest.skip("NOT PROVED HERE: no disk can be mounted")
    try:
        (disk / "arc").mkdir()
        (disk / "arc" / "a.txt").write_text("a\n")
        git(disk / "arc", "init", "-q")
        git(disk / "arc", "add", "-A")
        git(disk / "arc", "commit", "-qm", "first")
        refused = me.type("spawn", "api", "--harness", "echo", cwd=disk / "arc")
        assert "disk_space" in refused.stderr
        assert "try: scout spawn --role worker --harness echo api" in refused.stderr
        me.say("spawn", "api", "--harness", "echo", "--role", "worker", cwd=disk / "arc")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)
