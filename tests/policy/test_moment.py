"""Moments are read as times, as a while ago, or as the number of an event."""

import pytest

from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.policy.moment import parse_moment

NOW = Time.parse("2026-11-18T12:00:00Z")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", "2026-11-18T12:00:00.000Z"),
        ("10 minutes ago", "2026-11-18T11:50:00.000Z"),
        ("10m ago", "2026-11-18T11:50:00.000Z"),
        ("10m", "2026-11-18T11:50:00.000Z"),
        (" 90 seconds ago ", "2026-11-18T11:58:30.000Z"),
        ("1.5 Hours Ago", "2026-11-18T10:30:00.000Z"),
        ("2d ago", "2026-11-16T12:00:00.000Z"),
        ("1 week ago", "2026-11-11T12:00:00.000Z"),
        ("2026-11-17T14:05:00+01:00", "2026-11-17T13:05:00.000Z"),
        ("2026-11-17T14:05:00.123z", "2026-11-17T14:05:00.123Z"),
    ],
)
def test_a_time(text: str, moment: str) -> None:
    found = parse_moment(text, NOW)
    assert isinstance(found, Time)
    assert str(found) == moment


def test_digits_are_the_number_of_an_event() -> None:
    found = parse_moment("1405", NOW)
    assert found == 1405
    assert not isinstance(found, Time)


@pytest.mark.parametrize("text", ["", "14:05", "yesterday", "-3", "ten minutes ago", "2026-11-17", "9" * 30])
def test_anything_else_is_refused_with_what_works(text: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_moment(text, NOW, "from")
    problem = refused.value.diagnostic
    assert isinstance(problem, BadRequest)
    assert problem.field == "from"
    assert "10 minutes ago" in problem.message
