from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time

LAST = Time.parse("9999-12-31T00:00:00Z")


@pytest.mark.rows("R0-8")
@pytest.mark.parametrize(
    ("text", "wire"),
    [
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
        ("2026-11-15T12:00:00.123Z", "2026-11-15T12:00:00.123Z"),
        ("2026-11-15T12:00:00.123456Z", "2026-11-15T12:00:00.123Z"),
        ("2026-11-15T14:00:00+02:00", "2026-11-15T12:00:00.000Z"),
        ("2026-11-15t12:00:00z", "2026-11-15T12:00:00.000Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (1_500_000, "1970-01-01T00:00:01.500Z"),
    ],
)
def test_reads_text_with_offset_or_the_stored_number(text: object, wire: str) -> None:
    assert str(Time.parse(text)) == wire


@pytest.mark.parametrize(
    "text",
    ["", "now", "2026-11-15", "2026-11-15T12:00:00", "12:00Z", None, 1.5, True, -1, int(LAST) + 1, b"x", []],
)
def test_refuses_what_is_no_time_with_an_offset(text: object) -> None:
    with pytest.raises(Refused) as refused:
        Time.parse(text)
    assert isinstance(refused.value.diagnostic, BadRequest)
    assert "RFC 3339" in refused.value.diagnostic.message


@pytest.mark.parametrize(
    "text", ["1969-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"]
)
def test_refuses_a_time_before_1970_or_after_9999(text: str) -> None:
    with pytest.raises(Refused, match="from 1970 to 9999"):
        Time.parse(text)


@pytest.mark.rows("R0-8", "R0-9")
@given(st.integers(0, int(LAST)))
def test_keeps_every_microsecond(micros: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    assert Time.parse(moment.isoformat()) == micros
    assert str(Time(micros)) == moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@given(st.integers(0, int(LAST)).map(Time), st.floats())
def test_plus_stays_within_what_can_be_written(moment: Time, seconds: float) -> None:
    later = moment.plus(seconds)
    assert 0 <= later <= LAST
    assert Time.parse(str(later)) <= later


@given(st.integers(10**15, 2 * 10**15).map(Time), st.integers(-(10**6), 10**6))
def test_since_undoes_plus(moment: Time, seconds: int) -> None:
    assert moment.plus(seconds).since(moment) == seconds


def test_plus_takes_parts_of_a_second() -> None:
    assert Time(0).plus(0.25) == 250_000
    assert isinstance(Time(0).plus(1), Time)
