"""What was read from another system: records to send, and what is left behind, with the reasons."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from scout.base.time import Time
from scout.cli.connection.refusal import RefusalError
from scout.model.conversation import make_storable
from scout.protocol.imports.records import (
    ImportedAgent,
    ImportedAlias,
    ImportedConversation,
    ImportedMessage,
    ImportedQuestion,
    ImportedWork,
)

LONGEST_LINE = 4 * 1024 * 1024  # bytes; a longer line is skipped without being kept in memory
LONGEST_FILE = 64 * 1024 * 1024
LONGEST_ID = 500  # characters
_LAST = 253_402_214_400_000  # milliseconds, in the year 9999
_SHOWN = 80


class Left(NamedTuple):
    """One thing that is not imported."""

    type: str
    id: str
    reason: str


class Source:
    """The records of another system, in the form that all systems share; references are its own ids.

    `messages` are read when they are sent, so that a long history is never in memory. `left_out` counts what
    is never imported, by kind and reason.
    """

    def __init__(self) -> None:
        self.agents: list[ImportedAgent] = []
        self.aliases: list[ImportedAlias] = []
        self.conversations: list[ImportedConversation] = []
        self.work: list[ImportedWork] = []
        self.questions: list[ImportedQuestion] = []
        self.messages: Callable[[], Iterator[ImportedMessage]] = lambda: iter(())
        self.skipped: list[Left] = []
        self.left_out: Counter[tuple[str, str]] = Counter()

    def skip(self, kind: str, ident: object, reason: str) -> None:
        """Note one thing that is not imported."""
        self.skipped.append(Left(kind, str(ident)[:_SHOWN], reason))

    def leave_out(self, kind: str, reason: str, count: int = 1) -> None:
        """Count things of a kind that is never imported."""
        if count:
            self.left_out[kind, reason] += count

    def has_id(self, kind: str, fields: dict[str, Any], name: str = "id") -> bool:
        """Whether a thing has a usable id; one without is skipped."""
        ident = fields.get(name)
        if isinstance(ident, str) and 0 < len(ident) <= LONGEST_ID:
            return True
        self.skip(kind, ident, f"its {name} is not a text of 1 to {LONGEST_ID} characters")
        return False


# -- values that anybody may have written --------------------------------------------------------------


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def get_object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a field that is an object; an empty one for anything else."""
    value = fields.get(name)
    return value if is_object(value) else {}


def get_text(fields: dict[str, Any], *names: str) -> str | None:
    """Return the first of these fields that is a text with something in it."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return None


def list_texts(value: object) -> list[str]:
    """Return the texts of a list."""
    return [one for one in value if isinstance(one, str) and one] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType] (JSON)


def read_milliseconds(value: object) -> Time | None:
    """Return a time in milliseconds since 1970; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LAST:
        return None
    return Time(int(value * 1000))


# -- files -------------------------------------------------------------------------------------------


def read_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Yield the numbered lines of a file; None for one that is too long."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) <= LONGEST_LINE:
                yield number, line
                continue
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST_LINE)
            yield number, None


def parse_json(data: bytes | str) -> Any:
    """Return a JSON value whose texts can be stored; raise a ValueError for anything else."""
    try:
        return clean_value(json.loads(data))
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None


def clean_value(value: Any) -> Any:
    """Return a value with characters made visible that no text in Scout may hold."""
    if isinstance(value, str):
        return make_storable(value)
    if isinstance(value, list):
        return [clean_value(one) for one in value]  # pyright: ignore[reportUnknownVariableType] (JSON)
    if is_object(value):
        return {make_storable(key): clean_value(one) for key, one in value.items()}
    return value


def read_json(path: Path, longest: int = LONGEST_FILE) -> Any:
    """Return the JSON value in a file; raise a ValueError that tells why there is none."""
    try:
        if path.is_symlink():
            raise ValueError("it is a link, which is not followed")
        if path.stat().st_size > longest:
            raise ValueError(f"it is larger than {longest} bytes")
        return parse_json(path.read_bytes())
    except OSError as error:
        raise ValueError(error.strerror or "it cannot be read") from None


def find_file(path: Path, *names: str) -> Path:
    """Return the file that is given, or the first of these in the folder that is given."""
    if path.is_file():
        return path
    found = next((path / name for name in names if (path / name).is_file()), None)
    if found is None:
        expected = " or ".join(names)
        message = f"{path} has no {expected}" if path.is_dir() else f"there is no file or folder {path}"
        raise RefusalError.of("bad_request", message, field="path")
    return found


def group_levels(records: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield records so that parents come before their children; those in a circle come last."""
    waiting = {one.id: one for one in records}
    while waiting:
        ready = [one for one in waiting.values() if one.parent is None or one.parent not in waiting]
        ready = ready or [*waiting.values()]
        yield ready
        for one in ready:
            del waiting[one.id]
