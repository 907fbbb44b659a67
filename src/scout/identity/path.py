"""Paths: the full name of an agent, `/<userId>/…`.

path   = root *16( suffix )
root   = "/" user "/" connector
       / "/" user "/" ( "agent" / "cron" / "task" / "subuser" ) "/" name
       / "/system/" tag
suffix = "/sub/" index  /  "/search/" index  /  "/memory"
"""

import re
from enum import StrEnum

from scout.base.refusal import Refused, Remedy
from scout.identity.address import require_text
from scout.identity.problem import build_malformed, suggest

MAX_BYTES = 1024
MAX_SUFFIXES = 16

# Path keywords: not allowed as a user, connector, name, id or tag.
PATH_WORDS = frozenset({"agent", "cron", "task", "subuser", "system", "sub", "memory", "search", "app"})

_SEGMENT = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]+")
_OTHER = re.compile(r"[^A-Za-z0-9._~/-]+")
_INDEX = re.compile(r"0|[1-9][0-9]*")
_ZEROS = re.compile(r"(/(?:sub|search)/)0+(?=[0-9])")
_NAMED = frozenset({"agent", "cron", "task", "subuser"})
_INDEXED = frozenset({"sub", "search"})
_PERSON = "/direct"


class Kind(StrEnum):
    """The kind of agent that a path names."""

    CONNECTOR = "connector"
    AGENT = "agent"
    CRON = "cron"
    TASK = "task"
    SUBUSER = "subuser"
    SYSTEM = "system"
    SUB = "sub"
    MEMORY = "memory"
    SEARCH = "search"


class ModelRole(StrEnum):
    """The model settings that an agent of a kind uses."""

    USER = "user"
    SUBAGENT = "subagent"
    MEMORY = "memory"
    MEMORY_SEARCH = "memorySearch"
    TASK = "task"


_ROLES = {
    Kind.CONNECTOR: ModelRole.USER,
    Kind.AGENT: ModelRole.USER,
    Kind.CRON: None,
    Kind.TASK: ModelRole.TASK,
    Kind.SUBUSER: ModelRole.USER,
    Kind.SYSTEM: None,
    Kind.SUB: ModelRole.SUBAGENT,
    Kind.MEMORY: ModelRole.MEMORY,
    Kind.SEARCH: ModelRole.MEMORY_SEARCH,
}

_LABELS = {
    Kind.CRON: "cron {}",
    Kind.TASK: "task {}",
    Kind.SUB: "subagent {}",
    Kind.SEARCH: "search {}",
}


def is_segment(text: str) -> bool:
    """Whether the text is valid as a user, connector, name, id or tag in a path."""
    return _SEGMENT.fullmatch(text) is not None and text not in PATH_WORDS


class AgentPath(str):
    """A well-formed path. `AgentPath.parse` is the only way to make one from text."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> "AgentPath":
        """Return the path; a refusal names the invalid segment."""
        words = require_text(text)
        _check(words)
        return cls(words)

    @classmethod
    def root(cls, user: str, *parts: str) -> "AgentPath":
        """Build a root path: `AgentPath.root("u1", "agent", "arc")` is `/u1/agent/arc`."""
        return cls.parse("/" + "/".join((user, *parts)))

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self[1:].split("/"))

    @property
    def kind(self) -> Kind:
        """The kind, decided by the suffix, then by `/system/`, then by the second segment."""
        first, second, *rest = self.segments
        last = (first, second, *rest)[-2:]
        if last[1] == "memory":
            return Kind.MEMORY
        if last[0] in _INDEXED:
            return Kind(last[0])
        if first == "system":
            return Kind.SYSTEM
        return Kind(second) if second in _NAMED else Kind.CONNECTOR

    @property
    def model_role(self) -> ModelRole | None:
        return _ROLES[self.kind]

    @property
    def parent(self) -> "AgentPath | None":
        """The path before the last suffix; None for a root path."""
        match self.kind:
            case Kind.MEMORY:
                return AgentPath(self.rpartition("/")[0])
            case Kind.SUB | Kind.SEARCH:
                return AgentPath(self.rsplit("/", 2)[0])
            case _:
                return None

    @property
    def user(self) -> str | None:
        """The user that owns the agent; None below `/system`."""
        first = self.split("/", 2)[1]
        return None if first == "system" else first

    @property
    def connector(self) -> str | None:
        return self.segments[1] if self.kind is Kind.CONNECTOR else None

    @property
    def is_person(self) -> bool:
        """Whether the path is `/<user>/direct`: the user in person, and not a program."""
        return self.endswith(_PERSON) and self.count("/") == 2

    def sub(self, index: int) -> "AgentPath":
        return AgentPath.parse(f"{self}/sub/{index}")

    def search(self, index: int) -> "AgentPath":
        return AgentPath.parse(f"{self}/search/{index}")

    def memory(self) -> "AgentPath":
        return AgentPath.parse(f"{self}/memory")

    def label(self, name: str | None = None, username: str | None = None) -> str:
        """Return the display name: the configured name, or a label built from the path."""
        if name:
            return f"{name} (@{username})" if username else name
        if self.kind is Kind.MEMORY:
            return f"memory of {self.parent}"
        return _LABELS.get(self.kind, "{}").format(self.segments[-1])

    def contains(self, other: "AgentPath") -> bool:
        """Whether the other path is this one or below it."""
        return other == self or other.startswith(f"{self}/")


def _check(text: str) -> None:
    if not text.startswith("/"):
        remedies = _suggest_repair(text, f"/{text}", "as a path")
        raise build_malformed(text, 0, "no '/'", "a path such as /user/agent/name", *remedies)
    if len(text) > MAX_BYTES:  # non-ASCII text is refused below
        raise build_malformed(text, MAX_BYTES, "too much text", f"at most {MAX_BYTES} bytes")
    segments = text[1:].split("/")
    starts = _list_starts(segments)
    for segment, start in zip(segments, starts, strict=True):
        if _SEGMENT.fullmatch(segment) is None:
            raise _build_bad_segment(text, segment, start)
    end = _check_root(text, segments, starts)
    _check_suffixes(text, segments[end:], starts[end:])


def _list_starts(segments: list[str]) -> list[int]:
    starts = [1]
    for segment in segments:
        starts.append(starts[-1] + len(segment) + 1)
    return starts[:-1]


def _build_bad_segment(text: str, segment: str, start: int) -> Refused:
    if segment in ("", ".", ".."):
        problem = f"the segment '{segment}'" if segment else "an empty segment"
        kept = "/".join(part for part in text.split("/") if part not in ("", ".", ".."))
        remedies = _suggest_repair(text, f"/{kept}", "without it")
        return build_malformed(text, start, problem, "a name between the slashes", *remedies)
    bad = next(index for index, letter in enumerate(segment) if _OTHER.match(letter))
    remedies = _suggest_repair(text, _OTHER.sub("-", text), "with '-' in its place")
    problem = f"the character {segment[bad]!r}"
    return build_malformed(text, start + bad, problem, "letters, digits and . _ ~ -", *remedies)


def _suggest_repair(text: str, repaired: str, why: str) -> tuple[Remedy, ...]:
    """Return the remedy if the repaired text is a valid path."""
    if repaired == text:
        return ()
    try:
        _check(repaired)
    except Refused:
        return ()
    return (suggest(repaired, why),)


def _check_root(text: str, segments: list[str], starts: list[int]) -> int:
    """Check the root and return the number of its segments."""
    if len(segments) < 2:
        raise build_malformed(text, len(text), "the end", "a connector, or agent/NAME, after the user")
    system = segments[0] == "system"
    length = 3 if segments[1] in _NAMED and not system else 2
    if length > len(segments):
        raise build_malformed(text, len(text), "the end", f"a name after '{segments[1]}'")
    names = [1] if system else [0, length - 1]
    for index in names:
        if segments[index] in PATH_WORDS:
            problem = f"the reserved word '{segments[index]}'"
            raise build_malformed(text, starts[index], problem, "a name that is not a path word")
    return length


def _check_suffixes(text: str, segments: list[str], starts: list[int]) -> None:
    count = index = 0
    while index < len(segments):
        word, start = segments[index], starts[index]
        count += 1
        if count > MAX_SUFFIXES:
            raise build_malformed(text, start, "too many suffixes", f"at most {MAX_SUFFIXES} suffixes")
        if word == "memory":
            index += 1
        elif word in _INDEXED:
            _check_index(text, segments, starts, index)
            index += 2
        else:
            raise build_malformed(text, start, f"the segment '{word}'", "sub/N, search/N, memory, or the end")


def _check_index(text: str, segments: list[str], starts: list[int], index: int) -> None:
    if index + 1 == len(segments):
        raise build_malformed(text, len(text), "the end", f"an index after '{segments[index]}'")
    number = segments[index + 1]
    if _INDEX.fullmatch(number) is None:
        remedies = _suggest_repair(text, _ZEROS.sub(r"\1", text), "without leading zeros")
        expected = "a decimal number without leading zeros"
        raise build_malformed(text, starts[index + 1], f"the index '{number}'", expected, *remedies)
