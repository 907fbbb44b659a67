"""One flight: its live line, its timeline, the question and the answer."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult

from scout.base.codec import to_plain
from scout.base.refusal import Refused, Remedy
from scout.base.time import Time
from scout.model.flight import FLIGHT
from scout.policy.sentences import describe_receipt
from scout.protocol.asks import FlightView as FlightRecord
from scout.protocol.asks import GetFlight
from scout.protocol.insight import Explanation, Step, Why
from scout.protocol.observation import TailEntry, TailSession
from scout.protocol.operations import build_command_line
from scout.tui.describe import FLIGHT_MARKS, describe_live_line, measure_flight, name_target
from scout.tui.flight_actions import FlightActions
from scout.tui.pane import TextPane
from scout.tui.text import Paragraph, fit, format_clock, format_duration, read_clock, show_text
from scout.tui.view import ScreenView, ViewHost

_LINES = 40  # of the live output
_BAR = 24  # cells of the longest bar


class FlightDetail(FlightActions, ScreenView):
    """The flight, from the question to the answer."""

    key: ClassVar[str] = "flight"
    nouns: ClassVar[frozenset[str]] = frozenset({"flight", "attention", "delivery"})

    def __init__(self, host: ViewHost, ident: str) -> None:
        super().__init__(host)
        self._ident = ident
        self._flight: FlightRecord | None = None
        self._why: Explanation | None = None
        self._output: tuple[TailEntry, ...] = ()

    @property
    def flight(self) -> FlightRecord | None:
        return self._flight

    @property
    def subject(self) -> str:
        return f"{name_target(self._flight)} · {self._ident}" if self._flight else self._ident

    def compose(self) -> ComposeResult:
        yield TextPane(id="flight")

    async def load(self) -> None:
        self._flight = await self.host.call(GetFlight(flight_id=self._ident))
        self._why = await self.host.call(Why(id=self._flight.id))
        self._output = await self._read_output(self._flight)
        self.draw()

    async def _read_output(self, flight: FlightRecord) -> tuple[TailEntry, ...]:
        """Return the last lines of a running session; harnesses without a transcript have none."""
        if flight.session_id is None or flight.state in FLIGHT.terminal:
            return ()
        try:
            return (await self.host.call(TailSession(session_id=flight.session_id, limit=_LINES))).lines
        except Refused:
            return ()

    def tick(self) -> None:
        if self._flight is not None:
            if self._output and self._flight.state not in FLIGHT.terminal:
                self.is_stale = True  # a transcript grows without events
            self.query_one(TextPane).set_blocks(self._build_blocks(self._flight))

    def _build_blocks(self, flight: FlightRecord) -> list[Paragraph]:
        mark, style = FLIGHT_MARKS[flight.state]
        names = self.host.names
        live = f"{mark} {flight.state} {format_duration(measure_flight(flight))}"
        running = flight.state not in FLIGHT.terminal
        says = f" · {describe_live_line(flight, names)}" if running else ""
        model = " ".join(filter(None, (flight.harness_observed, flight.model_observed)))
        by = show_text(names.name(flight.requester_address, flight.requester_node))
        way = show_text(describe_receipt(to_plain(flight.mesh))) if flight.mesh else ""
        blocks = [
            Paragraph(f"{live}{says}", style),
            Paragraph(f"asked by {by}{f' · {model}' if model else ''} · attempt {flight.attempt}", "dim"),
            *([Paragraph(f"the ask {way}", "dim")] if way else []),
            Paragraph(""),
            *self._build_timeline(flight),
            Paragraph(""),
            Paragraph("What was asked", "bold"),
            Paragraph(flight.body, foreign=True),
        ]
        if self._output:
            blocks += [Paragraph(""), Paragraph("Live output", "bold")]
            blocks += [Paragraph(f"{entry.who}: {entry.text}", foreign=True) for entry in self._output]
        if flight.error is not None:
            blocks += [Paragraph(""), Paragraph("Failed", "bold")]
            blocks += [Paragraph(flight.error.message, "red", foreign=True)]
            blocks += _list_remedies(flight.error.remedies)
        if flight.output is not None:
            blocks += [Paragraph(""), Paragraph("Answer", "bold"), Paragraph(flight.output, foreign=True)]
        return blocks

    def _build_timeline(self, flight: FlightRecord) -> list[Paragraph]:
        moves = _list_moves(self._why.steps if self._why else ())
        if not moves:
            return []
        last = flight.finished_at or Time(int(read_clock() * 1_000_000))
        ends = [*(step.at for step in moves[1:]), last]
        spans = [max(end.since(step.at), 0.0) for step, end in zip(moves, ends, strict=True)]
        longest = max(*spans, 0.001)
        rows = [self._draw_step(step, span, longest) for step, span in zip(moves, spans, strict=True)]
        return [Paragraph("Timeline", "bold"), *rows]

    def _draw_step(self, step: Step, span: float, longest: float) -> Paragraph:
        bar = "━" * max(round(span / longest * _BAR), 1 if span >= 0.05 else 0)
        name = _name_step(step)
        why = show_text(self.host.names.say_you(step.reason))
        took = f"{span:.1f}s" if span < 10 else format_duration(span)
        more = why if why != name else ""
        text = f"{format_clock(step.at)} {fit(name, 9)} {fit(bar, _BAR)} {took:>6}  {more}"
        return Paragraph(text, _STYLES.get(name, ""), cut=True)


def _list_moves(steps: Sequence[Step]) -> list[Step]:
    """Return the steps of the flight itself; those that only repeat the one before are left out."""
    found: list[Step] = []
    for step in steps:
        of_flight = step.type.startswith("collab.flight.")
        if of_flight and not (found and found[-1].reason == step.reason and step.type.endswith(".updated")):
            found.append(step)
    return found


def _name_step(step: Step) -> str:
    move = step.type.rpartition(".")[2]
    first = step.reason.partition(" ")[0]
    return _NAMES.get(move) or (
        first if first == "waking" else "retrying" if first == "attempt" else "progress"
    )


_NAMES = {
    "queued": "queued",
    "started": "running",
    "waiting": "waiting",
    "resumed": "running",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
_STYLES = {
    "running": "green",
    "waiting": "yellow",
    "completed": "green",
    "failed": "red",
    "retrying": "red",
    "waking": "cyan",
    "queued": "dim",
}


def _list_remedies(remedies: tuple[Remedy, ...]) -> list[Paragraph]:
    return [Paragraph(f"try: {show_text(build_command_line(one))}", "accent") for one in remedies]
