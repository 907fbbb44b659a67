"""The six dimensions of a handle and its canonical text. Each is a segment: folded text."""

import re
import unicodedata
from operator import attrgetter

from msgspec.structs import replace

from scout.base.record import Record
from scout.identity.problem import build_malformed

_OTHER = re.compile(r"[^a-z0-9]+")
# NFKD sorts each run of accents in quadratic time. Folding drops accents, so short chunks are safe.
_STEP = 64
_FOLDED = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

# Applies to typed and to canonical text, so that printed addresses can be parsed again.
MAX_LENGTH = 1024

# The dimensions after the definition, in canonical order, with their text keys.
QUALIFIERS = {
    "workspace_qualifier": "",
    "profile": "profile:",
    "harness": "harness:",
    "model": "model:",
    "node": "node:",
}
_KEYS = tuple(QUALIFIERS.values())
_read_qualifiers = attrgetter(*QUALIFIERS)


def require_text(value: object) -> str:
    """Return the value as text; refuse bytes that are not UTF-8, and types other than bytes and str."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise build_malformed("", error.start, "bytes that are not UTF-8", "UTF-8 text") from None
    raise build_malformed("", 0, f"a value of type {type(value).__name__}", "text")


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


class Address(Record, omit_defaults=True):
    """A parsed handle. Every dimension is a folded segment; absent ones are None."""

    definition_id: str
    workspace_qualifier: str | None = None
    profile: str | None = None
    harness: str | None = None
    model: str | None = None
    node: str | None = None

    def __post_init__(self) -> None:
        values: tuple[str | None, ...] = (self.definition_id, *_read_qualifiers(self))
        for name, value in zip(self.__struct_fields__, values, strict=True):
            if value is not None and not is_folded(value):
                raise build_malformed(
                    value, 0, f"{name} '{value[:60]}' is not folded", "a-z, 0-9 and single '-'"
                )
        if len(self.canonical) > MAX_LENGTH:
            raise build_malformed(
                self.canonical, MAX_LENGTH, "too much text", f"at most {MAX_LENGTH} characters"
            )

    @property
    def canonical(self) -> str:
        """The canonical text: `@definition.workspace.profile:x.harness:x.model:x.node:x`."""
        text = f"@{self.definition_id}"
        for key, value in zip(_KEYS, _read_qualifiers(self), strict=True):
            if value:
                text += f".{key}{value}"
        return text

    @property
    def is_bare(self) -> bool:
        """Whether the address has only a definition and no qualifier, like an alias."""
        return not any(_read_qualifiers(self))

    def without(self, dimension: str) -> "Address":
        """Return the same address without one dimension."""
        return replace(self, **{dimension: None})
