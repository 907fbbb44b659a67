"""Cron texts: reading them, what they mean in words, and the times they name in a time zone.

A time zone comes in as an argument, because its rules are read from the disk.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from cronsim import CronSim, CronSimError

from scout.base.record import Record
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.model.problems.people import MalformedCron
from scout.policy.nearest import rank_names

NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_LONGEST = 200  # characters
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
_COUNT = 5
_HOUR, _DAY = 1, 2


class _Field(Record):
    """One field of a cron text: its name, what it may hold, and its numbers."""

    name: str
    expected: str
    least: int
    most: int
    words: tuple[str, ...] = ()


_FIELDS = (
    _Field(name="minute", expected="a minute from 0 to 59", least=0, most=59),
    _Field(name="hour", expected="an hour from 0 to 23", least=0, most=23),
    _Field(name="day of the month", expected="a day from 1 to 31, or L for the last one", least=1, most=31),
    _Field(
        name="month",
        expected="a month from 1 to 12, or jan to dec",
        least=1,
        most=12,
        words=("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    ),
    _Field(
        name="day of the week",
        expected="a weekday from 0 (Sunday) to 7, or sun to sat",
        least=0,
        most=7,
        words=("sun", "mon", "tue", "wed", "thu", "fri", "sat"),
    ),
)
_FIVE = "five fields: minute, hour, day of the month, month, day of the week"


# -- reading -------------------------------------------------------------------------------------------


def check_cron(text: str) -> str:
    """Return the cron text with single blanks; refuse one that cannot be read or names no time."""
    if len(text) > _LONGEST:
        raise _refuse(text, _LONGEST, "too much text", f"at most {_LONGEST} characters", "@daily")
    words = text.split()
    if len(words) == 1 and words[0].startswith("@"):
        return _check_name(text, words[0])
    if len(words) != _COUNT:
        raise _refuse_count(text, words)
    for number, word in enumerate(words):
        if not _is_valid(number, word):
            raise _refuse_field(text, words, number)
    if find_next(" ".join(words), UTC, Time(0)) is None:
        example = _put(words, _DAY, "L" if words[_DAY].isdigit() else "*")
        raise _refuse(text, _find_starts(text)[_DAY], "a day that never comes", "another day", example)
    return " ".join(words)


def _check_name(text: str, name: str) -> str:
    if name.lower() in NAMES:
        return name.lower()
    near = rank_names(name.lower(), NAMES, 1)
    expected = f"{', '.join(NAMES)}, or {_FIVE}"
    raise _refuse(text, text.index(name), f"the name '{name:.40}'", expected, next(iter(near), "@daily"))


def _refuse_count(text: str, words: Sequence[str]) -> Refused:
    """Return the refusal of too few or too many fields; the example has no seconds, or no year."""
    if len(words) > _COUNT:
        example = _choose_valid(words[1 : _COUNT + 1], words[:_COUNT])
        return _refuse(text, _find_starts(text)[_COUNT], "a sixth field", _FIVE, example)
    example = _choose_valid([*words, *["*"] * (_COUNT - len(words))]) if words else "0 9 * * 1-5"
    return _refuse(text, len(text), "the end", _FIVE, example)


def _choose_valid(*choices: Sequence[str]) -> str:
    """Return the first of several texts that is valid; a fixed one if none is."""
    valid = [words for words in choices if all(_is_valid(*pair) for pair in enumerate(words))]
    return " ".join(valid[0]) if valid else "0 9 * * 1-5"


def _refuse_field(text: str, words: Sequence[str], number: int) -> Refused:
    """Return the refusal of a field at its first wrong item, with a text in which that item is replaced."""
    items = words[number].split(",")
    wrong = next(index for index, item in enumerate(items) if not _is_valid(number, item))
    position = _find_starts(text)[number] + sum(len(item) + 1 for item in items[:wrong])
    better = next(one for one in _correct_item(number, items[wrong]) if _is_valid(number, one))
    fixed = ",".join([*items[:wrong], better, *items[wrong + 1 :]])
    example = _choose_valid([*words[:number], fixed, *words[number + 1 :]])
    field = _FIELDS[number]
    problem = f"the {field.name} '{items[wrong]:.40}'" if items[wrong] else "nothing between two commas"
    return _refuse(text, position, problem, field.expected, example)


def _correct_item(number: int, item: str) -> Iterator[str]:
    """Yield what an item may have been meant to be; the last one is always valid."""
    field = _FIELDS[number]
    lower = item.lower()
    yield re.sub("[a-z]+", lambda word: word[0][:3] if word[0][:3] in field.words else word[0], lower)
    if clock := re.fullmatch(r"(\d{1,2})(?::00)?\s*(am|pm)", lower):
        yield str(int(clock[1]) % 12 + (12 if clock[2] == "pm" else 0))
    if turned := re.fullmatch(r"(\d{1,4})-(\d{1,4})", item):
        yield f"{turned[2]}-{turned[1]}"
    yield re.sub(r"\d+", lambda figure: _limit(field, figure[0]), item)
    yield "*"


def _limit(field: _Field, figure: str) -> str:
    """Return a number within its field: 60 minutes and 24 hours are 0, anything else the nearest."""
    value = int(figure[:9])
    round_trip = value == field.most + 1 and field.least == 0
    return str(0 if round_trip else min(max(value, field.least), field.most))


def _is_valid(number: int, word: str) -> bool:
    try:
        CronSim(_put(["*"] * _COUNT, number, word), _EPOCH)
    except CronSimError:
        return False
    return True


def _put(words: Sequence[str], number: int, word: str) -> str:
    return " ".join([*words[:number], word, *words[number + 1 :]])


def _find_starts(text: str) -> list[int]:
    return [word.start() for word in re.finditer(r"\S+", text)]


def _refuse(text: str, position: int, problem: str, expected: str, example: str) -> Refused:
    shown = text[:_LONGEST].encode("utf-8", "replace").decode()
    visible = problem.encode("utf-8", "replace").decode()
    return Refused(
        MalformedCron(text=shown, position=position, problem=visible, expected=expected, example=example)
    )


# -- meaning -------------------------------------------------------------------------------------------


def describe_cron(cron: str) -> str:
    """Return what a valid cron text means, in words: `At 09:00 on Monday through Friday`."""
    return CronSim(NAMES.get(cron, cron), _EPOCH).explain()


def find_next(cron: str, zone: tzinfo, after: Time) -> Time | None:
    """Return the first time after a moment that a valid cron text names; None if there is none in 50 years.

    A fixed time in the hour that a clock skips is moved to the end of that hour. A time in the hour that a
    clock repeats is named once, unless the text names every hour.
    """
    fields = NAMES.get(cron, cron)
    every_hour = fields.split()[_HOUR].startswith("*")
    try:
        for found in CronSim(fields, (_EPOCH + after * _MICRO).astimezone(zone)):
            at = Time((found - _EPOCH) // _MICRO)
            if at > after and (every_hour or not found.fold):
                return at
    except (CronSimError, OverflowError):  # a day that no month has; the end of the calendar
        pass
    return None


def find_last(cron: str, zone: tzinfo, first: Time, until: Time) -> Time:
    """Return the last time that a cron text names from `first`, which is one, until a later moment.

    It halves the period, so that a schedule of every minute that was away for years costs some twenty steps.
    """
    low, high = first, until
    while (following := find_next(cron, zone, low)) is not None and following <= until:
        middle = Time((following + high) // 2)
        found = find_next(cron, zone, middle)
        if found is not None and found <= until:
            low = found
        else:
            low, high = following, middle
    return low


def list_times(cron: str, zone: tzinfo, after: Time, count: int) -> tuple[Time, ...]:
    """Return the next times that a cron text names, at most `count`."""
    found: list[Time] = []
    while len(found) < count and (following := find_next(cron, zone, found[-1] if found else after)):
        found.append(following)
    return tuple(found)


def format_in_zone(at: Time, zone: tzinfo) -> str:
    """Return a time as the clocks of a zone show it, with its offset."""
    return (_EPOCH + at * _MICRO).astimezone(zone).isoformat(timespec="minutes")
