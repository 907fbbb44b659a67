"""Make characters visible that could control a terminal, reorder a text, or hide in it."""

from __future__ import annotations

import re

_EMOJI = "[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]"

# Control characters, line separators, bidirectional controls, zero-width characters and lone surrogates. The
# only exception is a joiner inside one emoji.
_UNSEEN = (  # compiled only when a text needs it
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    f"\U0001d173-\U0001d17a\U000e0000-\U000e0fff]|(?<!{_EMOJI})\u200d|\u200d(?!{_EMOJI})"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def make_visible(text: str) -> str:
    """Return the text on one line, with every character visible that could control a terminal or hide."""
    return text if text.isascii() and text.isprintable() else re.sub(_UNSEEN, _escape, text)


def make_lines_visible(text: str) -> str:
    """Return the text in its lines, each with every such character visible."""
    return "\n".join(map(make_visible, text.replace("\r\n", "\n").split("\n")))


def _escape(found: re.Match[str]) -> str:
    """Return a character as an escape sequence; DEL as JSON spells it, so that JSON stays exact."""
    sign, number = found[0], ord(found[0])
    if number < 0x7F:
        return _NAMED.get(sign) or f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
