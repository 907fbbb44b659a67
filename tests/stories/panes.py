"""A terminal of tmux in which a person types."""

import os
import shlex
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.daemon.daemons import eventually

__all__ = ["Pane", "a_pane", "a_shell_pane"]


class Machine(Protocol):
    """Where a person works: a folder, and what is set there."""

    @property
    def folder(self) -> Path: ...
    @property
    def environ(self) -> Mapping[str, str]: ...


class Pane:
    """A terminal in which a person types."""

    def __init__(self, machine: Machine) -> None:
        self._tmux = ["tmux", "-S", str(machine.folder / "tmux"), "-f", os.devnull]

    def type(self, *keys: str) -> None:
        subprocess.run([*self._tmux, "send-keys", "-t", "it", *keys], check=True)

    @property
    def screen(self) -> str:
        words = [*self._tmux, "capture-pane", "-p", "-J", "-S", "-", "-t", "it"]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout

    def shows(self, text: str) -> str:
        """The screen, once it shows this."""
        try:
            return eventually(lambda: self.screen if text in self.screen else None)
        except AssertionError:
            raise AssertionError(f"no {text!r} on this screen:\n{self.screen}") from None

    @contextmanager
    def open(self, folder: Path, line: str, rows: int = 50) -> Generator["Pane"]:
        """Run a line in it, in 80 columns; at the end it is closed."""
        size = ["-x", "80", "-y", str(rows), "-c", str(folder)]
        subprocess.run([*self._tmux, "new-session", "-d", "-s", "it", *size, line], check=True)
        try:
            yield self
        finally:
            subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)


def _line(machine: Machine, *words: str) -> str:
    environ = [f"{name}={value}" for name, value in machine.environ.items()]
    return shlex.join(["env", "-i", *environ, "TERM=screen", *words])


@contextmanager
def a_pane(machine: Machine, *words: str) -> Generator[Pane]:
    """A terminal in which `scout` is run with these words; then it stays."""
    line = _line(machine, sys.executable, "-m", "scout", *words)
    with Pane(machine).open(machine.folder, f"{line}; echo ended with $?; cat") as pane:
        yield pane


@contextmanager
def a_shell_pane(machine: Machine, folder: Path) -> Generator[Pane]:
    """A terminal with a shell in a folder, in which `scout` is found."""
    scout = machine.folder / "bin" / "scout"
    scout.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m scout "$@"\n')
    scout.chmod(0o755)
    with Pane(machine).open(folder, _line(machine, "PS1=$ ", "sh", "-i")) as pane:
        yield pane
