"""Text for a person: everything is printed through this module.

Text from agents, files or programs must never control the terminal, nor look like a line of Scout's own. So
every control character, escape, bidirectional override and zero-width character is made visible here, on
terminals and pipes alike. Scout's own colours and line ends carry a random mark that no other text has.
"""

from __future__ import annotations

import os
import re
import sys

from scout.base.visible import make_visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TextIO

# -- Scout's own colours and line ends ----------------------------------------------------------------

_CODES = {"bold": "1", "dim": "2", "red": "1;31", "green": "32", "yellow": "33", "cyan": "36"}
_MARK = f"\x1b{os.urandom(8).hex()}"
_OURS = f"{_MARK}([0-9;]+m|n)"


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return the text in a colour, if the terminal's user wants colours. Only this module can print it."""
    onto = stream or sys.stdout
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not onto.isatty():
        return text
    return f"{_MARK}{_CODES[style]}m{text}{_MARK}0m"


def join_lines(lines: Iterable[str]) -> str:
    """Join lines for one `out` or `note`; a newline inside one of them does not end it."""
    return f"{_MARK}n".join(lines)


def _render(text: str) -> str:
    """Escape foreign text, and replace Scout's marks by colours and newlines."""
    if _MARK not in text:
        return make_visible(text)
    pieces = re.split(_OURS, text)
    pieces[::2] = map(make_visible, pieces[::2])
    pieces[1::2] = ("\n" if code == "n" else f"\x1b[{code}" for code in pieces[1::2])
    return "".join(pieces)


# -- printing -----------------------------------------------------------------------------------------


def print_out(text: str) -> None:
    """Print one line on stdout, or several made by `join_lines`, `table`, `fields` or `indent`."""
    erase_status()
    sys.stdout.write(f"{_render(text)}\n")


def note(text: str) -> None:
    """Print on stderr: notes beside the answer, never part of it."""
    erase_status()
    sys.stdout.flush()
    sys.stderr.write(f"{_render(text)}\n")
    sys.stderr.flush()


def print_text(text: str) -> None:
    """Print a text with its own newlines and tabs: an answer, a file, a help page."""
    print_out(_keep_lines(text))


def print_note_text(text: str) -> None:
    """Print a text with its own newlines and tabs on stderr."""
    note(_keep_lines(text))


def _keep_lines(text: str) -> str:
    return join_lines(_split_lines(text))


def _split_lines(text: str) -> list[str]:
    return [line.expandtabs() for line in text.replace("\r\n", "\n").split("\n")]


def print_json(value: object) -> None:
    """Print a value as one line of JSON, escaped to ASCII, so that any terminal can show it."""
    import json

    print_out(json.dumps(value))


def print_fields(title: str, values: Mapping[str, object]) -> None:
    """Print a title and its fields, one per line."""
    print_out(format_fields(title, values))


def is_interactive() -> bool:
    """Whether a person is at the terminal: stdin and stdout are both terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def confirm(question: str) -> bool:
    """Ask yes or no. No is the default, also at end of input."""
    note(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


_status: list[str] = []  # the status line that is shown, if any


def show_status(text: str) -> None:
    """Rewrite the status line that is shown during a wait."""
    _status[:] = [_render(text)]
    sys.stderr.write(f"\r\x1b[K{_status[0]}")
    sys.stderr.flush()


def erase_status() -> None:
    """Erase the status line."""
    if _status:
        _status.clear()
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def draw_lines(lines: Sequence[str], over: int = 0) -> None:
    """Draw lines over the last `over` lines of the terminal. None is wider than the terminal."""
    wide = (get_columns(sys.stderr) or 80) - 1
    up = f"\x1b[{over}A" if over else ""
    text = "".join(f"\r\x1b[K{_render(cut(line, wide))}\n" for line in lines)
    sys.stderr.write(f"{up}{text}" + ("\x1b[J" if over > len(lines) else ""))
    sys.stderr.flush()


# -- widths -------------------------------------------------------------------------------------------


def get_columns(stream: TextIO | None = None) -> int | None:
    """Return the maximum width of a line: COLUMNS, else the terminal; None in a pipe: no limit."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or None
    except (OSError, ValueError):
        return None


def _strip_paint(text: str) -> str:
    return re.sub(_OURS, "", text) if _MARK in text else text


def measure_width(text: str) -> int:
    """Return the columns that the text takes on a terminal, without colours."""
    shown = make_visible(_strip_paint(text))
    return len(shown) if shown.isascii() else sum(map(_measure_sign, shown))


def _measure_sign(sign: str) -> int:
    from unicodedata import category, east_asian_width

    if category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(sign) in "WF" else 1


def cut(text: str, room: int | None) -> str:
    """Cut a text to this many columns; a text that is cut loses its colours."""
    if room is None or measure_width(text) <= room:
        return text
    shown, left = "", max(room, 1) - 1
    for sign in make_visible(_strip_paint(text)):
        left -= len(sign) if sign.isascii() else _measure_sign(sign)
        if left < 0:
            break
        shown += sign
    return f"{shown}…"


def shorten_ids(idents: Iterable[str]) -> dict[str, str]:
    """Return the short form of each id: the prefix and 10 characters, more if two ids share those."""
    whole = set(idents)
    return {ident: _shorten_id(ident, whole) for ident in whole}


def shorten_id(ident: str) -> str:
    """Return the short form of a single id."""
    return _shorten_id(ident, ())


def _shorten_id(ident: str, others: Iterable[str]) -> str:
    end = ident.find("_") + 1 + _SHORT
    rivals = [other for other in others if other != ident and other[:end] == ident[:end]]
    while end < len(ident) and any(other[:end] == ident[:end] for other in rivals):
        end += 1
    return ident[:end]


# -- shapes -------------------------------------------------------------------------------------------

_SHORT = 10  # characters of a short id after its prefix
_ID = "[a-z]{3}_[0-9a-z]{4,26}|-"
_NARROW = 4  # minimum width of a column


def _pad(text: str, room: int) -> str:
    return text + " " * (room - measure_width(text))


def format_fields(title: str, values: Mapping[str, object]) -> str:
    """Format a title and its fields, one per line, with all values in one column."""
    wide = max(map(len, values), default=0)
    lines = [paint(title, "bold")] if title else []
    for name, value in values.items():
        first, *rest = _split_lines("-" if value is None else str(value).rstrip("\n"))
        lines += [f"  {name:<{wide}}  {first}", *(f"  {'':<{wide}}  {line}" for line in rest)]
    return join_lines(lines)


def format_table(heads: Iterable[str], rows: Iterable[Iterable[object]], *, by: str = "") -> str:
    """Format rows as aligned columns under their names, if there are any; each row is one line, cut to fit.

    The last column is cut first, then the widest; ids are never cut.
    """
    names = [head.upper() for head in heads]
    cells = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    grid = [names, *cells] if names else cells
    widths = [max(map(measure_width, column)) for column in zip(*grid, strict=True)]
    whole = [all(re.fullmatch(_ID, cell) for cell in column) for column in zip(*cells, strict=True)]
    _narrow(widths, whole, (get_columns() or sys.maxsize) - len(by))

    def line(row: list[str]) -> str:
        filled = (_pad(cut(cell, room), room) for cell, room in zip(row, widths, strict=True))
        return f"{by}{'  '.join(filled)}".rstrip()

    lines = list(map(line, cells))
    return join_lines([paint(line(names), "dim"), *lines] if names else lines)


def _narrow(widths: list[int], whole: list[bool], room: int) -> None:
    """Shrink the last column down to a third of the room, then always the widest one."""
    over = sum(widths) + 2 * (len(widths) - 1) - room
    if over > 0 and widths and not (whole and whole[-1]):
        taken = min(over, max(widths[-1] - max(room // 3, _NARROW), 0))
        widths[-1] -= taken
        over -= taken
    while over > 0:
        wide = [number for number in range(len(widths)) if not (whole and whole[number])]
        most = max(wide, key=lambda number: widths[number], default=None)
        if most is None or widths[most] <= _NARROW:
            return
        widths[most] -= 1
        over -= 1


def wrap(text: str, first: str = "") -> str:
    """Wrap prose at the terminal's width; following lines are aligned after `first`."""
    from textwrap import wrap as break_lines

    room, margin = get_columns(), " " * measure_width(first)
    if room is None or measure_width(first + text) <= room:
        return f"{first}{text}"
    lines = break_lines(make_visible(text), max(room - len(margin), 20), break_on_hyphens=False)
    return join_lines([f"{first}{lines[0]}", *(f"{margin}{line}" for line in lines[1:])])


def indent(text: str, by: str = "  ") -> str:
    """Indent every line of a text."""
    return join_lines(f"{by}{line}".rstrip() for line in _split_lines(text.rstrip("\n")))


def get_first_line(text: str, length: int = 72) -> str:
    """Return the first line of a text, cut to `length`."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= length else f"{line[: length - 1]}…"


def join_words(text: object) -> str:
    """Return a text as one line, with single spaces."""
    return " ".join(str(text or "").split())


def format_seconds(value: float) -> str:
    """Format a duration."""
    if value < 60:
        return f"{int(value)}s"
    if value < 3600:
        return f"{int(value // 60)}m{int(value % 60):02d}s"
    if value < 86400:
        return f"{int(value // 3600)}h{int(value % 3600 // 60):02d}m"
    return f"{int(value // 86400)}d"


def _format_largest(value: float) -> str:
    size, unit = next((one for one in _UNITS if value >= one[0]), _UNITS[-1])
    return f"{int(value // size)}{unit}"


_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def format_age(moment: object, now: float | None = None) -> str:
    """Return how long ago an RFC 3339 time was."""
    import time
    from datetime import datetime

    if not isinstance(moment, str):
        return "-"
    passed = (time.time() if now is None else now) - datetime.fromisoformat(moment).timestamp()
    return f"{_format_largest(passed)} ago" if passed >= 1 else "now"


def format_local_time(moment: object, now: float | None = None) -> str:
    """Format an RFC 3339 time in local time; day and year only if they differ from today."""
    import time
    from datetime import datetime

    if not isinstance(moment, str):
        return "-"
    then = time.localtime(datetime.fromisoformat(moment).timestamp())
    today = time.localtime(now)
    day = "" if then[:3] == today[:3] else f"{_MONTHS[then.tm_mon - 1]} {then.tm_mday:02d} "
    year = "" if then.tm_year == today.tm_year else f"{then.tm_year} "
    return f"{year}{day}{then.tm_hour:02d}:{then.tm_min:02d}"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
