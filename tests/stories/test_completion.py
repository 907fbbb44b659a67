"""Tab in the shells that people use: a real shell on a terminal, the key, and what then stands on the line."""

import os
import pty
import shutil
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.running import Shell, a_shell, start_daemon

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

_PATIENCE = 60.0
_READY = "completion is ready"
_SAY_READY = (
    "echo completion is rea''dy"  # typed it looks different, so that seeing it means that it was done
)
# How each shell is started without the files of whoever runs the tests, and how it learns to complete.
SHELLS = {
    "zsh": (
        ("zsh", "-f", "-i"),
        f'autoload -Uz compinit && compinit -D -u && eval "$(_SCOUT_COMPLETE=zsh_source scout)" && {_SAY_READY}',
    ),
    "fish": (
        ("fish", "--no-config", "-i"),
        f"_SCOUT_COMPLETE=fish_source scout | source; and {_SAY_READY}",
    ),
}


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as shell:
        start_daemon(shell)
        shell.say(
            "agent", "register", "hudson", "--project", ".", "--harness", "echo", cwd=shell.project("hudson")
        )
        yield shell


class Terminal:
    """A shell on a terminal of its own: keys go in, and what is shown is kept."""

    def __init__(self, words: tuple[str, ...], environ: dict[str, str], folder: Path) -> None:
        self.shown = ""
        self._pid, self._near = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, environ)
        os.set_blocking(self._near, False)

    def press(self, keys: str) -> None:
        os.write(self._near, keys.encode())

    def see(self, text: str) -> None:
        """Wait until it is shown."""
        until = time.monotonic() + _PATIENCE
        while text not in self._look():
            assert time.monotonic() < until, self.shown
            time.sleep(0.02)

    def _look(self) -> str:
        try:
            data = os.read(self._near, 65536)
        except OSError:
            return self.shown
        self.shown += data.decode(errors="replace")
        if b"\x1b[c" in data or b"\x1b[0c" in data:  # a shell asks what terminal this is, and waits
            self.press("\x1b[?62;c")
        return self.shown

    def close(self) -> None:
        os.close(self._near)  # the shell is hung up
        os.waitpid(self._pid, 0)


@pytest.mark.rows("R4.1-24")
@pytest.mark.parametrize("name", SHELLS)
def test_tab_completes_the_name_of_an_agent(shell: Shell, tmp_path: Path, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"NOT PROVED HERE: {name} is absent, so that Tab was not pressed in it")
    program = tmp_path / "scout"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m scout "$@"\n')
    program.chmod(0o755)
    ours = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "TERM": "xterm",
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
    }
    words, learn = SHELLS[name]
    terminal = Terminal(words, {**shell.environ, **ours}, shell.folder)
    try:
        terminal.press(f"{learn}\r")
        terminal.see(_READY)
        terminal.press("scout ask @hu\t")
        terminal.see("@hudson")
    finally:
        terminal.close()
