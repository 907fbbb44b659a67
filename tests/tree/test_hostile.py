"""Repositories made to misbehave: a picture of one runs nothing that it names, and is still a picture."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scout.tree.snapshots import GitSnapshots

SES, FLT = "ses_1", "flt_1"

Trap = Callable[[Path, str], None]


def git(work: Path, *words: str) -> str:
    identity = ("-c", "user.name=ada", "-c", "user.email=ada@localhost", "-c", "init.defaultBranch=main")
    allowed = ("-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", *identity, *allowed, *words], cwd=work, check=True, capture_output=True, text=True
    )
    return done.stdout


def repository(work: Path) -> Path:
    """A repository whose files all look changed to git, so that it reads each of them again."""
    work.mkdir()
    git(work, "init", "-q")
    (work / "a.txt").write_text("".join(f"{number}\n" for number in range(200)))
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "first")
    return work


def config(work: Path, text: str) -> None:
    with (work / ".git" / "config").open("a") as file:
        file.write(text)


def attributes(work: Path, text: str) -> None:
    (work / ".gitattributes").write_text(text)


def plain_filter(work: Path, script: str) -> None:
    config(work, f'[filter "x"]\n\tclean = {script}\n\tprocess = {script}\n\trequired = true\n')
    attributes(work, "* filter=x\n")


def filter_with_an_equals_sign(work: Path, script: str) -> None:
    config(work, f'[filter "a=b"]\n\tclean = {script}\n\tprocess = {script}\n')
    attributes(work, "* filter=a=b\n")


def filter_with_odd_letters(work: Path, script: str) -> None:
    config(work, f'[filter "a.b-\\"c\\\\d"]\n\tclean = {script}\n')
    config(work, f'[FILTER "x"]\n\tCLEAN = {script}\n')
    attributes(work, "*.txt filter=x\n")


def included_config(work: Path, script: str) -> None:
    (work / "more").write_text(f'[filter "x"]\n\tclean = {script}\n[core]\n\tfsmonitor = {script}\n')
    config(work, f'[include]\n\tpath = ../more\n[includeIf "gitdir:{work}/"]\n\tpath = ../more\n')
    attributes(work, "* filter=x\n")


def config_of_the_work_tree(work: Path, script: str) -> None:
    git(work, "config", "extensions.worktreeConfig", "true")
    text = f'[filter "x"]\n\tclean = {script}\n[core]\n\tfsmonitor = {script}\n'
    (work / ".git" / "config.worktree").write_text(text)
    attributes(work, "* filter=x\n")


def attributes_outside_the_tree(work: Path, script: str) -> None:
    config(work, f'[filter "x"]\n\tclean = {script}\n[core]\n\tattributesFile = {work}/more\n')
    (work / "more").write_text("* filter=x\n")
    (work / ".git" / "info").mkdir(exist_ok=True)
    (work / ".git" / "info" / "attributes").write_text("* filter=x diff=x\n")


def monitor(work: Path, script: str) -> None:
    config(work, f"[core]\n\tfsmonitor = {script}\n\tfsmonitorHookVersion = 2\n")


def hooks(work: Path, script: str) -> None:
    folder = work / "hooks"
    folder.mkdir()
    for name in ("post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(script, folder / name)
        shutil.copy(script, work / ".git" / "hooks" / name)
    config(work, f"[core]\n\thooksPath = {folder}\n")


def drivers_of_diff(work: Path, script: str) -> None:
    config(work, f'[diff]\n\texternal = {script}\n[diff "x"]\n\tcommand = {script}\n\ttextconv = {script}\n')
    attributes(work, "* diff=x\n")


def promised_objects(work: Path, script: str) -> None:
    url = f"ext::{script} x"
    config(work, f'[remote "origin"]\n\turl = {url}\n\tpromisor = true\n[protocol "ext"]\n\tallow = always\n')
    config(work, f"[core]\n\tsshCommand = {script}\n[extensions]\n\tpartialClone = origin\n")
    for path in (work / ".git" / "objects").glob("??/*"):
        path.unlink()


def pager_and_editor(work: Path, script: str) -> None:
    config(work, f"[core]\n\tpager = {script}\n\teditor = {script}\n\taskPass = {script}\n[pager]\n")
    config(work, f"\tadd = {script}\n\tdiff-tree = {script}\n[alias]\n\twrite-tree = !{script}\n")
    config(work, f"[gpg]\n\tprogram = {script}\n[credential]\n\thelper = {script}\n")


def trace(work: Path, script: str) -> None:
    config(work, f"[trace2]\n\teventTarget = {work}/../mark\n\tnormalTarget = {work}/../mark\n")


def work_tree_elsewhere(work: Path, script: str) -> None:
    config(work, f"[core]\n\tworktree = {work.parent}\n")


def shadowed_git(work: Path, script: str) -> None:
    shutil.copy(script, work / "git")


TRAPS: tuple[Trap, ...] = (
    plain_filter,
    filter_with_an_equals_sign,
    filter_with_odd_letters,
    included_config,
    config_of_the_work_tree,
    attributes_outside_the_tree,
    monitor,
    hooks,
    drivers_of_diff,
    promised_objects,
    pager_and_editor,
    trace,
    work_tree_elsewhere,
    shadowed_git,
)


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script"
    path.write_text(f"#!/bin/sh\necho ran >> {tmp_path}/mark\nexec cat\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitSnapshots:
    monkeypatch.setenv("PATH", ".::bin:/usr/local/bin:/usr/bin:/bin")
    return GitSnapshots(tmp_path / "sessions", seconds=30)


def look(kept: GitSnapshots, work: Path) -> str:
    """Two pictures of the tree with a change between them: the patch."""
    kept.before(SES, FLT, str(work))
    (work / "a.txt").write_text("changed\n")
    kept.after(SES, FLT)
    change = kept.change(SES, FLT, patch=True)
    assert change.problem == ""
    return change.patch


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
def test_nothing_that_a_repository_names_is_run(
    trap: Trap, tmp_path: Path, script: str, kept: GitSnapshots
) -> None:
    work = repository(tmp_path / "work")
    trap(work, script)
    (work / "a.txt").touch()
    assert "+changed" in look(kept, work)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("trap", [plain_filter, monitor, hooks], ids=lambda trap: trap.__name__)
@pytest.mark.parametrize("known", [True, False], ids=["submodule", "embedded"])
def test_nothing_is_run_inside_a_repository_below(
    trap: Trap, tmp_path: Path, script: str, kept: GitSnapshots, *, known: bool
) -> None:
    work, other = repository(tmp_path / "work"), repository(tmp_path / "other")
    below = work / "below"
    if known:
        git(work, "submodule", "--quiet", "add", str(other), "below")
        git(work, "commit", "-q", "-m", "with a submodule")
        shutil.rmtree(work / ".git" / "modules")
        (below / ".git").unlink()
        shutil.copytree(other / ".git", below / ".git")
    else:
        shutil.copytree(other, below)
    trap(below, script)
    (below / "a.txt").touch()
    assert "+changed" in look(kept, work)
    assert not (tmp_path / "mark").exists()


def test_a_submodule_that_moved_is_seen(tmp_path: Path, kept: GitSnapshots) -> None:
    work, other = repository(tmp_path / "work"), repository(tmp_path / "other")
    git(work, "submodule", "--quiet", "add", str(other), "below")
    git(work, "commit", "-q", "-m", "with a submodule")
    kept.before(SES, FLT, str(work))
    git(work / "below", "commit", "-q", "--allow-empty", "-m", "further")
    assert "+Subproject commit" in kept.change(SES, FLT, patch=True).patch


def test_an_object_that_another_replaces_is_shown_as_it_is(tmp_path: Path, kept: GitSnapshots) -> None:
    work = repository(tmp_path / "work")
    (work / "b.txt").write_text("another\n")
    new = git(work, "hash-object", "-w", "b.txt").strip()
    git(work, "replace", git(work, "rev-parse", "HEAD:a.txt").strip(), new)
    (work / "b.txt").unlink()
    assert "-another" not in look(kept, work)


@pytest.mark.parametrize("name", ["a:b", 'a"b', "a\nb", "-rf", "a b\\c", "é$(touch mark)"])
def test_odd_names_of_folders_and_files(name: str, tmp_path: Path, kept: GitSnapshots) -> None:
    work = repository(tmp_path / name)
    (work / f"{name}.txt").write_text("odd\n")
    assert "+changed" in look(kept, work)
    assert not (tmp_path / "mark").exists()


def test_repositories_of_other_kinds_have_pictures(tmp_path: Path, kept: GitSnapshots) -> None:
    """Objects by SHA-256, a split index, a sparse one."""
    for number, words in enumerate((("--object-format=sha256",), (), ())):
        work = tmp_path / f"kind{number}"
        work.mkdir()
        git(work, "init", "-q", *words)
        (work / "below").mkdir()
        for path in ("a.txt", "below/b.txt"):
            (work / path).write_text("text\n")
        git(work, "add", "-A")
        git(work, "commit", "-q", "-m", "first")
        if number == 1:
            git(work, "update-index", "--split-index")
        if number == 2:
            git(work, "sparse-checkout", "init", "--cone", "--sparse-index")
        kept.before(SES, f"flt_{number}", str(work))
        (work / "a.txt").write_text("changed\n")
        change = kept.change(SES, f"flt_{number}", patch=True)
        assert (change.problem, change.patch.count("diff --git")) == ("", 1)


def test_what_the_person_ignores_everywhere_is_ignored(
    tmp_path: Path, kept: GitSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/ignored\n")
    (home / "ignored").write_text("*.secret\n")
    monkeypatch.setenv("HOME", str(home))
    work = repository(tmp_path / "work")
    kept.before(SES, FLT, str(work))
    (work / "x.secret").write_text("secret\n")
    assert kept.change(SES, FLT, patch=True).patch == ""
