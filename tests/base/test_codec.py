from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.codec import (
    build_schema,
    decode,
    drop_defaults,
    encode,
    encode_each_for_store,
    encode_for_store,
    list_allowed_words,
    render,
    to_plain,
)
from scout.base.record import Record
from scout.base.refusal import BadRequest, Candidate, Refused, Remedy
from scout.base.time import Time


class Name(str):
    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> "Name":
        if not isinstance(text, str) or not text.startswith("n"):
            raise Refused(BadRequest(problem="a name begins with n"))
        return cls(text)


class Thing(Record):
    name: Name
    seen_at: Time
    size: int = 0
    parts: tuple["Thing", ...] = ()


class Box(Record):
    owner: str | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    things: list[Thing] = msgspec.field(default_factory=list[Thing])
    open_at: Time | None = Time(7)


THING = Thing(name=Name("nail"), seen_at=Time(1_500_000), parts=(Thing(name=Name("nut"), seen_at=Time(0)),))


@pytest.mark.rows("R0-8", "R0-9")
def test_sent_times_are_text_and_stored_times_are_microseconds() -> None:
    assert b'"seenAt":"1970-01-01T00:00:01.500Z"' in encode(THING)
    assert b'"seenAt":1500000' in encode_for_store(THING)
    assert b'"name":"nail"' in encode(THING)
    assert b'"name":"nail"' in encode_for_store(THING)


@pytest.mark.parametrize(
    ("record", "stored"),
    [
        (Box(), b"{}"),
        (Box(open_at=None), b'{"openAt":null}'),
        (Box(labels={"a": "b"}), b'{"labels":{"a":"b"}}'),
        (Box(owner="", things=[THING.parts[0]]), b'"owner":"","things":[{"name":"nut","seenAt":0'),
        (THING.parts[0], b'{"name":"nut","seenAt":0}'),
    ],
)
def test_defaults_may_be_left_out_and_are_read_back(record: Record, stored: bytes) -> None:
    (data,) = encode_each_for_store(drop_defaults([record]))
    assert stored in data
    assert decode(data, type(record)) == record


@pytest.mark.parametrize(
    "data", [encode(THING), encode(THING).decode(), encode_for_store(THING), to_plain(THING)]
)
def test_each_form_is_read_back(data: object) -> None:
    read = decode(data, Thing)
    assert read == THING
    assert (type(read.name), type(read.seen_at)) == (Name, Time)


@pytest.mark.parametrize(
    ("data", "field", "problem"),
    [
        (b'{"name": "nail", "seenAt": 0, "size": "big"}', "size", "Expected `int`, got `str`"),
        ({"name": "nail", "seenAt": 0, "size": "big"}, "size", "Expected `int`, got `str`"),
        (
            b'{"name": "nail", "seenAt": 0, "parts": [{"name": "n"}]}',
            "parts[0]",
            "the field `seenAt` is missing",
        ),
        (b'{"name": "bolt", "seenAt": 0}', "", "a name begins with n"),
        (b'{"name": "nail"', "", "truncated"),
        (b"\xff", "", "invalid"),
        (b'{"name": "\xff"}', "", "utf-8"),
        ('"\ud800"', "", "surrogates"),
        (b"[" * 100_000, "", "recursion"),
        (None, "", "Expected `object`, got `null`"),
        (object(), "", "Expected `object`"),
    ],
)
def test_bad_input_is_refused_with_the_field(data: object, field: str, problem: str) -> None:
    nested = isinstance(data, bytes) and data.startswith(b"[")
    with pytest.raises(Refused) as refused:
        decode(data, list[Any] if nested else Thing)
    diagnostic = refused.value.diagnostic
    assert isinstance(diagnostic, BadRequest)
    assert diagnostic.field == field
    assert problem in diagnostic.problem


@given(st.binary())
def test_nothing_but_a_refusal_leaves_decode(data: bytes) -> None:
    try:
        decode(data, Thing)
    except Refused as refused:
        assert refused.diagnostic.code == "bad_request"


def test_a_diagnostic_shows_code_and_sentence_before_the_facts() -> None:
    shown = render(
        BadRequest(
            problem="no",
            field="x",
            candidates=(Candidate(address="@a"),),
            remedies=(Remedy(operation="send", parameters={"to": "@a"}),),
        )
    )
    assert list(shown)[:2] == ["code", "message"]
    assert shown == {
        "code": "bad_request",
        "message": "no (at x)",
        "problem": "no",
        "field": "x",
        "candidates": ({"address": "@a"},),
        "remedies": ({"operation": "send", "parameters": {"to": "@a"}},),
    }


def test_the_schema_of_a_record_names_its_own_types() -> None:
    whole = build_schema([Thing])
    assert whole["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    thing = whole["$defs"]["Thing"]
    assert thing["properties"]["seenAt"] == {"type": "string", "format": "date-time"}
    assert thing["properties"]["name"] == {"type": "string"}
    assert thing["required"] == ["name", "seenAt"]


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Paint(Record):
    colour: Annotated[Colour | None, msgspec.Meta(description="which")] = None
    size: Literal["big", "small"] = "big"
    shades: tuple[Colour, ...] = ()
    by_room: dict[str, Colour] = {}
    inner: "Paint | None" = None


@pytest.mark.parametrize(
    ("data", "field", "problem", "near"),
    [
        ({"colour": "rad"}, "colour", "expected one of red, blue; got 'rad'", ["red"]),
        ({"size": "bigg"}, "size", "expected one of big, small; got 'bigg'", ["big"]),
        ({"shades": ["red", "bleu"]}, "shades[1]", "expected one of red, blue; got 'bleu'", ["blue"]),
        ({"inner": {"colour": "zzz"}}, "inner.colour", "expected one of red, blue; got 'zzz'", []),
        ({"byRoom": {"hall": "rad"}}, "byRoom[...]", "Invalid enum value 'rad'", []),
    ],
)
def test_a_wrong_word_is_refused_with_those_allowed(
    data: Any, field: str, problem: str, near: list[str]
) -> None:
    with pytest.raises(Refused) as refused:
        decode(data, Paint)
    told = refused.value.diagnostic
    assert isinstance(told, BadRequest)
    assert (told.field, told.problem, [one.address for one in told.candidates]) == (field, problem, near)


def test_the_words_that_a_type_allows() -> None:
    assert list_allowed_words(Colour) == ("red", "blue")
    assert list_allowed_words(Paint, "nothing.colour") == list_allowed_words(str) == ()
