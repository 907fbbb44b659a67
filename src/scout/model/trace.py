"""Traces: the W3C context of an ask, and the steps that its flight took.

Ids are derived from the ids of records. So the steps of one chain of asks are one trace, whichever daemon
exports them, and also after a restart in the middle of a flight.
"""

import hashlib
import re
from enum import StrEnum
from typing import NamedTuple

from scout.base.record import Record
from scout.base.time import Time
from scout.model.ask import Ask

_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_SAMPLED = 1


class TraceContext(NamedTuple):
    """A step of a trace as others name it. `str` returns the value of a `traceparent` header."""

    trace_id: str
    step_id: str
    sampled: bool = True

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.step_id}-{self.sampled:02x}"


def parse_traceparent(text: str | None) -> TraceContext | None:
    """Return the context of a `traceparent` header; None for anything else, as the standard wants it."""
    found = _TRACEPARENT.fullmatch(text) if text is not None else None
    if found is None or (found[1] == "00" and found[5] is not None):  # a later version may say more
        return None
    return TraceContext(found[2], found[3], bool(int(found[4], 16) & _SAMPLED))


class TraceStep(StrEnum):
    """What a part of a trace is about."""

    ASK = "ask"
    ROUTE = "route"
    WAKE = "wake"
    TURN = "turn"
    TOOL = "tool"
    WAIT = "wait"
    REPLY = "reply"


def build_context(ask: Ask, node_id: str, step: TraceStep, ident: str) -> TraceContext:
    """Return the context of one step of an ask on one node."""
    parent = parse_traceparent(ask.traceparent)
    trace_id = parent.trace_id if parent else _derive_hex(32, "trace", ask.id)
    return TraceContext(trace_id, _derive_hex(16, node_id, step, ident), parent.sampled if parent else True)


def choose_parent(given: str | None, within: TraceContext | None) -> str | None:
    """Return the parent of a new ask: the given context, unless the ask is nested in another trace.

    A program that stays between turns may repeat the context that it was started with.
    """
    named = parse_traceparent(given)
    if named is not None and (within is None or named.trace_id == within.trace_id):
        return str(named)
    return str(within) if within is not None else None


def _derive_hex(length: int, *parts: str) -> str:
    """Return hexadecimal digits that are the same for the same parts; they are never all zero."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[: length - 1] + "1"


class TraceSide(StrEnum):
    """Whether both ends of a step are on this node; else which end is here."""

    INTERNAL = "internal"
    CLIENT = "client"
    SERVER = "server"


TraceValue = str | int | bool | tuple[str, ...]


class TimedStep(Record):
    """One step of a trace. `error`: the code of its failure, empty if it succeeded; `problem`: its words."""

    name: str
    context: TraceContext
    parent: TraceContext | None
    start: Time
    end: Time
    attributes: dict[str, TraceValue]
    side: TraceSide = TraceSide.INTERNAL
    error: str = ""
    problem: str = ""


class ExportState(StrEnum):
    """Whether traces and metrics reach their endpoint."""

    STARTING = "starting"
    WORKING = "working"
    FAILING = "failing"
    UNAVAILABLE = "unavailable"


class TelemetryStatus(Record, omit_defaults=True):
    """Where traces and metrics are sent, and whether they arrive.

    `dropped`: steps that were given up because the endpoint did not take them.
    """

    endpoint: str
    state: ExportState
    exported: int = 0
    dropped: int = 0
    problem: str = ""
    bodies: bool = False
