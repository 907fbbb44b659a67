"""Text in cells: what is exact stays exact, and nothing is wider than its place."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from scout.base.time import Time
from scout.base.visible import make_visible
from scout.tui import text
from scout.tui.text import Paragraph, fit, format_clock, format_duration, lay_out, show_text, wrap

_ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(_ANY, st.integers(4, 90))
def test_what_is_decided_is_on_the_screen_whole(body: str, width: int) -> None:
    lines = lay_out([Paragraph(body, foreign=True, exact=True)], width)
    assert all(line[0] == ("│ ", "dim") for line in lines)
    shown = "".join(piece for line in lines for piece, _ in line[1:])
    assert shown == "".join(make_visible(line) for line in body.split("\n"))


@given(_ANY, st.integers(2, 90))
def test_no_line_is_wider_than_its_place(body: str, width: int) -> None:
    line = show_text(body)
    assert all(cell_len(piece) <= width for piece in wrap(line, width))
    assert all(cell_len(piece) <= width for piece in wrap(line, width, exact=True))
    assert cell_len(fit(line, width)) == width


def test_prose_breaks_between_words_and_tabs_are_blanks() -> None:
    assert wrap("one two  three", 8) == ["one two", "three"]
    assert wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert lay_out([Paragraph("a\tb\r\nc")], 20) == [(("a   b", ""),), (("c", ""),)]
    assert lay_out([Paragraph("a\tb\r\nc", exact=True)], 20) == [(("a\\tb\\r", ""),), (("c", ""),)]
    assert lay_out([Paragraph("one two three", cut=True)], 8) == [(("one two…", ""),)]


def test_times_are_short() -> None:
    assert [format_duration(one) for one in (-1, 5, 200, 7500, 400_000)] == [
        "0s",
        "5s",
        "3m20s",
        "2h05m",
        "4d",
    ]
    now = text.read_clock()
    assert text.format_age(Time(int((now - 7300) * 1e6))) == "2h"
    assert text.format_age(Time(int((now + 5) * 1e6))) == "now"
    assert text.format_age(None) == "-"
    assert format_clock(Time(0)) == "Jan 01 00:00"
