"""Every shared case of names, through the function that reads it."""

import json
from pathlib import Path
from typing import Any

import pytest

from scout.base.codec import to_plain
from scout.identity.address import fold_segment
from scout.identity.branch import BirthBranch
from scout.identity.lexer import lex
from scout.identity.mention import Mention, find_mentions
from scout.identity.name import BranchName, HandleName, PathName
from tests.identity.refusals import expect_refusal

Case = dict[str, Any]

_FILE = Path(__file__).parents[1] / "data/cases/identity.jsonl"
CASES: list[Case] = [json.loads(line) for line in _FILE.read_text().splitlines()]


def cases(operation: str) -> Any:
    chosen = [case for case in CASES if case["op"] == operation]
    return pytest.mark.parametrize("case", chosen, ids=[str(number) for number in range(len(chosen))])


def test_every_case_is_run() -> None:
    assert len(CASES) == 74
    assert {case["op"] for case in CASES} == {"parse", "branch", "segment", "mentions"}


@cases("parse")
def test_parse(case: Case) -> None:
    if "error" in case:
        diagnostic = expect_refusal(lex, case["in"])
        assert diagnostic.code == case["error"]
        assert diagnostic.remedies
        return
    name = lex(case["in"])
    told: Case = {"form": to_plain(name)["form"], "canonical": name.canonical}
    if isinstance(name, HandleName):
        told["dimensions"] = to_plain(name.address)
    if isinstance(name, PathName):
        path = name.path
        told |= {"kind": path.kind, "modelRole": path.model_role, "userId": path.user}
        told |= {"parent": path.parent, "connector": path.connector}
    assert {"op": "parse", "in": case["in"], **told} == case


@cases("branch")
def test_branch(case: Case) -> None:
    name = lex(case["in"], case["rootBranch"])
    assert isinstance(name, BranchName)
    branch = BirthBranch.parse(case["in"], case["rootBranch"])
    assert name.branch == branch
    assert branch.depth == case["depth"]
    assert (branch.parent.text if branch.parent else None) == case["parent"]


@cases("segment")
def test_segment(case: Case) -> None:
    assert fold_segment(case["in"]) == case["out"]


@cases("mentions")
def test_mentions(case: Case) -> None:
    found = find_mentions(case["in"])
    assert (canonical(found.leading) if found.leading else None) == case["leading"]
    assert [canonical(one) for one in found.soft] == case["soft"]


def canonical(mention: Mention) -> str:
    assert mention.address is not None
    return mention.address.canonical
