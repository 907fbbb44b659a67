"""The final text of a program as it can be kept: nothing of a finished answer is thrown away."""

import re
from collections.abc import Iterable

_HALF = re.compile("[\ud800-\udfff]")
_SECRET = re.compile(r"sct_[A-Za-z0-9_\-]{20,}")
_NUL, _SHOWN_NUL = "\0", "\u2400"
_UNREADABLE = "\ufffd"
_HIDDEN = "sct_…"


def make_storable(text: str) -> str:
    """The text with what cannot be stored made visible: NUL as ␀, half a character as �."""
    return _HALF.sub(_UNREADABLE, text.replace(_NUL, _SHOWN_NUL))


def find_secrets(text: str) -> tuple[str, ...]:
    """What looks like a token of Scout, each once."""
    return tuple(dict.fromkeys(_SECRET.findall(text))) if "sct_" in text else ()


def hide_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text without these; a longer one first, so that nothing of it stays beside a shorter one."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def shorten(text: str, limit: int) -> str:
    """As many whole characters as fit in `limit` bytes."""
    return text if len(text) * 4 <= limit else text.encode()[:limit].decode("utf-8", "ignore")
