"""Preparation of a program's final text for storage; a finished answer is never discarded."""

import re
from collections.abc import Iterable

_HALF = re.compile("[\ud800-\udfff]")
_SECRET = re.compile(r"sct_[A-Za-z0-9_\-]{20,}")
_NUL, _SHOWN_NUL = "\0", "\u2400"
_UNREADABLE = "\ufffd"
_HIDDEN = "sct_…"


def make_storable(text: str) -> str:
    """Return the text with unstorable characters made visible: NUL as ␀, a lone surrogate as �."""
    return _HALF.sub(_UNREADABLE, text.replace(_NUL, _SHOWN_NUL))


def find_secrets(text: str) -> tuple[str, ...]:
    """Return the texts that look like Scout tokens, without duplicates."""
    return tuple(dict.fromkeys(_SECRET.findall(text))) if "sct_" in text else ()


def hide_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace these secrets; longer ones first, so that no part of them remains."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def shorten(text: str, limit: int) -> str:
    """Return as many whole characters as fit in `limit` bytes."""
    return text if len(text) * 4 <= limit else text.encode()[:limit].decode("utf-8", "ignore")
