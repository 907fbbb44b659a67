"""Repositories made to misbehave: no operation on agent trees runs what they name, and each still works."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from scout.ports import GitFailed
from scout.tree.folders import ScoutFolders
from scout.tree.worktrees import GitWorkTrees
from tests.tree import repositories
from tests.tree.repositories import KEY, commit, git, head, identity, repository

Trap = Callable[[Path, str], None]

_HOOKS = (
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "reference-transaction",
    "update",
)


def config(work: Path, text: str) -> None:
    with (work / ".git" / "config").open("a") as file:
        file.write(text)


def hooks(work: Path, script: str) -> None:
    folder = work.parent / "hooks"
    folder.mkdir()
    for name in _HOOKS:
        shutil.copy(script, folder / name)
        shutil.copy(script, work / ".git" / "hooks" / name)


def hooks_elsewhere(work: Path, script: str) -> None:
    hooks(work, script)
    config(work, f"[core]\n\thooksPath = {work.parent / 'hooks'}\n")


def configured_hooks(work: Path, script: str) -> None:
    for number, name in enumerate(_HOOKS):
        config(work, f'[hook "h{number}"]\n\tevent = {name}\n\tcommand = {script}\n')


def filters(work: Path, script: str) -> None:
    every = f"clean = {script}\n\tsmudge = {script}\n\tprocess = {script}\n\trequired = true\n"
    config(work, f'[filter "x"]\n\t{every}[filter "a=b"]\n\t{every}')
    (work / ".git" / "info").mkdir(exist_ok=True)
    (work / ".git" / "info" / "attributes").write_text("* filter=x\n")


def monitor(work: Path, script: str) -> None:
    config(work, f"[core]\n\tfsmonitor = {script}\n\tfsmonitorHookVersion = 2\n\tuntrackedCache = true\n")


def merge_drivers(work: Path, script: str) -> None:
    config(work, f'[merge "x"]\n\tdriver = {script} %O %A %B\n\trecursive = x\n[merge]\n\tdefault = x\n')
    (work / ".git" / "info").mkdir(exist_ok=True)
    (work / ".git" / "info" / "attributes").write_text("* merge=x\n")


def diff_drivers(work: Path, script: str) -> None:
    config(work, f'[diff]\n\texternal = {script}\n[diff "x"]\n\tcommand = {script}\n\ttextconv = {script}\n')
    (work / ".git" / "info").mkdir(exist_ok=True)
    (work / ".git" / "info" / "attributes").write_text("* diff=x\n")


def aliases(work: Path, script: str) -> None:
    words = (
        "status",
        "read-tree",
        "worktree",
        "update-ref",
        "merge-tree",
        "commit-tree",
        "rev-list",
        "rev-parse",
    )
    config(work, "[alias]\n" + "".join(f"\t{word} = !{script}\n" for word in words))


def programs(work: Path, script: str) -> None:
    config(work, f"[core]\n\tpager = {script}\n\teditor = {script}\n\taskPass = {script}\n")
    config(work, f"\tsshCommand = {script}\n\tgitProxy = {script}\n\talternateRefsCommand = {script}\n")
    config(work, f"[gpg]\n\tprogram = {script}\n[commit]\n\tgpgSign = true\n[log]\n\tshowSignature = true\n")
    config(work, f"[credential]\n\thelper = {script}\n[sequence]\n\teditor = {script}\n[gc]\n\tauto = 1\n")
    config(work, f"[pager]\n\tstatus = {script}\n\trev-list = {script}\n\tworktree = {script}\n")


def includes(work: Path, script: str) -> None:
    more = work.parent / "more"
    more.write_text(
        f"[core]\n\tfsmonitor = {script}\n\thooksPath = {work.parent / 'hooks'}\n"
        f'[filter "x"]\n\tsmudge = {script}\n\tclean = {script}\n'
    )
    hooks(work, script)
    config(work, f'[include]\n\tpath = {more}\n[includeIf "gitdir:{work}/"]\n\tpath = {more}\n')
    (work / ".git" / "info" / "attributes").write_text("* filter=x\n")


def config_of_work_trees(work: Path, script: str) -> None:
    git(work, "config", "extensions.worktreeConfig", "true")
    hooks(work, script)
    text = f'[filter "x"]\n\tsmudge = {script}\n\tclean = {script}\n[core]\n\tfsmonitor = {script}\n'
    (work / ".git" / "config.worktree").write_text(f"{text}\thooksPath = {work.parent / 'hooks'}\n")
    (work / ".git" / "info" / "attributes").write_text("* filter=x\n")


def promised_objects(work: Path, script: str) -> None:
    config(work, f'[remote "origin"]\n\turl = ext::{script} x\n\tpromisor = true\n')
    config(work, f'\tvcs = {script}\n\tuploadpack = {script}\n[protocol "ext"]\n\tallow = always\n')
    config(work, "[extensions]\n\tpartialClone = origin\n")


def work_tree_elsewhere(work: Path, script: str) -> None:
    config(work, f"[core]\n\tworktree = {work.parent}\n\tbare = false\n")


def traces(work: Path, script: str) -> None:
    target = work.parent / "mark"
    config(work, f"[trace2]\n\teventTarget = {target}\n\tnormalTarget = {target}\n\tperfTarget = {target}\n")


def shadowed_git(work: Path, script: str) -> None:
    for folder in (work, work / "below"):
        shutil.copy(script, folder / "git")
    (work / ".git" / "info" / "exclude").write_text("git\n")


TRAPS: tuple[Trap, ...] = (
    hooks,
    hooks_elsewhere,
    configured_hooks,
    filters,
    monitor,
    merge_drivers,
    diff_drivers,
    aliases,
    programs,
    includes,
    config_of_work_trees,
    promised_objects,
    work_tree_elsewhere,
    traces,
    shadowed_git,
)


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script"
    path.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/mark\nexec cat\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitWorkTrees:
    monkeypatch.setenv("PATH", ".::bin:/usr/local/bin:/usr/bin:/bin")
    return repositories.trees(tmp_path)


def marks(tmp_path: Path) -> str:
    return (tmp_path / "mark").read_text() if (tmp_path / "mark").exists() else ""


def whole_life(work: GitWorkTrees, root: Path) -> None:
    """Every operation once, with a merge in which both sides changed one file."""
    base = head(root)
    assert work.look(str(root)) is not None
    tree = Path(work.add(str(root), "main.auth", "auth", base).path)
    ScoutFolders(KEY).write_identity(str(tree), identity(root))
    for path in tree.rglob("*.txt"):
        path.touch()
    assert work.state(str(tree), "main.auth", "main").uncommitted == ()
    (tree / "a.txt").write_text("dirty\n")
    assert work.state(str(tree), "main.auth", "main").uncommitted == ("a.txt",)
    saved = work.save_uncommitted(str(tree), "saved")
    assert saved is not None
    assert work.find_commit(str(root), saved) == saved
    (tree / "a.txt").write_text("a.txt\n")
    preview = work.preview_merge(str(root), "main", "side")
    assert (preview.conflicts, preview.needed) == ((), True)
    assert work.check_merge(str(root), preview, "cat both.txt", 20).output == "one\ntwo\nthree\nfour\nfive\n"
    for path in root.glob("*.txt"):
        path.touch()
    merged = work.merge(str(root), preview, "merge", lambda _: None)
    assert (root / "both.txt").read_text() == "one\ntwo\nthree\nfour\nfive\n"
    assert merged.commit == work.find_commit(str(root), "main")
    work.finish_merge(str(root), "main", merged.before, merged.commit)
    (root / "copy.env").write_text("x\n")
    assert work.copy_files(str(root), str(tree), ["*.env"]) == ("copy.env",)
    shutil.rmtree(tree)
    work.restore_missing(str(tree), "main.auth", str(root))
    assert len(ScoutFolders(KEY).scan(str(root))) == 1
    work.remove(str(tree))
    work.delete_branch(str(root), "main.auth", base)
    assert [tree.branch for tree in work.list_trees(str(root))] == ["main"]


def with_two_sides(path: Path) -> Path:
    """A repository in which `main` and `side` have changed one file at different places."""
    root = repository(path)
    commit(root, "both.txt", "1\ntwo\nthree\nfour\n5\n")
    git(root, "checkout", "-q", "-b", "side")
    commit(root, "both.txt", "one\ntwo\nthree\nfour\n5\n")
    git(root, "checkout", "-q", "main")
    commit(root, "both.txt", "1\ntwo\nthree\nfour\nfive\n")
    return root


@pytest.mark.slow
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
def test_nothing_that_a_repository_names_is_run(
    trap: Trap, tmp_path: Path, script: str, work: GitWorkTrees
) -> None:
    root = with_two_sides(tmp_path / "arc")
    (root / ".git" / "info").mkdir(exist_ok=True)
    trap(root, script)
    whole_life(work, root)
    assert marks(tmp_path) == ""


@pytest.mark.slow
def test_attributes_that_are_committed_name_nothing_that_is_run(
    tmp_path: Path, script: str, work: GitWorkTrees
) -> None:
    root = with_two_sides(tmp_path / "arc")
    git(root, "checkout", "-q", "side")
    commit(root, ".gitattributes", "* filter=x merge=x diff=x ident\n")
    git(root, "checkout", "-q", "main")
    commit(root, ".gitattributes", "* filter=x merge=x diff=x ident\n")
    every = f"clean = {script}\n\tsmudge = {script}\n\tprocess = {script}\n\trequired = true\n"
    config(
        root,
        f'[filter "x"]\n\t{every}[merge "x"]\n\tdriver = {script} %A\n[diff "x"]\n\ttextconv = {script}\n',
    )
    whole_life(work, root)
    assert marks(tmp_path) == ""


@pytest.mark.parametrize("trap", [filters, monitor, hooks], ids=lambda trap: trap.__name__)
def test_nothing_is_run_inside_a_submodule(
    trap: Trap, tmp_path: Path, script: str, work: GitWorkTrees
) -> None:
    root, other = repository(tmp_path / "arc"), repository(tmp_path / "other")
    git(root, "submodule", "--quiet", "add", str(other), "lib")
    git(root, "config", "-f", ".gitmodules", "submodule.lib.ignore", "none")
    git(root, "commit", "-q", "-a", "-m", "with a submodule")
    config(
        root,
        '[submodule "lib"]\n\tignore = none\n[submodule]\n\trecurse = true\n[status]\n\tsubmoduleSummary = true\n',
    )
    tree = Path(work.add(str(root), "main.auth", "auth", head(root)).path)
    commit(tree, "n.txt", "n\n")
    shutil.rmtree(tree / "lib")
    shutil.copytree(other, tree / "lib")
    trap(tree / "lib", script)
    (tree / "lib" / "a.txt").touch()
    assert work.state(str(tree), "main.auth", "main").problem is None
    (tree / "lib" / "a.txt").write_text("changed\n")
    assert "lib/a.txt" in work.state(str(tree), "main.auth", "main").uncommitted
    (tree / "b.txt").write_text("changed\n")
    with pytest.raises(GitFailed, match="in a repository inside"):
        work.save_uncommitted(str(tree), "saved")
    shutil.rmtree(root / "lib")
    shutil.copytree(tree / "lib", root / "lib")
    preview = work.preview_merge(str(root), "main", "main.auth")
    work.merge(str(root), preview, "merge", lambda _: None)
    work.remove(str(tree))
    assert marks(tmp_path) == ""


def test_a_pipe_in_place_of_a_file_of_git_does_not_block(tmp_path: Path) -> None:
    root = repository(tmp_path / "arc")
    work = GitWorkTrees(tmp_path / "data", seconds=3)
    for name in ("config.worktree", "shallow", "info/exclude", "info/sparse-checkout"):
        path = root / ".git" / name
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        try:
            work.look(str(root))
        except GitFailed as problem:
            assert "in time" in str(problem), name
        path.unlink()
    assert work.look(str(root)) is not None
