"""Waits for several flights at once: one picture of all of them. Ending the wait never stops the work."""

from __future__ import annotations

import os
import sys
import time

from scout.base.visible import make_visible
from scout.cli.connection.call import ROUTES
from scout.cli.connection.refusal import OPEN
from scout.cli.connection.text import draw_lines, join_words, note, paint, print_out, shorten_id
from scout.cli.waiting.follow import FINISHED, POLL, choose_exit_code, settle
from scout.cli.waiting.progress import TICK, WatchedFlight, describe_silence, get_attention_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from scout.cli.connection.call import DaemonCall

_STATES = {"completed": "green", "failed": "red", "cancelled": "yellow", "waiting": "yellow"}
_ROWS = 20  # maximum lines where the height of the terminal is not known
_STEP = 2.0  # seconds of one long poll without a terminal


class Watched:
    """One flight of several, under the name that the picture shows."""

    def __init__(self, name: str, flight_id: str) -> None:
        self.name = name
        self.flight_id = flight_id
        self.flight: dict[str, Any] = {}
        self.finished: float | None = None

    @property
    def state(self) -> str:
        return str(self.flight.get("state", "queued"))

    @property
    def is_open(self) -> bool:
        return self.state not in FINISHED


def follow_all(line: DaemonCall, flights: list[Watched], budget: float | None, as_json: bool) -> int:
    """Wait until all flights are finished, the budget is used up or Ctrl-C; return the exit code."""
    picture = _Picture(line) if sys.stderr.isatty() and not as_json else None
    try:
        _wait(line, flights, budget, picture, quiet=as_json)
    except KeyboardInterrupt:
        note("the work continues; to wait again:")
        for one in flights:
            if one.is_open:
                note(f"  scout wait {one.flight_id}  # {one.name}")
        return 130
    if not as_json:
        _show_answers(flights)
    return _choose_exit_code(flights)


def _wait(
    line: DaemonCall,
    flights: list[Watched],
    budget: float | None,
    picture: _Picture | None,
    *,
    quiet: bool,
) -> None:
    began = time.monotonic()
    told = set[str]()
    while True:
        passed = time.monotonic() - began
        left = None if budget is None else max(budget - passed, 0.0)
        still = [one for one in flights if one.is_open]
        step = min(TICK if picture else _STEP, POLL if left is None else left)
        for number, one in enumerate(still):
            wait = round(step, 3) if number == 0 and one.flight else 0
            one.flight = line.call(ROUTES["flight.get"], {"flightId": one.flight_id, "wait": wait})
            if not one.is_open:
                one.finished = time.monotonic() - began
        if picture is not None:
            picture.show(flights, time.monotonic() - began)
        elif not quiet:
            _tell_changes(flights, told)
        if not any(one.is_open for one in flights) or left == 0:
            return


def _tell_changes(flights: list[Watched], told: set[str]) -> None:
    """Print a plain line when a flight ends or waits for a person."""
    for one in flights:
        item = get_attention_id(one.flight) or ""
        key = f"{one.flight_id} {one.state} {item}"
        if key in told or not (item or not one.is_open):
            continue
        told.add(key)
        hint = f"; scout attention show {item}" if item else ""
        note(f"{one.name}: {one.state}{_format_elapsed(one.finished)}{hint}")


def _show_answers(flights: list[Watched]) -> None:
    """Print the answer of each flight below its name."""
    for one in flights:
        state = paint(one.state, _STATES.get(one.state, "dim"))
        print_out(f"{paint(one.name, 'bold')}: {state}{_format_elapsed(one.finished)}")
        settle(one.flight)


def _choose_exit_code(flights: list[Watched]) -> int:
    codes = [choose_exit_code(one.flight) for one in flights]
    failed = [code for code in codes if code not in (0, OPEN)]
    return failed[0] if failed else OPEN if OPEN in codes else 0


def _format_elapsed(passed: float | None) -> str:
    return "" if passed is None else f" after {int(passed // 60)}:{int(passed % 60):02d}"


class _Picture:
    """A line for each flight, rewritten in place: name, state, elapsed time, latest activity."""

    def __init__(self, line: DaemonCall) -> None:
        self._watched = WatchedFlight(line)
        self._drawn = 0

    def show(self, flights: list[Watched], passed: float) -> None:
        """Draw the picture over the previous one."""
        room = min(len(flights), max(_get_rows() - 2, 1))
        ordered = sorted(flights, key=lambda one: not one.is_open) if room < len(flights) else flights
        name = max(len(one.name) for one in flights)
        lines = [self._describe(one, name, passed) for one in ordered[:room]]
        if len(flights) > room:
            done = sum(not one.is_open for one in flights)
            rest = f"{len(flights) - room} more; {done} of {len(flights)} finished"
            lines.append(paint(rest, "dim", sys.stderr))
        draw_lines(lines, self._drawn)
        self._drawn = len(lines)

    def _describe(self, one: Watched, name: int, passed: float) -> str:
        took = passed if one.finished is None else one.finished
        state = paint(f"{one.state:<9}", _STATES.get(one.state, "dim"), sys.stderr)
        clock = f"{int(took // 60)}:{int(took % 60):02d}"
        return f"{one.name:<{name}}  {state}  {clock:>5}  {self._activity(one)}"

    def _activity(self, one: Watched) -> str:
        if not one.is_open:
            return make_visible(join_words(str(one.flight.get("output") or one.flight.get("reason") or "")))
        item = get_attention_id(one.flight)
        if item is not None:
            return f"waits for you: scout attention show {shorten_id(item)}"
        return make_visible(join_words(self._watched.describe(one.flight))) + describe_silence(
            one.flight.get("updatedAt")
        )


def _get_rows() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).lines or _ROWS
    except (OSError, ValueError):
        return _ROWS
