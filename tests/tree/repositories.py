"""Real git repositories of many kinds, made by git itself."""

import os
import subprocess
from pathlib import Path

import msgspec

from scout.base.time import Time
from scout.ports import IdentityFile
from scout.tree.worktrees import GitWorkTrees

KEY = b"k" * 32
_PATH = os.environ["PATH"]  # a test may set another one


def git(work: Path, *words: str, check: bool = True) -> str:
    """Run the user's own git, with no configuration but a name."""
    who = (
        "-c",
        "user.name=ada",
        "-c",
        "user.email=ada@localhost",
        "-c",
        "init.defaultBranch=main",
        "-c",
        "core.quotePath=false",
    )
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "HOME": str(work)}
    done = subprocess.run(
        ["git", *who, "-c", "protocol.file.allow=always", *words],
        cwd=work,
        env={"PATH": _PATH, "LC_ALL": "C.UTF-8", **quiet},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert not check or done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(work: Path, name: str, text: str, message: str = "more") -> str:
    """Write a file, commit it, and return the commit."""
    path = work / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", message)
    return git(work, "rev-parse", "HEAD")


def repository(work: Path, *options: str) -> Path:
    """A repository with one commit of three files."""
    work.mkdir(parents=True)
    git(work, "init", "-q", *options)
    for name in ("a.txt", "b.txt", "below/c.txt"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(f"{name}\n")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "first")
    return work


def head(work: Path, revision: str = "HEAD") -> str:
    return git(work, "rev-parse", revision)


def files(work: Path) -> set[str]:
    """The files of a work tree, without those of git and Scout."""
    found = (path.relative_to(work) for path in work.rglob("*") if path.is_file() or path.is_symlink())
    return {str(path) for path in found if not {".git", ".scout"} & {*path.parts}}


def trees(tmp_path: Path, patience: float = 20.0) -> GitWorkTrees:
    return GitWorkTrees(tmp_path / "data", patience=patience)


def identity(root: Path, agent: str = "agt_1", **facts: object) -> IdentityFile:
    """An identity file with some facts, and others as given."""
    plain = IdentityFile(
        id=agent,
        path="/me/agent/arc/sub/0",
        birth_branch="main.auth",
        project_root=str(root),
        created_at=Time(1_790_000_000_123_000),
    )
    return msgspec.structs.replace(plain, **facts)
