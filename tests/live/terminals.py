"""The real programs as a person has them open: in a terminal of tmux, with Scout set up in their own settings."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.live.programs import (
    CLAUDE_CODE,
    CLAUDE_CODE_ALONE,
    CODEX,
    UNASKED,
    Program,
    codex_settings,
    require_program,
)

__all__ = ["TERMINALS", "Terminal", "tmux_here"]

_KEY = "sk-ant-scripted-000"
_NOWHERE = "http://127.0.0.1:9"  # what is not on loopback is out of reach


def tmux_here() -> None:
    """The test is skipped where there is no tmux."""
    if shutil.which("tmux") is None:
        pytest.skip("NOT PROVED HERE: tmux is not installed")


class Terminal:
    """One program: how it is set up, started and ended."""

    name: str
    program: Program
    ready: str  # what its screen shows when it waits for input
    mark: str  # what stands before the words of its model

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder
        self.model = model
        self.home = folder / self.name
        self.work = folder / "work"
        for one in (self.home, self.work, folder / "tmp", folder / "bin"):
            one.mkdir(parents=True)
        (folder / "bin" / self.name).symlink_to(require_program(self.program))
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", os.devnull]

    @property
    def environ(self) -> dict[str, str]:
        """What a person has set, in the shell where Scout was started as well."""
        raise NotImplementedError

    def seed(self) -> None:
        """Settings that keep a new program from asking about itself."""
        raise NotImplementedError

    def words(self) -> list[str]:
        raise NotImplementedError

    @property
    def screen(self) -> str:
        return self.screen_of("it")

    def screen_of(self, window: str) -> str:
        """What a window shows, from its beginning."""
        words = [*self._tmux, "capture-pane", "-p", "-S", "-", "-t", window]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout

    @contextlib.contextmanager
    def open(self) -> Generator[None]:
        """Open until the end of the test; then nothing of it is left."""
        self._start("it")
        try:
            yield
        finally:
            self.end()

    @contextlib.contextmanager
    def beside(self, window: str) -> Generator[None]:
        """The same program once more, in the same folder; it is closed with the first."""
        self._start(window)
        yield

    def _start(self, window: str) -> None:
        plain = {
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder / "tmp"),
            "LANG": "C.UTF-8",
            "TERM": "screen-256color",
            "HTTP_PROXY": _NOWHERE,
            "HTTPS_PROXY": _NOWHERE,
            "NO_PROXY": "127.0.0.1",
        }
        told = [f"{name}={value}" for name, value in {**plain, **self.environ}.items()]
        line = shlex.join(["env", "-i", *told, *self.words()])
        size = ["-x", "140", "-y", "45", "-c", str(self.work)]
        subprocess.run([*self._tmux, "new-session", "-d", "-s", window, *size, line], check=True)

    def press(self, key: str) -> None:
        """Press a key in its window, by tmux's name for it."""
        subprocess.run([*self._tmux, "send-keys", "-t", "it", key], check=True)

    def type(self, text: str) -> None:
        """Type a line in its window, and wait until it is shown before it is sent."""
        subprocess.run([*self._tmux, "send-keys", "-t", "it", "-l", text], check=True)
        until = time.monotonic() + 60
        while text not in self.screen:
            assert time.monotonic() < until, self.screen
            time.sleep(0.1)
        self.press("Enter")

    def end(self) -> None:
        """Its terminal is closed; what it left running by itself is ended by its id."""
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)
        until = time.monotonic() + 10
        while (left := self._left()) and time.monotonic() < until:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM if time.monotonic() < until - 5 else signal.SIGKILL)
            time.sleep(0.1)
        assert not left

    def _left(self) -> list[int]:
        """Processes that were told of this folder, by their environment."""
        mark, found = f"HOME={self.folder}\0".encode(), list[int]()
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes() and int(entry.name) != os.getpid():
                    found.append(int(entry.name))
        return found


class ClaudeTerminal(Terminal):
    name = "claude"
    program = CLAUDE_CODE
    ready = "manual mode on"
    mark = "●"

    @property
    def environ(self) -> dict[str, str]:
        return {
            "CLAUDE_CONFIG_DIR": str(self.home),
            "ANTHROPIC_BASE_URL": self.model,
            "ANTHROPIC_API_KEY": _KEY,
            **CLAUDE_CODE_ALONE,
        }

    def seed(self) -> None:
        state = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "projects": {
                str(self.work): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
            },
            "customApiKeyResponses": {"approved": [_KEY[-20:]], "rejected": []},
        }
        (self.home / ".claude.json").write_text(json.dumps(state))
        (self.home / "settings.json").write_text(json.dumps({"permissions": {"allow": ["mcp__scout"]}}))

    def words(self) -> list[str]:
        return ["claude", "--permission-mode", "manual"]


class CodexTerminal(Terminal):
    name = "codex"
    program = CODEX
    ready = "• I am here"
    mark = "•"

    @property
    def environ(self) -> dict[str, str]:
        return {"CODEX_HOME": str(self.home), "MODEL_KEY": "scripted"}

    def seed(self) -> None:
        trusted = f'[projects."{self.work}"]\ntrust_level = "trusted"'
        (self.home / "config.toml").write_text(codex_settings(self.model, UNASKED, trusted))

    def words(self) -> list[str]:
        approve = 'mcp_servers.scout.default_tools_approval_mode="approve"'
        trust = "--dangerously-bypass-hook-trust"
        # Its thread begins with the first thing that the person types.
        return ["codex", "--no-alt-screen", trust, "-c", approve, "hello <<say I am here>>"]


TERMINALS = {one.name: one for one in (ClaudeTerminal, CodexTerminal)}
