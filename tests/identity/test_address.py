"""The six dimensions and their canonical text."""

import pytest

from scout.base.codec import decode, to_plain
from scout.identity.address import MAX_LENGTH, QUALIFIERS, Address
from tests.identity.refusals import NO_READING, describe, expect_malformed

FULL = Address(definition_id="d", workspace_qualifier="w", profile="p", harness="h", model="m", node="n")


@pytest.mark.rows("R1.2-3", "R1.2-4")
@pytest.mark.parametrize(
    ("address", "text"),
    [
        (FULL, "@d.w.profile:p.harness:h.model:m.node:n"),
        (Address(definition_id="arc"), "@arc"),
        (Address(definition_id="arc", workspace_qualifier="main"), "@arc.main"),
        (Address(definition_id="arc", profile="dev"), "@arc.profile:dev"),
        (Address(definition_id="arc", harness="codex"), "@arc.harness:codex"),
        (Address(definition_id="arc", model="gpt-5-5"), "@arc.model:gpt-5-5"),
        (Address(definition_id="arc", node="mini-local"), "@arc.node:mini-local"),
        (Address(definition_id="arc", node="b", profile="a"), "@arc.profile:a.node:b"),
        (Address(definition_id="arc", model="b", workspace_qualifier="a"), "@arc.a.model:b"),
    ],
)
def test_canonical_text(address: Address, text: str) -> None:
    assert address.canonical == text


@pytest.mark.rows("R1.2-4")
def test_the_six_dimensions_on_the_wire() -> None:
    sent = {
        "definitionId": "d",
        "workspaceQualifier": "w",
        "profile": "p",
        "harness": "h",
        "model": "m",
        "node": "n",
    }
    assert to_plain(FULL) == sent
    assert list(to_plain(FULL)) == list(sent)
    assert to_plain(Address(definition_id="d")) == {"definitionId": "d"}
    assert decode(sent, Address) == FULL


@pytest.mark.parametrize("dimension", ["definition_id", *QUALIFIERS])
@pytest.mark.parametrize("value", ["", "A", "a.b", "-a", "a--b", "a b", "é"])
def test_a_dimension_must_be_folded(dimension: str, value: str) -> None:
    values = {"definition_id": "x", dimension: value}
    assert describe(expect_malformed(Address, **values)) == (
        0,
        f"{dimension} '{value}' is not folded",
        "a-z, 0-9 and single '-'",
        NO_READING,
    )


def test_a_long_value_is_cut_in_the_words() -> None:
    found = expect_malformed(Address, definition_id="A" * 70)
    assert found.problem == f"definition_id '{'A' * 60}' is not folded"
    assert found.text == "A" * 70


def test_canonical_text_is_never_longer_than_what_may_be_typed() -> None:
    assert MAX_LENGTH == 1024
    assert len(Address(definition_id="a" * 1023).canonical) == 1024
    assert describe(expect_malformed(Address, definition_id="a" * 1024)) == (
        1024,
        "too much text",
        "at most 1024 characters",
        NO_READING,
    )
    fits = Address(definition_id="a" * 1009, harness="codex")
    assert len(fits.canonical) == 1024
    assert expect_malformed(Address, definition_id="a" * 1010, harness="codex").text == "@" + "a" * 199


def test_a_bare_address_has_only_its_definition() -> None:
    assert Address(definition_id="arc").is_bare
    for name in QUALIFIERS:
        assert not decode({"definitionId": "arc", **plain_name(name)}, Address).is_bare


@pytest.mark.parametrize(
    ("dimension", "text"),
    [
        ("workspace_qualifier", "@d.profile:p.harness:h.model:m.node:n"),
        ("profile", "@d.w.harness:h.model:m.node:n"),
        ("harness", "@d.w.profile:p.model:m.node:n"),
        ("model", "@d.w.profile:p.harness:h.node:n"),
        ("node", "@d.w.profile:p.harness:h.model:m"),
    ],
)
def test_one_dimension_can_be_left_out(dimension: str, text: str) -> None:
    assert FULL.without(dimension).canonical == text
    assert FULL.without(dimension).without(dimension).canonical == text


def plain_name(dimension: str) -> dict[str, str]:
    return {"workspaceQualifier" if dimension == "workspace_qualifier" else dimension: "x"}
