"""The first line (views and the connection) and the last one (keys, or the last sentence)."""

from collections.abc import Sequence

from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from scout.tui.live import StreamState
from scout.tui.text import Line, Span, draw_line, measure

TABS = (
    ("now", "Now"),
    ("inbox", "Inbox"),
    ("agents", "Agents"),
    ("flights", "Flights"),
    ("conversations", "Conversations"),
    ("work", "Work"),
    ("log", "Log"),
    ("mesh", "Mesh"),
)
# Where the line is too narrow.
_SHORT = {"Conversations": "Talk"}
_SHORTEST = {"Conversations": "Talk", "Flights": "Flt", "Agents": "Agt"}
_LINKS: dict[StreamState, Span] = {
    StreamState.OPENING: ("connecting…", "yellow"),
    StreamState.OPEN: ("● live", "green"),
    StreamState.LOST: ("reconnecting…", "alarm"),
    StreamState.REFUSED: ("signed out", "alarm"),
}


class TopBar(Widget):
    """The views with their keys; how many items need the person; pause and connection at the right."""

    class Picked(Message):
        """A view was clicked."""

        def __init__(self, view: str) -> None:
            super().__init__()
            self.view = view

    def __init__(self) -> None:
        super().__init__()
        self.view = "now"
        self.needs = 0
        self.is_paused = False
        self.is_meshed = False
        self.link = StreamState.OPENING
        self._places: list[tuple[int, str]] = []

    def render_line(self, y: int) -> Strip:
        right: list[Span] = [("paused ", "yellow")] if self.is_paused else []
        right.append(_LINKS[self.link])
        left: list[Span] = []
        for short in ({}, _SHORT, _SHORTEST):
            left = self._list_tabs(short)
            if _measure_all(left) + _measure_all(right) + 2 <= self.size.width:
                break
        gap = self.size.width - _measure_all(left) - _measure_all(right) - 1
        line: Line = (*left, (" " * max(gap, 1), ""), *right)
        return draw_line(line, self.size.width, self.rich_style)

    def _list_tabs(self, short: dict[str, str]) -> list[Span]:
        tabs: list[Span] = []
        self._places = []
        for view, name in self._list_views():
            number = "0" if view == "mesh" else str(len(tabs) + 1)
            count = f" {self.needs}" if view == "inbox" and self.needs else ""
            shown = f" {number} {short.get(name, name)}{count} "
            alarm = "alarm" if count else ""
            tabs.append((shown, "reverse" if view == self.view else alarm))
            self._places.append((_measure_all(tabs), view))
        return tabs

    def _list_views(self) -> list[tuple[str, str]]:
        """Return the views of the line: the mesh only where this machine is in one, or while it is shown."""
        return [one for one in TABS if one[0] != "mesh" or self.is_meshed or self.view == "mesh"]

    def on_click(self, event: Click) -> None:
        for end, view in self._places:
            if event.x < end:
                self.post_message(self.Picked(view))
                return


class BottomBar(Widget):
    """The keys of the view, or the last sentence until the next key."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: Sequence[tuple[str, str]] = ()
        self._text = ""
        self._style = ""

    def set_keys(self, keys: Sequence[tuple[str, str]]) -> None:
        self._keys = keys
        self.refresh()

    def say(self, text: str, style: str = "") -> None:
        """Show a sentence instead of the keys."""
        self._text, self._style = text, style
        self.refresh()

    @property
    def text(self) -> str:
        return self._text

    def render_line(self, y: int) -> Strip:
        line: list[Span] = []
        if self._text:
            line = [(f" {self._text}", self._style)]
        else:
            for key, says in self._keys:
                piece = ((f" {key}", "key"), (f" {says} ", "dim"))
                if sum(measure(text) for text, _ in (*line, *piece)) <= self.size.width:
                    line += piece
        return draw_line(line, self.size.width, self.rich_style)


def _measure_all(spans: Sequence[Span]) -> int:
    return sum(measure(text) for text, _ in spans)
