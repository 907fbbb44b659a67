"""A text as the messages of a chat: formatted for the platform, each within its limit, nothing lost.

A text is split between paragraphs where possible, then at lines, sentences and words. A code block that is
too long is closed and opened again.
"""

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from scout.base.record import Record
from scout.model.people.chat import Markup
from scout.policy.people.dialects import render_blocks
from scout.policy.people.markdown import Block, BlockKind, Span, join_spans, parse_markdown

_LEAST = 64  # characters: a smaller limit leaves no room for markup
_JOINS = "\u200d\ufe0f"  # part of the sign before
# Where a text is cut, the best first; the cut is behind the match.
_CUTS = (re.compile(r"\n"), re.compile(r"[.!?…:;]\s"), re.compile(r"\s"))


class FormattedPart(Record):
    """One message: in the markup of the platform, and without any."""

    text: str
    plain: str


def format_text(text: str, markup: Markup, limit: int) -> tuple[FormattedPart, ...]:
    """Return a Markdown text as messages of at most `limit` characters, as platforms count them."""
    packed = _pack(parse_markdown(text), markup, max(limit, _LEAST))
    parts = [_build_part(some, markup) for some in packed]
    return tuple(part for part in parts if part.plain.strip())


def add_tail(
    parts: tuple[FormattedPart, ...], tail: str, markup: Markup, limit: int
) -> tuple[FormattedPart, ...]:
    """Return messages with a short text below the last one, or as another message if it does not fit."""
    added = format_text(tail, markup, limit)
    if not parts or not added:
        return (*parts, *added)
    gap = render_blocks(_TWO, markup)[1:-1]
    joined = FormattedPart(
        text=f"{parts[-1].text}{gap}{added[0].text}", plain=f"{parts[-1].plain}\n\n{added[0].plain}"
    )
    fits = len(added) == 1 and max(measure(joined.text), measure(joined.plain)) <= limit
    return (*parts[:-1], joined) if fits else (*parts, *added)


def measure(text: str) -> int:
    """Return the length of a text in UTF-16 units, the longest count that a platform uses."""
    return len(text) + sum(char > "\uffff" for char in text)


def _build_part(blocks: list[Block], markup: Markup) -> FormattedPart:
    return FormattedPart(text=render_blocks(blocks, markup), plain=render_blocks(blocks, Markup.PLAIN))


def _measure_blocks(blocks: Iterable[Block], markup: Markup) -> int:
    some = list(blocks)
    return max(measure(render_blocks(some, one)) for one in {markup, Markup.PLAIN})


def _pack(blocks: Iterable[Block], markup: Markup, limit: int) -> Iterator[list[Block]]:
    """Put as many blocks into each message as fit."""
    gap = measure(render_blocks(_TWO, markup)) - 2
    part, size = list[Block](), 0
    for block in (piece for one in blocks for piece in _split_block(one, markup, limit)):
        own = _measure_blocks((block,), markup)
        if part and size + gap + own > limit:
            yield part
            part, size = [], 0
        size += own + (gap if part else 0)
        part.append(block)
    if part:
        yield part


_TWO = (Block(kind=BlockKind.PARAGRAPH, spans=(Span(text="x"),)),) * 2


def _split_block(block: Block, markup: Markup, limit: int) -> Iterator[Block]:
    """Return a block as pieces that fit into one message each."""
    rest = deque(block.spans)
    while rest:
        piece = replace(block, spans=_take_spans(rest, limit + 1))
        if rest or _measure_blocks((piece,), markup) > limit:
            cut = _choose_cut(_join_text(piece), _find_longest(piece, markup, limit))
            piece, more = _cut_block(piece, cut)
            rest.extendleft(reversed(more.spans))
        yield piece


def _take_spans(spans: deque[Span], room: int) -> tuple[Span, ...]:
    """Take the first spans with this many characters."""
    found: list[Span] = []
    while spans and room > 0:
        span = spans.popleft()
        if len(span.text) > room:
            spans.appendleft(replace(span, text=span.text[room:]))
        found.append(replace(span, text=span.text[:room]))
        room -= len(span.text)
    return join_spans(found)


def _join_text(block: Block) -> str:
    return "".join(span.text for span in block.spans)


def _find_longest(block: Block, markup: Markup, limit: int) -> int:
    """Return how many characters of a block that is too long fit, at least one."""
    high = _find_too_long(block, markup, limit)
    low = max(high - limit // 8, 1)
    low = low if _fits(block, low, markup, limit) else 1
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(block, middle, markup, limit):
            low = middle
        else:
            high = middle - 1
    return low


def _fits(block: Block, length: int, markup: Markup, limit: int) -> bool:
    return _measure_blocks((_cut_block(block, length)[0],), markup) <= limit


def _find_too_long(block: Block, markup: Markup, limit: int) -> int:
    """Return a length that does not fit, from the sizes of the single spans."""
    size = length = 0
    for span in block.spans:
        size += _measure_blocks((replace(block, kind=BlockKind.PARAGRAPH, spans=(span,)),), markup)
        length += len(span.text)
        if size > limit:
            break
    return max(min(length, len(_join_text(block)) - 1), 1)


def _choose_cut(text: str, longest: int) -> int:
    """Return where to cut: the last good place in the second half, else where no sign is torn apart."""
    for pattern in _CUTS:
        found = [one.end() for one in pattern.finditer(text, longest // 2, longest)]
        if found:
            return found[-1]
    cut = longest
    while cut > 1 and _is_inside_sign(text, cut):
        cut -= 1
    return cut


def _is_inside_sign(text: str, place: int) -> bool:
    follows = text[place]
    return bool(unicodedata.combining(follows)) or follows in _JOINS or text[place - 1] == "\u200d"


def _cut_block(block: Block, cut: int) -> tuple[Block, Block]:
    rest = deque(block.spans)
    first = _take_spans(rest, cut)
    if block.kind is BlockKind.CODE:  # the closed fence stands for the newline
        first = tuple(replace(span, text=span.text.removesuffix("\n")) for span in first)
    return replace(block, spans=first), replace(block, spans=tuple(rest))
