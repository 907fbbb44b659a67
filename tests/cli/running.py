"""A real daemon in a folder of its own, and commands typed at it."""

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scout.client.environment import SESSION_MARKS
from scout.daemon.start import Running, start, stop


def plain_environment(home: Path) -> dict[str, str]:
    """A person's shell: nothing of the session that runs the tests."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SCOUT_", "ANTHROPIC_", "OPENAI_"))
        and name not in (*SESSION_MARKS, "NO_COLOR", "EDITOR", "VISUAL", "IS_SANDBOX")
    }
    # Most daemons of the tests have no MCP client: loading it costs more than the rest of their start.
    ours = {
        "SCOUT_PORT": "0",
        "SCOUT_AUTOSTART": "0",
        "SCOUT_NOTIFY_DESKTOP": "0",
        "SCOUT_MCP_PRELOAD": "false",
    }
    logins = {"CLAUDE_CONFIG_DIR": f"{home}/nobody", "CODEX_HOME": f"{home}/nobody"}  # nor of its logins
    return {**kept, "SCOUT_HOME": str(home), **ours, **logins}


@dataclass(frozen=True)
class Shell:
    """A home, and what is typed there. `runner`: words that run a program elsewhere, such as in a namespace."""

    folder: Path
    runner: tuple[str, ...] = ()

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def environ(self) -> dict[str, str]:
        return plain_environment(self.home)

    @property
    def program(self) -> list[str]:
        """The words that run Scout: the one of this tree."""
        return [sys.executable, "-W", "error", "-m", "scout"]

    def project(self, name: str) -> Path:
        """A project folder of this name, made if need be."""
        marker = self.folder / "work" / name / ".scout"
        marker.mkdir(parents=True, exist_ok=True)
        (marker / "project.toml").write_text(f'name = "{name}"\n')
        return marker.parent

    def type(
        self, *words: str, cwd: Path | None = None, stdin: str = "", within: float = 60, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """The real program."""
        return subprocess.run(
            [*self.runner, *self.program, *words],
            cwd=cwd or self.folder,
            env={**self.environ, **environ},
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=within,
            check=False,
        )

    def say(self, *words: str, **how: Any) -> str:
        """The same, which must work."""
        done = self.type(*words, **how)
        assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def data(self, *words: str, **how: Any) -> Any:
        """The same as data."""
        return json.loads(self.say(*words, "--json", **how))


def type_in_terminal(
    shell: Shell, *words: str, until: str = "", then: Callable[[str], object] | None = None, **environ: str
) -> tuple[int, str]:
    """What a terminal shows; when `until` appears, `then` happens, or Ctrl-C is typed."""
    near, far = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "scout", *words],
        env={**shell.environ, "TERM": "xterm", **environ},
        cwd=shell.folder,
        stdin=far,
        stdout=far,
        stderr=far,
    )
    os.close(far)
    shown = b""
    try:
        while data := read_terminal(near):
            shown += data
            if until and until.encode() in shown:
                until = ""
                if then is None:
                    process.send_signal(signal.SIGINT)
                else:
                    then(shown.decode())
        return process.wait(60), shown.decode()
    finally:
        os.close(near)


def read_terminal(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""  # the other side is closed


@contextlib.contextmanager
def a_shell(*, ends_runs: bool = False) -> Generator[Shell]:
    """A home without a daemon; one that was started is stopped at the end, and with `ends_runs` what it runs too."""
    folder = Path(tempfile.mkdtemp(prefix="sct-")).resolve()  # short: a socket's path is
    shell = Shell(folder)
    shell.home.mkdir(mode=0o700)
    (shell.home / "config.toml").write_text(f"roots = ['{folder}/work']\n")
    try:
        yield shell
    finally:
        ended = shell.type("down", "--stop", within=120) if ends_runs else None
        stop(str(shell.home), timeout=60)
        shutil.rmtree(folder)
        assert ended is None or ended.returncode == 0, (ended.stdout, ended.stderr)


def start_daemon(shell: Shell) -> Running:
    """Its daemon, on any free port."""
    return start(str(shell.home), environ=shell.environ, timeout=60)[0]
