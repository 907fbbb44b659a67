"""A list of rows, one line each, that stays put while it is updated.

Rows have keys. After an update the cursor is on the same record, and that record is on the same line of the
screen: new rows above it are announced at the top, not pushed under the cursor.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from scout.tui.text import Line, Span, draw_line, fit, measure


class Row(NamedTuple):
    """One row: its cells in the columns of the list, or one after the other (`free`).

    A row without a key, such as a heading, cannot be chosen.
    """

    key: str
    cells: tuple[Span, ...]
    free: bool = False


class RowColumn(NamedTuple):
    """One column: its width in cells, 0 for the one that takes what is left."""

    width: int
    right: bool = False


def build_title(text: str, extra: str = "") -> Row:
    """Return a heading."""
    return Row("", ((text, "bold"), (f"  {extra}" if extra else "", "dim")), free=True)


def build_note(text: str, style: str = "dim") -> Row:
    """Return a line that cannot be chosen."""
    return Row("", ((text, style),), free=True)


class RowList(ScrollView, can_focus=True):
    """The list. `follow`: new rows come at the end, and the cursor stays on the last one if it is there."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("home", "edge(0)", show=False),
        Binding("end", "edge(-1)", show=False),
        Binding("enter", "choose", show=False),
    ]

    class Highlighted(Message):
        """The cursor is on another record."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class Chosen(Message):
        """Enter was pressed on a record, or it was clicked."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(
        self,
        columns: Sequence[RowColumn] = (RowColumn(0),),
        *,
        id: str | None = None,  # noqa: A002 (a widget's id)
        follow: bool = False,
    ) -> None:
        super().__init__(id=id)
        self._columns = tuple(columns)
        self._follow = follow
        self.rows: list[Row] = []
        self._cursor = -1
        self._news = 0
        self._is_touched = False

    # -- rows ------------------------------------------------------------------------------------------

    @property
    def key(self) -> str:
        """The key of the row with the cursor; empty if there is none."""
        return self.rows[self._cursor].key if 0 <= self._cursor < len(self.rows) else ""

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Show these rows, with the cursor on the same record and that record on the same line."""
        before, known = self.key, {row.key for row in self.rows}
        line = self._cursor - self.scroll_offset.y
        was_last = self._cursor >= self._last()
        was_first = not self._is_touched
        self.rows = list(rows)
        self.virtual_size = Size(self.scrollable_content_region.width, len(self.rows))
        self._place(before, was_last=was_last, was_first=was_first)
        if before and self.key == before and not was_first and not self._follow:
            above = self.rows[: self._cursor]
            self._news += sum(1 for row in above if row.key and row.key not in known)
            self.scroll_to(y=self._cursor - line, animate=False, immediate=True)
        self.refresh()
        if self.key != before:
            self.post_message(self.Highlighted(self.key))

    def _place(self, before: str, *, was_last: bool, was_first: bool) -> None:
        places = {row.key: number for number, row in enumerate(self.rows) if row.key}
        if self._follow and was_last:
            self._cursor = self._last()
            self.call_after_refresh(self.scroll_end, animate=False)
        elif was_first and not self._follow:
            self._cursor = self._first()
        elif before in places:
            self._cursor = places[before]
        else:
            self._cursor = self._nearest(min(self._cursor, len(self.rows) - 1), -1)

    def _first(self) -> int:
        return next((number for number, row in enumerate(self.rows) if row.key), -1)

    def _last(self) -> int:
        return next((number for number in reversed(range(len(self.rows))) if self.rows[number].key), -1)

    def _nearest(self, number: int, step: int) -> int:
        """Return the next row that can be chosen from here, else the one before."""
        ways = (range(number, len(self.rows)), range(number, -1, -1))
        for way in ways if step > 0 else reversed(ways):
            for one in way:
                if 0 <= one < len(self.rows) and self.rows[one].key:
                    return one
        return -1

    # -- moving ----------------------------------------------------------------------------------------

    def action_move(self, step: int) -> None:
        self._go(self._nearest(self._cursor + step, step))

    def action_page(self, step: int) -> None:
        number = self._cursor + step * max(self.size.height - 1, 1)
        self._go(self._nearest(max(0, min(number, len(self.rows) - 1)), step))

    def action_edge(self, edge: int) -> None:
        self._go(self._first() if edge == 0 else self._last())
        if edge == 0:
            self._is_touched = False

    def action_choose(self) -> None:
        if self.key:
            self.post_message(self.Chosen(self.key))

    def choose(self, key: str) -> None:
        """Put the cursor on a record."""
        place = next((number for number, row in enumerate(self.rows) if row.key == key), -1)
        if key and place >= 0:
            self._go(place)
            self.call_after_refresh(self._reveal)  # a new list has no height yet

    def _go(self, number: int) -> None:
        if number < 0 or number >= len(self.rows):
            return
        self._is_touched = True
        before, self._cursor = self.key, number
        self._reveal()
        self.refresh()
        if self.key != before:
            self.post_message(self.Highlighted(self.key))

    def _reveal(self) -> None:
        """Scroll so that the row with the cursor is visible, with the line above it."""
        number = self._cursor
        top, height = self.scroll_offset.y, max(self.scrollable_content_region.height, 1)
        if number <= self._first():
            self._news = 0
            self.scroll_to(y=0, animate=False, immediate=True)
        elif number < top + 1:
            self.scroll_to(y=number - 1, animate=False, immediate=True)
        elif number >= top + height:
            self.scroll_to(y=number - height + 1, animate=False, immediate=True)

    def on_click(self, event: events.Click) -> None:
        number = event.y + self.scroll_offset.y
        if 0 <= number < len(self.rows) and self.rows[number].key:
            self._go(number)
            if event.chain > 1:
                self.action_choose()

    # -- drawing ---------------------------------------------------------------------------------------

    def on_resize(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self.rows))
        if self._is_touched:
            self.call_after_refresh(self._reveal)
        self.refresh()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def render_line(self, y: int) -> Strip:
        number, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if number >= len(self.rows):
            return draw_line((), width, self.rich_style)
        row = self.rows[number]
        chosen = number == self._cursor and bool(row.key)
        gutter = ("▌", "accent" if self.has_focus else "dim") if chosen else (" ", "")
        line = (gutter, *(row.cells if row.free else self._arrange(row, width - 1)))
        if y == 0 and self._news and self.scroll_offset.y > 0:
            told = f" ↑ {self._news} new "
            line = (*_cut(line, width - measure(told)), (told, "accent"))
        return draw_line(line, width, self.rich_style, chosen=chosen)

    def _arrange(self, row: Row, width: int) -> Line:
        fixed = sum(column.width + 1 for column in self._columns if column.width)
        found: list[Span] = []
        for (text, style), column in zip(row.cells, self._columns, strict=True):
            room = column.width or max(width - fixed, 4)
            cell = fit(text, room)
            found += [(cell.rstrip().rjust(room) if column.right else cell, style), (" ", "")]
        return tuple(found)


def _cut(line: Line, width: int) -> Line:
    """Return the first cells of a line, in exactly this many cells."""
    left, kept = width, list[Span]()
    for text, style in line:
        room = min(measure(text), left)
        kept.append((fit(text, room) if room < measure(text) else text, style))
        left -= room
    return (*kept, (" " * max(left, 0), ""))
