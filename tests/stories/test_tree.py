"""The tree of agents: seen from every surface, found again on disk, compared with git, and never fooled."""

import json
import os
import shutil
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import type_in_terminal
from tests.daemon.daemons import eventually
from tests.stories.families import Family, a_family, git, make_repository

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT, AUTH, API, DOCS, HELPER = (
    "@hudson",
    "@hudson.auth",
    "@hudson.auth-api",
    "@hudson.docs",
    "@hudson.auth-1",
)
_FACTS = (
    "id",
    "address",
    "path",
    "name",
    "parentId",
    "birthBranch",
    "role",
    "workingDir",
    "projectRoot",
    "depth",
)


@pytest.fixture
def family() -> Generator[Family]:
    with a_family() as made:
        yield made


def grow(family: Family) -> None:
    """@hudson with the children auth and docs, and below auth the child api and a worker."""
    family.spawn("auth", role="tl")
    family.spawn("docs")
    family.spawn("api", **{"from": AUTH})
    family.spawn("helper", role="worker", **{"from": AUTH})


def commit(folder: Path, name: str) -> None:
    (folder / name).write_text("text\n")
    git(folder, "add", name)
    git(folder, "commit", "-qm", f"add {name}")


def names(tree: Any) -> list[str]:
    return [one["address"] for one in tree.get("agents", [])]


def one_of(tree: Any, address: str) -> Any:
    return next(one for one in tree["agents"] if one["address"] == address)


def show(family: Family, *words: str, cwd: Path | None = None, columns: int = 80) -> list[str]:
    """The lines that a command prints on a terminal of this width."""
    done = family.shell.type("tree", *words, cwd=cwd or family.root, COLUMNS=str(columns))
    assert done.returncode in (0, 1), done.stderr
    lines = done.stdout.splitlines()
    whole = [line for line in lines if "/work/" not in line]  # folders, and commands with one, are never cut
    assert all(len(line) <= columns for line in whole), lines
    return lines


# -- seen ----------------------------------------------------------------------------------------------


@pytest.mark.rows("R10.4-4")
def test_the_tree_is_drawn_with_state_branch_work_and_where_you_are(family: Family) -> None:
    assert show(family) == ["No agents here yet.", "try: scout spawn 'NAME'"]
    grow(family)
    commit(family.work_tree("auth"), "login.py")
    commit(family.root, "other.py")
    (family.work_tree("docs") / "draft.md").write_text("draft\n")
    family.shell.say("ask", DOCS, "Write the docs.")
    lines = show(family)
    assert lines == [
        str(family.root),
        "@hudson  tl  offline  ← you are here",
        "│  main",
        "├─ @hudson.auth  tl  offline",
        "│  │  main.auth  1 ahead  1 behind",
        "│  ├─ @hudson.auth-api  dev  offline",
        "│  │     main.auth.api  1 behind",
        "│  └─ @hudson.auth-1  worker helper  offline",
        "└─ @hudson.docs  dev  online",
        "      main.docs  1 behind  1 changed file",
    ]
    # From inside a work tree, and for a part of the tree.
    assert show(family, "main.auth", cwd=family.work_tree("api"))[1:] == [
        "@hudson.auth  tl  offline",
        "│  main.auth  1 ahead  1 behind",
        "├─ @hudson.auth-api  dev  offline  ← you are here",
        "│     main.auth.api  1 behind",
        "└─ @hudson.auth-1  worker helper  offline",
    ]
    assert all(len(line) <= 40 for line in show(family, columns=40))


def test_what_an_agent_works_at_is_shown_to_those_who_may_read_it(family: Family) -> None:
    family.spawn("auth", "docs", role="tl")
    family.call("PATCH", f"/v1/agents/{AUTH}", {"config": {"harness": None}})  # it connects by itself
    asked = family.post(
        "/v1/asks", {"to": AUTH, "body": "Add a login page.\nSoon.", "ifUnreachable": "queue"}
    )
    family.post(f"/v1/flights/{asked['flightId']}/start", {}, AUTH)
    assert any("running: Add a login page." in line for line in show(family))
    for agent, sees in ((ROOT, True), (AUTH, True), (DOCS, False)):
        tree = family.get("/v1/tree", agent)
        assert names(tree) == [ROOT, AUTH, DOCS]
        assert [one["address"] for one in tree["agents"] if one.get("here")] == [agent]
        assert ("work" in one_of(tree, AUTH)) is sees
    told = family.facts(AUTH, "agents_tree")
    (me,) = [one for one in told["agents"] if one.get("you")]
    assert (me["address"], me["branch"], me["work"]["title"]) == (AUTH, "main.auth", "Add a login page.")


@pytest.mark.rows("R10.4-4")
def test_json_holds_the_birth_branches_on_every_surface(family: Family) -> None:
    grow(family)
    born = {ROOT: "main", AUTH: "main.auth", API: "main.auth.api", HELPER: None, DOCS: "main.docs"}
    for tree in (family.tree(), family.get("/v1/tree?all=true"), family.get("/v1/tree", AUTH)):
        assert {one["address"]: one.get("birthBranch") for one in tree["agents"]} == born
        assert names(tree) == [ROOT, AUTH, API, HELPER, DOCS]
    below = family.get("/v1/tree?address=main.auth", ROOT)
    assert names(below) == [AUTH, API, HELPER]
    told = family.facts(AUTH, "agents_tree")
    assert {one["address"]: one.get("branch") for one in told["agents"]} == born
    refused = family.use(API, "agents_tree")
    assert refused.is_error
    assert refused.structured_content["code"] == "forbidden"
    # Another user's agents, and an unknown top, are not shown.
    assert family.call("GET", "/v1/tree?address=%40nobody").json["code"] == "unknown_target"
    assert family.call("GET", "/v1/tree?address=%40nobody", agent=API).json["code"] == "unknown_target"


def test_without_spawned_agents_the_tree_shows_the_agents_of_the_project(family: Family) -> None:
    family.shell.say("agent", "register", "hudson", "--project", str(family.root), "--harness", "echo")
    assert show(family) == [str(family.root), "@hudson  tl  offline  ← you are here", "   main"]
    folder = family.shell.project("plain")
    family.shell.say("agent", "register", "plain", "--project", str(folder), "--harness", "echo")
    assert names(family.tree(cwd=folder)) == ["@plain"]
    assert sorted(names(family.tree("--all"))) == ["@hudson", "@plain"]


def test_a_flag_that_does_not_fit_is_refused(family: Family) -> None:
    for words in (("--fix",), ("--scan", "--reconcile"), ("@hudson", "--scan")):
        done = family.shell.type("tree", *words, cwd=family.root)
        assert (done.returncode, done.stderr.startswith("bad_request: ")) == (2, True), words


# -- found again ---------------------------------------------------------------------------------------


@pytest.mark.rows("R1.5-19", "R1.5-21", "R1.5-24", "R1.5-25", "R1.5-29", "R10.5-1")
def test_with_the_database_deleted_the_same_agents_are_there(family: Family) -> None:
    grow(family)
    family.spawn("old")
    family.shell.say("agent", "retire", "@hudson.old")
    family.shell.type("tree", "--reconcile", "--fix", cwd=family.root)  # its file says that it is retired
    commit(family.work_tree("auth"), "login.py")
    kept = identity_of(family.work_tree("auth"))
    assert {"id", "path", "birthBranch", "parent", "role", "projectRoot", "createdAt", "mac"} <= kept.keys()
    before = family.tree("--retired")
    family.restart(without_database=True)
    after = family.tree("--retired")
    assert [[one.get(name) for name in _FACTS] for one in after["agents"]] == [
        [one.get(name) for name in _FACTS] for one in before["agents"]
    ]
    assert one_of(after, AUTH)["facts"] == one_of(before, AUTH)["facts"]
    states = {one["address"]: one["lifecycle"] for one in after["agents"]}
    assert states.pop("@hudson.old") == "retired"
    assert set(states.values()) == {"sleeping"}
    assert show(family)[3] == "├─ @hudson.auth  tl  sleeping"
    # They work, keep their family, and the next child gets a number that no child had.
    assert family.shell.say("ask", API, "Are you there?").strip() == "Are you there?"
    assert family.facts(API, "agents_resolve", address="parent")["address"] == AUTH
    (new,) = family.spawn("new")
    assert new["path"].endswith("/agent/hudson/sub/3")
    (deep,) = family.spawn("deep", **{"from": AUTH})
    assert deep["path"].endswith("/agent/hudson/sub/0/sub/2")
    assert family.shell.type("verify", within=60).returncode == 0


@pytest.mark.rows("R10.5-1")
def test_a_scan_finds_what_the_directory_lacks(family: Family) -> None:
    assert show(family, "--scan") == [
        "No project is known yet: scout spawn NAME, in a project, makes it known."
    ]
    grow(family)
    assert show(family, "--scan") == ["1 project, 5 agents known, 0 found again"]
    # The folder is hidden while the database is deleted, so that the start does not find it.
    hidden = family.shell.folder / "hidden"
    shutil.move(family.work_tree("docs"), hidden)
    family.restart(without_database=True)
    assert DOCS not in names(family.tree())
    shutil.move(hidden, family.work_tree("docs"))
    assert show(family, "--scan") == [
        "found @hudson.docs  main.docs",
        "1 project, 4 agents known, 1 found again",
    ]
    again = family.post("/v1/tree/scan", {})
    assert (again.get("registered", []), again["known"]) == ([], 5)
    assert family.call("POST", "/v1/tree/scan", {}, agent=AUTH).json["code"] == "forbidden"
    assert family.call("POST", "/v1/tree/reconcile", {}, agent=AUTH).json["code"] == "forbidden"


# -- never fooled --------------------------------------------------------------------------------------


def identity_of(folder: Path) -> Any:
    return json.loads((folder / ".scout" / "identity.json").read_text())


def write_identity(folder: Path, identity: Any) -> None:
    (folder / ".scout").mkdir(parents=True, exist_ok=True)
    (folder / ".scout" / "identity.json").write_text(json.dumps(identity))


@pytest.mark.rows("R1.5-21", "R1.5-22", "R1.5-23", "R10.5-3")
def test_copied_and_forged_identities_are_only_offered(family: Family) -> None:
    grow(family)
    true = identity_of(family.work_tree("auth"))
    # A copy of a signed file, one with another role, one without a signature, and one signed for nothing.
    git(family.root, "worktree", "add", "-q", "-b", "copy", str(family.work_tree("copy")))
    write_identity(family.work_tree("copy"), true)
    write_identity(family.work_tree("raised"), {**true, "id": true["id"][:-1] + "0", "role": "host"})
    write_identity(family.work_tree("unsigned"), {**true, "mac": ""})
    write_identity(family.work_tree("commands"), {**true, "mac": "0" * 64, "command": ["touch", "marker"]})
    before = names(family.tree())
    scan = family.post("/v1/tree/scan", {})
    assert scan.get("registered", []) == []
    offered = {Path(one["folder"]).name: one for one in scan["offered"]}
    assert sorted(offered) == ["commands", "copy", "raised", "unsigned"]
    assert all(one["reason"] for one in offered.values())
    assert [name for name, one in offered.items() if "adopt" in one] == ["copy"]  # the only work tree of git
    family.restart(without_database=True)
    assert names(family.tree()) == before
    shown = "\n".join(show(family))
    assert "Folders without an agent" in shown
    # A person may adopt one: a new agent, with nothing of what the file claims.
    words = offered["copy"]["adopt"]["command"].split()[1:]
    family.shell.say(*words, cwd=family.root)
    (adopted,) = [one for one in family.tree("--all")["agents"] if one["workingDir"].endswith("/copy")]
    assert (adopted["role"], adopted["id"] != true["id"]) == ("dev", True)


def hostile_clone(family: Family) -> tuple[Path, Path]:
    """A repository that tries everything when Scout looks at it; and the file that it would make."""
    marker = family.shell.folder / "marker"
    root = make_repository(family.shell.folder / "work" / "evil")
    worktrees = root / ".scout" / "worktrees"
    worktrees.mkdir(parents=True)
    outside = family.shell.folder / "outside"
    outside.mkdir()
    (worktrees / "link").symlink_to(outside)
    (worktrees / "pipe").mkdir()
    os.mkfifo(worktrees / "pipe" / "identity.json")
    (worktrees / "dot").mkdir()
    (worktrees / "dot" / ".scout").symlink_to(outside)
    (root / ".scout" / "agents").symlink_to(outside)
    write_identity(worktrees / "escape", {"id": "\x1b[2J", "path": "/etc/passwd", "name": "\x1b]52;c;x\x07"})
    write_identity(worktrees / "deep", json.loads("[" * 300 + "]" * 300))
    (worktrees / "huge").mkdir()
    (worktrees / "huge" / "identity.json").write_bytes(b"[" * 1_000_000)
    git(root, "config", "core.fsmonitor", f"touch {marker}")
    git(root, "config", "filter.x.clean", f"touch {marker}; cat")
    git(root, "config", "filter.x.smudge", f"touch {marker}; cat")
    git(root, "config", "core.sshCommand", f"touch {marker}")
    git(root, "config", "alias.status", f"!touch {marker}")
    (root / ".git" / "info" / "attributes").write_text("* filter=x\n")
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"):
        file = root / ".git" / "hooks" / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\ntouch {marker}\n")
        file.chmod(0o755)
    (root / "read.me").touch()
    marker.unlink(missing_ok=True)
    return root, marker


@pytest.mark.rows("R1.5-22", "R1.5-23", "R10.5-3")
def test_a_hostile_repository_is_looked_at_and_nothing_of_it_runs(family: Family) -> None:
    root, marker = hostile_clone(family)
    family.shell.say("project", "set", "worktree.setupSeconds", "60", "--project", str(root))
    family.shell.say("agent", "register", "evil", "--project", str(root), "--harness", "echo")
    scan = family.post("/v1/tree/scan", {})
    assert scan.get("registered", []) == []
    offered = {Path(one["folder"]).name for one in scan["offered"]}
    assert offered == {"agents", "link", "pipe", "dot", "escape", "deep", "huge"}
    lines = show(family, cwd=root)
    assert not any("\x1b" in line or "\x07" in line for line in lines)
    show(family, "--reconcile", cwd=root)
    show(family, "--reconcile", "--fix", cwd=root)
    family.restart()
    family.restart(without_database=True)
    assert family.tree("--all").get("agents", []) == []
    assert not marker.exists()
    assert list((family.shell.folder / "outside").iterdir()) == []


@pytest.mark.rows("R1.5-20", "R10.5-3")
def test_trees_of_exomonad_are_read_and_only_offered(family: Family) -> None:
    family.spawn("auth")
    tree = family.root / ".exo" / "worktrees" / "login"
    tree.parent.mkdir(parents=True)
    git(family.root, "worktree", "add", "-q", "-b", "main.login", str(tree))
    agent = family.root / ".exo" / "agents" / "login"
    agent.mkdir(parents=True)
    claims = {"agent_name": "login", "slug": "login", "birth_branch": "main.other", "parent_branch": "main"}
    (agent / "identity.json").write_text(json.dumps({**claims, "working_dir": str(tree)}))
    scan = family.post("/v1/tree/scan", {})
    assert scan.get("registered", []) == []
    found = {one["kind"]: one for one in scan["offered"]}
    assert {one["system"] for one in found.values()} == {"exo"}
    # The branch is git's, not the one that the file claims.
    assert found["worktree"]["branch"] == "main.login"
    assert found["worker"]["claims"]["birth_branch"] == "main.other"
    assert names(family.tree()) == [ROOT, AUTH]
    assert any("(ExoMonad)" in line for line in show(family, "--scan"))
    # They are no difference: Scout did not make them.
    assert show(family, "--reconcile") == ["clean: 2 agents in 1 project, no differences"]


# -- compared ------------------------------------------------------------------------------------------


@pytest.mark.rows("R10.5-2")
def test_reconcile_reports_each_difference_and_repairs_what_loses_nothing(family: Family) -> None:
    grow(family)
    assert show(family, "--reconcile") == ["clean: 5 agents in 1 project, no differences"]
    commit(family.work_tree("api"), "kept.py")
    shutil.rmtree(family.work_tree("api"))
    (family.work_tree("docs") / ".scout" / "identity.json").unlink()
    shutil.rmtree(family.root / ".scout" / "agents" / "helper")
    (family.root / ".scout" / "identity.json").unlink()
    git(family.root, "worktree", "add", "-q", str(family.work_tree("stale")), "-b", "stale")
    shutil.rmtree(family.work_tree("stale"))
    family.work_tree("stray").mkdir()
    told = family.post("/v1/tree/reconcile", {})
    kinds = {(one["kind"], Path(one["subject"]).name): one.get("repair") for one in told["findings"]}
    assert kinds == {
        ("missing_folder", API): "check its branch out again",
        ("missing_identity", DOCS): "write its identity file again",
        ("missing_identity", HELPER): "write its identity file again",
        ("missing_identity", ROOT): "write its identity file again",
        ("prunable_tree", "stale"): "remove git's entry of the missing work tree",
        ("orphan_folder", "stray"): None,
    }
    fixed = family.shell.type("tree", "--reconcile", "--fix", cwd=family.root, COLUMNS="80")
    assert fixed.returncode == 1
    assert fixed.stdout.count("fixed  ") == 5
    assert (family.work_tree("api") / "kept.py").read_text() == "text\n"
    assert git(family.work_tree("api"), "status", "--porcelain") == ""
    assert str(family.work_tree("stale")) not in git(family.root, "worktree", "list")
    left = family.post("/v1/tree/reconcile", {"fix": True})
    assert [one["kind"] for one in left["findings"]] == ["orphan_folder"]
    family.work_tree("stray").rmdir()
    assert show(family, "--reconcile") == ["clean: 5 agents in 1 project, no differences"]
    family.restart(without_database=True)
    assert names(family.tree()) == [ROOT, AUTH, API, HELPER, DOCS]


@pytest.mark.rows("R1.5-3", "R1.5-28")
def test_a_renamed_branch_keeps_the_identity_and_is_reported(family: Family) -> None:
    grow(family)
    git(family.work_tree("auth"), "branch", "-m", "main.auth", "login")
    git(family.work_tree("docs"), "switch", "-qc", "other")
    lines = show(family, "--reconcile")
    assert lines[-1] == "2 differences: 5 agents in 1 project"
    told = family.post("/v1/tree/reconcile", {"fix": True})
    words = {one["subject"]: one["words"] for one in told["findings"]}
    assert words[AUTH].startswith("login is checked out in its work tree; the branch main.auth was renamed")
    assert words[DOCS].startswith("other is checked out in its work tree; the agent keeps its name")
    family.restart(without_database=True)
    tree = family.tree()
    assert one_of(tree, AUTH)["birthBranch"] == "main.auth"
    assert one_of(tree, AUTH)["facts"]["branch"] == "login"
    assert family.facts(API, "agents_resolve", address="main.auth")["address"] == AUTH


def test_a_moved_work_tree_is_reported_with_the_command_that_follows_it(family: Family) -> None:
    family.spawn("auth")
    git(family.root, "worktree", "move", str(family.work_tree("auth")), str(family.work_tree("moved")))
    told = family.post("/v1/tree/reconcile", {})
    (found,) = [one for one in told["findings"] if one["kind"] == "moved_folder"]
    family.shell.say(*found["remedy"]["command"].split()[1:], cwd=family.root)
    fixed = family.post("/v1/tree/reconcile", {"fix": True})
    assert all(one["fixed"] for one in fixed["findings"])
    assert show(family, "--reconcile") == ["clean: 2 agents in 1 project, no differences"]
    family.restart(without_database=True)
    assert one_of(family.tree(), AUTH)["workingDir"] == str(family.work_tree("moved"))


@pytest.mark.rows("R1.5-32", "R10.5-2")
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_a_dead_pane_is_found_and_its_session_ended(family: Family) -> None:
    family.spawn("auth")
    family.shell.say("agent", "config", AUTH, "--set", "harness=tmux", "--set", 'command=["cat"]')
    session = family.shell.data("wake", AUTH)["sessionId"]
    alive = family.tree()
    assert one_of(alive, AUTH)["status"] == "online"
    assert show(family, "--reconcile") == ["clean: 2 agents in 1 project, no differences"]
    pid = eventually(lambda: family.get(f"/v1/sessions/{session}").get("pid"))
    os.killpg(os.getpgid(pid), signal.SIGKILL)
    fixed = list[Any]()

    def is_ended() -> bool:
        fixed.extend(family.post("/v1/tree/reconcile", {"fix": True}).get("findings", []))
        return bool(family.get(f"/v1/sessions/{session}")["state"] == "ended")

    eventually(is_ended)
    if fixed:  # else the daemon's own look at its panes was first, as may be on a busy machine
        assert [(one["kind"], one["subject"], one["fixed"]) for one in fixed] == [("dead_pane", AUTH, True)]
    assert one_of(family.tree(), AUTH)["status"] == "offline"


def test_the_tree_is_shown_on_a_terminal(family: Family) -> None:
    family.spawn("auth")
    code, shown = type_in_terminal(family.shell, "tree", "--all", COLUMNS="80")
    assert code == 0
    assert "@hudson.auth" in shown
    assert "\x1b[" in shown
