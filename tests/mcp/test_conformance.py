"""Both generations of the protocol, judged by the public conformance suite.

A pass can be empty in that suite (in places an error text counts), so Scout's own tools have tests of their own.
"""

import ast
import asyncio
import tomllib
from pathlib import Path

import pytest

from scout.store.integrity.verify import verify
from tests.mcp.conformance import SUITE, checked, node_words, offered

_HERE = Path(__file__).parent
_BASELINE = tomllib.loads((_HERE / "conformance-baseline.toml").read_text())
_GREEN = {"2025-11-25": 81, "2026-07-28": 195}  # at least so many: a suite that checks nothing finds nothing
_RED = 3  # lower it with the baseline

# The protocol's shapes, an error and two kinds of change; nothing that carries or serves anything.
_SHAPES = {"mcp_types", "mcp.shared.exceptions", "mcp.shared.subscriptions"}


@pytest.mark.rows("R4.3-9")
@pytest.mark.slow
@pytest.mark.first
@pytest.mark.timeout(600)  # the first to come here installs the suite; once it is there, half a minute
@pytest.mark.parametrize("revision", _BASELINE)
def test_the_conformance_suite_finds_what_the_baseline_says(tmp_path: Path, revision: str) -> None:
    node_words(SUITE)  # installed before there is anybody to keep waiting

    async def run() -> None:
        async with offered(tmp_path / "home") as stage:
            found = await checked(f"{stage.url}/mcp", revision, tmp_path / "results")
        red = {one.name: one.problem for one in found if one.status in ("FAILURE", "WARNING")}
        known = _BASELINE[revision]
        assert {name: why for name, why in red.items() if name not in known} == {}, "not in the baseline"
        assert known.keys() - red.keys() == set(), "in the baseline, and green"
        assert sum(one.status == "SUCCESS" for one in found) >= _GREEN[revision]

    asyncio.run(run())
    assert verify(tmp_path / "home" / "scout.db").clean


def test_the_baseline_only_shrinks() -> None:
    assert sum(map(len, _BASELINE.values())) == _RED


def test_the_fixture_holds_bodies_only() -> None:
    """How they are reached, and all that the protocol asks for besides, is Scout's own."""
    for file in (_HERE / "fixture").glob("*.py"):
        imported = {
            node.module or ""
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.ImportFrom)
        }
        foreign = {name for name in imported if name.partition(".")[0] in ("mcp", "mcp_types")}
        assert foreign <= _SHAPES, file
        assert not any(name.startswith(("starlette", "uvicorn", "http")) for name in imported), file
