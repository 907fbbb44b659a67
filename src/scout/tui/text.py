"""Text in cells of a terminal: styles of its palette, wrapping, and text of others made visible.

Nothing here or above reads markup. A text of an agent reaches the screen only as `show_text` or `show_lines`
returns it, so that it cannot control the terminal, and a `[` in it is a `[`.
"""

import re
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from scout.base.time import Time
from scout.base.visible import make_visible

Span = tuple[str, str]  # text, and the name of its style
Line = tuple[Span, ...]

# Only the terminal's own colours: they fit light and dark, and NO_COLOR leaves bold, dim and reverse.
STYLES = {
    "": Style(),
    "bold": Style(bold=True),
    "dim": Style(dim=True),
    "reverse": Style(reverse=True),
    "red": Style(color="red"),
    "alarm": Style(color="red", bold=True),
    "green": Style(color="green"),
    "yellow": Style(color="yellow"),
    "cyan": Style(color="cyan"),
    "blue": Style(color="blue"),
    "accent": Style(color="cyan", bold=True),
    "key": Style(bold=True),
}
_CHOSEN = Style(bold=True, dim=False)
_WORDS = re.compile(r"\s*\S+|\s+$")
_IDS = re.compile(r"\b[a-z]{3}_[0-9a-z]{26}\b")
_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def show_text(text: object, *, joined: bool = True) -> str:
    """Return a text of others on one line, with everything visible that could control the terminal.

    `joined`: white space is one blank.
    """
    told = str(text or "")
    return make_visible(" ".join(told.split()) if joined else told)


def show_lines(text: str, *, exact: bool = False) -> list[str]:
    """Return a text of others in its lines. `exact`: tabs are shown as codes too, as in what is approved."""
    lines = text.replace("\r\n", "\n").split("\n") if not exact else text.split("\n")
    return [make_visible(line if exact else line.expandtabs(4)) for line in lines]


def measure(text: str) -> int:
    """Return how many cells a text takes."""
    return cell_len(text)


def fit(text: str, width: int) -> str:
    """Return a text in exactly this many cells: cut with an ellipsis, or filled with blanks."""
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    return set_cell_size(text, max(width - 1, 0)) + "…"[:width]


def wrap(line: str, width: int, *, exact: bool = False) -> list[str]:
    """Return a line in pieces of at most this many cells; not exact ones break between words."""
    if cell_len(line) <= width:
        return [line]
    return chop_cells(line, max(width, 2)) if exact else list(_wrap_words(line, max(width, 2)))


def _wrap_words(line: str, width: int) -> Iterator[str]:
    piece = ""
    for word in _WORDS.findall(line):
        if cell_len(piece + word) <= width:
            piece += word
            continue
        if piece.strip():
            yield piece
            word = word.lstrip()  # noqa: PLW2901 (the blanks between two lines)
        *whole, piece = chop_cells(word, width) or [""]
        yield from whole
    yield piece


class Paragraph(NamedTuple):
    """A paragraph of a pane. `foreign`: others wrote it, so it is made visible and stands behind a bar.

    `exact`: every character counts, so nothing is reflowed. `cut`: one line, cut to the width.
    """

    text: str
    style: str = ""
    foreign: bool = False
    exact: bool = False
    cut: bool = False


def lay_out(blocks: Iterable[Paragraph], width: int) -> list[Line]:
    """Return the lines of some paragraphs."""
    return [line for block in blocks for line in _lay_out_block(block, width)]


def _lay_out_block(block: Paragraph, width: int) -> Iterator[Line]:
    bar: Line = (("│ ", "dim"),) if block.foreign else ()
    room = width - 2 if block.foreign else width
    if block.cut:
        yield (*bar, (fit(show_text(block.text, joined=False), room), block.style))
        return
    for line in show_lines(block.text, exact=block.exact):
        for piece in wrap(line, room, exact=block.exact):
            yield (*bar, (piece, block.style))


def draw_line(line: Iterable[Span], width: int, base: Style, *, chosen: bool = False) -> Strip:
    """Return a line in exactly this many cells; a chosen one is bold."""
    mark = _CHOSEN if chosen else STYLES[""]
    segments = [Segment(text, base + STYLES[style] + mark) for text, style in line]
    return Strip(segments).adjust_cell_length(width, base)


# -- times -------------------------------------------------------------------------------------------


def read_clock() -> float:
    """Return the seconds since 1970."""
    return time.time()


def format_duration(seconds: float) -> str:
    """Return a duration as 5s, 3m20s, 2h05m or 4d."""
    whole = max(int(seconds), 0)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d"


def format_age(moment: Time | None) -> str:
    """Return how long ago that was, in one unit."""
    if moment is None:
        return "-"
    passed = read_clock() - moment / 1_000_000
    size, unit = next((one for one in _UNITS if passed >= one[0]), _UNITS[-1])
    return f"{int(passed // size)}{unit}" if passed >= 1 else "now"


def format_clock(moment: Time) -> str:
    """Return the local time of day; the day too, if that is not today."""
    then, today = time.localtime(moment / 1_000_000), time.localtime(read_clock())
    form = "%H:%M:%S" if then[:3] == today[:3] else "%b %d %H:%M"
    return time.strftime(form, then)


def shorten_ids(text: str) -> str:
    """Return a sentence of Scout with short ids, so that more of it fits on a line."""
    return _IDS.sub(lambda found: shorten_id(found[0]), text)


def shorten_id(ident: str) -> str:
    """Return the short form of an id."""
    return ident[: ident.find("_") + 11]
