"""Flights: every ask, the newest first, each with its live line: state, elapsed time, last activity."""

from typing import ClassVar

from textual.app import ComposeResult

from scout.model.flight import FLIGHT
from scout.protocol.asks import FlightView as FlightRecord
from scout.protocol.asks import ListFlights
from scout.tui.describe import FLIGHT_MARKS, describe_live_line, describe_state, name_target
from scout.tui.flight_actions import FlightActions
from scout.tui.rows import Row, RowColumn, RowList, build_note
from scout.tui.text import show_text
from scout.tui.view import ScreenView, ViewHost

_PAGE = 100


class FlightsView(FlightActions, ScreenView):
    """The list. The filter knows `open` and `mine`; other words are looked for in the rows."""

    key: ClassVar[str] = "flights"
    nouns: ClassVar[frozenset[str]] = frozenset({"flight", "ask"})

    def __init__(self, host: ViewHost) -> None:
        super().__init__(host)
        self._flights: dict[str, FlightRecord] = {}
        self._filter = ""
        self._more = False

    @property
    def subject(self) -> str:
        return f"filter: {show_text(self._filter)}" if self._filter else ""

    @property
    def flight(self) -> FlightRecord | None:
        return self._flights.get(self.query_one(RowList).key)

    def compose(self) -> ComposeResult:
        yield RowList((RowColumn(1), RowColumn(20), RowColumn(0), RowColumn(16, right=True)))

    async def load(self) -> None:
        words = self._filter.split()
        page = await self.host.call(ListFlights(open="open" in words, mine="mine" in words, limit=_PAGE))
        self._flights = {flight.id: flight for flight in page.items}
        self._more = page.next is not None
        self.draw()

    def tick(self) -> None:
        words = [word.lower() for word in self._filter.split() if word not in ("open", "mine")]
        rows = [row for row in map(self._build_row, self._flights.values()) if _has(row, words)]
        if not rows:
            rows = [build_note("  No flights. Press c to ask an agent.")]
        if self._more:
            rows.append(build_note(f"  … only the newest {_PAGE}"))
        self.query_one(RowList).set_rows(rows)

    def _build_row(self, flight: FlightRecord) -> Row:
        does = describe_live_line(flight, self.host.names)
        asked = show_text(flight.body)
        is_open = flight.state not in FLIGHT.terminal
        text = f"{asked[:40]} · {does}" if is_open else f"{asked[:40]} → {does}"
        return Row(
            flight.id,
            (
                FLIGHT_MARKS[flight.state],
                (name_target(flight), ""),
                (text, "" if is_open else "dim"),
                describe_state(flight),
            ),
        )

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        self.host.show_record(event.key)

    def set_filter(self, text: str) -> None:
        """Show only flights with these words."""
        self._filter = text
        self.is_stale = True


def _has(row: Row, words: list[str]) -> bool:
    text = " ".join(cell for cell, _ in row.cells).lower()
    return all(word in text for word in words)
