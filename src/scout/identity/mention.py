"""Mentions in a body: `@` at the start of a word. Only a leading mention routes; the others are hints."""

import re

from scout.base.record import Record
from scout.base.refusal import Refused
from scout.identity.address import Address, require_text
from scout.identity.code_span import CodeSpans
from scout.identity.grammar import parse_handle, try_parse_handle
from scout.identity.problem import MalformedAddress

_MENTION = re.compile(
    r"""(?<!\S)(?P<opening>[(\[{<"'\u201c\u2018\u201e\u201a\u00ab\u2039\u3008\u300a\u300c\u300e\u3010\uff08]*)"""
    r"""(?P<handle>@(?!@)(?::"[^"\s]*"|[\w\u0300-\u036f.:#?/~+@-])+)"""
)
_TRAILING = ".,;:!?#/~+-_"


class Mention(Record):
    """One mention: its text, its position in the body, and its address or the parse problem."""

    text: str
    position: int
    address: Address | None = None
    problem: MalformedAddress | None = None


class Mentions(Record):
    """The leading mention of a body, which routes it, and the soft mentions, which are hints."""

    leading: Mention | None = None
    soft: tuple[Mention, ...] = ()


def find_mentions(body: object) -> Mentions:
    """Return the mentions of a body. Malformed soft mentions are ignored; a malformed leading one is kept."""
    text = require_text(body)
    code = CodeSpans(text)
    first = len(text) - len(text.lstrip())
    leading: Mention | None = None
    soft: list[Mention] = []
    for found in _MENTION.finditer(text):
        handle = found["handle"].rstrip(_TRAILING)
        if handle == "@" or found.start() in code:
            continue
        if found.start("handle") == first:
            leading = _read_leading(handle, first)
        elif address := try_parse_handle(handle):
            soft.append(Mention(text=handle, position=found.start("handle"), address=address))
    return Mentions(leading=leading, soft=tuple(soft))


def _read_leading(text: str, position: int) -> Mention:
    try:
        return Mention(text=text, position=position, address=parse_handle(text))
    except Refused as refusal:
        assert isinstance(refusal.diagnostic, MalformedAddress)
        return Mention(text=text, position=position, problem=refusal.diagnostic)
