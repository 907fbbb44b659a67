"""A text that names a command or a tool names one that exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scout.cli.connection.catalogue import COMMANDS, GROUPS, SAME_AS
from scout.mcp.tools.table import TOOLS

SOURCE = Path(__file__).parents[2] / "src" / "scout"
DOCS = Path(__file__).parents[2] / "docs"
_COMMAND = re.compile(r"`scout ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")
_TOOL = re.compile(r"`([a-z]+(?:_[a-z]+)+)(?: \{.*?\})?`")


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Every string of the code in a folder, with the place where it stands."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{file.relative_to(SOURCE)}:{node.lineno}", node.value


def exists(first: str, second: str) -> bool:
    """Whether words behind `scout` are a command; behind a group, the second word is one of its own."""
    if first in SAME_AS:
        return True
    return first in COMMANDS and (first not in GROUPS or not second or second in GROUPS[first])


def missing(text: str) -> list[str]:
    return [found[0] for found in _COMMAND.finditer(text) if not exists(found[1], found[2] or "")]


def test_every_command_that_a_text_of_the_code_names_exists() -> None:
    wrong = [(place, name) for place, text in texts(SOURCE) for name in missing(text)]
    assert wrong == []


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_every_command_that_a_page_names_exists(page: Path) -> None:
    assert missing(page.read_text()) == []


def test_every_tool_that_a_text_for_agents_names_exists() -> None:
    said = [*texts(SOURCE / "mcp"), *((f"tool {one.name}", one.says) for one in TOOLS.values())]
    own = {"schema_of"}  # of the code, in a docstring
    wrong = [
        (place, name) for place, text in said for name in _TOOL.findall(text) if name not in {*TOOLS, *own}
    ]
    assert wrong == []
