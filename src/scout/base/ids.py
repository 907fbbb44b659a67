"""Identifiers as TypeID text: a prefix and a UUIDv7 in Crockford base32, sorted by time.

Written by hand because the pure rooms use neither clock nor chance: both come in as arguments.
The tests compare it with a TypeID library.
"""

import hashlib

from scout.base.refusal import BadRequest, Refused

__all__ = ["derived", "mint", "prefix_of"]

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_SUFFIX_LENGTH = 26
_VARIANT = 0b10 << 62


def mint(prefix: str, milliseconds: int, entropy: bytes) -> str:
    """A new id from the time and at least ten bytes of chance."""
    chance = int.from_bytes(entropy[:10], "big")
    if len(entropy) < 10 or not 0 <= milliseconds < 1 << 48:
        raise Refused(BadRequest(problem="an id needs 48 bits of milliseconds and ten random bytes"))
    high = milliseconds << 16 | 0x7 << 12 | chance >> 62 & 0xFFF
    low = _VARIANT | chance & (1 << 62) - 1
    return f"{prefix}_{_text(high << 64 | low)}"


def derived(prefix: str, *parts: str) -> str:
    """The same id for the same parts on every machine (a UUIDv8 from their SHA-256)."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    number = int.from_bytes(digest[:16], "big")
    number = number & ~(0xF << 76) | 0x8 << 76
    number = number & ~(0b11 << 62) | _VARIANT
    return f"{prefix}_{_text(number)}"


def prefix_of(text: str) -> str | None:
    """The prefix of a well-formed id, or None when the text is not one."""
    prefix, _, suffix = text.rpartition("_")
    well_formed = (
        prefix.isascii()
        and prefix.isalpha()
        and prefix.islower()
        and len(suffix) == _SUFFIX_LENGTH
        and suffix[0] <= "7"
        and all(letter in _ALPHABET for letter in suffix)
    )
    return prefix if well_formed else None


def _text(number: int) -> str:
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))
