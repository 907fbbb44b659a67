"""A project under git in a person's shell, and a git that stops where a test wants it to."""

import os
import shlex
import shutil
import signal
from pathlib import Path

from scout.daemon.start import start
from tests.cli.running import Shell
from tests.daemon.daemons import eventually
from tests.tree.repositories import git

_WRAPPER = """#!/bin/sh
# Counts the commands while it is armed, and stops before the one that is wanted.
D={folder}
if [ -e "$D/armed" ]; then
    n=$(cat "$D/count"); echo $((n + 1)) > "$D/count"
    echo "$*" >> "$D/log"
    if [ "$n" = "$(cat "$D/armed")" ]; then
        echo $$ > "$D/reached.new"; mv "$D/reached.new" "$D/reached"
        read -r _ < "$D/go"
    fi
fi
exec {git} "$@"
"""


class PausedGit:
    """A program called git that stops before one of its commands, until it is killed or let go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        real = shutil.which("git")
        assert real is not None
        (folder / "bin").mkdir()
        program = folder / "bin" / "git"
        program.write_text(_WRAPPER.format(folder=shlex.quote(str(folder)), git=shlex.quote(real)))
        program.chmod(0o755)
        os.mkfifo(folder / "go")

    @property
    def path(self) -> str:
        """The PATH of a daemon that meets this git."""
        return f"{self.folder}/bin:{os.environ['PATH']}"

    def arm(self, step: int) -> None:
        """Stop before the command with this number; -1 only counts."""
        (self.folder / "count").write_text("0\n")
        (self.folder / "armed").write_text(f"{step}\n")

    def disarm(self) -> None:
        (self.folder / "armed").unlink(missing_ok=True)

    @property
    def commands(self) -> list[str]:
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []

    @property
    def reached(self) -> int:
        """The process that stopped; 0 before."""
        file = self.folder / "reached"
        return int(file.read_text()) if file.exists() else 0


def project(shell: Shell, name: str = "arc", *, branch: str = "main") -> Path:
    """A project of one commit; its agent runs `echo`."""
    folder = shell.project(name)
    (folder / ".scout" / "project.toml").write_text(f'name = "{name}"\nharness = "echo"\n')
    (folder / "a.txt").write_text("a\n")
    git(folder, "init", "-q", "-b", branch)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def branches(folder: Path) -> list[str]:
    return git(folder, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()


def trees_of(folder: Path) -> list[str]:
    """The work trees as git knows them, without the main one."""
    lines = git(folder, "worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")][1:]


def up(me: Shell, paused: PausedGit) -> int:
    """The daemon, which meets the git that stops; its process."""
    return start(str(me.home), environ={**me.environ, "PATH": paused.path}, timeout=60)[0].pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{pid}").exists() or is_dead(pid))


def is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
