"""The real Claude Code and Codex with the scripted model behind them, Scout's MCP before them, and their own homes."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
from msgspec.structs import replace

from scout.adapters.claude.adapter import Claude
from scout.adapters.codex.adapter import Codex
from scout.adapters.persistent.pipe import PipeLimits
from scout.ports import Harness, HarnessEvent, NeedsHuman
from tests.adapters.conformance import Conformance
from tests.adapters.mcp_door import McpDoor, mcp_door
from tests.adapters.turns import Turn, turn
from tests.live.model.server import Model, scripted_model
from tests.live.programs import CLAUDE_CODE, CLAUDE_CODE_ALONE, CODEX, codex_settings, require_program

__all__ = [
    "ProgramConformance",
    "ProgramStage",
    "claude_stage",
    "codex_stage",
    "collect_rest",
    "files_below",
    "select_kind",
    "wait_for_request",
]

H = TypeVar("H", Claude, Codex)

_CLAUDE_ENVIRONMENT = {
    "ANTHROPIC_API_KEY": "sk-ant-scripted-000",
    **CLAUDE_CODE_ALONE,
    "HTTPS_PROXY": "http://127.0.0.1:9",  # what is not on loopback is out of reach
    "HTTP_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
}


class ProgramStage(Generic[H]):
    """`home` is the program's own folder, `work` the folder of its agents."""

    def __init__(self, make: Callable[..., H], home: Path, model: Model, door: McpDoor) -> None:
        self._make = make
        self.model = model
        self.door = door
        self.home = home
        self.sessions = home.parent / "sessions"
        self.work = home.parent / "work"
        self.work.mkdir()

    def harness(self, **limits: Any) -> H:
        """An adapter, as after a restart of the broker."""
        return self._make(self.sessions, limits=PipeLimits(**limits))

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
        harness = self.harness(grace=1.0)

        async def stop() -> None:
            for folder in self.sessions.glob("*"):
                await harness.stop(folder.name)

        asyncio.run(stop())


@contextlib.contextmanager
def claude_stage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[ProgramStage[Claude]]:
    """Claude Code as its user has it: on the PATH, with its home and the key of its model in the environment."""
    (folder / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder / "tmp"))  # where it leaves sockets when it is killed
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder / "claude"))
    for name, value in _CLAUDE_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with _open_stage(Claude, CLAUDE_CODE, folder / "claude", monkeypatch) as stage:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", stage.model.url)
        yield stage


@contextlib.contextmanager
def codex_stage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[ProgramStage[Codex]]:
    """Codex as its user has it: on the PATH, with its home and the key of its model in the environment."""
    monkeypatch.setenv("CODEX_HOME", str(folder / "codex"))
    monkeypatch.setenv("MODEL_KEY", "scripted")
    with _open_stage(Codex, CODEX, folder / "codex", monkeypatch) as stage:
        stage.home.mkdir()
        (stage.home / "config.toml").write_text(codex_settings(stage.model.url))
        yield stage


@contextlib.contextmanager
def _open_stage(
    make: Callable[..., H], program: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[ProgramStage[H]]:
    programs = home.parent / "bin"
    programs.mkdir()
    (programs / home.name).symlink_to(require_program(program))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home.parent))
    with scripted_model() as model, mcp_door() as door:
        stage = ProgramStage(make, home, model, door)
        try:
            yield stage
        finally:
            stage.end()


class ProgramConformance(Conformance):
    """The suite that every adapter runs, with a real program. `hang` is the script of a turn that does not end."""

    at_once = 3
    hang: str
    stage: ProgramStage[Any]
    _sessions = 0

    @pytest.fixture(autouse=True)
    def _staged(self, stage: ProgramStage[Any]) -> None:  # pyright: ignore[reportUnusedFunction] (pytest calls it)
        self.stage = stage

    def make(self, folder: Path) -> Harness:
        return self.stage.harness()

    def answering(self, body: str) -> Turn:
        return self._turn(f"<<say {body}>>", body)

    def failing(self) -> Turn:
        return self._turn("<<error 400 it broke>>")

    def hanging(self) -> Turn:
        return self._turn(f"{self.hang} ++ <<say too late>>")

    def _turn(self, script: str, body: str = "") -> Turn:
        self._sessions += 1
        return self.stage.turn(script, f"ses_{self._sessions}", body)


async def wait_for_request(
    harness: Harness, one: Turn
) -> tuple[NeedsHuman, asyncio.Task[list[HarnessEvent]]]:
    """What it asks in this turn, and the rest as it comes."""
    stream = harness.deliver(one.spec, one.prompt)
    async for event in stream:
        if isinstance(event, NeedsHuman):
            return event, asyncio.create_task(collect_rest(stream))
    raise AssertionError("it asked nothing")


async def collect_rest(stream: Any) -> list[HarnessEvent]:
    return [event async for event in stream]


def select_kind(kind: type[HarnessEvent], events: list[HarnessEvent]) -> list[Any]:
    """Those of one kind."""
    return [event for event in events if isinstance(event, kind)]


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
