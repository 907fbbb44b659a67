"""The Markdown that agents write, as blocks of styled text. It loses no character but the marks themselves.

Only what chats can show is read: paragraphs, headings, lists, quotes, tables, code, and bold, italic, struck
and linked text. Everything else stays as it was typed. Each step is linear in the length of the text.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from enum import StrEnum
from itertools import groupby

from msgspec.structs import replace

from scout.base.record import Record


class Style(StrEnum):
    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    CODE = "code"


class Span(Record, omit_defaults=True):
    """A piece of text in one style; `link`: where it leads."""

    text: str
    styles: frozenset[Style] = frozenset()
    link: str | None = None


class BlockKind(StrEnum):
    PARAGRAPH = "paragraph"
    QUOTE = "quote"
    CODE = "code"
    ITEM = "item"


class Block(Record, omit_defaults=True):
    """One block. `language`: of code. Text of a code block is one span without styles."""

    kind: BlockKind
    spans: tuple[Span, ...]
    language: str = ""


_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})[ \t]*([\w.+#-]{0,40})[ \t]*([^`]*)$")
_HEADING = re.compile(r"#{1,6}[ \t]+(.*?)[ \t]*#*$")
_ITEM = re.compile(r"([ \t]*)([-*+]|\d{1,9}[.)])[ \t]+(.*)$")
_QUOTE = re.compile(r"[ \t]{0,3}>[ \t]?(.*)$")
_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*$")
_RULE = re.compile(r"[ \t]*\|?[ \t:|-]*-[ \t:|-]*\|[ \t:|-]*$")


# -- blocks ------------------------------------------------------------------------------------------


def parse_markdown(text: str) -> tuple[Block, ...]:
    """Return the blocks of a text, in order."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found: list[Block] = []
    place = 0
    while place < len(lines):
        if not lines[place].strip():
            place += 1
            continue
        block, place = _read_block(lines, place)
        found.append(block)
    return tuple(found)


def _read_block(lines: list[str], place: int) -> tuple[Block, int]:
    line = lines[place]
    if fence := _FENCE.match(line):
        return _read_code(lines, place, fence)
    if _is_table(lines, place):
        end = _find_end(lines, place, lambda one: _ROW.match(one) is not None)
        return _build_code("\n".join(lines[place:end])), end
    if heading := _HEADING.match(line):
        bold = frozenset({Style.BOLD})
        return Block(kind=BlockKind.PARAGRAPH, spans=parse_spans(heading[1], bold)), place + 1
    if item := _ITEM.match(line):
        return _build_item(item), place + 1
    if _QUOTE.match(line):
        end = _find_end(lines, place, lambda one: _QUOTE.match(one) is not None)
        quoted = "\n".join(_strip_quote(one) for one in lines[place:end])
        return Block(kind=BlockKind.QUOTE, spans=parse_spans(quoted)), end
    end = _find_end(lines, place, _is_plain)
    return Block(kind=BlockKind.PARAGRAPH, spans=parse_spans("\n".join(lines[place:end]))), end


def _read_code(lines: list[str], place: int, fence: re.Match[str]) -> tuple[Block, int]:
    """Read a code block up to its closing fence, or to the end of the text."""
    end = place + 1
    while end < len(lines) and not _closes(lines[end], fence[1]):
        end += 1
    beside = [fence[3]] if fence[3] else []  # more than a language: it is shown
    return _build_code("\n".join([*beside, *lines[place + 1 : end]]), fence[2]), end + 1


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and bare == fence[0] * len(bare)


def _build_code(text: str, language: str = "") -> Block:
    return Block(kind=BlockKind.CODE, spans=(Span(text=text),), language=language)


def _build_item(item: re.Match[str]) -> Block:
    """Build one item of a list, with its indentation and its mark as people read them."""
    mark = "•" if item[2] in "-*+" else item[2]
    head = Span(text=f"{item[1].expandtabs(4)}{mark} ")
    return Block(kind=BlockKind.ITEM, spans=join_spans((head, *parse_spans(item[3]))))


def _is_table(lines: list[str], place: int) -> bool:
    return bool(
        _ROW.match(lines[place])
        and place + 1 < len(lines)
        and _ROW.match(lines[place + 1])
        and _RULE.match(lines[place + 1])
    )


def _find_end(lines: list[str], place: int, belongs: Callable[[str], bool]) -> int:
    end = place + 1
    while end < len(lines) and lines[end].strip() and belongs(lines[end]):
        end += 1
    return end


def _is_plain(line: str) -> bool:
    return not any(pattern.match(line) for pattern in (_FENCE, _HEADING, _ITEM, _QUOTE))


def _strip_quote(line: str) -> str:
    found = _QUOTE.match(line)
    return found[1] if found else line


# -- inline ------------------------------------------------------------------------------------------

_STRONG, _EMPHASIS = frozenset({Style.BOLD}), frozenset({Style.ITALIC})
_MARKS = {
    "***": _STRONG | _EMPHASIS,
    "**": _STRONG,
    "__": _STRONG,
    "*": _EMPHASIS,
    "_": _EMPHASIS,
    "~~": frozenset({Style.STRIKE}),
}
_TOKEN = re.compile(
    r"\\([\\`*_\[\]()#+.!~>|-])"  # an escaped character
    r"|(`+)"
    r"|\[([^\[\]\n]{1,400})\]\((https?://[^\s()<>\"]{1,500})\)"
    r"|(\*{1,3}|__?|~~)"
)


def parse_spans(text: str, styles: frozenset[Style] = frozenset()) -> tuple[Span, ...]:
    """Return the pieces of a text with their styles, each with these styles too."""
    return join_spans(_add_styles(one, styles) for one in _Inline(text).read() if one.text)


class _Inline:
    """Reads one text. Marks that match no other stay as they were typed.

    Each kind of mark is open at most once, and closing one forgets those that were opened inside of it. So
    each piece is touched once for each kind, and reading stays linear.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._runs = _find_runs(text)
        self._spans: list[Span] = []
        self._open: dict[str, int] = {}

    def read(self) -> list[Span]:
        place = 0
        while found := _TOKEN.search(self._text, place):
            self._spans.append(Span(text=self._text[place : found.start()]))
            place = self._read_token(found)
        return [*self._spans, Span(text=self._text[place:])]

    def _read_token(self, found: re.Match[str]) -> int:
        if found[2] is not None:
            return self._read_code(found)
        if found[5] is not None:
            self._read_mark(found)
        elif found[3] is not None:
            self._spans.append(Span(text=found[3], link=found[4]))
        else:
            self._spans.append(Span(text=found[1]))
        return found.end()

    def _read_code(self, found: re.Match[str]) -> int:
        """Read code up to the next run of as many backticks; without one they are text."""
        same = self._runs.get(len(found[2]), [])
        later = bisect_right(same, found.start())
        if later == len(same):
            self._spans.append(Span(text=found[2]))
            return found.end()
        code = self._text[found.end() : same[later]]
        self._spans.append(Span(text=code, styles=frozenset({Style.CODE})))
        return same[later] + len(found[2])

    def _read_mark(self, found: re.Match[str]) -> None:
        mark, start, end = found[5], found.start(), found.end()
        before, after = self._text[max(start - 1, 0) : start], self._text[end : end + 1]
        in_word = mark[0] == "_"  # snake_case is not italic
        if mark in self._open and before.strip() and not (in_word and after.isalnum()):
            self._close(mark)
            return
        if after.strip() and not (in_word and before.isalnum()):
            self._open[mark] = len(self._spans)
        self._spans.append(Span(text=mark))

    def _close(self, mark: str) -> None:
        start = self._open.pop(mark)
        self._spans[start:] = [_add_styles(one, _MARKS[mark]) for one in self._spans[start + 1 :]]
        self._open = {other: at for other, at in self._open.items() if at < start}


def _find_runs(text: str) -> dict[int, list[int]]:
    """Return where runs of backticks begin, by their length."""
    found: dict[int, list[int]] = {}
    for run in re.finditer("`+", text):
        found.setdefault(len(run[0]), []).append(run.start())
    return found


def _add_styles(span: Span, styles: frozenset[Style]) -> Span:
    """Return the span with these styles; code has no other."""
    return span if Style.CODE in span.styles else replace(span, styles=span.styles | styles)


def join_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans, with neighbours of one style as one."""
    found: list[Span] = []
    for (styles, link), same in groupby(spans, lambda one: (one.styles, one.link)):
        found.append(Span(text="".join(one.text for one in same), styles=styles, link=link))
    return tuple(found)
