"""Segments: the parts of names."""

import re
import unicodedata

from scout.identity.problem import build_malformed, require_text

_OTHER = re.compile(r"[^a-z0-9]+")
# NFKD sorts each run of accents in quadratic time. Folding drops accents, so short chunks are safe.
_STEP = 64
_FOLDED = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def fold(text: object) -> str:
    """Return the text as lowercase ASCII (NFKD), other runs as one `-`, edges trimmed; may be empty."""
    words = require_text(text)
    if not words.isascii():
        words = "".join(_to_ascii(words[at : at + _STEP]) for at in range(0, len(words), _STEP))
    return _OTHER.sub("-", words.lower()).strip("-")


def _to_ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")


def is_folded(text: str) -> bool:
    """Whether folding leaves this text unchanged."""
    return _FOLDED.fullmatch(text) is not None


def fold_segment(text: object) -> str:
    """Return the folded segment; refuse text that folds to nothing."""
    folded = fold(text)
    if not folded:
        raise build_malformed(require_text(text), 0, "no letter or digit in the name", "a letter or a digit")
    return folded
