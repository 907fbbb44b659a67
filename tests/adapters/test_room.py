"""An adapter carries: it knows the port and the words of the model it answers with, and no other adapter."""

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from scout import adapters

ROOM = Path(adapters.__file__).parent
# A harness is a module, or a folder of them.
HARNESSES = ("a2a", "acp", "claude", "codex", "command", "echo", "tmux")
OTHERS = ("sinks", "router", "telemetry")
# What harnesses share: modules, and folders of them.
SHARED = ("harness", "persistent", "process", "transcript")
# A pane runs the programs of other harnesses, so it knows how their command lines are written.
FLAGS = {"tmux": {"scout.adapters.claude.flags", "scout.adapters.codex.flags"}}
# Base is for everybody; of the model, an adapter needs what its answers are made of and nothing that it could change.
KNOWN = {
    "scout.base.codec",
    "scout.base.record",
    "scout.base.refusal",
    "scout.base.time",
    "scout.model.agent",
    "scout.model.delivery",
    "scout.model.endpoint",
    "scout.model.access.permission",
    "scout.model.problems.session",
    "scout.model.session",
    "scout.model.trace",
    "scout.policy.disk",
    "scout.ports",
    "scout.ports.folders",
    "scout.settings.environment",
    "scout.settings.folder",
}


def _imported(file: Path) -> set[str]:
    nodes = ast.walk(ast.parse(file.read_text()))
    froms = (node for node in nodes if isinstance(node, ast.ImportFrom) and node.module)
    names = {_module(str(node.module), alias.name) for node in froms for alias in node.names}
    return {name for name in names if name.startswith("scout")}


def _module(package: str, name: str) -> str:
    """A module may be imported from its package by its own name."""
    inner = Path(*package.split("."), f"{name}.py")
    return f"{package}.{name}" if (ROOM.parents[1] / inner).is_file() else package


def test_every_file_of_the_room_is_a_harness_a_sink_a_router_or_shared() -> None:
    found = {entry.stem for entry in ROOM.iterdir() if entry.stem != "__pycache__"}
    assert found == {"__init__", *HARNESSES, *OTHERS, *SHARED}


def _files(name: str) -> list[Path]:
    return sorted((ROOM / name).glob("*.py")) or [ROOM / f"{name}.py"]


def _is_of(module: str, names: Iterable[str]) -> bool:
    own = tuple(f"scout.adapters.{name}" for name in names)
    return module in own or module.startswith(tuple(f"{name}." for name in own))


@pytest.mark.rows("R3-1", "R3-2")
@pytest.mark.parametrize("name", [*HARNESSES, *OTHERS])
def test_an_adapter_neither_routes_nor_knows_another(name: str) -> None:
    imported = set[str]().union(*map(_imported, _files(name)))
    foreign = imported - KNOWN - FLAGS.get(name, set())
    assert {one for one in foreign if not _is_of(one, (name, *SHARED))} == set()


@pytest.mark.parametrize("name", SHARED)
def test_what_they_share_knows_no_harness(name: str) -> None:
    imported = set[str]().union(*map(_imported, _files(name)))
    assert {one for one in imported - KNOWN if not _is_of(one, SHARED)} == set()
