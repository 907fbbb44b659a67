"""The records of the eleven forms."""

from typing import get_args

import pytest

from scout.base.codec import decode, to_plain
from scout.identity.branch import BirthBranch
from scout.identity.grammar import parse_handle
from scout.identity.name import (
    ID_KINDS,
    AliasName,
    BranchName,
    ChannelName,
    HandleName,
    IdName,
    Name,
    OperatorName,
    PathName,
    ProjectName,
    RelativeName,
    RootName,
    SessionName,
)
from scout.identity.path import AgentPath

NAMES: list[tuple[Name, str, str]] = [
    (HandleName(address=parse_handle("@arc#codex"), text="arc#codex"), "handle", "@arc.harness:codex"),
    (PathName(path=AgentPath.parse("/u1/telegram")), "path", "/u1/telegram"),
    (RelativeName(text="../sub/1", up=True, suffix="/sub/1"), "relative", "../sub/1"),
    (RootName(), "root", "root"),
    (OperatorName(), "operator", "operator"),
    (BranchName(text="main.x"), "branch", "branch:main.x"),
    (BranchName(text="main.x", branch=BirthBranch.parse("main.x", "main")), "branch", "main.x"),
    (IdName(kind="agt", id="agt_01"), "id", "agt_01"),
    (SessionName(id="ses_01"), "session", "session:ses_01"),
    (SessionName(harness="codex", native_id="ab:c"), "session", "session:codex:ab:c"),
    (ProjectName(directory="../x y"), "project", "project:../x y"),
    (ChannelName(name="dev"), "channel", "channel:dev"),
    (AliasName(name="bob"), "alias", "alias:bob"),
]


@pytest.mark.parametrize(("name", "form", "canonical"), NAMES)
def test_a_name_has_its_form_and_its_canonical_text(name: Name, form: str, canonical: str) -> None:
    assert to_plain(name)["form"] == form
    assert name.canonical == canonical
    assert decode(to_plain(name), type(name)) == name


@pytest.mark.rows("R1.6-19")
def test_there_are_eleven_forms() -> None:
    forms = {str(kind.__struct_config__.tag) for kind in get_args(Name)}
    assert forms == {
        "path",
        "relative",
        "root",
        "operator",
        "handle",
        "branch",
        "id",
        "session",
        "project",
        "channel",
        "alias",
    }


def test_a_handle_is_not_bare_unless_it_was_typed_so() -> None:
    assert not HandleName(address=parse_handle("@arc"), text="@arc").bare


def test_the_ids_that_are_addresses() -> None:
    assert ID_KINDS == {
        "agt": "agent",
        "ept": "endpoint",
        "ses": "session",
        "flt": "flight",
        "ask": "ask",
        "wrk": "work item",
        "cnv": "conversation",
    }
