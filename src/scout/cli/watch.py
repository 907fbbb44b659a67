"""`scout watch`: the log as it grows, taken up where the connection broke."""

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import click

from scout.cli.build import epilog, every_option, parameters_of, run_guarded, tidy
from scout.cli.line import Line, target_of
from scout.cli.problem import Problem, remedy
from scout.cli.shapes import event_line
from scout.cli.text import note, out
from scout.cli.verbs import Manner
from scout.cli.wire import Lost
from scout.protocol.operations import OPERATIONS
from scout.protocol.overview import Watch

__all__ = ["command", "frames"]

_PAUSES = (0.05, 0.2, 0.8, 2.0, 5.0)


def _callback(**given: Any) -> None:
    manner = Manner(as_json=given.pop("as_json"), act_as=given.pop("act_as"))
    count: int | None = given.pop("count")
    run_guarded(lambda: _follow(manner, tidy(OPERATIONS["watch"], given), count), manner.as_json)


def _follow(manner: Manner, parameters: dict[str, Any], count: int | None) -> int:
    last = parameters.pop("after", None)
    line, failures, told = manner.line(), 0, 0
    while count is None or told < count:
        try:
            for number, event in _events(line, parameters, last):
                failures, last, told = 0, number, told + 1
                out(json.dumps(event) if manner.as_json else event_line(event))
                sys.stdout.flush()
                if told == count:
                    return 0
            problem = "the stream ended"
        except (Lost, OSError) as error:
            problem = str(error)
        if failures == len(_PAUSES):
            raise Problem.of("busy", f"the daemon stays away: {problem}", remedies=[remedy("doctor")])
        if not failures:
            note("scout: the stream broke; following again from where it was")
        time.sleep(_PAUSES[failures])
        failures += 1
    return 0


def _events(line: Line, parameters: dict[str, Any], last: object) -> Iterator[tuple[object, dict[str, Any]]]:
    _, target, _ = target_of(Watch.route, parameters)
    for kind, number, data in frames(line.events(target, None if last is None else str(last))):
        if kind == "dropped":
            note(f"scout: {json.loads(data).get('message', 'the stream was dropped')}")
            return
        yield number or last, json.loads(data)


def frames(lines: Iterator[str]) -> Iterator[tuple[str, str, str]]:
    """Kind, number and data of each event of a stream."""
    kind, number, data = "", "", list[str]()
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield kind, number, "\n".join(data)
            kind, number, data = "", "", []
        elif name == "event":
            kind = value
        elif name == "id":
            number = value
        elif name == "data":
            data.append(value)


command = click.Command(
    "watch",
    params=[
        *parameters_of(OPERATIONS["watch"]),
        click.Option(["--count"], type=int, metavar="N", help="End after so many events."),
        *every_option(OPERATIONS["watch"]),
    ],
    callback=_callback,
    help="Follow the log as it grows, until Ctrl-C; a lost connection is taken up where it broke. "
    "With --json each event is one line.",
    epilog=epilog("watch"),
)
