"""An adapter carries: it knows the port and the words of the model it answers with, and no other adapter."""

import ast
from pathlib import Path

import pytest

from scout import adapters

ROOM = Path(adapters.__file__).parent
HARNESSES = ("command", "echo")
SINKS = ("desktop", "webhook")
ROUTERS = ("router",)
SHARED = {"environment", "process", "process_table", "spawn", "tail"}
# Base is for everybody; of the model, an adapter needs what its answers are made of and nothing that it could change.
KNOWN = {
    "scout.base.codec",
    "scout.base.refusal",
    "scout.model.delivery",
    "scout.model.session_problem",
    "scout.ports",
}


def _imported(file: Path) -> set[str]:
    nodes = ast.walk(ast.parse(file.read_text()))
    names = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name for name in names if name.startswith("scout")}


def test_every_file_of_the_room_is_a_harness_a_sink_a_router_or_shared() -> None:
    assert {file.stem for file in ROOM.glob("*.py")} == {"__init__", *HARNESSES, *SINKS, *ROUTERS, *SHARED}


@pytest.mark.rows("R3-1")
@pytest.mark.parametrize("name", [*HARNESSES, *SINKS, *ROUTERS])
def test_an_adapter_neither_routes_nor_knows_another(name: str) -> None:
    shared = {f"scout.adapters.{one}" for one in SHARED}
    assert _imported(ROOM / f"{name}.py") - shared - KNOWN == set()


@pytest.mark.parametrize("name", sorted(SHARED))
def test_what_they_share_knows_no_harness(name: str) -> None:
    assert _imported(ROOM / f"{name}.py") <= {f"scout.adapters.{one}" for one in SHARED}
