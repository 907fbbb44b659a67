"""A repository with spawned agents, at a real daemon: for the stories of finishing."""

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.surface.site import Site

__all__ = ["Forest", "a_forest", "git"]

_WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")


def git(folder: Path | str, *words: str, fine: tuple[int, ...] = (0,)) -> str:
    """A git command of a person in a folder; what it prints."""
    done = subprocess.run(
        ["git", *_WHO, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"},
    )
    assert done.returncode in fine, (words, done.stdout, done.stderr)
    return done.stdout.strip()


class Forest:
    """A project in git, its root agent, and the children that were spawned below it."""

    def __init__(self, shell: Shell, name: str = "wood") -> None:
        self.shell = shell
        self.name = name
        self.root = shell.folder / "work" / name
        self.root.mkdir(parents=True)
        git(self.root, "init", "-q")
        (self.root / "base.txt").write_text("one\ntwo\nthree\n")
        git(self.root, "add", "--all")
        git(self.root, "commit", "-q", "-m", "First")
        config = shell.home / "config.toml"
        config.write_text(f"harness = 'echo'\n{config.read_text()}")
        self.daemon = Daemon(shell.home, start_daemon(shell))
        self.site = Site(shell, self.daemon)

    def type(self, *words: str, **how: Any) -> subprocess.CompletedProcess[str]:
        return self.shell.type(*words, cwd=how.pop("cwd", self.root), **{"within": 60, **how})

    def say(self, *words: str, **how: Any) -> str:
        return self.shell.say(*words, cwd=how.pop("cwd", self.root), **{"within": 60, **how})

    def data(self, *words: str, **how: Any) -> Any:
        return self.shell.data(*words, cwd=how.pop("cwd", self.root), **{"within": 60, **how})

    def spawn(self, *words: str) -> list[dict[str, Any]]:
        """New children of the root agent, or of --from."""
        return self.data("spawn", *words)["agents"]

    def child(self, slug: str, *words: str) -> dict[str, Any]:
        return self.spawn(slug, *words)[0]

    def commit(self, folder: Path | str, name: str, text: str, message: str = "") -> str:
        """A commit of one file; its id."""
        Path(folder, name).write_text(text)
        git(folder, "add", "--", name)
        git(folder, "commit", "-q", "-m", message or f"Write {name}")
        return git(folder, "rev-parse", "HEAD")

    def head(self, branch: str = "main") -> str | None:
        return git(self.root, "rev-parse", "--verify", "-q", f"refs/heads/{branch}", fine=(0, 1)) or None

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """A command as it was printed, pasted into a shell."""
        scout = 'scout() { "$SCOUT_PYTHON" -m scout "$@"; }\n'
        import sys

        return subprocess.run(
            ["bash", "-c", scout + command],
            cwd=self.root,
            env={**self.shell.environ, "SCOUT_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@contextmanager
def a_forest() -> Generator[Forest]:
    with a_shell() as shell:
        yield Forest(shell)
