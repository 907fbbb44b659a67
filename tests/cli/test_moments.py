"""Local times become times with offset; everything else is left to the daemon."""

import os
import re
import shlex
import time
from collections.abc import Generator

import click
import pytest

from scout.cli.operations.durations import FutureTime
from scout.cli.operations.moments import correct_typed, format_deadline, format_moment, guess_moment
from tests.cli.running import Shell

NOON = 1_795_003_200.0  # 2026-11-18T12:00:00Z


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    assert os.environ.get("TZ") == before
    time.tzset()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("12:30", "2026-11-18T11:30:00Z"),
        ("13:00:00", "2026-11-18T12:00:00Z"),
        ("14:05", "2026-11-17T13:05:00Z"),  # it has not come yet today
        ("today 14:05", "2026-11-18T13:05:00Z"),
        ("yesterday 9:15", "2026-11-17T08:15:00Z"),
        ("2026-11-17", "2026-11-16T23:00:00Z"),
        ("2026-11-17T14:05", "2026-11-17T13:05:00Z"),
        ("2026-07-17 14:05:30", "2026-07-17T12:05:30Z"),  # summer
    ],
)
def test_a_local_time(typed: str, meant: str) -> None:
    assert format_moment(typed, NOON) == meant


@pytest.mark.parametrize(
    "typed",
    ["1234", "now", "10 minutes ago", "2026-11-17T14:05:00Z", "25:00", "12:61", "2026-11-17T24:00", "soon"],
)
def test_what_the_daemon_reads(typed: str) -> None:
    assert format_moment(typed, NOON) == typed


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("14:05", "2026-11-18T13:05:00Z"),
        ("12:30", "2026-11-19T11:30:00Z"),  # it has passed today
        ("today 12:30", "2026-11-18T11:30:00Z"),
        ("tomorrow 9:00", "2026-11-19T08:00:00Z"),
        ("2026-11-20", "2026-11-19T23:00:00Z"),
        ("2026-11-20T09:00:00Z", "2026-11-20T09:00:00Z"),
    ],
)
def test_a_deadline_is_to_come(typed: str, meant: str) -> None:
    assert format_deadline(typed, NOON) == meant


def test_a_deadline_after_a_while() -> None:
    before = time.time()
    meant = FutureTime().convert("2h", None, None)
    after = time.mktime(time.strptime(meant, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert before + 7199 <= after <= time.time() + 7200


@pytest.mark.parametrize("typed", ["3600", "soon", "2h ago", ""])
def test_what_is_no_deadline(typed: str) -> None:
    with pytest.raises(click.BadParameter, match="expected 2h, 18:00"):
        FutureTime().convert(typed, None, None)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("yesterday", "2026-11-16T23:00:00Z"),
        ("Today", "2026-11-17T23:00:00Z"),
        ("tomorrow", "2026-11-18T23:00:00Z"),
    ],
)
def test_a_day_in_words_is_its_start(typed: str, meant: str) -> None:
    assert format_moment(typed, NOON) == meant


def test_a_day_has_23_or_25_hours_where_the_clock_is_changed() -> None:
    late = 1_792_967_400.0  # 2026-10-25T23:30 in Berlin, after an hour was given back
    assert format_moment("yesterday", late) == "2026-10-23T22:00:00Z"
    assert format_moment("yesterday 9:00", late) == "2026-10-24T07:00:00Z"


def test_until_today_is_until_its_end() -> None:
    assert format_deadline("today", NOON) == format_deadline("tomorrow", NOON) == "2026-11-18T23:00:00Z"


@pytest.mark.parametrize("typed", ["2026-02-31", "2026-13-01", "2026-00-10", "0000-01-01"])
def test_a_day_that_no_calendar_has_is_left_as_it_is(typed: str) -> None:
    assert format_moment(typed, NOON) == typed


@pytest.mark.parametrize("typed", ["Tuesday", "2026-02-31", "next week", "yesterdayT"])
def test_what_is_no_deadline_is_refused_with_a_date(typed: str) -> None:
    with pytest.raises(click.BadParameter, match=r"tomorrow, 'tomorrow 9:00', \d{4}-\d\d-\d\d"):
        FutureTime().convert(typed, None, None)


@pytest.mark.parametrize(
    ("typed", "ahead", "meant"),
    [
        ("last week", False, "7 days ago"),
        ("Past  month", False, "30 days ago"),
        ("the other day", False, ""),
        ("2 months ago", False, "60 days ago"),
        ("last 3 days", False, "3 days ago"),
        ("1 day", False, "1 day ago"),
        ("next week", False, ""),
        ("last week", True, ""),
    ],
)
def test_a_while_that_is_no_exact_time_has_a_probable_meaning(typed: str, ahead: bool, meant: str) -> None:
    assert guess_moment(typed, ahead) == meant


def test_the_typed_command_is_corrected_and_carries_no_consent() -> None:
    typed = ["purge", "--yes", "--before", "last week", "--json"]
    corrected = "scout purge --before '7 days ago' --json"
    assert correct_typed("last week", "7 days ago", typed) == corrected
    assert correct_typed("x", "1 day ago", ["log", "--at=x"]) == "scout log '--at=1 day ago'"
    assert correct_typed("x", "1 day ago", ["log", "--at", "y"]) == ""


@pytest.mark.slow
def test_every_option_that_takes_a_moment_names_one_that_works(shell: Shell) -> None:
    """A text that nobody can read is refused with the typed command and a moment in it."""
    for words in (
        ("archive", "create", "--dry-run", "--before", "last month"),
        ("purge", "--dry-run", "--before=once upon a time"),
        ("activity", "--from", "last week"),
        ("now", "--since", "last week"),
        ("--at", "last week"),
        ("who", "--at", "2026-02-31"),
        ("work", "create", "The release", "--due", "next week"),
        ("allow", "--tool", "WebFetch", "--everywhere", "--until", "soon"),
    ):
        refused = shell.type(*words)
        assert refused.returncode == 2, words
        assert re.search(r"20\d\d-\d\d-\d\d", refused.stderr), refused.stderr
        (line,) = (one for one in refused.stderr.splitlines() if one.startswith("try: "))
        pasted = shell.type(*shlex.split(line.removeprefix("try: scout ")))
        assert pasted.returncode == 0 or "no_such_moment" in pasted.stderr, (line, pasted.stderr)
    for day in ("yesterday", "today", "2026-01-01"):
        assert shell.say("purge", "--dry-run", "--before", day) == "There is nothing to purge.\n"
