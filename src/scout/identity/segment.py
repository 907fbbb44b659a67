"""Segments: the words that names are made of."""

import re
import unicodedata

from scout.identity.problem import malformed, require_text

_OTHER = re.compile(r"[^a-z0-9]+")
# NFKD sorts each run of accents, in quadratic time, and folding drops them all: short pieces do.
_STEP = 64
_FOLDED = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def fold(text: object) -> str:
    """NFKD to ASCII, lower case, runs of anything else to one `-`, edges trimmed; may be empty."""
    words = require_text(text)
    if not words.isascii():
        words = "".join(_ascii(words[at : at + _STEP]) for at in range(0, len(words), _STEP))
    return _OTHER.sub("-", words.lower()).strip("-")


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")


def is_folded(text: str) -> bool:
    """Whether folding would leave this text as it is."""
    return _FOLDED.fullmatch(text) is not None


def segment(text: object) -> str:
    """The folded segment, or a refusal when nothing is left of the text."""
    folded = fold(text)
    if not folded:
        raise malformed(require_text(text), 0, "nothing is left of the name", "a letter or a digit")
    return folded
