"""What the broker adds to a program's own time: from the receipt to the prompt, and from the reply to the store."""

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from bench.daemon import Daemon, fresh
from bench.figure import Figure

COUNT = 100
# Its reply is the moment at which it had read its prompt.
_PROGRAM = ["sh", "-c", "cat >/dev/null; date +%s%N"]
_FIRST = 5  # turns that are not counted: the session is begun in them


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """One ask after the other, to an agent whose program does nothing."""
    with fresh() as to:
        to.call("POST", "/v1/agents", {"definitionId": "clock", "harness": "command", "command": _PROGRAM})
        asked = [_asked(to) for _ in range(_FIRST + max(round(COUNT * scale), 20))][_FIRST:]
    yield from _both("receipt to the program has its prompt", [one[0] for one in asked])
    yield from _both("the program has its prompt to reply stored", [one[1] for one in asked])


def _asked(to: Daemon) -> tuple[float, float]:
    """Milliseconds until the program had the prompt, and from then until its reply was stored."""
    receipt = to.call("POST", "/v1/asks", {"to": "@clock", "body": "What time is it?"})
    accepted = time.time()
    flight = to.call("GET", f"/v1/flights/{receipt['flightId']}?wait=30")
    read = int(flight["output"]) / 1e9
    return 1000 * (read - accepted), 1000 * (_moment(flight) - read)


def _moment(flight: dict[str, Any]) -> float:
    return datetime.fromisoformat(flight["finishedAt"]).timestamp()


def _both(name: str, times: list[float]) -> Iterator[Figure]:
    ordered = sorted(times)
    for part in (50, 99):
        yield Figure(name=f"{name}: p{part}", result=ordered[len(ordered) * part // 100], unit="ms")
