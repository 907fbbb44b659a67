"""docs/cli.md names every command, and every exit code is one of its rows."""

import re
from pathlib import Path

import pytest

from scout.base.refusal import Family
from scout.cli.connection.catalogue import COMMANDS, GROUPS
from scout.cli.connection.refusal import DENIED, OPEN, UNANSWERED
from scout.client.environment import SESSION_MARKS

PAGE = (Path(__file__).parents[2] / "docs/cli.md").read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_on_the_page(name: str) -> None:
    (row,) = [
        line
        for line in PAGE.splitlines()
        if re.match(rf"\| `scout {name}`( \+|\s\|\s{re.escape(COMMANDS[name])})", line)
    ]
    assert [word for word in GROUPS.get(name, ()) if f"`{word}`" not in row] == []


def test_every_exit_code_is_on_the_page() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    assert codes == {0, OPEN, DENIED, UNANSWERED, 130, *(family.exit_code for family in Family)}


def test_every_mark_of_a_session_is_on_the_page() -> None:
    assert [mark for mark in SESSION_MARKS if f"`{mark}`" not in PAGE] == []
