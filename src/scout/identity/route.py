"""The route operator of composers: `/scout:ask >> hudson Review this.`"""

import re

from scout.base.record import Record
from scout.base.refusal import Refused
from scout.identity.code_span import CodeSpans
from scout.identity.lexer import lex
from scout.identity.name import Name
from scout.identity.problem import instead, malformed, require_text, within

__all__ = ["Route", "find_route"]

_OPERATOR = re.compile(r"(?<!\S)>>(?!>)[^\S\n]*(?P<target>\S*)")


class Route(Record):
    """Where a composed text goes. `command` is what stands before the operator."""

    command: str
    target: Name
    body: str


def find_route(text: object) -> Route | None:
    """The target after the first `>>` that is a word of its own; None when there is none."""
    words = require_text(text)
    code = CodeSpans(words)
    found = next((one for one in _OPERATOR.finditer(words) if one.start() not in code), None)
    if found is None:
        return None
    target = found["target"].rstrip(",;:!")
    if not target:
        example = instead(">> operator", "the word after '>>' is the target")
        raise malformed(words, found.start("target"), "no target", "an address after '>>'", example)
    command, body = words[: found.start()].strip(), words[found.end() :].lstrip()
    return Route(command=command, target=_target(words, target, found.start("target")), body=body)


def _target(text: str, target: str, start: int) -> Name:
    try:
        return lex(f">>{target}")
    except Refused as refusal:
        raise within(text, start - len(">>"), refusal) from None
