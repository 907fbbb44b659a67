"""Pictures of a work tree: what changed between two of them, and that the repository never notices."""

import hashlib
import subprocess
import time
from pathlib import Path

import pytest

from scout.ports import SnapshotPeriod
from scout.tree.snapshots import GitSnapshots

SES, FLT = "ses_1", "flt_1"


def git(work: Path, *words: str) -> str:
    identity = ("-c", "user.name=ada", "-c", "user.email=ada@localhost", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *identity, *words], cwd=work, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with one commit, something staged, something new and something ignored."""
    work = tmp_path / "a work: tree"
    work.mkdir()
    git(work, "init", "-q")
    (work / ".gitignore").write_text("*.log\n")
    (work / "kept.txt").write_text("".join(f"{number}\n" for number in range(40)))
    (work / "gone.txt").write_text("here\n")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "first")
    (work / "kept.txt").write_text("changed before\n" + (work / "kept.txt").read_text())
    (work / "staged.txt").write_text("staged\n")
    git(work, "add", "staged.txt")
    (work / "new.txt").write_text("new\n")
    (work / "noise.log").write_text("noise\n")
    return work


@pytest.fixture
def kept(tmp_path: Path) -> GitSnapshots:
    return GitSnapshots(tmp_path / "sessions")


def everything(work: Path) -> dict[str, str]:
    """Every file of the work tree and of the repository, as it is; of objects, what they hold."""
    return {
        str(path): f"{_when(path)} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(work.rglob("*"))
        if path.is_file()
    }


def _when(path: Path) -> int:
    return 0 if "objects" in path.parts else path.stat().st_mtime_ns


def test_what_changed_in_between_and_only_that(work: Path, kept: GitSnapshots) -> None:
    before = everything(work)
    kept.before(SES, FLT, str(work))
    assert everything(work) == before
    nothing = kept.change(SES, FLT, patch=True)
    assert (nothing.problem, nothing.stat, nothing.patch, nothing.running) == ("", "", "", True)
    (work / "kept.txt").write_text("changed in between\n" + (work / "kept.txt").read_text())
    (work / "gone.txt").unlink()
    (work / "née.txt").write_text("later\n")
    (work / "more.log").write_text("noise\n")
    now = everything(work)
    running = kept.change(SES, FLT, patch=True)
    kept.after(SES, FLT)
    assert everything(work) == now
    (work / "kept.txt").write_text("changed by somebody else, later\n")
    told = kept.change(SES, FLT, patch=True)
    assert (running.running, told.running, running.head) == (True, False, told.head)
    assert told.directory == str(work)
    added = [line for line in told.patch.splitlines() if line.startswith("+") and line[1:2] != "+"]
    assert added == ["+changed in between", "+later"]
    assert "-here" in told.patch
    assert "deleted file" in told.patch
    assert [line.split("|")[0].strip() for line in told.stat.splitlines()[:-1]] == [
        "gone.txt",
        "kept.txt",
        "née.txt",
    ]
    assert kept.change(SES, FLT, patch=False).patch == ""


def test_the_first_picture_stays_and_the_last_one_counts(work: Path, kept: GitSnapshots) -> None:
    for text in ("one\n", "two\n"):
        kept.before(SES, FLT, str(work))
        (work / "new.txt").write_text(text)
        kept.after(SES, FLT)
    assert "-new\n+two" in kept.change(SES, FLT, patch=True).patch


def change_within_a_second(work: Path, name: str) -> None:
    """Change a file in the second in which it was staged, so that its time and its size stay the same for git."""
    while True:
        (work / name).write_text("1\n")
        git(work, "add", name)
        (work / name).write_text("2\n")
        if int((work / ".git" / "index").stat().st_mtime) == int((work / name).stat().st_mtime):
            break
    while int(time.time()) == int((work / name).stat().st_mtime):
        time.sleep(0.01)


@pytest.mark.slow
def test_a_change_in_the_second_of_the_index_is_seen_later(work: Path, kept: GitSnapshots) -> None:
    change_within_a_second(work, "new.txt")
    kept.before(SES, FLT, str(work))
    (work / "new.txt").write_text("1\n")
    assert "-2\n+1" in kept.change(SES, FLT, patch=True).patch


def test_a_folder_below_stands_for_its_repository_and_a_linked_work_tree_for_itself(
    work: Path, kept: GitSnapshots
) -> None:
    linked = work.parent / "linked"
    git(work, "worktree", "add", "-q", str(linked), "-b", "side")
    below = work / "below"
    below.mkdir()
    for number, place in enumerate((below, linked)):
        kept.before(SES, f"flt_{number}", str(place))
        (place / "x.txt").write_text("x\n")
        told = kept.change(SES, f"flt_{number}", patch=True)
        assert told.directory == str(linked if place == linked else work)
        assert "+x" in told.patch


def test_a_repository_without_a_commit(tmp_path: Path, kept: GitSnapshots) -> None:
    git(tmp_path, "init", "-q", "fresh")
    kept.before(SES, FLT, str(tmp_path / "fresh"))
    (tmp_path / "fresh" / "a").write_text("a\n")
    assert "+a" in kept.change(SES, FLT, patch=True).patch


def test_no_program_that_a_repository_names_is_run(work: Path, kept: GitSnapshots) -> None:
    """Filters, hooks, monitors, drivers: each would leave a mark."""
    mark = work.parent / "mark"
    script = work.parent / "script"
    script.write_text(f"#!/bin/sh\necho ran >> {mark}\ncat\n")
    script.chmod(0o755)
    (work / ".gitattributes").write_text("*.txt filter=own diff=own\n")
    for key in (
        "filter.own.clean",
        "filter.own.process",
        "core.fsmonitor",
        "diff.own.command",
        "diff.own.textconv",
    ):
        git(work, "config", key, str(script))
    git(work, "config", "filter.own.required", "true")
    hook = work / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_bytes(script.read_bytes())
    hook.chmod(0o755)
    kept.before(SES, FLT, str(work))
    (work / "new.txt").write_text("newer\n")
    told = kept.change(SES, FLT, patch=True)
    assert (told.problem, "+newer" in told.patch) == ("", True)
    assert not mark.exists()


def test_what_is_no_work_tree_is_said(tmp_path: Path, kept: GitSnapshots) -> None:
    assert "no snapshot" in kept.change(SES, FLT, patch=True).problem
    kept.before(SES, FLT, str(tmp_path))
    kept.after(SES, FLT)
    assert kept.change(SES, FLT, patch=True).problem == f"{tmp_path} is not a git work tree"


def test_the_home_folder_is_no_work_tree(
    work: Path, kept: GitSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(work))
    kept.before(SES, FLT, str(work))
    assert "home folder" in kept.change(SES, FLT, patch=True).problem


def test_a_picture_takes_no_longer_than_it_may(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nsleep 30\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:/usr/bin:/bin")
    kept = GitSnapshots(tmp_path / "sessions", seconds=0.1)
    began = time.monotonic()
    kept.before(SES, FLT, str(work))
    assert time.monotonic() - began < 25
    assert "too large for a snapshot" in kept.change(SES, FLT, patch=True).problem


def test_what_is_too_large_is_not_kept(work: Path, tmp_path: Path) -> None:
    kept = GitSnapshots(tmp_path / "sessions", most=10)
    kept.before(SES, FLT, str(work))
    assert "of new files" in kept.change(SES, FLT, patch=True).problem
    assert not (tmp_path / "sessions" / SES / "snapshots" / "objects").exists()


def test_a_long_patch_is_cut_after_a_whole_line(work: Path, tmp_path: Path) -> None:
    kept = GitSnapshots(tmp_path / "sessions", shown=200)
    kept.before(SES, FLT, str(work))
    (work / "new.txt").write_text("".join(f"line {number}\n" for number in range(1000)))
    told = kept.change(SES, FLT, patch=True)
    assert (told.cut, told.patch.endswith("\n"), len(told.patch) <= 200) == (True, True, True)


def test_what_git_refuses_is_said_in_its_words(work: Path, kept: GitSnapshots) -> None:
    (work / ".git" / "index").write_bytes(b"no index")
    kept.before(SES, FLT, str(work))
    assert "index file" in kept.change(SES, FLT, patch=True).problem


def test_nothing_is_left_beside_the_pictures(work: Path, kept: GitSnapshots, tmp_path: Path) -> None:
    kept.before(SES, FLT, str(work))
    kept.after(SES, FLT)
    assert {one.name for one in (tmp_path / "sessions" / SES / "snapshots").iterdir()} == {
        "objects",
        f"{FLT}.json",
    }
    with pytest.raises(ValueError, match="not an id"):
        kept.before("../x", FLT, str(work))


def test_the_files_of_a_flight_and_when_it_was(work: Path, kept: GitSnapshots) -> None:
    assert kept.period(SES, FLT) is None
    assert kept.files(SES, FLT) == frozenset()
    began = time.time()
    kept.before(SES, FLT, str(work / ".git" / ".."))
    period = kept.period(SES, FLT)
    assert period is not None
    assert (period.directory, period.ended) == (str(work), None)
    assert began <= period.began <= time.time()
    (work / "gone.txt").unlink()
    (work / "kept.txt").write_text("other\n")
    (work / "é \n.txt").write_text("a name with a line break\n")
    assert kept.files(SES, FLT) == frozenset()  # the second snapshot is missing
    kept.after(SES, FLT)
    period = kept.period(SES, FLT)
    assert period is not None
    assert period.ended is not None
    assert kept.files(SES, FLT) == {"gone.txt", "kept.txt", "é \n.txt"}


def test_periods_overlap_in_one_work_tree() -> None:
    first = SnapshotPeriod(directory="/w", began=1, ended=3)
    assert first.overlaps(SnapshotPeriod(directory="/w", began=2, ended=4))
    assert first.overlaps(SnapshotPeriod(directory="/w", began=0, ended=9))
    assert not first.overlaps(SnapshotPeriod(directory="/w", began=3, ended=4))
    assert not first.overlaps(SnapshotPeriod(directory="/w", began=2))
    assert not first.overlaps(SnapshotPeriod(directory="/other", began=2, ended=4))
