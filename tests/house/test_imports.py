"""Pure rooms touch nothing of the world.

import-linter keeps the modules out (pyproject.toml names them, once); this keeps out what it cannot
see: built-ins, the clock of `datetime`, submodules and imports made at run time.
"""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
_PURE = next(contract for contract in _CONTRACTS if contract["id"] == "pure-rooms")

ROOMS = [ROOT / "src" / module.replace(".", "/") for module in _PURE["source_modules"]]
FILES = sorted(file for room in ROOMS for file in room.rglob("*.py"))

FORBIDDEN_MODULES = {*_PURE["forbidden_modules"], "urllib.error", "urllib.request", "urllib.response"}
BUILT_INS = {"__import__", "breakpoint", "eval", "exec", "input", "open", "print"}
CLOCKS = {"now", "today", "utcnow"}


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_forbidden(module: str) -> bool:
    parts = module.split(".")
    return any(".".join(parts[:length]) in FORBIDDEN_MODULES for length in range(1, len(parts) + 1))


def offences(source: str) -> list[str]:
    """What this source does that pure code may not, as `line: what`."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import() | ast.ImportFrom():
                found += [(node.lineno, name) for name in _imported(node) if _is_forbidden(name)]
            case ast.Name(id=name, ctx=ast.Load()) if name in BUILT_INS:
                found.append((node.lineno, name))
            case ast.Call(func=ast.Attribute(attr=name)) if name in CLOCKS:
                found.append((node.lineno, f".{name}()"))
            case _:
                pass
    return [f"{line}: {what}" for line, what in sorted(found)]


def test_every_pure_room_is_looked_at() -> None:
    assert [room.name for room in ROOMS if not list(room.glob("*.py"))] == []


@pytest.mark.rows("R0-15")
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_pure_room_touches_nothing_of_the_world(file: Path) -> None:
    assert offences(file.read_text()) == []


@pytest.mark.rows("R0-15")
@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time", ["1: time"]),
        ("import os.path", ["1: os.path"]),
        ("from os import path", ["1: os.path"]),
        ("import json\nfrom urllib import request", ["2: urllib.request"]),
        ("def f():\n    import socket", ["2: socket"]),
        ("def f():\n    from random import choice", ["2: random.choice"]),
        ("open('x')", ["1: open"]),
        ("say = print", ["1: print"]),
        ("__import__('os')", ["1: __import__"]),
        ("from datetime import datetime as d\nd.now(d.UTC)", ["2: .now()"]),
        ("import datetime\ndatetime.date.today()", ["2: .today()"]),
        ("from datetime import datetime\ndatetime.utcnow()", ["2: .utcnow()"]),
        ("from scout.base.time import Time\nTime.parse(now)", []),
        ("class Door:\n    open: bool", []),
        ("from urllib.parse import quote", []),
        ("from datetime import datetime\ndatetime.fromisoformat(text)", []),
    ],
)
def test_the_check_itself(source: str, found: list[str]) -> None:
    assert offences(source) == found
