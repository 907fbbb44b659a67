"""A pane with text that scrolls: wrapped to its width, and drawn line by line, so long texts are cheap."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from scout.tui.text import Line, Paragraph, draw_line, lay_out

_LONGEST = 60_000  # characters of one paragraph that a pane lays out, unless every character counts


class TextPane(ScrollView, can_focus=True):
    """Paragraphs. What is read stays where it is when the text grows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "scroll_down", show=False),
        Binding("k,up", "scroll_up", show=False),
    ]

    def __init__(self, *, id: str | None = None, follow: bool = False) -> None:  # noqa: A002 (a widget's id)
        super().__init__(id=id)
        self._blocks: Sequence[Paragraph] = ()
        self._lines: list[Line] = []
        self._width = 0
        self._seen = 0
        self._follow = follow

    def set_blocks(self, blocks: Sequence[Paragraph], *, home: bool = False) -> None:
        """Show these paragraphs. `home`: from their beginning."""
        if list(blocks) == list(self._blocks) and not home:
            return
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self._blocks = [_shorten(block) for block in blocks]
        self._lay_out()
        if home:
            self._seen = 0
            self.scroll_home(animate=False)
        elif self._follow and at_end:
            self.scroll_end(animate=False)

    @property
    def is_read(self) -> bool:
        """Whether every line has been on the screen."""
        self._note_seen()
        return self._seen >= len(self._lines)

    @property
    def line_count(self) -> int:
        return len(self._lines)

    def _note_seen(self) -> None:
        self._seen = max(self._seen, self.scroll_offset.y + self.scrollable_content_region.height)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._note_seen()

    def on_resize(self) -> None:
        if self.scrollable_content_region.width != self._width:
            self._lay_out()

    def _lay_out(self) -> None:
        # One column is left for the scroll bar, so that a growing text is not wrapped twice.
        self._width = self.scrollable_content_region.width
        self._lines = lay_out(self._blocks, max(self.size.width - 1, 10))
        self.virtual_size = Size(self._width, len(self._lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        number, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        line: Line = self._lines[number] if number < len(self._lines) else ()
        return draw_line(line, width, self.rich_style)


class MessagePane(TextPane):
    """Messages: `j` and `k` go from one to the next, PgUp and PgDn scroll."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
    ]

    class Moved(Message):
        """The next message is wanted, or the one before."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    def action_move(self, step: int) -> None:
        self.post_message(self.Moved(step))

    def show_block(self, number: int) -> None:
        """Scroll, so that the block with this number is on the screen."""
        line = len(lay_out(self._blocks[:number], max(self.size.width - 1, 10)))
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if not top <= line < top + height - 1:
            self.scroll_to(y=line, animate=False)


def _shorten(block: Paragraph) -> Paragraph:
    """Return a paragraph that is laid out quickly; what is to be decided is never shortened."""
    if block.exact or len(block.text) <= _LONGEST:
        return block
    left = len(block.text) - _LONGEST
    return block._replace(text=f"{block.text[:_LONGEST]}\n… {left} more characters: scout flight get")
