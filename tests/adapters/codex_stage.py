"""The real Codex with the scripted model behind it, a door of Scout's before it, and a home of its own."""

import asyncio
import contextlib
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.adapters.codex.adapter import Codex
from scout.adapters.persistent.pipe import WireLimits
from scout.ports import HarnessEvent
from tests.adapters.mcp_door import McpDoor, mcp_door
from tests.adapters.turns import Turn, turn
from tests.live.model.server import Model, scripted_model
from tests.live.programs import CODEX, codex_settings, installed

__all__ = ["CodexStage", "codex_stage"]


class CodexStage:
    """`home` is Codex's own folder, `work` the folder of its agents."""

    def __init__(self, folder: Path, model: Model, door: McpDoor) -> None:
        self.model = model
        self.door = door
        self.sessions = folder / "sessions"
        self.home = folder / "codex"
        self.work = folder / "work"
        for made in (self.home, self.work):
            made.mkdir()
        (self.home / "config.toml").write_text(codex_settings(model.url))

    def codex(self, **limits: Any) -> Codex:
        """An adapter, as after a restart of the broker."""
        return Codex(self.sessions, limits=WireLimits(**limits))

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
        codex = self.codex(grace=1.0)

        async def stop() -> None:
            for folder in self.sessions.glob("*"):
                await codex.stop(folder.name)

        asyncio.run(stop())


@contextlib.contextmanager
def codex_stage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[CodexStage]:
    """Codex as its user has it: on the PATH, with its home and the key of its model in the environment."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "codex").symlink_to(installed(CODEX))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("CODEX_HOME", str(folder / "codex"))
    monkeypatch.setenv("MODEL_KEY", "scripted")
    with scripted_model() as model, mcp_door() as door:
        stage = CodexStage(folder, model, door)
        try:
            yield stage
        finally:
            stage.end()


def of(kind: type[HarnessEvent], events: list[HarnessEvent]) -> list[Any]:
    """Those of one kind."""
    return [event for event in events if isinstance(event, kind)]
