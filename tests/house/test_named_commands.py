"""A text that names a command or a tool names one that exists."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from scout.cli.connection.catalogue import COMMANDS, GROUPS, SAME_AS
from scout.cli.main import scout
from scout.mcp.tools.table import TOOLS

SOURCE = Path(__file__).parents[2] / "src" / "scout"
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
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


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_every_command_that_a_page_names_exists(page: Path) -> None:
    assert missing(page.read_text()) == []


_LINE = re.compile(r"`(scout [^`\n]+)`|^\$? ?(scout [^\n]+)$", re.MULTILINE)


def unknown_options(line: str) -> list[str]:
    """The options in a command line that its command does not have."""
    words = shlex.split(line.partition("  #")[0].partition(" | ")[0].partition(" > ")[0])[1:]
    command: click.Command = scout
    context = click.Context(command, info_name="scout")
    while isinstance(command, click.Group) and words and words[0] in command.list_commands(context):
        found = command.get_command(context, words.pop(0))
        assert found is not None
        command, context = found, click.Context(found, parent=context)
    for word in (
        "add",
        "create",
    ):  # `scout allow X` is `scout allow add X`, `scout task X` is `scout task create X`
        if isinstance(command, click.Group) and word in command.list_commands(context):
            command = command.get_command(context, word) or command
    known = {name for one in command.get_params(context) for name in (*one.opts, *one.secondary_opts)}
    words = words[: words.index("--")] if "--" in words else words
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_option_that_a_page_names_exists(page: Path) -> None:
    lines = [inline or block for inline, block in _LINE.findall(page.read_text())]
    assert [(line, wrong) for line in lines if can_split(line) and (wrong := unknown_options(line))] == []


def can_split(line: str) -> bool:
    """Whether a shell could read the line; what is cut off in the middle of a quotation is no command."""
    try:
        shlex.split(line)
    except ValueError:
        return False
    return True


def test_every_tool_that_a_text_for_agents_names_exists() -> None:
    said = [*texts(SOURCE / "mcp"), *((f"tool {one.name}", one.says) for one in TOOLS.values())]
    own = {"schema_of"}  # of the code, in a docstring
    wrong = [
        (place, name) for place, text in said for name in _TOOL.findall(text) if name not in {*TOOLS, *own}
    ]
    assert wrong == []
