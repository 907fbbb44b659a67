import re

from hypothesis import given
from hypothesis import strategies as st

from scout.base.visible import make_lines_visible, make_visible

_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)


@given(st.text())
def test_nothing_steers_and_nothing_visible_is_changed(anything: str) -> None:
    shown = make_visible(anything)
    assert _STEERING.search(shown) is None
    if anything.isascii() and anything.isprintable():
        assert shown == anything


def test_what_is_hidden_is_spelled_out() -> None:
    assert make_visible("a\x1b\r\n\t\x7f\x9b\u202e\U000e0041") == r"a\x1b\r\n\t\u007f\u009b\u202e\U000e0041"
    assert make_visible("👩\u200d💻 x\u200dy") == "👩\u200d💻 x\\u200dy"


def test_lines_stay_lines() -> None:
    assert make_lines_visible("one\r\ntwo\tx\n\x1b[8m") == "one\ntwo\\tx\n\\x1b[8m"
