"""Code in Markdown text: fenced blocks and inline spans, each found in one pass."""

import re
from bisect import bisect_right

_LINE = re.compile(r"[^\n]*\n?")
# A fence may be inside a list item, so its indent does not matter.
_FENCE = re.compile(r"[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*(`{3,}(?=[^`\n]*$)|~{3,})", re.MULTILINE)
_BLANK = re.compile(r"\n[ \t\r]*\n")
_TICKS = re.compile(r"`+")


class CodeSpans:
    """The code spans of one text; `position in spans` tests a position."""

    def __init__(self, text: str) -> None:
        self._spans: list[tuple[int, int]] = []
        prose = 0
        for start, end in _find_fences(text):
            self._add_inline(text, prose, start)
            self._spans.append((start, end))
            prose = end
        self._add_inline(text, prose, len(text))
        self._starts = [start for start, _ in self._spans]

    def __contains__(self, position: int) -> bool:
        index = bisect_right(self._starts, position) - 1
        return index >= 0 and position < self._spans[index][1]

    def _add_inline(self, text: str, start: int, end: int) -> None:
        for blank in _BLANK.finditer(text, start, end):
            self._spans += _find_inline(text, start, blank.start())
            start = blank.end()
        self._spans += _find_inline(text, start, end)


def _find_fences(text: str) -> list[tuple[int, int]]:
    """Return the fenced blocks; an unclosed block extends to the end of the text."""
    found: list[tuple[int, int]] = []
    opened: tuple[int, str] | None = None
    for line in _LINE.finditer(text):
        fence = _FENCE.match(line[0])
        if opened is None:
            opened = (line.start(), fence[1]) if fence else None
        elif fence and fence[1].startswith(opened[1]) and not line[0][fence.end() :].strip():
            found.append((opened[0], line.end()))
            opened = None
    return [*found, (opened[0], len(text))] if opened else found


def _find_inline(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return inline spans: the next run of backticks of the same length closes a span."""
    runs = [match.span() for match in _TICKS.finditer(text, start, end)]
    by_length: dict[int, list[int]] = {}
    for index, (run_start, run_end) in enumerate(runs):
        by_length.setdefault(run_end - run_start, []).append(index)
    found: list[tuple[int, int]] = []
    index = 0
    while index < len(runs):
        run_start, run_end = runs[index]
        same = by_length[run_end - run_start]
        closer = bisect_right(same, index)
        if closer < len(same):
            index = same[closer]
            found.append((run_start, runs[index][1]))
        index += 1
    return found
