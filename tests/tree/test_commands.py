"""What the operator sets for new work trees: commands that run in them, and files that are copied into them."""

import os
import time
from pathlib import Path

import pytest

from scout.ports import GitFailed
from scout.tree.worktrees import GitWorkTrees
from tests.tree.repositories import commit, files, head, repository


@pytest.fixture
def tree(root: Path, work: GitWorkTrees) -> Path:
    return Path(work.add(str(root), "main.auth", "auth", head(root)).path)


def has_ended(pid: int) -> bool:
    """Whether a process ends; one that is not reaped yet has ended, too."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


# -- commands --------------------------------------------------------------------------------------


def test_a_command_runs_by_the_shell_in_the_work_tree(tree: Path, work: GitWorkTrees) -> None:
    done = work.run_command(str(tree), "pwd && echo wrong >&2; cat; exit 7", 20)
    assert (done.exit_code, done.output, done.timed_out) == (7, f"{tree}\nwrong\n", False)
    assert 0 <= done.seconds < 20
    assert work.run_command(str(tree), "kill -TERM $$", 20).exit_code == 143


def test_a_command_gets_the_environment_of_programs(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SCOUT_TOKEN", "GIT_DIR", "SECRET_KEY", "NODE_OPTIONS"):
        monkeypatch.setenv(name, "x")
    work = GitWorkTrees(tmp_path / "data", environment=("NODE_*",))
    names = {line.partition("=")[0] for line in work.run_command(str(tree), "env", 20).output.splitlines()}
    assert {"PATH", "NODE_OPTIONS"} <= names
    assert not names & {"SCOUT_TOKEN", "GIT_DIR", "SECRET_KEY"}


def test_the_end_of_a_long_output_is_kept(tree: Path, work: GitWorkTrees) -> None:
    done = work.run_command(str(tree), "seq 1 200000; printf 'a\\0b\\377'", 60)
    assert done.output.startswith("…")
    assert done.output.endswith("200000\na␀b�")
    assert len(done.output) <= (64 << 10) + 1


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(
    tree: Path, work: GitWorkTrees
) -> None:
    command = "trap '' TERM; sleep 300 & echo $! >child; echo $$ >self; echo begun; wait; wait"
    done = work.run_command(str(tree), command, 0.3)
    assert (done.timed_out, done.output) == (True, "begun\n")
    assert done.exit_code == 137
    for name in ("child", "self"):
        assert has_ended(int((tree / name).read_text()))


def test_what_a_command_leaves_running_is_ended(tree: Path, work: GitWorkTrees) -> None:
    done = work.run_command(str(tree), "sleep 300 & echo $! >child; echo done", 20)
    assert (done.exit_code, done.output, done.timed_out) == (0, "done\n", False)
    assert done.seconds < 20
    assert has_ended(int((tree / "child").read_text()))


def test_a_command_in_a_folder_that_is_gone(tmp_path: Path, work: GitWorkTrees) -> None:
    with pytest.raises(GitFailed, match="cannot be run in"):
        work.run_command(str(tmp_path / "gone"), "true", 5)


# -- copies ----------------------------------------------------------------------------------------


def test_untracked_files_that_match_are_copied(root: Path, tree: Path, work: GitWorkTrees) -> None:
    (root / ".gitignore").write_text(".env*\nnode_modules/\n")
    for name in (".env", ".env.local", "deep/er/.env", "config/local.json", "node_modules/x/.env", "no.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"secret of {name}\n")
    (root / ".env").chmod(0o600)
    globs = (".env*", "/config/*.json", "!node_modules/**", "a.txt", "below/")
    copied = work.copy_files(str(root), str(tree), globs)
    assert set(copied) == {".env", ".env.local", "deep/er/.env", "config/local.json"}
    assert (tree / ".env").read_text() == "secret of .env\n"
    assert (tree / ".env").stat().st_mode & 0o777 == 0o600
    assert "node_modules/x/.env" not in files(tree)
    assert work.copy_files(str(root), str(tree), globs) == ()
    assert work.copy_files(str(root), str(tree), ()) == ()
    assert work.copy_files(str(root), str(tree), ("", " ", "a\nb")) == ()


def test_nothing_that_exists_is_replaced(root: Path, tree: Path, work: GitWorkTrees) -> None:
    (root / ".env").write_text("main\n")
    (tree / ".env").write_text("own\n")
    assert work.copy_files(str(root), str(tree), [".env"]) == ()
    assert (tree / ".env").read_text() == "own\n"


def test_links_that_lead_outside_and_odd_files_are_left_out(
    tmp_path: Path, root: Path, tree: Path, work: GitWorkTrees
) -> None:
    (tmp_path / "outside").write_text("outside\n")
    (root / "x.env").write_text("x\n")
    (root / "ok.env").symlink_to("x.env")
    (root / "absolute.env").symlink_to(root / "x.env")
    (root / "out.env").symlink_to("../outside")
    (root / "etc.env").symlink_to("/etc")
    os.mkfifo(root / "pipe.env")
    assert set(work.copy_files(str(root), str(tree), ["*.env"])) == {"x.env", "ok.env"}
    assert (tree / "ok.env").readlink() == Path("x.env")


def test_nothing_is_written_through_a_link_of_the_repository(
    tmp_path: Path, root: Path, work: GitWorkTrees
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "config").symlink_to(outside)
    commit(root, "more.txt", "m\n")
    tree = Path(work.add(str(root), "main.auth", "auth", head(root)).path)
    (root / "config").unlink()
    (root / "config" / "deep").mkdir(parents=True)
    (root / "config" / "deep" / "x.env").write_text("x\n")
    assert work.copy_files(str(root), str(tree), ["*.env"]) == ()
    assert list(outside.iterdir()) == []


def test_folders_of_git_and_scout_are_never_copied(root: Path, tree: Path, work: GitWorkTrees) -> None:
    (root / ".exo").mkdir()
    (root / ".exo" / "x.env").write_text("x\n")
    (root / ".scout" / "x.env").write_text("x\n")
    (tree / "in.env").write_text("x\n")
    repository(root / "vendor")
    (root / "vendor" / "v.env").write_text("x\n")
    assert work.copy_files(str(root), str(tree), ["*"]) == ()
    assert not (tree / ".git").is_dir()


def test_too_much_is_refused(
    root: Path, tree: Path, work: GitWorkTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "big.env").write_bytes(b"x")
    os.truncate(root / "big.env", 600 << 20)
    with pytest.raises(GitFailed, match="larger than 512 MB"):
        work.copy_files(str(root), str(tree), ["*.env"])
    assert "big.env" not in files(tree)
    (root / "many").mkdir()
    for number in range(5001):
        (root / "many" / f"{number}.x").touch()
    with pytest.raises(GitFailed, match="5001 files match"):
        work.copy_files(str(root), str(tree), ["*.x"])
