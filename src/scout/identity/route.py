"""The route operator of composers: `/scout:ask >> hudson Review this.`"""

import re

from scout.base.record import Record
from scout.base.refusal import Refused
from scout.identity.address import require_text
from scout.identity.code_span import CodeSpans
from scout.identity.lexer import lex
from scout.identity.name import HandleName, Name
from scout.identity.problem import build_malformed, shift_position, suggest

_OPERATOR = re.compile(r"(?<!\S)>>(?!>)[^\S\n]*(?P<target>\S*)")
_ID = re.compile(r"[a-z]{3}_")


class Route(Record):
    """The route of a composed text. `command` precedes the operator; `address` names `target` without it."""

    command: str
    target: Name
    address: str
    body: str


def find_route(text: object) -> Route | None:
    """Return the route of the first `>>` that is a separate word, or None."""
    words = require_text(text)
    code = CodeSpans(words)
    found = next((one for one in _OPERATOR.finditer(words) if one.start() not in code), None)
    if found is None:
        return None
    target = found["target"].rstrip(",;:!")
    if not target:
        example = suggest(">> operator", "the word after '>>' is the target")
        raise build_malformed(words, found.start("target"), "no target", "an address after '>>'", example)
    command, body = words[: found.start()].strip(), words[found.end() :].lstrip()
    name = _read_target(words, target, found.start("target"))
    return Route(command=command, target=name, address=_add_at_sign(target), body=body)


def _read_target(text: str, target: str, start: int) -> Name:
    try:
        return lex(f">>{target}")
    except Refused as refusal:
        raise shift_position(text, start - len(">>"), refusal) from None


def _add_at_sign(target: str) -> str:
    """Return the target as written without the operator: a bare word is a handle, so it gets an `@`."""
    name = lex(target)
    is_bare = isinstance(name, HandleName) and name.bare and not _ID.match(target)
    return f"@{target}" if is_bare else target
