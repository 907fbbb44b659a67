"""Work trees of agents: added, listed, compared, restored and removed, in repositories of every kind."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scout.ports import GitFailed, GitTree
from scout.ports.worktrees import TreeToCompare
from scout.tree.worktrees import GitWorkTrees
from tests.tree.repositories import commit, files, git, head, repository


def add(work: GitWorkTrees, root: Path, slug: str = "auth", branch: str = "main") -> Path:
    return Path(work.add(str(root), f"{branch}.{slug}", slug, head(root, branch)).path)


# -- looking at repositories -----------------------------------------------------------------------


def test_a_repository_is_described_from_any_folder_in_it(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "my Répo")
    (root / "new.txt").write_text("new\n")
    (root / "a.txt").write_text("changed\n")
    (root / "b.txt").write_text("staged\n")
    git(root, "add", "b.txt")
    facts = work.look(str(root / "below"))
    assert facts is not None
    assert (facts.root, facts.top, facts.common) == (str(root), str(root), str(root / ".git"))
    assert (facts.branch, facts.commit) == ("main", head(root))
    assert facts.uncommitted == ("a.txt", "b.txt", "new.txt")
    assert facts.free_bytes > 0
    assert (facts.bare, facts.shallow, facts.sparse, facts.submodules) == (False, False, False, ())
    few = work.look(str(root), most=1)
    assert few is not None
    assert few.uncommitted == ("a.txt",)


def test_outside_of_every_repository(tmp_path: Path, work: GitWorkTrees) -> None:
    assert work.look(str(tmp_path)) is None


def test_the_home_folder_and_temporary_roots_are_no_repositories(
    tmp_path: Path, work: GitWorkTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = repository(tmp_path / "home")
    (home / "notes").mkdir()
    assert work.look(str(home / "notes")) is not None
    monkeypatch.setenv("HOME", str(home))
    assert work.look(str(home)) is None
    assert work.look(str(home / "notes")) is None
    assert work.look("/tmp") is None


def test_a_repository_without_a_commit(tmp_path: Path, work: GitWorkTrees) -> None:
    git(tmp_path, "init", "-q", "fresh")
    (tmp_path / "fresh" / "a").write_text("a\n")
    facts = work.look(str(tmp_path / "fresh"))
    assert facts is not None
    assert (facts.branch, facts.commit, facts.uncommitted) == ("main", None, ("a",))


@pytest.mark.parametrize("name", ["arc.git", ".bare", "arc"])
def test_a_bare_repository_and_its_work_trees(tmp_path: Path, work: GitWorkTrees, name: str) -> None:
    origin = repository(tmp_path / "origin")
    git(tmp_path, "clone", "-q", "--bare", str(origin), name)
    bare = work.look(str(tmp_path / name))
    assert bare is not None
    assert (bare.bare, bare.root, bare.commit) == (True, str(tmp_path / name), head(origin))
    git(tmp_path / name, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "topic"))
    linked = work.look(str(tmp_path / "topic"))
    assert linked is not None
    assert (linked.bare, linked.root, linked.top) == (True, str(tmp_path / name), str(tmp_path / "topic"))
    assert linked.branch == "topic"


def test_a_detached_head(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    git(root, "checkout", "-q", "--detach")
    facts = work.look(str(root))
    assert facts is not None
    assert (facts.branch, facts.commit) == (None, head(root))


def test_a_shallow_repository(tmp_path: Path, work: GitWorkTrees) -> None:
    origin = repository(tmp_path / "origin")
    commit(origin, "a.txt", "second\n")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{origin}", "arc")
    facts = work.look(str(tmp_path / "arc"))
    assert facts is not None
    assert facts.shallow
    tree = add(work, tmp_path / "arc")
    commit(tree, "n.txt", "n\n")
    state = work.state(str(tree), "main.auth", "main")
    assert (state.ahead, state.behind, state.unpushed, state.problem) == (1, 0, 1, None)
    preview = work.preview_merge(str(tmp_path / "arc"), "main", "main.auth")
    work.merge(str(tmp_path / "arc"), preview, "merge", lambda _: None)
    assert (tmp_path / "arc" / "n.txt").read_text() == "n\n"


def test_a_sparse_checkout_stays_sparse_in_its_work_trees(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    commit(root, "other/d.txt", "d\n")
    git(root, "sparse-checkout", "set", "below")
    facts = work.look(str(root))
    assert facts is not None
    assert (facts.sparse, facts.uncommitted) == (True, ())
    added = work.add(str(root), "main.auth", "auth", head(root))
    tree = Path(added.path)
    assert files(tree) == {"a.txt", "b.txt", "below/c.txt"}
    assert any("sparse" in note for note in added.notes)
    assert git(tree, "status", "--porcelain") == ""
    assert work.state(added.path, "main.auth", "main").uncommitted == ()
    (tree / "other").mkdir()
    (tree / "other" / "d.txt").write_text("written outside of the sparse part\n")
    assert work.state(added.path, "main.auth", "main").uncommitted == ("other/d.txt",)


def test_submodules_are_named_and_their_folders_stay_empty(tmp_path: Path, work: GitWorkTrees) -> None:
    root, other = repository(tmp_path / "arc"), repository(tmp_path / "other")
    git(root, "submodule", "--quiet", "add", str(other), "lib/other")
    git(root, "commit", "-q", "-m", "with a submodule")
    facts = work.look(str(root))
    assert facts is not None
    assert facts.submodules == ("lib/other",)
    added = work.add(str(root), "main.auth", "auth", head(root))
    assert list((Path(added.path) / "lib/other").iterdir()) == []
    assert any("lib/other" in note and "scout project set worktree.setup" in note for note in added.notes)
    assert work.state(added.path, "main.auth", "main").uncommitted == ()


def test_what_a_submodule_holds_is_uncommitted(tmp_path: Path, work: GitWorkTrees) -> None:
    root, other = repository(tmp_path / "arc"), repository(tmp_path / "other")
    git(root, "submodule", "--quiet", "add", str(other), "lib")
    git(root, "commit", "-q", "-m", "with a submodule")
    tree = add(work, root)
    git(tree, "submodule", "--quiet", "update", "--init")
    assert work.state(str(tree), "main.auth", "main").uncommitted == ()
    (tree / "lib" / "a.txt").write_text("changed\n")
    assert work.state(str(tree), "main.auth", "main").uncommitted == ("lib/a.txt",)
    commit(tree / "lib", "a.txt", "committed\n")
    names = work.state(str(tree), "main.auth", "main").uncommitted
    assert any("1 commits that no remote has" in name for name in names)


def test_a_submodule_is_a_repository_with_work_trees_too(tmp_path: Path, work: GitWorkTrees) -> None:
    root, other = repository(tmp_path / "arc"), repository(tmp_path / "other")
    git(root, "submodule", "--quiet", "add", str(other), "lib")
    inner = root / "lib"
    facts = work.look(str(inner))
    assert facts is not None
    assert (facts.root, facts.top) == (str(inner), str(inner))
    tree = add(work, inner)
    linked = work.look(str(tree))
    assert linked is not None
    assert (linked.root, linked.top, linked.bare) == (str(inner), str(tree), False)


def test_a_work_tree_of_a_work_tree_has_the_main_work_tree_as_its_root(
    tmp_path: Path, work: GitWorkTrees
) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    facts = work.look(str(tree / "below"))
    assert facts is not None
    assert (facts.root, facts.top, facts.branch) == (str(root), str(tree), "main.auth")
    child = Path(work.add(facts.root, "main.auth.sub", "sub", head(tree)).path)
    assert child.parent == tree.parent
    assert files(child) == files(tree)


def test_a_separate_git_folder(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc", "--separate-git-dir", str(tmp_path / "elsewhere"))
    tree = add(work, root)
    assert work.state(str(tree), "main.auth", "main").problem is None
    assert git(tree, "status", "--porcelain") == ""
    assert (tmp_path / "elsewhere" / "worktrees" / "auth").is_dir()


@pytest.mark.skipif(os.getuid() != 0, reason="NOT PROVED HERE: needs root to give a folder to another user")
def test_a_repository_of_another_user(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    for path in (root, *root.rglob("*")):
        os.chown(path, 65534, 65534)
    facts = work.look(str(root))
    assert facts is not None
    assert facts.commit is not None
    assert work.list_trees(str(root))[0].path == str(root)


# -- adding ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("branch", ["main", "release-1.2", "feature/x", "Über/ñ.v2"])
@pytest.mark.parametrize("folder", ["arc", "a b", "Répo ☂", 'q"u:o\\te', "-rf"])
def test_a_work_tree_is_added_under_any_name(
    tmp_path: Path, work: GitWorkTrees, branch: str, folder: str
) -> None:
    root = repository(tmp_path / folder)
    git(root, "checkout", "-q", "-B", branch)
    added = work.add(str(root), f"{branch}.auth", "auth", head(root))
    tree = root / ".scout" / "worktrees" / "auth"
    assert (added.path, added.branch, added.commit, added.notes) == (
        str(tree),
        f"{branch}.auth",
        head(root),
        (),
    )
    assert files(tree) == files(root)
    for place in (root, tree):
        assert git(place, "status", "--porcelain") == ""
    assert git(tree, "rev-parse", "--abbrev-ref", "HEAD") == f"{branch}.auth"
    assert work.list_trees(str(root)) == (
        GitTree(path=str(root), branch=branch, commit=head(root)),
        GitTree(path=str(tree), branch=f"{branch}.auth", commit=head(root)),
    )


def test_files_are_as_git_checks_them_out(tmp_path: Path, work: GitWorkTrees) -> None:
    """Line endings, encodings, modes and links."""
    root = repository(tmp_path / "arc")
    (root / ".gitattributes").write_text("*.bat text eol=crlf\n*.utf text working-tree-encoding=UTF-16LE\n")
    (root / "run.bat").write_bytes(b"one\r\ntwo\r\n")
    (root / "wide.utf").write_bytes("wide\n".encode("utf-16-le"))
    (root / "tool").write_text("#!/bin/sh\n")
    (root / "tool").chmod(0o755)
    (root / "link").symlink_to("a.txt")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "kinds of files")
    tree = add(work, root)
    git(root, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "other")
    for name in ("run.bat", "wide.utf", "tool", "a.txt"):
        assert (tree / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
        assert (tree / name).stat().st_mode == (tmp_path / "other" / name).stat().st_mode
    assert (tree / "link").readlink() == Path("a.txt")
    assert git(tree, "status", "--porcelain") == ""
    assert work.state(str(tree), "main.auth", "main").uncommitted == ()


@pytest.mark.parametrize("setting", ["true", "input"])
def test_line_endings_that_the_repository_sets(tmp_path: Path, work: GitWorkTrees, setting: str) -> None:
    root = repository(tmp_path / "arc")
    git(root, "config", "core.autocrlf", setting)
    tree = add(work, root)
    assert (tree / "a.txt").read_bytes() == (b"a.txt\r\n" if setting == "true" else b"a.txt\n")
    assert git(tree, "status", "--porcelain") == ""
    (tree / "a.txt").touch()
    assert work.state(str(tree), "main.auth", "main").uncommitted == ()


def test_filtered_files_come_as_stored_and_a_note_names_the_filter(
    tmp_path: Path, work: GitWorkTrees
) -> None:
    root = repository(tmp_path / "arc")
    commit(root, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    commit(root, "x.bin", "version https://git-lfs.github.com/spec/v1\n")
    git(root, "config", "filter.lfs.smudge", "exit 1")
    git(root, "config", "filter.lfs.required", "true")
    added = work.add(str(root), "main.auth", "auth", head(root))
    assert Path(added.path, "x.bin").read_text().startswith("version https")
    assert any("the filter lfs" in note for note in added.notes)


def test_repositories_by_sha256_and_with_a_split_index(tmp_path: Path, work: GitWorkTrees) -> None:
    for number, options in enumerate((("--object-format=sha256",), ())):
        root = repository(tmp_path / f"arc{number}", *options)
        if number:
            git(root, "update-index", "--split-index")
        tree = add(work, root)
        commit(tree, "n.txt", "n\n")
        git(tree, "update-index", "--split-index")
        (tree / "a.txt").write_text("changed\n")
        state = work.state(str(tree), "main.auth", "main")
        assert (state.uncommitted, state.ahead, state.problem) == (("a.txt",), 1, None)
        git(tree, "checkout", "-q", "a.txt")
        preview = work.preview_merge(str(root), "main", "main.auth")
        work.merge(str(root), preview, "merge", lambda _: None)
        assert git(root, "status", "--porcelain") == ""
        assert (root / "n.txt").exists()


def test_what_cannot_be_added_leaves_nothing_behind(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    git(root, "branch", "main.taken")
    (root / ".scout" / "worktrees" / "there").mkdir(parents=True)
    missing = "1" * 40
    wishes = (
        ("main.taken", "taken", head(root), "already exists"),
        ("main.there", "there", head(root), "exists"),
        ("main.gone", "gone", missing, "nonexistent object"),
        ("main..x", "x", head(root), "refusing to update ref"),
        ("main.dots", "..", head(root), "cannot be the folder"),
        ("main.slash", "a/b", head(root), "cannot be the folder"),
    )
    for branch, folder, base, problem in wishes:
        with pytest.raises(GitFailed, match=problem):
            work.add(str(root), branch, folder, base)
    assert git(root, "branch", "--format=%(refname:short)").splitlines() == ["main", "main.taken"]
    assert len(work.list_trees(str(root))) == 1
    assert [path.name for path in (root / ".scout" / "worktrees").iterdir()] == ["there"]


def test_a_branch_that_is_taken_back_when_its_work_tree_fails(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    (root / ".git" / "worktrees").write_text("in the way\n")
    with pytest.raises(GitFailed):
        work.add(str(root), "main.auth", "auth", head(root))
    assert git(root, "branch", "--list", "main.auth") == ""
    (root / ".git" / "worktrees").unlink()
    assert work.add(str(root), "main.auth", "auth", head(root)).commit == head(root)


def test_a_checkout_that_fails_is_taken_back(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    blob = head(root, "HEAD:below/c.txt")
    stored = root / ".git" / "objects" / blob[:2] / blob[2:]
    stored.rename(tmp_path / "blob")
    with pytest.raises(GitFailed, match="unable to read"):
        work.add(str(root), "main.auth", "auth", head(root))
    assert git(root, "branch", "--list", "main.auth") == ""
    assert len(work.list_trees(str(root))) == 1
    assert list((root / ".scout" / "worktrees").iterdir()) == []
    (tmp_path / "blob").rename(stored)
    assert files(Path(work.add(str(root), "main.auth", "auth", head(root)).path)) == files(root)


@pytest.mark.parametrize("part", [".scout", ".scout/worktrees"])
def test_a_scout_folder_that_is_a_link_is_refused(tmp_path: Path, work: GitWorkTrees, part: str) -> None:
    root = repository(tmp_path / "arc")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / part).parent.mkdir(exist_ok=True)
    (root / part).symlink_to(elsewhere)
    with pytest.raises(GitFailed, match="it is a link"):
        work.add(str(root), "main.auth", "auth", head(root))
    assert list(elsewhere.iterdir()) == []
    assert git(root, "branch", "--list", "main.auth") == ""


def test_a_read_only_disk_is_named(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    git(root, "branch", "main.free")
    bound = subprocess.run(["mount", "--bind", root, root], check=False, capture_output=True)
    if bound.returncode:
        pytest.skip("NOT PROVED HERE: needs root to mount a disk read-only")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", root], check=True, capture_output=True)
        facts = work.look(str(root))
        assert facts is not None
        assert facts.commit == head(root)
        assert work.state(str(tree), "main.auth", "main").problem is None
        assert not work.preview_merge(str(root), "main", "main.auth").needed
        for change in (
            lambda: work.add(str(root), "main.other", "other", head(root)),
            lambda: work.remove(str(tree)),
            lambda: work.delete_branch(str(root), "main.free", head(root)),
        ):
            with pytest.raises(GitFailed, match="Read-only file system"):
                change()
    finally:
        subprocess.run(["umount", root], check=True, capture_output=True)
    assert work.state(str(tree), "main.auth", "main").uncommitted == ()
    assert len(work.list_trees(str(root))) == 2


# -- comparing -------------------------------------------------------------------------------------


def test_a_work_tree_is_compared_with_its_parent(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    fresh = work.state(str(tree), "main.auth", "main")
    assert (fresh.branch, fresh.commit, fresh.uncommitted, fresh.unmerged) == (
        "main.auth",
        head(root),
        (),
        (),
    )
    assert (fresh.unpushed, fresh.ahead, fresh.behind, fresh.operation) == (0, 0, 0, None)
    commit(root, "root.txt", "r\n")
    first = commit(tree, "one.txt", "1\n", "first of auth")
    second = commit(tree, "two.txt", "2\n", "second of auth: ü")
    for name in ("x.txt", "y.txt", "z.txt"):
        (tree / name).write_text(name)
    (tree / "a.txt").unlink()
    state = work.state(str(tree), "main.auth", "main", most=3)
    assert state.uncommitted == ("a.txt", "x.txt", "y.txt")
    assert state.more_uncommitted == 1
    assert (state.ahead, state.behind, state.unpushed) == (2, 1, 2)
    assert [line.split(" ", 1)[1] for line in state.unmerged] == ["second of auth: ü", "first of auth"]
    assert second.startswith(state.unmerged[0].split()[0])
    assert first.startswith(state.unmerged[1].split()[0])


def test_commits_that_another_branch_or_a_remote_has_are_not_unpushed(
    tmp_path: Path, work: GitWorkTrees
) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    pushed = commit(tree, "one.txt", "1\n")
    commit(tree, "two.txt", "2\n")
    assert work.state(str(tree), "main.auth", "main").unpushed == 2
    git(root, "update-ref", "refs/remotes/origin/main.auth", pushed)
    assert work.state(str(tree), "main.auth", "main").unpushed == 1
    git(root, "branch", "kept", "main.auth")
    state = work.state(str(tree), "main.auth", "main")
    assert (state.unpushed, state.ahead, len(state.unmerged)) == (0, 2, 2)


def test_without_a_parent_branch_only_what_nobody_has_is_counted(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    commit(tree, "one.txt", "1\n")
    for parent in (None, "gone"):
        state = work.state(str(tree), "main.auth", parent)
        assert (state.unpushed, state.ahead, state.unmerged) == (1, 0, ())


def test_commits_on_a_detached_head_count(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    git(tree, "checkout", "-q", "--detach")
    commit(tree, "one.txt", "1\n", "on no branch")
    state = work.state(str(tree), "main.auth", "main")
    assert (state.branch, state.unpushed, state.ahead) == (None, 1, 1)
    assert state.unmerged[0].endswith("on no branch")


def test_a_renamed_branch_is_followed(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    commit(tree, "one.txt", "1\n")
    git(tree, "branch", "-m", "main.auth", "topic")
    state = work.state(str(tree), "main.auth", "main")
    assert (state.branch, state.ahead, state.unpushed) == ("topic", 1, 1)


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
def test_changes_that_git_was_told_to_hide_are_found(tmp_path: Path, work: GitWorkTrees, mark: str) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    for version in ("2", "4"):
        git(tree, "update-index", f"--index-version={version}")
        git(tree, "update-index", mark, "below/c.txt")
        (tree / "below" / "c.txt").write_text("hidden\n")
        assert git(tree, "status", "--porcelain") == ""
        assert work.state(str(tree), "main.auth", "main").uncommitted == ("below/c.txt",)
        (tree / "below" / "c.txt").write_text("below/c.txt\n")
        assert work.state(str(tree), "main.auth", "main").uncommitted == ()


def test_hidden_changes_are_found_under_long_names(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    names = [f"{'x' * 200}/{letter * 200}/{'y' * 200}" for letter in "abc"] + ["z"]
    deep = "/".join(["d" * 200] * 21)  # longer than the length that an entry of the index can state
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("1\n")
    git(root, "add", "-A")
    blob = git(root, "hash-object", "a.txt")
    git(root, "update-index", "--add", "--cacheinfo", f"100644,{blob},{deep}")
    git(root, "commit", "-q", "-m", "long names")
    for version in ("2", "4"):
        git(root, "update-index", f"--index-version={version}")
        git(root, "update-index", "--skip-worktree", deep)
        git(root, "update-index", "--assume-unchanged", *names)
        (root / names[1]).write_text("2\n")
        facts = work.look(str(root))
        assert facts is not None
        assert facts.uncommitted == (names[1],)
        (root / names[1]).write_text("1\n")


def test_an_operation_in_progress_is_named(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    commit(tree, "a.txt", "here\n")
    commit(root, "a.txt", "there\n")
    for operation, words in {"merge": ("merge", "main"), "rebase": ("rebase", "main")}.items():
        git(tree, *words, check=False)
        state = work.state(str(tree), "main.auth", "main")
        assert (state.operation, state.uncommitted) == (operation, ("a.txt",))
        assert (state.branch, state.ahead) == ("main.auth", 1)
        git(tree, operation, "--abort")


def test_many_work_trees_are_compared_at_once(tmp_path: Path, work: GitWorkTrees) -> None:
    one, other = repository(tmp_path / "one"), repository(tmp_path / "other")
    wanted = [
        TreeToCompare(str(add(work, root, f"s{n}")), f"main.s{n}", "main")
        for root in (one, other)
        for n in range(3)
    ]
    (Path(wanted[1].path) / "new.txt").write_text("new\n")
    nowhere = TreeToCompare(str(tmp_path / "nowhere"), "main.x", "main")
    states = work.states([*wanted, nowhere])
    assert [state.path for state in states] == [one.path for one in (*wanted, nowhere)]
    assert [state.uncommitted for state in states] == [(), ("new.txt",), (), (), (), (), ()]
    assert [state.problem is None for state in states] == [True] * 6 + [False]


def test_a_missing_or_broken_folder_is_a_problem_and_its_commits_still_count(
    tmp_path: Path, work: GitWorkTrees
) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    commit(tree, "one.txt", "1\n")
    (tree / ".git").unlink()
    broken = work.state(str(tree), "main.auth", "main")
    assert "not a git work tree" in (broken.problem or "")
    assert (broken.unpushed, broken.uncommitted) == (1, ())
    shutil.rmtree(tree)
    missing = work.state(str(tree), "main.auth", "main")
    assert missing.problem == f"{tree} is missing"
    assert (missing.ahead, len(missing.unmerged)) == (1, 1)
    assert work.list_trees(str(root))[1].missing


def test_a_damaged_index_is_a_problem_and_not_an_empty_list(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    (root / ".git/worktrees/auth/index").write_bytes(b"DIRC\0\0\0\2\0\0\0\xffno index")
    assert "index" in (work.state(str(tree), "main.auth", "main").problem or "")


def test_scouts_own_files_are_not_uncommitted_even_if_the_repository_shows_them(
    tmp_path: Path, work: GitWorkTrees
) -> None:
    root = repository(tmp_path / "arc")
    commit(root, ".scout/.gitignore", "!*\n")
    tree = add(work, root)
    (tree / ".scout" / "identity.json").write_text("{}")
    (tree / "identity.json").write_text("of the user")
    assert work.state(str(tree), "main.auth", "main").uncommitted == ("identity.json",)


# -- removing and restoring ------------------------------------------------------------------------


def test_a_work_tree_is_removed_with_everything_in_it_and_its_branch_stays(
    tmp_path: Path, work: GitWorkTrees
) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    (tree / "new.txt").write_text("new\n")
    (tree / "ro").mkdir(mode=0o500)
    git(root, "worktree", "lock", str(tree))
    work.remove(str(tree))
    assert not tree.exists()
    assert len(work.list_trees(str(root))) == 1
    assert not (root / ".git/worktrees/auth").exists()
    assert [path.name for path in tree.parent.iterdir()] == []
    assert git(root, "branch", "--list", "main.auth") != ""
    work.remove(str(tree))  # a second time is no failure


def test_half_removed_work_trees_are_removed(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    for number, damage in enumerate(("folder", "pointer", "administration")):
        tree = add(work, root, f"s{number}")
        if damage == "folder":
            shutil.rmtree(tree)
        if damage == "pointer":
            (tree / ".git").unlink()
        if damage == "administration":
            shutil.rmtree(root / f".git/worktrees/s{number}")
        work.remove(str(tree))
        assert not tree.exists()
    assert len(work.list_trees(str(root))) == 1


def test_only_linked_work_trees_are_removed(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    (root / "below").mkdir(exist_ok=True)
    inner = repository(root / "vendor")
    for path in (root, root / "below", inner, tmp_path):
        with pytest.raises(GitFailed):
            work.remove(str(path))
    assert files(root) >= {"a.txt", "below/c.txt", "vendor/a.txt"}


def test_a_branch_is_deleted_only_where_it_is_expected_and_unused(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    base = head(root)
    with pytest.raises(GitFailed, match="is checked out in"):
        work.delete_branch(str(root), "main.auth", base)
    moved = commit(tree, "one.txt", "1\n")
    work.remove(str(tree))
    with pytest.raises(GitFailed, match=f"is at {moved[:12]}, not at {base[:12]}"):
        work.delete_branch(str(root), "main.auth", base)
    work.delete_branch(str(root), "main.auth", moved)
    work.delete_branch(str(root), "main.auth", moved)
    assert git(root, "branch", "--list", "main.auth") == ""


def test_a_missing_work_tree_is_restored_with_what_was_staged(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    commit(tree, "one.txt", "1\n")
    (tree / "staged.txt").write_text("staged\n")
    git(tree, "add", "staged.txt")
    shutil.rmtree(tree)
    work.restore_missing(str(tree), "main.auth", str(root))
    assert git(tree, "status", "--porcelain") == "A  staged.txt"
    assert (tree / "staged.txt").read_text() == "staged\n"
    assert (tree / "one.txt").read_text() == "1\n"
    with pytest.raises(GitFailed, match="exists"):
        work.restore_missing(str(tree), "main.auth", str(root))


def test_a_work_tree_that_git_has_forgotten_is_restored(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    tree = add(work, root)
    shutil.rmtree(tree)
    git(root, "worktree", "prune")
    work.restore_missing(str(tree), "main.auth", str(root))
    assert git(tree, "status", "--porcelain") == ""
    assert work.list_trees(str(root))[1].locked is None
    with pytest.raises(GitFailed, match="no branch"):
        work.restore_missing(str(tree.parent / "other"), "main.other", str(root))


def test_commits_are_found_by_any_revision(tmp_path: Path, work: GitWorkTrees) -> None:
    root = repository(tmp_path / "arc")
    git(root, "tag", "-a", "v1", "-m", "one")
    for revision in ("main", "v1", "HEAD", head(root)[:8], "refs/heads/main"):
        assert work.find_commit(str(root), revision) == head(root)
    for revision in ("", "nothing", "--all", "-h", "HEAD:a.txt", "a b", "\n"):
        assert work.find_commit(str(root), revision) is None
    with pytest.raises(GitFailed, match="not a git work tree"):
        work.find_commit(str(tmp_path), "main")
