"""A change in one place of a JSON text leaves every other character as it was."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.cli.hosts.jsonc import NotJson, append_to, parse, remove_at, set_at

COMMENTED = """\
{
    // what I like
    "theme": "dark", /* really */
    "list": [1, 2],
    "deep": {"a": {"b": null}}, // end
}
"""


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ("{}", ("a",), '{\n  "a": 1\n}'),
        ("{}\n", ("a", "b"), '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ('{"x": 2}', ("a",), '{"x": 2, "a": 1}'),
        ('{ "x": 2 }', ("a",), '{ "x": 2, "a": 1 }'),
        ('{"a": 7}', ("a",), '{"a": 1}'),
        ('{\n\t"x": 2\n}\n', ("a",), '{\n\t"x": 2,\n\t"a": 1\n}\n'),
        ('{\r\n  "x": 2\r\n}', ("a",), '{\r\n  "x": 2,\r\n  "a": 1\r\n}'),
        ('{\n  "x": 2, // mine\n}', ("a",), '{\n  "x": 2, // mine\n  "a": 1\n}'),
        ('{\n  "x": 2 // mine\n}', ("a",), '{\n  "x": 2, // mine\n  "a": 1\n}'),
        ("{\n  // nothing yet\n}", ("a",), '{\n  // nothing yet\n  "a": 1\n}'),
        ('{"x": {\n    "y": 2\n  }}', ("x", "a"), '{"x": {\n    "y": 2,\n    "a": 1\n  }}'),
    ],
)
def test_a_value_is_put_in_the_manner_of_its_neighbours(before: str, path: tuple[str], after: str) -> None:
    assert set_at(before, path, 1) == after


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ('{"a": 1}', ("a",), "{}"),
        ('{"a": 1, "b": 2}', ("a",), '{"b": 2}'),
        ('{"a": 1, "b": 2}', ("b",), '{"a": 1}'),
        ('{\n  "a": 1,\n  "b": 2\n}', ("b",), '{\n  "a": 1\n}'),
        ('{"a": [1, 2, 3]}', ("a", 1), '{"a": [1, 3]}'),
        ('{"a": 1}', ("b",), '{"a": 1}'),
        ('{"a": 1}', ("b", "c"), '{"a": 1}'),
    ],
)
def test_what_is_taken_out_leaves_no_trace(before: str, path: tuple[str | int], after: str) -> None:
    assert remove_at(before, path) == after


def test_comments_and_trailing_commas_stay() -> None:
    after = set_at(COMMENTED, ("deep", "a", "c"), True)
    assert after == COMMENTED.replace('{"b": null}', '{"b": null, "c": true}')
    longer = append_to(COMMENTED, ("list",), 3)
    assert longer == COMMENTED.replace("[1, 2]", "[1, 2, 3]")
    assert parse(append_to(COMMENTED, ("new",), 3)).at(("new",)).value == [3]  # type: ignore[union-attr] (it is there)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1 2]", '{"a" 1}', "{a: 1}", '{"a": }', "{} {}", '{"a": 01}', '"open', "nul", '{"a": 1,, }'],
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        parse(text)


def test_a_value_of_another_kind_is_not_replaced() -> None:
    with pytest.raises(NotJson):
        set_at('{"a": [1]}', ("a", "b"), 1)
    with pytest.raises(NotJson):
        append_to('{"a": 1}', ("a",), 1)


values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), values, max_size=4), st.sampled_from([None, 2, "\t"]), values)
def test_putting_and_taking_out_is_what_it_is_for_the_data(
    data: dict[str, Any], indent: Any, value: Any
) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    put = set_at(text, ("scout",), value)
    assert parse(put).value == json.loads(put) == {**data, "scout": value}
    gone = {key: one for key, one in data.items() if key != "scout"}
    assert parse(remove_at(put, ("scout",))).value == gone
