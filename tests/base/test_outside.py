"""Text without NUL, numbers with bounds, nothing nested without end."""

from typing import Any

import pytest

from scout.base.outside import check_each_once, check_number, check_outside, decode_text
from scout.base.refusal import BadRequest, Refused


def _problem(caught: pytest.ExceptionInfo[Refused]) -> tuple[str, str]:
    diagnostic = caught.value.diagnostic
    assert isinstance(diagnostic, BadRequest)
    return diagnostic.problem, diagnostic.field


@pytest.mark.parametrize(
    ("raw", "text"), [(b"arc", "arc"), (b"%2Fu1%2Fx", "/u1/x"), ("é".encode(), "é"), (b"%C3%A9", "é")]
)
def test_percent_encoded_text(raw: bytes, text: str) -> None:
    assert decode_text(raw, "name") == text


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"%zz", "expected two hexadecimal digits after %"),
        (b"%f", "expected two hexadecimal digits after %"),
        (b"%FF", "expected UTF-8"),
        (b"\xff", "expected UTF-8"),
        (b"a%00b", "text must not hold NUL"),
    ],
)
def test_what_is_no_text(raw: bytes, problem: str) -> None:
    with pytest.raises(Refused) as caught:
        decode_text(raw, "name")
    assert _problem(caught) == (problem, "name")


@pytest.mark.parametrize("number", [0, 1.5, True, 2**63 - 1, -(2**63) + 1])
def test_a_number_that_can_be_stored(number: float) -> None:
    check_number(number, "n")


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        (2**63, "at most 64 bits"),
        (-(2**70), "at most 64 bits"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
    ],
)
def test_a_number_that_cannot(number: float, problem: str) -> None:
    with pytest.raises(Refused) as caught:
        check_number(number, "n")
    said, field = _problem(caught)
    assert problem in said
    assert field == "n"


def test_plain_values_pass() -> None:
    check_outside({"a": ["x", 1, 2.5, None, True, {"b": []}]})


def _deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "problem", "field"),
    [
        ({"a": {"b": "x\0"}}, "text must not hold NUL", "a.b"),
        ({"a\0": 1}, "text must not hold NUL", ""),
        ({"a": "x\ud800"}, "text must be valid Unicode, without a lone surrogate", "a"),
        ({"b": {"\ud800": 1}}, "text must be valid Unicode, without a lone surrogate", "b"),
        ({"a": [2**64]}, "expected at most 64 bits, got 18446744073709551616…", "a"),
        ({"a": float("nan")}, "expected a finite number, got nan", "a"),
        ({"a": _deep(40)}, "nested deeper than 32", "a"),
    ],
)
def test_what_is_refused(value: Any, problem: str, field: str) -> None:
    with pytest.raises(Refused) as caught:
        check_outside(value)
    assert _problem(caught) == (problem, field)


@pytest.mark.parametrize("data", [b'{"a": 1, "b": {"a": 2}}', b"[1, 2]", b"not JSON", b"[" * 100_000])
def test_each_key_once_is_accepted_and_other_text_is_left_to_the_decoder(data: bytes) -> None:
    check_each_once(data)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b'{"a": 1, "a": 2}', "a"),
        (b'[{"x": {"b": 1, "b": 1}}]', "b"),
        (b'{"\\u0000": 1, "\\u0000": 2}', "\u2400"),
    ],
)
def test_a_key_given_twice_is_refused_at_any_depth(data: bytes, name: str) -> None:
    with pytest.raises(Refused) as caught:
        check_each_once(data)
    assert _problem(caught) == (f"'{name}' is given twice", name)
