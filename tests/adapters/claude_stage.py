"""The real Claude Code with the scripted model behind it, a door of Scout's before it, and a home of its own."""

import asyncio
import contextlib
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.adapters.claude.adapter import Claude
from scout.adapters.persistent.pipe import WireLimits
from scout.ports import HarnessEvent
from tests.adapters.mcp_door import McpDoor, mcp_door
from tests.adapters.turns import Turn, turn
from tests.live.model.server import Model, scripted_model
from tests.live.programs import CLAUDE_CODE, installed

__all__ = ["ClaudeStage", "claude_stage", "of"]

_ENVIRONMENT = {
    "ANTHROPIC_API_KEY": "sk-ant-scripted-000",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    "HTTPS_PROXY": "http://127.0.0.1:9",  # what is not on loopback is out of reach
    "HTTP_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
}


class ClaudeStage:
    """`home` is Claude Code's own folder, `work` the folder of its agents."""

    def __init__(self, folder: Path, model: Model, door: McpDoor) -> None:
        self.model = model
        self.door = door
        self.sessions = folder / "sessions"
        self.home = folder / "claude"
        self.work = folder / "work"
        self.work.mkdir()

    def claude(self, **limits: Any) -> Claude:
        """An adapter, as after a restart of the broker."""
        return Claude(self.sessions, limits=WireLimits(**limits))

    def turn(self, script: str, session: str = "ses_1", body: str = "", **spec: Any) -> Turn:
        """A turn of a session, with all that a program would need."""
        one = turn(body, session=session, text=script, cwd=self.work)
        return Turn(replace(one.spec, **{"door": self.door.door(), **spec}), one.prompt)

    @property
    def heard(self) -> list[str]:
        """What the model was told by its last request, of people and tools."""
        return [one.text for one in self.model.log[-1].heard.turns if one.text]

    def end(self) -> None:
        """Stop every program; then there is nothing left of it."""
        claude = self.claude(grace=1.0)

        async def stop() -> None:
            for folder in self.sessions.glob("*"):
                await claude.stop(folder.name)

        asyncio.run(stop())


@contextlib.contextmanager
def claude_stage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[ClaudeStage]:
    """Claude Code as its user has it: on the PATH, with its home and the key of its model in the environment."""
    programs = folder / "bin"
    programs.mkdir()
    (folder / "tmp").mkdir()
    (programs / "claude").symlink_to(installed(CLAUDE_CODE))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder / "tmp"))  # where it leaves sockets when it is killed
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder / "claude"))
    for name, value in _ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with scripted_model() as model, mcp_door() as door:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        stage = ClaudeStage(folder, model, door)
        try:
            yield stage
        finally:
            stage.end()


def of(kind: type[HarnessEvent], events: list[HarnessEvent]) -> list[Any]:
    """Those of one kind."""
    return [event for event in events if isinstance(event, kind)]
