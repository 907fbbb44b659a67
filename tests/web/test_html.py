"""Escaping: no text of an agent becomes markup, and none hides anything."""

import pytest

from scout.base.refusal import Remedy
from scout.web.html import EMPTY, Html, extend, join, lines, tag, text
from scout.web.parts import build_remedy


def test_text_is_escaped() -> None:
    assert text("<script>alert(1)</script> & co") == "&lt;script&gt;alert(1)&lt;/script&gt; &amp; co"


def test_markup_is_kept_only_if_it_was_made_here() -> None:
    assert tag("p", Html("<b>bold</b>"), "<b>plain</b>") == "<p><b>bold</b>&lt;b&gt;plain&lt;/b&gt;</p>"


@pytest.mark.parametrize(
    ("given", "shown"),
    [("a\u202eb", "a\\u202eb"), ("a\x1b[31mb", "a\\x1b[31mb"), ("a\nb", "a\\nb"), ("a\u200bb", "a\\u200bb")],
)
def test_characters_that_hide_or_reorder_are_visible(given: str, shown: str) -> None:
    assert text(given) == shown


def test_a_text_of_several_lines_keeps_its_lines_and_tabs() -> None:
    assert lines("a\n\tb\r\n<c>\u202e") == "a\n    b\n&lt;c&gt;\\u202e"


def test_attributes_that_people_read_hide_nothing() -> None:
    assert tag("i", title="a\u202eb", data_key="a\u202eb") == '<i title="a\\u202eb" data-key="a\u202eb"></i>'


def test_attributes_are_quoted() -> None:
    made = tag("a", "x", href='/"><script>', data_key="it's", cls="one", hidden=True, title=None, open=False)
    assert made == '<a href="/&quot;&gt;&lt;script&gt;" data-key="it&#x27;s" class="one" hidden>x</a>'


def test_elements_without_content_are_not_closed() -> None:
    assert tag("input", name="a") == '<input name="a">'


def test_children_are_joined_at_any_depth() -> None:
    assert join("a", None, ["b", [1, Html("<i>c</i>")]], EMPTY) == "ab1<i>c</i>"


def test_an_element_is_extended_in_its_opening_tag() -> None:
    plain, classed = tag("span", "a > b"), tag("time", "x", cls="state", title="a > b")
    assert extend(plain, "c-what", role="cell") == '<span class="c-what" role="cell">a &gt; b</span>'
    extended = extend(classed, "c-when", role="cell")
    assert extended == '<time class="c-when state" title="a &gt; b" role="cell">x</time>'


def test_a_remedy_is_a_button_where_the_page_can_do_it() -> None:
    retry = build_remedy(Remedy(operation="flight.retry", parameters={"flightId": "flt_1"}, why="again"))
    assert 'data-operation="flight.retry"' in str(retry)
    for operation, parameters in (("runtimes", {}), ("ask", {"to": "@arc", "body": "…"}), ("restart", {})):
        shown = str(build_remedy(Remedy(operation=operation, parameters=parameters)))
        assert "data-operation" not in shown
        assert "data-copy" in shown
    assert build_remedy(Remedy(operation="no.such", parameters={})) is None
