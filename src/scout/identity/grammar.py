"""Handles: `@definition[.workspace][.profile:x][.harness:x][.model:x][.node:x]`, `#harness`, `?model`.

    handle     = ["@"] definition *( "." piece ) [ "#" harness ] [ "?" model ]
    piece      = qualifier / workspace        at most one workspace, anywhere
    qualifier  = key ":" value                keys in `reserved.KEYS`, any case, any order
    value      = text without . # ? "  /  DQUOTE text without DQUOTE DQUOTE
    model      = text without # ? :           may hold dots

Two continuations, because dots split: pieces that begin with a digit belong to a `model:` value that
ends in one (`model:gpt-5.5`), and one piece `local` belongs to the `node:` value before it.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

from scout.base.refusal import Refused, Remedy
from scout.identity import repair
from scout.identity.address import MAX_LENGTH, Address, fold, require_text
from scout.identity.branch import check_ref
from scout.identity.problem import build_malformed, suggest
from scout.identity.reserved import KEYS

_PIECE = re.compile(r'(?:(?P<key>[^.:#?"]*):)?(?:"(?P<quoted>[^"]*)"|(?P<text>[^.#?"]*))')
_TAIL = re.compile(r'(?:#(?P<harness>[^#?.:"]*))?(?:\?(?P<model>[^#?:"]*))?')
_INVISIBLE = frozenset({"Cc", "Cf", "Cs"})
_DIGITS = frozenset("0123456789")

FIELDS = {
    "definitionId": "definition_id",
    "workspaceQualifier": "workspace_qualifier",
    "profile": "profile",
    "harness": "harness",
    "harnessType": "harness",
    "model": "model",
    "node": "node",
    "authorityNode": "node",
}


class _Fault(Exception):  # noqa: N818 (it becomes a refusal, which is a result)
    """A parse failure at a position. `readings` are likely intended texts; unreadable ones are dropped."""

    def __init__(self, position: int, problem: str, expected: str, *readings: str) -> None:
        super().__init__(problem)
        self.position = position
        self.problem = problem
        self.expected = expected
        self.readings = readings


class _Piece(NamedTuple):
    at: int
    key: str | None
    value_at: int
    value: str
    quoted: bool


class _Value(NamedTuple):
    at: int  # start of its piece
    value_at: int
    text: str
    open: bool = False  # whether a continuation may still follow


def parse_handle(text: object) -> Address:
    """Return the address of a handle; a refusal gives the position and the likely readings."""
    words = require_text(text)
    try:
        return _read(words)
    except _Fault as fault:
        raise _build_refusal(words, fault) from None


def try_parse_handle(text: str) -> Address | None:
    """Return the address of a handle, or None if it is malformed."""
    try:
        return _read(text)
    except _Fault:
        return None


def check_characters(text: str, *remedies: Remedy) -> None:
    """Refuse empty or overlong text, spaces and invisible characters."""
    try:
        _check(text)
    except _Fault as fault:
        raise _build_refusal(text, fault, *remedies) from None


def parse_dimensions(fields: Mapping[str, object]) -> Address:
    """Return the address of structured input; each dimension is folded separately, with spaces and dots."""
    values: dict[str, str] = {}
    for key, value in fields.items():
        name = FIELDS.get(key)
        if name is None or name in values:
            problem = f"'{key}' twice" if name else f"the unknown dimension '{key[:60]}'"
            raise build_malformed(key, 0, problem, "each of " + ", ".join(FIELDS) + " at most once")
        if value is not None:
            values[name] = fold(value)
            if not values[name]:
                raise build_malformed(str(value), 0, f"no letter or digit in {key}", "a letter or a digit")
    if "definition_id" not in values:
        raise build_malformed("", 0, "no definitionId", "the name of an agent")
    return Address(**values)


def _build_refusal(text: str, fault: _Fault, *remedies: Remedy) -> Refused:
    told = (one if one.startswith(("@", "branch:")) else f"@{one}" for one in fault.readings)
    readable = (suggest(one, "a valid spelling") for one in dict.fromkeys(told) if _is_readable(one))
    return build_malformed(text, fault.position, fault.problem, fault.expected, *(remedies or readable))


def _is_readable(text: str) -> bool:
    try:
        if text.startswith("branch:"):
            check_ref(text.removeprefix("branch:"))
        else:
            _read(text)
    except (_Fault, Refused):
        return False
    return True


def _check(text: str) -> None:
    if not text:
        raise _Fault(0, "nothing", "an address such as @name")
    if len(text) > MAX_LENGTH:
        raise _Fault(MAX_LENGTH, "too much text", f"at most {MAX_LENGTH} characters")
    for position, letter in enumerate(text):
        if letter.isspace():
            raise _Fault(position, "a space", "a name without spaces", "-".join(text.split()))
        if _is_invisible(letter):
            problem = f"the invisible character U+{ord(letter):04X}"
            visible = "".join(one for one in text if not _is_invisible(one))
            raise _Fault(position, problem, "visible characters", visible)


def _is_invisible(letter: str) -> bool:
    return unicodedata.category(letter) in _INVISIBLE


def _read(text: str) -> Address:
    _check(text)
    start = 1 if text.startswith("@") else 0
    second = text.find("@", start)
    if second >= 0:
        raise _Fault(second, "a second '@'", "one address", *repair.repair_second_at(text, second))
    pieces, end = _split(text, start)
    definition = _read_definition(text, pieces[0])
    values = _read_qualifiers(text, pieces)
    for dimension, value in _read_shorthands(text, end).items():
        _put(text, values, dimension, value)
    folded = {name: _fold_value(value) for name, value in values.items()}
    try:
        return Address(definition_id=definition, **folded)
    except Refused:  # every part is folded, so only the length can be refused
        expected = f"at most {MAX_LENGTH} characters when written out"
        raise _Fault(len(text), "too much text", expected) from None


def _split(text: str, start: int) -> tuple[list[_Piece], int]:
    """Return the dotted pieces, and the position at which the shorthands begin."""
    pieces: list[_Piece] = []
    while True:
        found = _PIECE.match(text, start)
        assert found is not None  # the pattern matches the empty text too
        group = "text" if found["quoted"] is None else "quoted"
        pieces.append(_Piece(start, found["key"], found.start(group), found[group], group == "quoted"))
        end = found.end()
        if end == len(text) or text[end] in "#?":
            return pieces, end
        if text[end] != ".":
            problem = "a quote that is not closed" if text.count('"') % 2 else "a quote inside a value"
            raise _Fault(
                text.index('"', start), problem, "quotes around a whole value", text.replace('"', "")
            )
        start = end + 1


def _read_shorthands(text: str, start: int) -> dict[str, _Value]:
    """Return the harness after `#` and the model after `?`."""
    found = _TAIL.match(text, start)
    assert found is not None  # the pattern matches the empty text too
    if found.end() < len(text):
        sign = "#" if found["model"] is None else "?"
        problem = f"'{text[found.end()]}' after '{sign}'"
        raise _Fault(
            found.end(), problem, "#harness, then ?model, at the end", *repair.write_long_forms(text, start)
        )
    groups = ((name, found.start(name), value) for name, value in found.groupdict().items())
    return {name: _Value(at - 1, at, value) for name, at, value in groups if value is not None}


def _read_definition(text: str, piece: _Piece) -> str:
    if piece.key is not None:
        expected = "the name of an agent before its qualifiers"
        meant = f"@name.{text[piece.at :]}" if piece.key.lower() in KEYS else text.replace(":", ".", 1)
        raise _Fault(piece.at, "no definition", expected, meant, f"@{piece.value}")
    if not piece.value:
        raise _Fault(piece.at, "no definition", "the name of an agent", f"@name{text[piece.at :]}")
    return _fold_value(_Value(piece.at, piece.value_at, piece.value))


def _read_qualifiers(text: str, pieces: list[_Piece]) -> dict[str, _Value]:
    values: dict[str, _Value] = {}
    last = ""
    positional: _Piece | None = None
    for piece in pieces[1:]:
        if piece.key is not None:
            last = _read_dimension(text, piece)
            _put(text, values, last, _Value(piece.at, piece.value_at, piece.value, not piece.quoted))
        elif _is_continued(last, values.get(last), piece):
            value = values[last]
            values[last] = value._replace(text=f"{value.text}.{piece.value}", open=last == "model")
        elif positional and piece.value:
            readings = repair.repair_two_workspaces(text, piece.at)
            raise _Fault(piece.at, "a second workspace", "key:value, or the end", *readings)
        else:
            last, positional = "workspace_qualifier", piece
            _put(text, values, last, _Value(piece.at, piece.value_at, piece.value))
    return values


def _read_dimension(text: str, piece: _Piece) -> str:
    key = (piece.key or "").lower()
    dimension = KEYS.get(key)
    if dimension is None:
        known = ", ".join(KEYS)
        raise _Fault(piece.at, f"the unknown key '{key[:60]}'", f"one of {known}", text[: piece.at - 1])
    return dimension


def _is_continued(last: str, value: _Value | None, piece: _Piece) -> bool:
    if value is None or not value.open or piece.quoted:
        return False
    if last == "model":
        return value.text[-1:] in _DIGITS and piece.value[:1] in _DIGITS
    return last == "node" and piece.value.lower() == "local"


def _put(text: str, values: dict[str, _Value], dimension: str, value: _Value) -> None:
    name = dimension.partition("_")[0]
    if not value.text:
        readings = repair.leave_out(text, value.value_at)
        raise _Fault(value.value_at, f"an empty {name}", f"the name of a {name}", *readings)
    if dimension in values:
        raise _Fault(value.at, f"a second {name}", f"one {name}", *repair.leave_out(text, value.value_at))
    values[dimension] = value


def _fold_value(value: _Value) -> str:
    folded = fold(value.text)
    if not folded:
        raise _Fault(value.value_at, f"no letter or digit in '{value.text[:60]}'", "a letter or a digit")
    return folded
