"""One table of keys for both screens: no key means two things in one view."""

from collections import Counter

import pytest

from scout.protocol.keys import IN_VIEWS, KEYS, list_keys

_VIEWS = sorted({view for row in IN_VIEWS for view in row.views})


@pytest.mark.parametrize("view", _VIEWS)
def test_a_key_means_one_thing_in_a_view(view: str) -> None:
    pressed = Counter(key for row in list_keys(view) for key in row.keys)
    assert [key for key, count in pressed.items() if count > 1] == []


def test_an_action_has_one_row_and_a_sentence() -> None:
    assert len({row.action for row in KEYS}) == len(KEYS)
    assert all(row.says and row.keys for row in KEYS)


def test_the_keys_of_a_view_come_first() -> None:
    assert [row.action for row in list_keys("now")][:2] == ["seen", "help"]
    assert "approve" not in [row.action for row in list_keys("log")]
