"""Merging a branch into the branch of a parent: previewed, checked, carried out, completed and taken back."""

import os
import subprocess
from pathlib import Path

import pytest

from scout.ports import GitFailed, MergedBranch, MergePreview
from scout.tree.worktrees import GitWorkTrees
from tests.tree.repositories import commit, files, git, head, repository, trees


@pytest.fixture
def tree(root: Path, work: GitWorkTrees) -> Path:
    """A work tree on `main.auth` with one commit: a file changed, one added, one removed."""
    tree = Path(work.add(str(root), "main.auth", "auth", head(root)).path)
    (tree / "a.txt").write_text("changed\n")
    (tree / "b.txt").unlink()
    commit(tree, "new/n.txt", "n\n")
    return tree


def preview(work: GitWorkTrees, root: Path, into: str = "main", branch: str = "main.auth") -> MergePreview:
    return work.preview_merge(str(root), into, branch)


def merge(work: GitWorkTrees, root: Path, into: str = "main", branch: str = "main.auth") -> MergedBranch:
    return work.merge(str(root), preview(work, root, into, branch), f"Merge {branch}", lambda _: None)


def objects(root: Path) -> set[str]:
    return {str(path) for path in (root / ".git" / "objects").rglob("*") if path.is_file()}


MERGED = {"a.txt", "below/c.txt", "new/n.txt"}


def test_a_preview_leaves_no_trace(root: Path, tree: Path, work: GitWorkTrees) -> None:
    commit(root, "root.txt", "r\n")
    before = objects(root)
    tried = preview(work, root)
    assert (tried.needed, tried.conflicts, tried.into) == (True, (), "main")
    assert (tried.into_commit, tried.commit) == (head(root), head(tree))
    assert tried.tree is not None
    assert objects(root) == before
    assert git(root, "status", "--porcelain") == ""


def test_conflicts_are_listed(root: Path, tree: Path, work: GitWorkTrees) -> None:
    commit(root, "a.txt", "otherwise\n")
    commit(root, "b.txt", "changed, where the child removed it\n")
    tried = preview(work, root)
    assert (tried.tree, tried.conflicts) == (None, ("a.txt", "b.txt"))
    with pytest.raises(GitFailed, match=r"conflicts in a\.txt, b\.txt"):
        merge(work, root)
    with pytest.raises(GitFailed, match="conflicts"):
        work.check_merge(str(root), tried, "true", 10)
    assert git(root, "status", "--porcelain") == ""


def test_what_is_merged_already_needs_no_merge(root: Path, tree: Path, work: GitWorkTrees) -> None:
    first = merge(work, root)
    again = preview(work, root)
    assert (again.needed, again.tree, again.conflicts) == (False, None, ())
    assert merge(work, root) == MergedBranch(commit=first.commit, before=first.commit, undo=())


def test_branches_that_do_not_exist_and_histories_that_never_met(
    tmp_path: Path, root: Path, tree: Path, work: GitWorkTrees
) -> None:
    with pytest.raises(GitFailed, match="no branch gone"):
        preview(work, root, branch="gone")
    with pytest.raises(GitFailed, match="no branch gone"):
        preview(work, root, into="gone")
    git(root, "checkout", "-q", "--orphan", "stranger")
    git(root, "commit", "-q", "-m", "another beginning")
    with pytest.raises(GitFailed, match="unrelated histories"):
        preview(work, root, branch="stranger")


def test_a_merge_moves_the_branch_and_its_work_tree(root: Path, tree: Path, work: GitWorkTrees) -> None:
    before = head(root)
    told: list[str] = []

    def begun(commit: str) -> None:
        told.append(commit)
        assert head(root) == before

    merged = work.merge(str(root), preview(work, root), "Merge auth\n\nDone.", begun)
    assert told == [merged.commit] == [head(root)]
    assert merged.before == before
    assert git(root, "rev-parse", "HEAD^1", "HEAD^2").split() == [before, head(tree)]
    assert git(root, "log", "-1", "--format=%B") == "Merge auth\n\nDone."
    assert files(root) == MERGED
    assert (root / "a.txt").read_text() == "changed\n"
    assert git(root, "status", "--porcelain") == ""
    assert "scout: merge" in git(root, "reflog", "-1", "main")
    subprocess.run(merged.undo, check=True, capture_output=True)
    assert (head(root), files(root)) == (before, {"a.txt", "b.txt", "below/c.txt"})
    assert git(root, "status", "--porcelain") == ""


def test_the_commit_is_the_users(
    tmp_path: Path, root: Path, tree: Path, work: GitWorkTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    git(root, "config", "user.name", "of the repository")
    merge(work, root)
    assert git(root, "log", "-1", "--format=%an <%ae>|%cn <%ce>") == (
        "Scout <scout@localhost>|Scout <scout@localhost>"
    )
    (tmp_path / ".gitconfig").write_text('[user]\n\tname = "Ada L"\n\temail = ada@example.org\n')
    commit(tree, "more.txt", "m\n")
    merge(work, root)
    assert git(root, "log", "-1", "--format=%an <%ae>") == "Ada L <ada@example.org>"


def test_new_and_ignored_files_that_are_not_in_the_way_stay(
    root: Path, tree: Path, work: GitWorkTrees
) -> None:
    (root / "notes.txt").write_text("mine\n")
    (root / "new").mkdir()
    (root / "new" / "mine.txt").write_text("mine\n")
    (root / "a.txt").touch()
    merge(work, root)
    assert files(root) == MERGED | {"notes.txt", "new/mine.txt"}


@pytest.mark.parametrize("kind", ["changed", "staged", "removed", "hidden"])
def test_a_parent_with_changes_is_refused(root: Path, tree: Path, work: GitWorkTrees, kind: str) -> None:
    if kind == "hidden":
        git(root, "update-index", "--assume-unchanged", "a.txt")
    (root / "a.txt").write_text("mine!!!\n")
    if kind == "staged":
        git(root, "add", "a.txt")
    if kind == "removed":
        (root / "a.txt").unlink()
    before = (head(root), files(root))
    with pytest.raises(GitFailed, match=r"uncommitted changes in a\.txt"):
        merge(work, root)
    assert (head(root), files(root)) == before
    assert kind == "removed" or (root / "a.txt").read_text() == "mine!!!\n"


@pytest.mark.parametrize("ignored", [True, False])
@pytest.mark.parametrize("place", ["new/n.txt", "new", "new/n.txt/deep"])
def test_files_that_a_merge_would_overwrite_are_named(
    root: Path, tree: Path, work: GitWorkTrees, place: str, *, ignored: bool
) -> None:
    """Git itself overwrites ignored files without a word."""
    if ignored:
        (root / ".git" / "info").mkdir(exist_ok=True)
        (root / ".git" / "info" / "exclude").write_text("new\n")
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).write_text("mine\n")
    before = head(root)
    with pytest.raises(GitFailed, match=f"would overwrite {place} in"):
        merge(work, root)
    assert (root / place).read_text() == "mine\n"
    assert head(root) == before
    assert (root / "b.txt").exists()


def test_a_file_becomes_a_folder_and_a_folder_a_file(root: Path, tree: Path, work: GitWorkTrees) -> None:
    (tree / "a.txt").unlink()
    commit(tree, "a.txt/inside.txt", "i\n")
    git(tree, "rm", "-q", "-r", "below")
    commit(tree, "below", "a file now\n")
    merge(work, root)
    assert files(root) == {"a.txt/inside.txt", "below", "new/n.txt"}
    assert git(root, "status", "--porcelain") == ""


def test_a_branch_that_nobody_has_checked_out(root: Path, tree: Path, work: GitWorkTrees) -> None:
    git(root, "checkout", "-q", "-b", "elsewhere")
    before = head(root, "main")
    merged = merge(work, root)
    assert (head(root, "main"), files(root)) == (merged.commit, {"a.txt", "b.txt", "below/c.txt"})
    subprocess.run(merged.undo, check=True, capture_output=True)
    assert head(root, "main") == before


def test_a_parent_in_another_work_tree(root: Path, tree: Path, work: GitWorkTrees) -> None:
    child = Path(work.add(str(root), "main.auth.sub", "sub", head(tree)).path)
    commit(child, "sub.txt", "s\n")
    merge(work, child, "main.auth", "main.auth.sub")
    assert (tree / "sub.txt").exists()
    assert git(tree, "status", "--porcelain") == ""
    assert not (root / "sub.txt").exists()


def test_a_branch_that_moved_since_the_preview(root: Path, tree: Path, work: GitWorkTrees) -> None:
    tried = preview(work, root)
    moved = commit(root, "root.txt", "r\n")
    with pytest.raises(GitFailed, match="has moved since"):
        work.merge(str(root), tried, "merge", lambda _: None)
    assert head(root) == moved


def test_a_child_that_moved_since_the_preview_is_merged_as_it_was(
    root: Path, tree: Path, work: GitWorkTrees
) -> None:
    tried = preview(work, root)
    commit(tree, "later.txt", "l\n")
    work.merge(str(root), tried, "merge", lambda _: None)
    assert files(root) == MERGED
    assert preview(work, root).needed


def test_a_parent_in_the_middle_of_something_is_refused(root: Path, tree: Path, work: GitWorkTrees) -> None:
    git(root, "checkout", "-q", "-b", "side")
    commit(root, "below/c.txt", "side\n")
    git(root, "checkout", "-q", "main")
    commit(root, "below/c.txt", "main\n")
    git(root, "merge", "side", check=False)
    with pytest.raises(GitFailed, match="a merge is in progress"):
        merge(work, root)
    git(root, "merge", "--abort")
    git(root, "rebase", "side", check=False)
    with pytest.raises(GitFailed, match="main is being rebased"):
        merge(work, root)
    git(root, "rebase", "--abort")
    merge(work, root)


def test_a_sparse_parent_stays_sparse(root: Path, tree: Path, work: GitWorkTrees) -> None:
    git(root, "sparse-checkout", "set", "below")
    commit(tree, "below/d.txt", "d\n")
    merge(work, root)
    assert files(root) == {"a.txt", "below/c.txt", "below/d.txt"}
    assert git(root, "status", "--porcelain") == ""


def test_attributes_decide_how_files_are_merged(root: Path, work: GitWorkTrees) -> None:
    commit(root, ".gitattributes", "log.txt merge=union\npicture -merge\n")
    commit(root, "log.txt", "start\n")
    commit(root, "picture", "1\n\n\n\n\n\n2\n")
    tree = Path(work.add(str(root), "main.auth", "auth", head(root)).path)
    commit(tree, "log.txt", "start\nchild\n")
    commit(root, "log.txt", "start\nparent\n")
    merge(work, root)
    assert {*(root / "log.txt").read_text().split()} == {"start", "child", "parent"}
    commit(tree, "picture", "one\n\n\n\n\n\n2\n")
    commit(root, "picture", "1\n\n\n\n\n\ntwo\n")
    assert preview(work, root).conflicts == ("picture",)


# -- interrupted merges ----------------------------------------------------------------------------


class _PowerCutError(Exception):
    """Ends a merge after the commit is stored."""


def interrupted(work: GitWorkTrees, root: Path) -> tuple[str, str]:
    """A merge that was interrupted when its commit was stored: the commits before and after."""
    told: list[str] = []

    def begun(commit: str) -> None:
        told.append(commit)
        raise _PowerCutError

    tried = preview(work, root)
    with pytest.raises(_PowerCutError):
        work.merge(str(root), tried, "merge", begun)
    return tried.into_commit, told[0]


@pytest.mark.parametrize("point", ["nothing", "some files", "all files", "index", "branch"])
def test_an_interrupted_merge_is_completed(root: Path, tree: Path, work: GitWorkTrees, point: str) -> None:
    before, after = interrupted(work, root)
    if point == "some files":
        (root / "a.txt").write_text("changed\n")
        (root / "new").mkdir()
    if point == "all files":
        (root / "a.txt").write_text("changed\n")
        (root / "b.txt").unlink()
        (root / "new").mkdir()
        (root / "new" / "n.txt").write_text("n\n")
    if point in ("index", "branch"):
        git(root, "read-tree", "-m", "-u", before, after)
    if point == "branch":
        git(root, "update-ref", "refs/heads/main", after, before)
    (root / "notes.txt").write_text("mine\n")
    for _ in range(2):
        work.finish_merge(str(root), "main", before, after)
        assert head(root) == after
        assert files(root) == MERGED | {"notes.txt"}
        assert git(root, "status", "--porcelain") == "?? notes.txt"


@pytest.mark.parametrize("kind", ["changed", "removed", "in the way", "staged", "gone in both"])
def test_an_interrupted_merge_never_overwrites_what_came_meanwhile(
    root: Path, tree: Path, work: GitWorkTrees, kind: str
) -> None:
    before, after = interrupted(work, root)
    name = {"removed": "b.txt", "in the way": "new/n.txt", "gone in both": "below/c.txt"}.get(kind, "a.txt")
    (root / name).parent.mkdir(exist_ok=True)
    if kind == "gone in both":
        (root / name).unlink()
    else:
        (root / name).write_text("mine\n")
    if kind == "staged":
        git(root, "add", name)
        (root / name).write_text("changed\n")
    with pytest.raises(GitFailed, match=f"uncommitted changes in {name}"):
        work.finish_merge(str(root), "main", before, after)
    assert head(root) == before
    assert kind in ("staged", "gone in both") or (root / name).read_text() == "mine\n"


def test_an_interrupted_merge_of_a_branch_that_went_elsewhere(
    root: Path, tree: Path, work: GitWorkTrees
) -> None:
    before, after = interrupted(work, root)
    moved = commit(root, "root.txt", "r\n")
    with pytest.raises(GitFailed, match="has moved since the merge began"):
        work.finish_merge(str(root), "main", before, after)
    assert head(root) == moved
    git(root, "reset", "-q", "--hard", after)
    onward = commit(root, "root.txt", "r\n")
    work.finish_merge(str(root), "main", before, after)  # it is complete, and more came after it
    assert head(root) == onward


# -- checks ----------------------------------------------------------------------------------------


def test_a_check_runs_in_the_merged_files_and_leaves_nothing(
    tmp_path: Path, root: Path, tree: Path, work: GitWorkTrees
) -> None:
    commit(root, "root.txt", "r\n")
    tried = preview(work, root)
    passed = work.check_merge(str(root), tried, "cat a.txt root.txt; git status --porcelain; touch made", 20)
    assert (passed.exit_code, passed.output, passed.timed_out) == (0, "changed\nr\n", False)
    failed = work.check_merge(str(root), tried, "echo no >&2; exit 3", 20)
    assert (failed.exit_code, failed.output) == (3, "no\n")
    late = work.check_merge(str(root), tried, "sleep 60", 0.1)
    assert late.timed_out
    assert list((tmp_path / "data" / "checks").iterdir()) == []
    assert len(work.list_trees(str(root))) == 2
    assert (files(root), head(root)) == ({"a.txt", "b.txt", "below/c.txt", "root.txt"}, tried.into_commit)


def test_an_interrupted_check_is_removed_at_the_next_start(
    tmp_path: Path, root: Path, tree: Path, work: GitWorkTrees
) -> None:
    left = tmp_path / "data" / "checks" / "left"
    left.parent.mkdir(parents=True)
    git(root, "worktree", "add", "-q", "--detach", str(left))
    (tmp_path / "data" / "checks" / "half").mkdir()
    (tmp_path / "data" / "scratch" / "git-left").mkdir(parents=True)
    work.remove_leftovers()
    assert list(left.parent.iterdir()) == []
    assert not (tmp_path / "data" / "scratch").exists()
    assert [one.branch for one in work.list_trees(str(root))] == ["main", "main.auth"]
    trees(tmp_path / "fresh").remove_leftovers()


# -- saving ----------------------------------------------------------------------------------------


def test_uncommitted_files_are_saved_as_a_commit_without_a_branch(
    root: Path, tree: Path, work: GitWorkTrees
) -> None:
    assert work.save_uncommitted(str(tree), "nothing") is None
    (tree / "a.txt").write_text("dirty\n")
    (tree / "below" / "c.txt").unlink()
    (tree / "large.bin").write_bytes(os.urandom(1 << 20))
    (tree / ".gitignore").write_text("*.log\n")
    (tree / "noise.log").write_text("noise\n")
    status = git(tree, "status", "--porcelain")
    saved = work.save_uncommitted(str(tree), "Saved before discarding")
    assert saved is not None
    assert git(tree, "status", "--porcelain") == status
    assert head(root, f"{saved}^") == head(tree)
    assert git(root, "log", "-1", "--format=%s", saved) == "Saved before discarding"
    kept = git(root, "ls-tree", "-r", "--name-only", saved).splitlines()
    assert kept == [".gitignore", "a.txt", "large.bin", "new/n.txt"]
    assert git(root, "show", f"{saved}:a.txt") == "dirty"
    assert git(root, "fsck", "--strict", "--no-dangling") == ""
    assert work.save_uncommitted(str(tree), "Saved before discarding") != head(tree)


def test_files_before_the_first_commit_are_saved(tmp_path: Path, work: GitWorkTrees) -> None:
    git(tmp_path, "init", "-q", "fresh")
    (tmp_path / "fresh" / "a").write_text("a\n")
    saved = work.save_uncommitted(str(tmp_path / "fresh"), "saved")
    assert saved is not None
    assert git(tmp_path / "fresh", "show", "--format=%P", "--name-only", saved).split() == ["a"]


def test_what_a_repository_inside_holds_cannot_be_saved(
    tmp_path: Path, root: Path, tree: Path, work: GitWorkTrees
) -> None:
    origin = repository(tmp_path / "origin")
    git(tree, "clone", "-q", str(origin), "vendor")
    assert work.state(str(tree), "main.auth", "main").uncommitted == ("vendor/",)
    assert work.save_uncommitted(str(tree), "its commits are elsewhere") is not None
    (tree / "vendor" / "a.txt").write_text("changed\n")
    with pytest.raises(GitFailed, match=r"vendor/a\.txt is in a repository inside"):
        work.save_uncommitted(str(tree), "saved")
    commit(tree / "vendor", "a.txt", "changed\n")
    with pytest.raises(GitFailed, match="commits that no remote has"):
        work.save_uncommitted(str(tree), "saved")


def test_submodules_stay_in_what_is_saved(tmp_path: Path, root: Path, work: GitWorkTrees) -> None:
    other = repository(tmp_path / "other")
    git(root, "submodule", "--quiet", "add", str(other), "lib")
    git(root, "commit", "-q", "-m", "with a submodule")
    tree = Path(work.add(str(root), "main.auth", "auth", head(root)).path)
    assert work.save_uncommitted(str(tree), "nothing") is None
    (tree / "a.txt").write_text("dirty\n")
    saved = work.save_uncommitted(str(tree), "saved")
    assert git(root, "diff", "--name-only", head(tree), str(saved)) == "a.txt"
