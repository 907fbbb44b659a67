"""Checks for external input: text and numbers must be storable."""

import json
import math
import re
from collections import Counter
from typing import Any, cast
from urllib.parse import unquote_to_bytes

from scout.base.refusal import BadRequest, Refused

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_LAST = 2**63 - 1
_DEPTH = 32


def decode_text(raw: bytes, field: str) -> str:
    """Decode percent-encoded UTF-8."""
    if b"%" in raw and _BAD_ESCAPE.search(raw):
        raise Refused(BadRequest(problem="expected two hexadecimal digits after %", field=field))
    try:
        text = (unquote_to_bytes(raw) if b"%" in raw else raw).decode()
    except UnicodeDecodeError:
        raise Refused(BadRequest(problem="expected UTF-8", field=field)) from None
    if "\0" in text:
        raise _build_nul_refusal(field)
    return text


def check_each_once(data: bytes) -> None:
    """Refuse JSON with a duplicate key, because parsers may disagree on it. Invalid JSON passes."""
    try:
        _REPEATS.decode(data.decode())
    except (ValueError, RecursionError):
        return


def _check_repeats(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) == len(pairs):
        return
    repeated = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
    name = _make_printable(repeated)
    raise Refused(BadRequest(problem=f"'{name}' is given twice", field=name))


_REPEATS = json.JSONDecoder(object_pairs_hook=_check_repeats)


def _make_printable(name: str) -> str:
    return name[:60].encode(errors="replace").decode().replace("\0", "\u2400")


def check_number(number: float, field: str) -> None:
    """Refuse a number that a database column cannot hold."""
    if isinstance(number, int):
        if not -_LAST <= number <= _LAST:
            problem = f"expected at most 64 bits, got {str(number)[:30]}…"
            raise Refused(BadRequest(problem=problem, field=field))
    elif not math.isfinite(number):
        raise Refused(BadRequest(problem=f"expected a finite number, got {number}", field=field))


def check_outside(value: Any, field: str = "", depth: int = 0) -> None:
    """Refuse text with NUL or lone surrogates, numbers out of range, and values nested too deeply.

    Later code (file names, columns, encoders) therefore never sees such values.
    """
    if depth > _DEPTH:
        raise Refused(BadRequest(problem=f"nested deeper than {_DEPTH}", field=field[:60]))
    if isinstance(value, str):
        _check_text(value, field[:200])
    elif isinstance(value, int | float):
        check_number(value, field[:200])
    elif isinstance(value, dict):
        for name, inner in cast("dict[Any, Any]", value).items():
            check_outside(name, field, depth)
            check_outside(inner, f"{field}.{name}".lstrip("."), depth + 1)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            check_outside(inner, field, depth + 1)


def _check_text(text: str, field: str) -> None:
    if "\0" in text:
        raise _build_nul_refusal(field)
    try:
        text.encode()
    except UnicodeEncodeError:
        problem = "text must be valid Unicode, without a lone surrogate"
        raise Refused(BadRequest(problem=problem, field=field.encode(errors="replace").decode())) from None


def _build_nul_refusal(field: str) -> Refused:
    return Refused(BadRequest(problem="text must not hold NUL", field=field))
