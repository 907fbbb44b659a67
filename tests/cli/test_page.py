"""docs/cli.md has every exit code and every mark of a session. The commands are in docs/reference."""

import re
from pathlib import Path

from scout.base.refusal import Family
from scout.cli.connection.refusal import DENIED, OPEN, UNANSWERED
from scout.client.environment import SESSION_MARKS

PAGE = (Path(__file__).parents[2] / "docs/cli.md").read_text()


def test_every_exit_code_is_on_the_page() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    assert codes == {0, OPEN, DENIED, UNANSWERED, 130, *(family.exit_code for family in Family)}


def test_every_mark_of_a_session_is_on_the_page() -> None:
    assert [mark for mark in SESSION_MARKS if f"`{mark}`" not in PAGE] == []
