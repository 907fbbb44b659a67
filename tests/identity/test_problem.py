"""The refusals of names and the text they are about."""

import pytest

from scout.base.codec import encode, render
from scout.base.refusal import Family, Remedy, get_code, get_status
from scout.identity.address import require_text
from scout.identity.problem import (
    DepthCap,
    MalformedAddress,
    ReservedName,
    shift_position,
    suggest,
)
from scout.identity.problem import build_malformed as make
from tests.identity.refusals import NO_READING, describe, expect_malformed, list_offered

MANUAL = Remedy(operation="explain", parameters={"code": "malformed_address"}, why="the forms of an address")


@pytest.mark.rows("R3.5-9")
def test_a_malformed_address_says_what_where_and_what_instead() -> None:
    diagnostic = make("@x..y", 3, "an empty workspace", "a name", suggest("@x.y", "shorter")).diagnostic
    assert render(diagnostic) == {
        "code": "malformed_address",
        "message": "found an empty workspace at character 3; expected a name",
        "text": "@x..y",
        "position": 3,
        "problem": "an empty workspace",
        "expected": "a name",
        "candidates": (),
        "remedies": ({"operation": "parse", "parameters": {"texts": ["@x.y"]}, "why": "shorter"},),
    }


def test_without_a_reading_the_manual_is_the_remedy() -> None:
    assert make("x", 0, "a", "b").diagnostic.remedies == (MANUAL,)


def test_only_the_beginning_of_a_text_is_kept() -> None:
    diagnostic = make("x" * 201, 0, "a", "b").diagnostic
    assert isinstance(diagnostic, MalformedAddress)
    assert diagnostic.text == "x" * 200


def test_what_is_told_can_always_be_sent() -> None:
    diagnostic = make("a\ud800b", 1, "the text '\udfff'", "b").diagnostic
    assert isinstance(diagnostic, MalformedAddress)
    assert (diagnostic.text, diagnostic.problem) == ("a?b", "the text '?'")
    assert b"a?b" in encode(diagnostic)


def test_a_part_is_told_for_the_whole() -> None:
    part = make("@x..y", 3, "an empty workspace", "a name", suggest("@x.y", "shorter"))
    whole = shift_position(">> @x..y", 3, part).diagnostic
    assert isinstance(whole, MalformedAddress)
    assert whole.text == ">> @x..y"
    assert describe(whole) == (6, "an empty workspace", "a name", ("@x.y",))


@pytest.mark.parametrize("value", ["héllo", "héllo".encode(), bytearray("héllo".encode())])
def test_text_and_its_bytes_are_text(value: object) -> None:
    assert require_text(value) == "héllo"


def test_bytes_must_be_utf_8() -> None:
    found = expect_malformed(require_text, b"ab\xff")
    assert describe(found) == (2, "bytes that are not UTF-8", "UTF-8 text", NO_READING)
    assert found.text == ""


@pytest.mark.parametrize(
    ("value", "name"),
    [(None, "NoneType"), (5, "int"), (["@arc"], "list"), (memoryview(b"a"), "memoryview"), (True, "bool")],
)
def test_anything_else_is_refused(value: object, name: str) -> None:
    found = expect_malformed(require_text, value)
    assert describe(found) == (0, f"a value of type {name}", "text", NO_READING)
    assert found.text == ""


def test_the_other_ways_to_refuse_a_name_speak_too() -> None:
    reserved = ReservedName(word="codex", teaches="a harness is chosen with `#codex`")
    assert reserved.message == "'codex' is reserved: a harness is chosen with `#codex`"
    deep = DepthCap(branch="main.a.b", depth=2, cap=2)
    assert deep.message == "main.a.b is at depth 2 and the cap is 2: it cannot have children"
    assert list_offered(reserved) == list_offered(deep) == ()


@pytest.mark.parametrize(
    ("kind", "code", "family", "status"),
    [
        (MalformedAddress, "malformed_address", Family.REQUEST, 400),
        (ReservedName, "reserved_name", Family.CONFLICT, 409),
        (DepthCap, "depth_cap", Family.LIMIT, 409),
    ],
)
def test_each_way_to_refuse_has_its_code_and_class(
    kind: type[MalformedAddress | ReservedName | DepthCap], code: str, family: Family, status: int
) -> None:
    assert (get_code(kind), kind.family, get_status(kind)) == (code, family, status)
