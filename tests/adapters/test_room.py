"""An adapter carries: it knows the port and the words of the model it answers with, and no other adapter."""

import ast
from pathlib import Path

import pytest

from scout import adapters

ROOM = Path(adapters.__file__).parent
# A harness is a module, or a folder of them.
HARNESSES = ("acp", "claude", "codex", "command", "echo", "tmux")
SINKS = ("desktop", "webhook")
ROUTERS = ("router",)
SHARED = {
    "environment",
    "instructions",
    "keeper",
    "outputs",
    "plain",
    "process",
    "process_table",
    "removed_runs",
    "rpc",
    "run_server",
    "runs",
    "spawn",
    "tail",
    "transcript",
    "wire",
}
# Base is for everybody; of the model, an adapter needs what its answers are made of and nothing that it could change.
KNOWN = {
    "scout.base.codec",
    "scout.base.record",
    "scout.base.refusal",
    "scout.base.time",
    "scout.model.agent",
    "scout.model.delivery",
    "scout.model.permission",
    "scout.model.problems.session",
    "scout.policy.disk",
    "scout.ports",
    "scout.ports.folders",
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
    assert found == {"__init__", *HARNESSES, *SINKS, *ROUTERS, *SHARED}


def _files(name: str) -> list[Path]:
    return sorted((ROOM / name).glob("*.py")) or [ROOM / f"{name}.py"]


@pytest.mark.rows("R3-1", "R3-2")
@pytest.mark.parametrize("name", [*HARNESSES, *SINKS, *ROUTERS])
def test_an_adapter_neither_routes_nor_knows_another(name: str) -> None:
    shared = {f"scout.adapters.{one}" for one in SHARED}
    imported = set[str]().union(*map(_imported, _files(name)))
    own = {one for one in imported if one.startswith(f"scout.adapters.{name}.")}
    assert imported - own - shared - KNOWN == set()


@pytest.mark.parametrize("name", sorted(SHARED))
def test_what_they_share_knows_no_harness(name: str) -> None:
    assert _imported(ROOM / f"{name}.py") - KNOWN <= {f"scout.adapters.{one}" for one in SHARED}
