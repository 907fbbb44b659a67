"""The log as it grows, taken up where the connection broke."""

from __future__ import annotations

import json
import sys
import time

from scout.cli.connection.call import ROUTES
from scout.cli.connection.refusal import RefusalError, remedy
from scout.cli.connection.text import note, out
from scout.cli.output.events import Names, event_line
from scout.client.http import Lost, build_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from scout.cli.connection.call import DaemonCall
    from scout.cli.operations.verbs import Options

_PAUSES = (0.05, 0.2, 0.8, 2.0, 5.0)


def follow_log(parameters: dict[str, Any], manner: Options, count: int | None = None) -> int:
    """Print each event, until Ctrl-C or so many."""
    last = parameters.pop("after", None)
    line, failures, shown = manner.line(), 0, 0
    names = Names(line)
    while count is None or shown < count:
        try:
            for number, event in _events(line, parameters, last):
                failures, last, shown = 0, number, shown + 1
                out(json.dumps(event) if manner.as_json else event_line(event, names))
                sys.stdout.flush()
                if shown == count:
                    return 0
            problem = "the stream ended"
        except (Lost, OSError) as error:
            problem = str(error)
        if failures == len(_PAUSES):
            raise RefusalError.of("busy", f"the daemon stays away: {problem}", remedies=[remedy("doctor")])
        if not failures:
            note("scout: the stream broke; following again from where it was")
        time.sleep(_PAUSES[failures])
        failures += 1
    return 0


def _events(
    line: DaemonCall, parameters: dict[str, Any], last: object
) -> Iterator[tuple[object, dict[str, Any]]]:
    _, target, _ = build_target(ROUTES["watch"], parameters)
    for event in line.events(target, None if last is None else str(last)):
        record = json.loads(event.data)
        if event.type == "dropped":
            note(f"scout: {record.get('message', 'the stream was dropped')}")
            return
        yield event.id or last, record
