"""Identifiers as TypeID text: a prefix and a UUIDv7 in Crockford base32, sorted by time.

Hand-written because the pure layers use neither a clock nor randomness: both are arguments.
The tests compare it with a TypeID library.
"""

import hashlib
import re
from collections.abc import Iterator

from scout.base.refusal import BadRequest, Refused

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_TIME = 10  # characters that encode the time
COUNTER = 3  # characters after it that tell the ids of a series apart
_SHIFTS = range(120, -1, -10)
_WELL_FORMED = re.compile(rf"([a-z]+)_[0-7][{_ALPHABET}]{{25}}")
_VARIANT = 0b10 << 62
# Three characters each: the version of a UUIDv7 and the eleven bits after it.
_COUNTERS = [first + pair for first in _ALPHABET[14:16] for pair in _PAIRS]


def mint(prefix: str, milliseconds: int, entropy: bytes) -> str:
    """Return a new id from the time and at least ten random bytes."""
    chance = int.from_bytes(entropy[:10], "big")
    if len(entropy) < 10 or not 0 <= milliseconds < 1 << 48:
        raise Refused(BadRequest(problem="an id needs 48 bits of milliseconds and ten random bytes"))
    high = milliseconds << 16 | 0x7 << 12 | chance >> 62 & 0xFFF
    low = _VARIANT | chance & (1 << 62) - 1
    return f"{prefix}_{_encode(high << 64 | low)}"


def make_id_series(milliseconds: int, entropy: bytes) -> Iterator[str]:
    """Return an iterator over 1,024 ids of one millisecond, in order, without their prefix.

    They count up from a random number right after the time, so their first 13 characters differ.
    """
    text = mint("", milliseconds, entropy)[1:]
    form = f"{text[:_TIME]}%s{text[_TIME + COUNTER :]}"
    start = int.from_bytes(entropy[:2], "big") & 1023
    return map(form.__mod__, _COUNTERS[start : start + 1024])


def split_series(ident: str) -> tuple[str, str, str]:
    """Return an id in three parts; all ids of a series with this prefix differ in the second one only."""
    start = ident.find("_") + 1 + _TIME
    return ident[:start], ident[start : start + COUNTER], ident[start + COUNTER :]


def read_milliseconds(ident: str) -> int:
    """Return the time of an id, as milliseconds."""
    start = ident.find("_") + 1
    time = 0
    for letter in ident[start : start + _TIME]:
        time = time << 5 | _ALPHABET.index(letter)
    return time


def derive_id(prefix: str, *parts: str) -> str:
    """Return an id that is the same for the same parts on every machine (a UUIDv8 from their SHA-256)."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    number = int.from_bytes(digest[:16], "big")
    number = number & ~(0xF << 76) | 0x8 << 76
    number = number & ~(0b11 << 62) | _VARIANT
    return f"{prefix}_{_encode(number)}"


def parse_prefix(text: str) -> str | None:
    """Return the prefix of a well-formed id, or None if the text is not an id."""
    found = _WELL_FORMED.fullmatch(text)
    return found[1] if found else None


def _encode(number: int) -> str:
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])
