"""Scout is killed at every git command of a change: what it left is completed or removed, and nothing is lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scout.ports import GitFailed
from scout.tree.worktrees import GitWorkTrees
from tests.tree.repositories import commit, files, git, head, repository, trees

_GIT = """#!/bin/sh
# Counts the commands, and kills its parent before or after one of them.
exec 9>>"$KILLS/lock"; flock 9
count=$(($(cat "$KILLS/count" 2>/dev/null || echo 0) + 1)); echo $count >"$KILLS/count"
exec 9>&-
[ "$count" = "$KILL_AT" ] || exec /usr/bin/env PATH="$REAL_PATH" git "$@"
[ "$KILL_WHEN" = after ] && PATH=$REAL_PATH git "$@"
kill -KILL $PPID
"""
_ADDING = """
import sys
from pathlib import Path
from scout.tree.worktrees import GitWorkTrees
data, root, base = sys.argv[1:]
GitWorkTrees(Path(data)).add(root, "main.auth", "auth", base)
"""
_REMOVING = """
import sys
from pathlib import Path
from scout.tree.worktrees import GitWorkTrees
data, root, base = sys.argv[1:]
work = GitWorkTrees(Path(data))
work.remove(root + "/.scout/worktrees/auth")
work.delete_branch(root, "main.auth", base)
"""
_MERGING = """
import sys
from pathlib import Path
from scout.tree.worktrees import GitWorkTrees
data, root, begun = sys.argv[1:]
work = GitWorkTrees(Path(data))
preview = work.preview_merge(root, "main", "main.auth")
work.merge(root, preview, "merge", lambda commit: Path(begun).write_text(f"{preview.into_commit} {commit}"))
"""


def run_killed(folder: Path, script: str, words: tuple[str, ...], at: int, when: str) -> bool:
    """Run a script that is killed at its n-th git command; whether it was killed."""
    wrapper = folder / "bin" / "git"
    wrapper.parent.mkdir(exist_ok=True)
    wrapper.write_text(_GIT)
    wrapper.chmod(0o755)
    # Git runs with an environment of Scout's, so the wrapper holds what it needs.
    kills = {"KILLS": str(folder), "KILL_AT": str(at), "KILL_WHEN": when, "REAL_PATH": os.environ["PATH"]}
    given = "".join(f"{name}='{value}'\n" for name, value in kills.items())
    wrapper.write_text(_GIT.replace("#!/bin/sh\n", f"#!/bin/sh\n{given}"))
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        env={**os.environ, "PATH": f"{wrapper.parent}:{os.environ['PATH']}"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, -9), done.stderr
    return done.returncode == -9


def is_clean(root: Path, work: GitWorkTrees) -> bool:
    listed = [tree.branch for tree in work.list_trees(str(root))]
    left = [path.name for path in (root / ".scout" / "worktrees").iterdir()]
    branches = git(root, "branch", "--format=%(refname:short)").split()
    return (listed, left, branches) == (["main"], [], ["main"])


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_add_that_is_killed_can_be_undone(tmp_path: Path, when: str) -> None:
    root, work = repository(tmp_path / "arc"), trees(tmp_path)
    base, at = head(root), 0
    killed = True
    while killed:
        at += 1
        (tmp_path / "count").unlink(missing_ok=True)
        killed = run_killed(tmp_path, _ADDING, (str(tmp_path / "data"), str(root), base), at, when)
        if (root / ".scout" / "worktrees").exists():
            work.remove(str(root / ".scout" / "worktrees" / "auth"))
            work.delete_branch(str(root), "main.auth", base)
            assert is_clean(root, work)
    assert at > 4  # as many commands as an add has, and one more


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_removal_that_is_killed_can_be_repeated(tmp_path: Path, when: str) -> None:
    root, work = repository(tmp_path / "arc"), trees(tmp_path)
    base, at = head(root), 0
    killed = True
    while killed:
        at += 1
        tree = Path(work.add(str(root), "main.auth", "auth", base).path)
        (tree / "new.txt").write_text("new\n")
        (tmp_path / "count").unlink(missing_ok=True)
        killed = run_killed(tmp_path, _REMOVING, (str(tmp_path / "data"), str(root), base), at, when)
        work.remove(str(tree))
        work.delete_branch(str(root), "main.auth", base)
        assert is_clean(root, work)
    assert at > 3


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_merge_that_is_killed_is_completed_or_has_not_begun(tmp_path: Path, when: str) -> None:
    root, work = repository(tmp_path / "arc"), trees(tmp_path)
    tree = Path(work.add(str(root), "main.auth", "auth", head(root)).path)
    (root / "notes.txt").write_text("mine\n")
    at, killed = 0, True
    while killed:
        at += 1
        name = f"n{at}.txt"
        commit(tree, name, "n\n")
        before = head(root)
        begun = tmp_path / "begun"
        begun.unlink(missing_ok=True)
        (tmp_path / "count").unlink(missing_ok=True)
        killed = run_killed(tmp_path, _MERGING, (str(tmp_path / "data"), str(root), str(begun)), at, when)
        if begun.exists():
            into, after = begun.read_text().split()
            work.finish_merge(str(root), "main", into, after)
            assert head(root) == after
        else:
            assert head(root) == before
            assert name not in files(root)
            work.merge(str(root), work.preview_merge(str(root), "main", "main.auth"), "merge", lambda _: None)
        assert name in files(root)
        assert git(root, "status", "--porcelain") == "?? notes.txt"
        assert not work.preview_merge(str(root), "main", "main.auth").needed
    assert at > 8


@pytest.mark.slow
def test_a_check_that_is_killed_leaves_nothing_after_the_next_start(tmp_path: Path) -> None:
    root, work = repository(tmp_path / "arc"), trees(tmp_path)
    tree = Path(work.add(str(root), "main.auth", "auth", head(root)).path)
    commit(tree, "n.txt", "n\n")
    script = _MERGING.replace(
        "work.merge(root", "work.check_merge(root, preview, 'kill -9 $PPID', 20)\nraise SystemExit(root"
    )
    words = [sys.executable, "-c", script, str(tmp_path / "data"), str(root), str(tmp_path / "begun")]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert done.returncode == -9, done.stderr
    assert len(work.list_trees(str(root))) == 3
    work.remove_leftovers()
    assert len(work.list_trees(str(root))) == 2
    assert list((tmp_path / "data" / "checks").iterdir()) == []
    with pytest.raises(GitFailed):
        work.remove(str(root))
