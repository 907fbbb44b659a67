"""Many changes of one repository at once: by threads, by processes, and beside other git processes."""

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scout.ports import GitFailed
from scout.tree.git.repository_lock import RepositoryLocks
from tests.tree.repositories import commit, git, head, repository, trees

_ADDING = """
import json, sys
from pathlib import Path
from scout.tree.worktrees import GitWorkTrees
data, root, base, name = sys.argv[1:]
work = GitWorkTrees(Path(data))
print(json.dumps([work.add(root, f"main.{name}-{n}", f"{name}-{n}", base).path for n in range(4)]))
"""


@pytest.mark.slow
def test_sixteen_work_trees_at_once_from_threads(tmp_path: Path) -> None:
    root, work = repository(tmp_path / "arc"), trees(tmp_path)
    base = head(root)
    with ThreadPoolExecutor(16) as pool:
        wished = [pool.submit(work.add, str(root), f"main.s{n}", f"s{n}", base) for n in range(16)]
        added = [one.result(60) for one in wished]
    assert len({one.path for one in added}) == 16
    listed = work.list_trees(str(root))
    assert {tree.branch for tree in listed} == {"main", *(f"main.s{n}" for n in range(16))}
    assert all(tree.locked is None and not tree.missing for tree in listed)
    assert all(git(Path(one.path), "status", "--porcelain") == "" for one in added)


@pytest.mark.slow
def test_sixteen_work_trees_at_once_from_processes(tmp_path: Path) -> None:
    root = repository(tmp_path / "arc")
    words = (sys.executable, "-c", _ADDING)
    processes = [
        subprocess.Popen(
            [*words, str(tmp_path / f"data{n % 2}"), str(root), head(root), f"p{n}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for n in range(4)
    ]
    ended = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, ended
    paths = [path for printed, _ in ended for path in json.loads(printed)]
    assert len({*paths}) == 16
    assert len(trees(tmp_path).list_trees(str(root))) == 17
    assert all(git(Path(path), "status", "--porcelain") == "" for path in paths)


@pytest.mark.parametrize("lock", ["refs/heads/main.auth.lock", "packed-refs.lock"])
def test_a_lock_that_is_released_is_waited_for(tmp_path: Path, lock: str) -> None:
    root, work = repository(tmp_path / "arc"), trees(tmp_path)
    base = head(root)
    if lock == "packed-refs.lock":
        work.remove(work.add(str(root), "main.auth", "auth", base).path)
    held = root / ".git" / lock
    held.touch()
    timer = threading.Timer(0.3, held.unlink)
    timer.start()
    if lock == "packed-refs.lock":
        work.delete_branch(str(root), "main.auth", base)
    else:
        work.add(str(root), "main.auth", "auth", base)
    timer.join()
    assert (git(root, "branch", "--list", "main.auth") == "") == (lock == "packed-refs.lock")


def test_a_held_index_delays_a_merge(tmp_path: Path) -> None:
    root, work = repository(tmp_path / "arc"), trees(tmp_path)
    tree = Path(work.add(str(root), "main.auth", "auth", head(root)).path)
    commit(tree, "n.txt", "n\n")
    preview = work.preview_merge(str(root), "main", "main.auth")
    held = root / ".git" / "index.lock"
    held.touch()
    timer = threading.Timer(0.3, held.unlink)
    timer.start()
    work.merge(str(root), preview, "merge", lambda _: None)
    timer.join()
    assert git(root, "status", "--porcelain") == ""
    assert (root / "n.txt").exists()


def test_a_lock_that_stays_is_named(tmp_path: Path) -> None:
    root, work = repository(tmp_path / "arc"), trees(tmp_path, patience=0.2)
    held = root / ".git" / "refs" / "heads" / "main.auth.lock"
    held.touch()
    with pytest.raises(GitFailed, match="remove that file") as caught:
        work.add(str(root), "main.auth", "auth", head(root))
    assert str(held) in str(caught.value)
    tree = Path(work.add(str(root), "main.other", "other", head(root)).path)
    commit(tree, "n.txt", "n\n")
    preview = work.preview_merge(str(root), "main", "main.other")
    (root / ".git" / "index.lock").touch()
    with pytest.raises(GitFailed, match="remove that file") as caught:
        work.merge(str(root), preview, "merge", lambda _: None)
    assert "index.lock" in str(caught.value)
    assert head(root) == preview.into_commit
    assert git(root, "status", "--porcelain") == ""


def test_a_work_tree_that_another_process_is_making_is_waited_for(tmp_path: Path) -> None:
    root, work = repository(tmp_path / "arc"), trees(tmp_path)
    entry = root / ".git" / "worktrees" / "half"
    entry.mkdir(parents=True)
    (entry / "gitdir").write_text(f"{tmp_path}/half/.git\n")
    (entry / "commondir").touch()  # git creates this file, then writes it
    timer = threading.Timer(0.3, lambda: (entry / "commondir").write_text("../..\n"))
    timer.start()
    assert [tree.missing for tree in work.list_trees(str(root))] == [False, True]
    timer.join()
    (entry / "commondir").write_text("")
    with pytest.raises(GitFailed, match="worktrees/half is incomplete"):
        trees(tmp_path, patience=0.1).list_trees(str(root))


def test_a_repository_that_is_changed_for_too_long(tmp_path: Path) -> None:
    one, other = RepositoryLocks(tmp_path, 0.1), RepositoryLocks(tmp_path, 0.1)
    with one.hold("/arc/.git"), one.hold("/other/.git"):
        for locks in (one, other):
            with pytest.raises(GitFailed, match=r"/arc/\.git takes too long"), locks.hold("/arc/.git"):
                pass
    with other.hold("/arc/.git"):
        pass


def test_git_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "arc")
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:/usr/bin:/bin")
    work = trees(tmp_path)
    work._seconds = 0.2
    with pytest.raises(GitFailed, match="did not finish in time"):
        work.list_trees(str(root))
