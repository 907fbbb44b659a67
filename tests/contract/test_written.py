"""What is written down is so: decisions have their pages, settings their defaults, names their one reader."""

import ast
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scout.base.codec import to_plain
from scout.policy.limits import Rules
from scout.settings.record import SETTINGS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/scout"
DECISIONS = ROOT / "docs/decisions"

QUESTIONS = {
    "0001": "a mention may be any handle",
    "0002": "next-move owner",
    "0003": "break a tie",
    "0004": "not an event",
    "0005": "one template",
}


def decision_pages() -> dict[str, Path]:
    return {page.name[:4]: page for page in sorted(DECISIONS.glob("[0-9]*.md"))}


def decision_index() -> dict[str, tuple[str, str]]:
    rows = re.findall(
        r"^\| \[(\d{4})\]\(([\w-]+\.md)\) \| (.+) \|$", (DECISIONS / "README.md").read_text(), re.MULTILINE
    )
    assert len({number for number, _, _ in rows}) == len(rows)
    return {number: (file, says) for number, file, says in rows}


@pytest.mark.rows("R0-1")
def test_every_decision_has_one_page_and_one_line_in_the_index() -> None:
    pages, index = decision_pages(), decision_index()
    assert list(pages) == [f"{number:04}" for number in range(1, len(pages) + 1)]
    assert {number: page.name for number, page in pages.items()} == {
        number: file for number, (file, _) in index.items()
    }
    titles = [page.read_text().splitlines()[0] for page in pages.values()]
    assert [title.split(": ")[0] for title in titles] == [f"# {number}" for number in pages]
    assert len({title.partition(": ")[2] for title in titles}) == len(titles), "nothing is decided twice"
    for page in pages.values():
        assert page.read_text().count("**Decided.**") == page.read_text().count("**Why.**") == 1


@pytest.mark.rows("R3.7-17")
@pytest.mark.parametrize("number", QUESTIONS)
def test_each_open_question_of_the_contract_has_its_page(number: str) -> None:
    file, says = decision_index()[number]
    assert QUESTIONS[number] in f"{says} {decision_pages()[number].read_text().splitlines()[0]}"
    assert (DECISIONS / file).read_text().splitlines()[2].startswith("**Decided.**")


def flat(settings: Any, above: str = "") -> Iterator[tuple[str, str]]:
    """Each setting and its default as the page writes it."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from flat(value, f"{above}{name}.")
        else:
            yield (
                f"{above}{name}",
                "none" if value is None else json.dumps(value).strip('"').removesuffix(".0"),
            )


@pytest.mark.rows("R3.4-14")
def test_the_page_of_settings_is_the_record() -> None:
    page = (ROOT / "docs/settings.md").read_text()
    rows = re.findall(r"^\| `([\w.]+)` \| (\S+) \| ([\w ]+) \| (.+) \|$", page, re.MULTILINE)
    expected = {key: row.format(row.default) or "none" for key, row in SETTINGS.items()}
    assert dict(flat(to_plain(Rules()))).items() <= expected.items()
    assert [(name, default) for name, default, _, _ in rows] == list(expected.items())
    units = {name: unit for name, _, unit, _ in rows}
    assert {name for name, unit in units.items() if unit == "seconds"} == {
        name for name in expected if name.startswith("periods.")
    }
    assert {name for name, unit in units.items() if unit == "bytes"} == {
        *("limits.body", "limits.attachment", "limits.attachmentsTotal", "limits.programOutput"),
        *("limits.runOutput", "limits.runOutputTotal", "limits.pictures", "limits.picturesTotal"),
    }


# ------------------------------------------------------------------------------------------- names

READERS = {"lex", "read_bare_branch", "parse_handle", "parse_dimensions"}
# The resolver asks the lexer; a fleet file's rows are structured fields; `scout parse` shows the lexer itself.
MAY_READ = {
    "policy/resolver/resolve.py": {"lex", "read_bare_branch", "parse_handle"},
    "policy/resolver/fleet_file.py": {"parse_dimensions"},
    # Each asks which form a text has, before the resolver is asked what it means.
    "broker/operations/talk.py": {"lex"},
    "broker/operations/access.py": {"lex", "parse_handle"},
    "broker/operations/lifecycle.py": {"lex"},
    "broker/nearby_projects.py": {"lex"},
    "broker/routing/children.py": {"lex"},
    "broker/sessions/wake_up.py": {"lex", "parse_handle"},
    "mcp/tools/table.py": {"lex"},
}
NAMES = {"definition_id", "workspace", "workspace_qualifier", "profile", "birth_branch", "canonical"}
RESOLVER = {
    "resolver/handle",
    "resolver/resolve",
    "resolver/fleet",
    "resolver/fleet_file",
    "nearest",
    "directory",
}


@functools.cache
def outside_identity() -> dict[str, ast.Module]:
    files = (file for file in sorted(SOURCE.rglob("*.py")) if file.relative_to(SOURCE).parts[0] != "identity")
    return {file.relative_to(SOURCE).as_posix(): ast.parse(file.read_text()) for file in files}


def find_compared_names(tree: ast.Module) -> list[str]:
    """Comparisons of a name's text; whether there is one at all (`is None`) is no comparison."""
    found: list[str] = []
    for one in ast.walk(tree):
        if isinstance(one, ast.Compare) and not isinstance(one.ops[0], ast.Is | ast.IsNot):
            sides = (one.left, *one.comparators)
            found += [side.attr for side in sides if isinstance(side, ast.Attribute) and side.attr in NAMES]
    return found


@pytest.mark.rows("R1.1-2")
def test_address_text_is_read_by_one_lexer_for_one_resolver() -> None:
    imported = {
        place: {
            name.name
            for one in ast.walk(tree)
            if isinstance(one, ast.ImportFrom) and (one.module or "").startswith("scout.identity")
            for name in one.names
        }
        for place, tree in outside_identity().items()
    }
    readers = {place: names & READERS for place, names in imported.items() if names & READERS}
    assert readers == MAY_READ


@pytest.mark.rows("R1.1-2")
def test_no_module_outside_the_resolver_compares_names() -> None:
    compared = {
        place: names for place, tree in outside_identity().items() if (names := find_compared_names(tree))
    }
    # A reconciliation compares the names that several sources have for one agent.
    assert set(compared) <= {*(f"policy/{name}.py" for name in RESOLVER), "policy/tree/reconcile.py"}
    assert find_compared_names(ast.parse("a.definition_id == b\nx if c.profile in d else y")) == [
        "definition_id",
        "profile",
    ]
    assert find_compared_names(ast.parse("a.workspace is None")) == []
