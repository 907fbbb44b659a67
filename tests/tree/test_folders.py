"""Identity files in the folders of projects: written, believed with a valid signature, and never otherwise."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scout.base.time import Time
from scout.ports import FoundFolder, GitFailed
from scout.tree.folders import ScoutFolders
from tests.tree.repositories import KEY, commit, git, head, identity, trees


@pytest.fixture
def folders() -> ScoutFolders:
    return ScoutFolders(KEY)


@pytest.fixture
def tree(tmp_path: Path, root: Path) -> Path:
    return Path(trees(tmp_path).add(str(root), "main.auth", "auth", head(root)).path)


def scan_one(folders: ScoutFolders, root: Path) -> FoundFolder:
    (found,) = folders.scan(str(root))
    return found


def test_identities_of_every_kind_survive_a_scan(root: Path, tree: Path, folders: ScoutFolders) -> None:
    main = identity(root, "agt_root", role="tl", birth_branch="main", name="Arc ü")
    child = identity(root, "agt_child", parent="agt_root", retired_at=Time(1_790_000_000_555_000))
    worker = identity(root, "agt_worker", birth_branch=None, role="worker")
    folders.write_identity(str(root), main)
    folders.write_identity(str(tree), child)
    folders.write_identity(str(root / ".scout/agents/helper"), worker)
    found = folders.scan(str(root))
    assert [one.kind for one in found] == ["root", "worktree", "worker"]
    assert [one.folder for one in found] == [str(root), str(tree), str(root / ".scout/agents/helper")]
    assert [one.branch for one in found] == ["main", "main.auth", None]
    assert [one.problem for one in found] == [None] * 3
    believed = [one.identity for one in found if one.identity is not None]
    assert [msgspec.structs.replace(one, mac="") for one in believed] == [main, child, worker]
    for place in (root, tree):
        assert git(place, "status", "--porcelain", "--ignored=no") == ""
    file = tree / ".scout" / "identity.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["birthBranch"] == "main.auth"


def test_an_identity_is_replaced_as_a_whole(root: Path, folders: ScoutFolders) -> None:
    for number in range(3):
        folders.write_identity(str(root), identity(root, f"agt_{number}"))
    found = scan_one(folders, root)
    assert found.identity is not None
    assert found.identity.id == "agt_2"
    assert sorted(path.name for path in (root / ".scout").iterdir()) == [".gitignore", "identity.json"]


def test_an_identity_directly_in_a_work_tree_is_read_too(
    root: Path, tree: Path, folders: ScoutFolders
) -> None:
    folders.write_identity(str(tree), identity(root))
    (tree / ".scout" / "identity.json").rename(tree / "identity.json")
    found = scan_one(folders, root)
    assert found.identity is not None
    assert found.identity.id == "agt_1"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "agt_2"),
        ("path", "/me/agent/other"),
        ("birthBranch", "main"),
        ("parent", "agt_9"),
        ("role", "tl"),
        ("projectRoot", "/"),
        ("createdAt", "2020-01-01T00:00:00Z"),
        ("retiredAt", "2020-01-01T00:00:00Z"),
        ("mac", ""),
        ("mac", "0" * 64),
        ("mac", "ü"),
    ],
)
def test_a_changed_fact_is_not_believed(
    root: Path, tree: Path, folders: ScoutFolders, field: str, value: str
) -> None:
    folders.write_identity(str(tree), identity(root))
    file = tree / ".scout" / "identity.json"
    facts = json.loads(file.read_text())
    file.write_text(json.dumps({**facts, field: value}))
    found = scan_one(folders, root)
    assert found.identity is None
    assert "signature is not valid" in (found.problem or "")
    assert found.claims[field] == value


def test_another_key_is_not_believed(root: Path, tree: Path, folders: ScoutFolders) -> None:
    ScoutFolders(b"another key").write_identity(str(tree), identity(root))
    assert scan_one(folders, root).identity is None


def test_a_copy_in_another_folder_is_not_believed(
    tmp_path: Path, root: Path, tree: Path, folders: ScoutFolders
) -> None:
    folders.write_identity(str(tree), identity(root))
    other = tree.parent / "other"
    (other / ".scout").mkdir(parents=True)
    shutil.copy(tree / ".scout" / "identity.json", other / ".scout")
    worker = root / ".scout" / "agents" / "auth"
    worker.mkdir(parents=True)
    shutil.copy(tree / ".scout" / "identity.json", worker)
    shutil.copy(tree / ".scout" / "identity.json", root / ".scout")
    found = {one.folder: one for one in folders.scan(str(root))}
    assert [path for path, one in found.items() if one.identity is not None] == [str(tree)]
    assert len(found) == 4


def test_a_project_that_was_moved_is_offered_with_the_reason(
    tmp_path: Path, root: Path, tree: Path, folders: ScoutFolders
) -> None:
    folders.write_identity(str(tree), identity(root))
    moved = tmp_path / "moved"
    root.rename(moved)
    found = scan_one(folders, moved)
    assert found.identity is None
    assert found.problem == f"it was signed for {tree}; the folder has been moved or copied"
    assert found.claims["id"] == "agt_1"


def test_a_project_behind_a_link_is_the_same_project(
    tmp_path: Path, root: Path, tree: Path, folders: ScoutFolders
) -> None:
    folders.write_identity(str(tree), identity(root))
    (tmp_path / "link").symlink_to(root)
    assert folders.scan(str(tmp_path / "link")) == folders.scan(str(root))
    assert scan_one(folders, root).identity is not None


_HUGE: dict[str, Any] = {"id": "agt_1", "path": "x" * 100_000}
_CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "no JSON": b"hello",
    "a list": b"[1, 2]",
    "null": b"null",
    "a number": b"12",
    "not UTF-8": b'{"id": "\xff\xfe"}',
    "a lone surrogate": b'{"id": "\\ud800"}',
    "NUL": b'{"id": "a\\u0000b"}',
    "wrong types": b'{"id": 7, "path": [], "createdAt": {}}',
    "too deep": b"[" * 30_000,
    "a deep object": b'{"a":' * 9_000 + b"1" + b"}" * 9_000,
    "a huge number": b'{"id": "a", "createdAt": 1e999}',
    "two of one key": b'{"id": "a", "id": "b", "path": "/x", "createdAt": "2026-01-01T00:00:00Z"}',
    "too large": json.dumps(_HUGE).encode(),
    "half": b'{"id": "agt_1", "pa',
    "control characters": b'{"id": "\\u001b[2J\\u202e", "path": "/x"}',
}


@pytest.mark.parametrize("content", _CONTENTS.values(), ids=_CONTENTS.keys())
@pytest.mark.parametrize("place", [".scout/identity.json", "identity.json"])
def test_hostile_content_is_never_believed(
    root: Path, tree: Path, folders: ScoutFolders, content: bytes, place: str
) -> None:
    (tree / place).parent.mkdir(exist_ok=True)
    (tree / place).write_bytes(content)
    worker = root / ".scout" / "agents" / "helper"
    worker.mkdir(parents=True)
    (worker / "identity.json").write_bytes(content)
    (root / ".scout" / "identity.json").write_bytes(content)
    found = folders.scan(str(root))
    assert [one.kind for one in found] == ["root", "worktree", "worker"]
    assert all(one.identity is None and one.problem for one in found)
    for one in found:
        assert all(len(text) <= 200 for text in (*one.claims, *one.claims.values()))
        json.dumps(one.claims).encode()


@pytest.mark.parametrize("kind", ["link", "link to a valid one", "pipe", "folder", "device", "socket"])
def test_what_is_no_plain_file_is_never_read(
    root: Path, tree: Path, folders: ScoutFolders, kind: str
) -> None:
    folders.write_identity(str(tree), identity(root))
    file = tree / ".scout" / "identity.json"
    file.rename(tree / "kept.json")
    if kind == "link":
        file.symlink_to("/etc/passwd")
    if kind == "link to a valid one":
        file.symlink_to(tree / "kept.json")
    if kind == "pipe":
        os.mkfifo(file)
    if kind == "folder":
        file.mkdir()
    if kind == "device":
        if os.getuid() != 0:
            pytest.skip("NOT PROVED HERE: needs root to make a device")
        os.mknod(file, 0o20666, os.makedev(1, 5))
    if kind == "socket":
        os.mknod(file, 0o140600)
    found = scan_one(folders, root)
    assert (found.identity, found.claims) == (None, {})
    assert found.problem is not None
    assert "identity.json" in found.problem


@pytest.mark.parametrize("part", [".scout", ".scout/worktrees", ".scout/worktrees/auth", ".scout/agents"])
def test_folders_that_are_links_are_named_and_not_followed(
    tmp_path: Path, root: Path, tree: Path, folders: ScoutFolders, part: str
) -> None:
    folders.write_identity(str(tree), identity(root))
    folders.write_identity(str(root / ".scout/agents/helper"), identity(root))
    elsewhere = tmp_path / "elsewhere"
    (root / part).rename(elsewhere)
    (root / part).symlink_to(elsewhere)
    found = folders.scan(str(root))
    linked = [one for one in found if "link" in (one.problem or "")]
    assert linked
    assert all(one.identity is None for one in linked)
    if part == ".scout":
        assert all(one.identity is None for one in found)
        with pytest.raises(GitFailed, match="link"):
            folders.write_identity(str(root), identity(root))


@pytest.mark.skipif(os.getuid() != 0, reason="NOT PROVED HERE: needs root to give a file to another user")
def test_files_and_folders_of_another_user_are_not_believed(
    root: Path, tree: Path, folders: ScoutFolders
) -> None:
    folders.write_identity(str(tree), identity(root))
    os.chown(tree / ".scout" / "identity.json", 65534, 65534)
    assert "belongs to user 65534" in (scan_one(folders, root).problem or "")
    os.chown(tree / ".scout", 65534, 65534)
    with pytest.raises(GitFailed, match="belongs to user 65534"):
        folders.write_identity(str(tree), identity(root))


def test_folders_without_an_identity_are_named(root: Path, tree: Path, folders: ScoutFolders) -> None:
    (root / ".scout" / "agents" / "helper").mkdir(parents=True)
    (tree.parent / "a file").write_text("not a folder\n")
    (tree.parent / ".going-1").mkdir()
    (tree.parent / os.fsdecode(b"o\xffd")).mkdir()
    found = folders.scan(str(root))
    assert [(one.kind, one.problem) for one in found if one.problem != "its name is not UTF-8 text"] == [
        ("worktree", "it has no identity file"),
        ("worker", "it has no identity file"),
    ]
    assert len(found) == 3


def test_a_project_without_folders_has_no_agents(tmp_path: Path, root: Path, folders: ScoutFolders) -> None:
    assert folders.scan(str(root)) == ()
    assert folders.scan(str(tmp_path / "nowhere")) == ()


def test_trees_of_exomonad_are_offered(tmp_path: Path, root: Path, folders: ScoutFolders) -> None:
    git(root, "worktree", "add", "-q", "-b", "main.feature", str(root / ".exo/worktrees/feature"))
    agent = root / ".exo" / "agents" / "feature-claude"
    agent.mkdir(parents=True)
    facts = {
        "agent_name": "feature-claude",
        "slug": "feature",
        "birth_branch": "main.feature",
        "parent_branch": "main",
        "working_dir": ".exo/worktrees/feature",
        "topology": {"kind": "x"},
    }
    (agent / "identity.json").write_text(json.dumps(facts))
    tree, worker = folders.scan(str(root))
    assert (tree.system, tree.kind, tree.branch, tree.identity) == ("exo", "worktree", "main.feature", None)
    assert (worker.system, worker.kind, worker.identity) == ("exo", "worker", None)
    assert worker.claims == {name: text for name, text in facts.items() if isinstance(text, str)}
    (agent / "identity.json").unlink()
    (agent / "identity.json").symlink_to("/etc/passwd")
    assert "link" in (folders.scan(str(root))[1].problem or "")


def test_the_scout_folder_hides_itself_from_git(root: Path, folders: ScoutFolders) -> None:
    folders.prepare(str(root))
    folders.prepare(str(root))
    hidden = (root / ".scout" / ".gitignore").read_text().splitlines()
    assert hidden == ["worktrees/", "agents/", "identity.json", ".gitignore"]
    (root / ".scout" / "project.toml").write_text('name = "arc"\n')
    assert git(root, "status", "--porcelain", "-uall") == "?? .scout/project.toml"


def test_a_gitignore_of_the_repository_is_kept(root: Path, folders: ScoutFolders) -> None:
    commit(root, ".scout/.gitignore", "mine\nworktrees/")
    folders.prepare(str(root))
    assert git(root, "status", "--porcelain") == ""
    (root / ".scout" / ".gitignore").write_text("worktrees/\nagents/\n")  # of an older version
    folders.prepare(str(root))
    hidden = (root / ".scout" / ".gitignore").read_text().splitlines()
    assert hidden == ["worktrees/", "agents/", "identity.json", ".gitignore"]


def test_folders_are_taken_and_workers_removed(root: Path, tree: Path, folders: ScoutFolders) -> None:
    folders.write_identity(str(root / ".scout/agents/helper"), identity(root))
    assert folders.taken(str(root), "auth")
    assert not folders.taken(str(root), "helper")
    assert folders.taken(str(root), "helper", worker=True)
    folders.remove_worker(str(root), "helper")
    folders.remove_worker(str(root), "helper")
    assert not folders.taken(str(root), "helper", worker=True)
    for name in ("..", "", "a/b", "."):
        with pytest.raises(GitFailed, match="cannot be the folder of a worker"):
            folders.remove_worker(str(root), name)
    (root / ".scout" / "agents" / "link").symlink_to(tree)
    with pytest.raises(GitFailed):
        folders.remove_worker(str(root), "link")
    assert (tree / "a.txt").exists()
