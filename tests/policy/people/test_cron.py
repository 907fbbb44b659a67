"""Cron texts: what is read, what is refused and how, and the times that they name where clocks change."""

import itertools
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import Refused
from scout.base.time import Time
from scout.model.problems.people import MalformedCron
from scout.policy.people.cron import (
    NAMES,
    check_cron,
    describe_cron,
    find_last,
    find_next,
    format_in_zone,
    list_times,
)

START = date(2025, 11, 15)
DAYS = 2 * 365
# Europe and America change on other days, Lord Howe by half an hour, Nepal never.
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


def moment(text: str) -> Time:
    return Time.parse(text)


def refusal(text: str) -> MalformedCron:
    with pytest.raises(Refused) as caught:
        check_cron(text)
    problem = caught.value.diagnostic
    assert isinstance(problem, MalformedCron)
    return problem


# -- reading -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("0 9 * * 1-5", "0 9 * * 1-5"),
        ("  */15\t9-17   1,15 jan-mar MON ", "*/15 9-17 1,15 jan-mar MON"),
        ("0 0 L * *", "0 0 L * *"),
        ("0 9 * * 1#2", "0 9 * * 1#2"),
        ("0 0 31 2 1", "0 0 31 2 1"),
        ("@Daily", "@daily"),
        *((name, name) for name in NAMES),
    ],
)
def test_what_can_be_read(text: str, read: str) -> None:
    assert check_cron(text) == read
    assert check_cron(read) == read


@pytest.mark.parametrize(
    ("text", "position", "problem", "example"),
    [
        ("", 0, "the end", "0 9 * * 1-5"),
        ("0 9 * *", 7, "the end", "0 9 * * *"),
        ("every day at 9", 14, "the end", "0 9 * * 1-5"),
        ("0 0 9 * * 1-5", 10, "a sixth field", "0 9 * * 1-5"),
        ("0 9 * * 1 2026", 10, "a sixth field", "0 9 * * 1"),
        ("1 2 3 4 5 6 7 x", 10, "a sixth field", "2 3 4 5 6"),
        ("60 9 * * *", 0, "the minute '60'", "0 9 * * *"),
        ("0 24 * * *", 2, "the hour '24'", "0 0 * * *"),
        ("0 99 * * *", 2, "the hour '99'", "0 23 * * *"),
        ("0 9pm * * *", 2, "the hour '9pm'", "0 21 * * *"),
        ("0 9:00am * * *", 2, "the hour '9:00am'", "0 9 * * *"),
        ("0 17-9 * * *", 2, "the hour '17-9'", "0 9-17 * * *"),
        ("0 9 0 * *", 4, "the day of the month '0'", "0 9 1 * *"),
        ("0 9 * 13 *", 6, "the month '13'", "0 9 * 12 *"),
        ("0 9 * january *", 6, "the month 'january'", "0 9 * jan *"),
        ("0 9 * * monday-friday", 8, "the day of the week 'monday-friday'", "0 9 * * mon-fri"),
        ("0 9 * * today", 8, "the day of the week 'today'", "0 9 * * *"),
        ("1,2,99 * * * *", 4, "the minute '99'", "1,2,59 * * * *"),
        ("1,,2 * * * *", 2, "nothing between two commas", "1,*,2 * * * *"),
        ("x y * * *", 0, "the minute 'x'", "0 9 * * 1-5"),
        ("0 9 30 2 *", 4, "a day that never comes", "0 9 L 2 *"),
        ("0 9 30-31 2 *", 4, "a day that never comes", "0 9 * 2 *"),
        ("0 9 */31 * 2#5", 4, "a day that never comes", "0 9 * * 2#5"),
        ("@dayly", 0, "the name '@dayly'", "@daily"),
        (" @reboot", 1, "the name '@reboot'", "@daily"),
        ("5" * 201, 200, "too much text", "@daily"),
        ("\ud800 9 * * *", 0, "the minute '?'", "* 9 * * *"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_position_and_an_example(
    text: str, position: int, problem: str, example: str
) -> None:
    found = refusal(text)
    assert (found.position, found.problem, found.example) == (position, problem, example)
    assert check_cron(example) == example
    assert problem in found.message
    assert f"for example '{example}'" in found.message
    found.text.encode()


def test_a_refusal_without_an_example() -> None:
    bare = MalformedCron(text="x", position=0, problem="the minute 'x'", expected="a minute")
    assert bare.message == "found the minute 'x' at character 0; expected a minute"


ITEMS = st.text("0123456789*/-,#LWjanmonsun@? ", max_size=12)


@given(st.lists(ITEMS, max_size=7).map(" ".join))
def test_any_text_is_read_or_refused_with_an_example_that_can_be_read(text: str) -> None:
    try:
        read = check_cron(text)
    except Refused as refused:
        problem = refused.diagnostic
        assert isinstance(problem, MalformedCron)
        assert 0 <= problem.position <= len(text)
        assert check_cron(problem.example)
    else:
        assert find_next(read, UTC, Time(0)) is not None
        assert describe_cron(read)


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 9 * * 1-5", "At 09:00 on Monday through Friday"),
        ("@daily", "At 00:00 every day"),
        ("@hourly", "At the start of every hour"),
    ],
)
def test_in_words(cron: str, words: str) -> None:
    assert describe_cron(cron) == words


# -- times ---------------------------------------------------------------------------------------------


def list_fixed(hour: int, minute: int, zone: tzinfo) -> list[datetime]:
    """One time a day by the clock of a zone; in a skipped hour, the first minute after it."""
    found = list[datetime]()
    for number in range(DAYS):
        day = START + timedelta(days=number)
        wall = datetime.combine(day, time(hour, minute), tzinfo=zone)
        while wall.astimezone(UTC).astimezone(zone) != wall:
            wall += timedelta(minutes=1)
        found.append(wall.astimezone(UTC))
    return found


def list_all(cron: str, zone: tzinfo, days: int = DAYS) -> list[datetime]:
    after = Time.parse(datetime.combine(START, time(), tzinfo=zone).isoformat()).plus(-1)
    end = Time.parse(datetime.combine(START + timedelta(days=days), time(), tzinfo=zone).isoformat())
    found = list[datetime]()
    while (after := find_next(cron, zone, after) or end) < end:
        found.append(datetime.fromisoformat(str(after)))
    return found


@pytest.mark.parametrize("name", ZONES)
@pytest.mark.parametrize(("hour", "minute"), [(2, 30), (2, 0), (1, 45), (0, 0), (3, 0), (9, 15)])
def test_a_fixed_time_is_named_once_a_day(name: str, hour: int, minute: int) -> None:
    zone = ZoneInfo(name)
    assert list_all(f"{minute} {hour} * * *", zone) == list_fixed(hour, minute, zone)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZONES)
def test_every_hour_is_named_when_it_begins(name: str) -> None:
    found = list_all("0 * * * *", ZoneInfo(name), 366)
    assert len(set(found)) == len(found)
    assert {one.astimezone(ZoneInfo(name)).minute for one in found} == {0}
    steps = {after - before for before, after in itertools.pairwise(found)}
    longer = {timedelta(minutes=90)} if name == "Australia/Lord_Howe" else set[timedelta]()
    assert steps == {timedelta(hours=1), *longer}


@pytest.mark.slow
@pytest.mark.parametrize("name", ZONES)
def test_minutes_of_one_hour_are_named_once_where_the_hour_repeats(name: str) -> None:
    zone = ZoneInfo(name)
    walls = [one.astimezone(zone).replace(tzinfo=None) for one in list_all("*/15 1-2 * * *", zone, 366)]
    assert len(set(walls)) == len(walls)
    assert {(one.hour, one.minute % 15) for one in walls} == {(1, 0), (2, 0)}


def test_the_days_on_which_clocks_change_in_berlin() -> None:
    zone = ZoneInfo("Europe/Berlin")
    skipped = find_next("30 2 * * *", zone, moment("2026-03-28T12:00:00Z"))
    assert skipped == moment("2026-03-29T01:00:00Z")
    assert skipped is not None
    assert format_in_zone(skipped, zone) == "2026-03-29T03:00+02:00"
    first = find_next("30 2 * * *", zone, moment("2026-10-24T12:00:00Z"))
    assert first is not None
    assert first == moment("2026-10-25T00:30:00Z")
    assert find_next("30 2 * * *", zone, first) == moment("2026-10-26T01:30:00Z")
    between = moment("2026-10-25T01:10:00Z")  # 02:10 for the second time
    assert find_next("30 2 * * *", zone, between) == moment("2026-10-26T01:30:00Z")


def test_a_time_that_never_comes() -> None:
    assert find_next("0 0 30 2 *", UTC, Time(0)) is None
    assert find_next("0 0 */31 * 2#5", UTC, Time(0)) is None
    assert find_next("0 0 * * *", UTC, moment("9999-12-31T00:00:00Z")) is None
    assert list_times("0 0 30 2 *", UTC, Time(0), 5) == ()


CRONS = st.sampled_from(["* * * * *", "0 9 * * 1-5", "30 2 * * *", "*/7 1-3 * * *", "0 0 29 2 *", "@monthly"])
HOURS = st.integers(0, 24 * DAYS)


@given(CRONS, st.sampled_from(ZONES), HOURS, st.integers(0, 3000))
def test_the_last_time_is_the_one_before_the_next(cron: str, name: str, hour: int, minutes: int) -> None:
    zone = ZoneInfo(name)
    first = find_next(cron, zone, Time.parse("2025-11-15T00:00:00Z").plus(hour * 3600))
    assert first is not None
    until = first.plus(minutes * 60 + 30)
    last = find_last(cron, zone, first, until)
    assert first <= last <= until
    following = find_next(cron, zone, last)
    assert following is None or following > until
    assert last == first or find_next(cron, zone, last.plus(-1)) == last


def test_the_next_five() -> None:
    found = list_times("0 9 * * 1-5", ZoneInfo("Europe/Berlin"), moment("2026-11-13T12:00:00Z"), 5)
    shown = [format_in_zone(one, ZoneInfo("Europe/Berlin")) for one in found]
    assert shown == [f"2026-11-{day}T09:00+01:00" for day in (16, 17, 18, 19, 20)]
