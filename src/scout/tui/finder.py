"""Ctrl-K: find an agent, a flight or a command by some of its letters."""

from collections.abc import Sequence
from typing import ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from scout.base.refusal import Refused
from scout.protocol.agents import Who
from scout.protocol.asks import FlightView, ListFlights
from scout.protocol.keys import Key
from scout.tui.describe import AGENT_MARKS, FLIGHT_MARKS
from scout.tui.rows import Row, RowColumn, RowList, build_note
from scout.tui.text import fit, show_text
from scout.tui.view import ViewHost

_FEW = 6
_UNNAMED = ("next", "previous", "show", "back", "find")


class Finder(ModalScreen[str | None]):
    """Closed with an action (`do:…`), or the id or address of a record."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self, host: ViewHost, keys: Sequence[Key]) -> None:
        super().__init__()
        self._host, self._keys = host, keys
        self._flights: tuple[FlightView, ...] = ()

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield Static("Find", classes="title", markup=False)
            yield Input(placeholder="an agent, a flight, a command", id="query")
            yield RowList((RowColumn(6), RowColumn(34), RowColumn(0)), id="found")

    def on_mount(self) -> None:
        self.query_one(RowList).can_focus = False
        self.query_one(Input).focus()
        self._find("")

    def on_input_changed(self, event: Input.Changed) -> None:
        self._find(event.value)

    @work(exclusive=True)
    async def _find(self, text: str) -> None:
        words = text.lower().split()
        rows = [_build_verb(row) for row in self._keys if row.action not in _UNNAMED]
        rows = [row for row in rows if _has(row, words)][: None if not words else _FEW]
        try:
            self._flights = self._flights or (await self._host.call(ListFlights(limit=100))).items
            agents = (
                await self._host.call(Who(query=text.strip().removeprefix("@") or None, limit=20))
            ).items
        except Refused:
            agents = ()
        found = [
            Row(
                agent.address,
                (
                    AGENT_MARKS[agent.status],
                    (show_text(agent.address), ""),
                    (show_text(agent.description), "dim"),
                ),
            )
            for agent in agents[:_FEW]
        ]
        flights = [row for row in map(_build_flight, self._flights) if _has(row, words)][:_FEW]
        everything = [*found, *flights, *rows] if words else [*rows, *found, *flights]
        for shown in self.query(RowList):  # none, if the finder was closed meanwhile
            shown.set_rows(everything or [build_note("  Nothing has these words.")])

    def on_key(self, event: events.Key) -> None:
        steps = {"down": 1, "up": -1}
        if event.key in steps:
            event.stop()
            self.query_one(RowList).action_move(steps[event.key])

    def on_input_submitted(self) -> None:
        self.query_one(RowList).action_choose()

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        self.dismiss(event.key)

    def action_leave(self) -> None:
        self.dismiss(None)


def _build_verb(row: Key) -> Row:
    return Row(f"do:{row.action}", ((fit(row.keys[0], 7), "key"), (row.says, "")), free=True)


def _build_flight(flight: FlightView) -> Row:
    who = show_text(flight.target_address)
    return Row(flight.id, (FLIGHT_MARKS[flight.state], (who, ""), (show_text(flight.body), "dim")))


def _has(row: Row, words: list[str]) -> bool:
    text = " ".join((row.key, *(cell for cell, _ in row.cells))).lower()
    return all(word in text for word in words)
