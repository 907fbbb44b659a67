"""The timeline of a flight, drawn: when it was queued, running and waiting, and what each wait was for."""

from collections.abc import Sequence
from typing import NamedTuple

from scout.base.time import Time
from scout.protocol.insight import Step
from scout.web.html import Html, join, tag
from scout.web.parts import show_time

_STATES = {
    "queued": "queued",
    "started": "running",
    "resumed": "running",
    "waiting": "waiting",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
_WIDTH, _HEIGHT = 1000, 34
_THIN = 6  # the width of a moment


class Segment(NamedTuple):
    """A stretch of time in one state. A final state has no length."""

    state: str
    begin: Time
    end: Time
    reason: str

    @property
    def seconds(self) -> float:
        return self.end.since(self.begin)


def list_segments(steps: Sequence[Step], now: Time) -> list[Segment]:
    """Return the stretches of a flight from its events; the last one of an open flight ends now."""
    marks = [(step, _STATES[name]) for step in steps if (name := _read_move(step)) in _STATES]
    ends = [*(step.at for step, _ in marks[1:]), now]
    found = list[Segment]()
    for (step, state), end in zip(marks, ends, strict=True):
        is_final = state in ("completed", "failed", "cancelled")
        found.append(Segment(state, step.at, step.at if is_final else Time(max(end, step.at)), step.reason))
    return found


def _read_move(step: Step) -> str:
    family, _, move = step.type.rpartition(".")
    return move if family == "collab.flight" else ""


def draw_timeline(segments: Sequence[Segment]) -> Html:
    """Return the drawing, with the numbers on hover, and the same as a list of words."""
    if not segments:
        return tag("p", "No event of this flight can be read.", cls="quiet")
    begin, end = segments[0].begin, max(one.end for one in segments)
    whole = max(end.since(begin), 0.001)

    def place(at: Time) -> int:
        return round(at.since(begin) / whole * _WIDTH)

    bars = [
        tag(
            "rect",
            tag("title", f"{one.state}: {format_seconds(one.seconds)}"),
            x=min(place(one.begin), _WIDTH - _THIN),
            y=4,
            width=max(place(one.end) - place(one.begin), _THIN),
            height=18,
            cls="bar",
            data_state=one.state,
        )
        for one in segments
    ]
    drawing = tag(
        "svg",
        bars,
        cls="timeline",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT - 8}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"Timeline of {format_seconds(whole)}",
    )
    words = [_describe(one) for one in segments]
    return join(tag("div", drawing), tag("ol", words, cls="segments"))


def _describe(segment: Segment) -> Html:
    took = "" if segment.begin == segment.end else f" for {format_seconds(segment.seconds)}"
    return tag(
        "li",
        tag("span", segment.state, cls="state", data_state=segment.state),
        tag("span", took, cls="took"),
        tag("span", segment.reason, cls="quiet") if segment.reason else None,
        show_time(segment.begin, ago=False),
    )


def format_seconds(seconds: float) -> str:
    """Return a duration in its largest two units."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, size, smaller, small in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"
