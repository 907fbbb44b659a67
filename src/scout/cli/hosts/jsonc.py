"""JSON with comments and trailing commas: one value is changed, and all other text stays as it is."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_INDENT = re.compile(r"\n([ \t]+)\S")
_STRINGS = json.JSONDecoder(strict=False)
Path = Sequence[str | int]


class NotJson(ValueError):  # noqa: N818 (a fact about a text)
    """The text cannot be parsed, or not changed without touching other parts."""


@dataclass
class JsonNode:
    """A value, its position, and its members; `names`: the positions of an object's keys."""

    start: int
    end: int = 0
    value: Any = None
    members: dict[str | int, "JsonNode"] = field(default_factory=dict[str | int, "JsonNode"])
    names: dict[str | int, int] = field(default_factory=dict[str | int, int])

    def at(self, path: Path) -> "JsonNode | None":
        """Return the value at a path of keys."""
        node: JsonNode | None = self
        for key in path:
            node = node.members.get(key) if node is not None else None
        return node


def parse(text: str) -> JsonNode:
    """Parse the whole text as one value."""
    reader = _Reader(text)
    node = reader.value(reader.skip(1 if text.startswith("\ufeff") else 0))
    if reader.skip(node.end) != len(text):
        raise NotJson(f"unexpected text after the end, at character {node.end}")
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def skip(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int) -> JsonNode:
        first = self.text[at : at + 1]
        if first == "{":
            return self._read_members(at, "}", named=True)
        if first == "[":
            return self._read_members(at, "]", named=False)
        if first == '"':
            return self._read_string(at)
        found = _SCALAR.match(self.text, at)
        if found is None:
            raise NotJson(f"found {first!r} at character {at}, where a value is expected")
        return JsonNode(at, found.end(), json.loads(found[0]))

    def _read_string(self, at: int) -> JsonNode:
        try:
            value, end = _STRINGS.raw_decode(self.text, at)
        except ValueError as error:
            raise NotJson(str(error)) from None
        return JsonNode(at, end, value)

    def _read_members(self, start: int, close: str, *, named: bool) -> JsonNode:
        node, at = JsonNode(start), self.skip(start + 1)
        while self.text[at : at + 1] != close:
            key: str | int = len(node.members)
            begin = at
            if named:
                name = self._read_string(at) if self.text[at : at + 1] == '"' else self.value(len(self.text))
                key, at = name.value, self.skip(self._expect(self.skip(name.end), ":"))
            node.members[key], node.names[key] = self.value(at), begin
            at = self.skip(node.members[key].end)
            if self.text[at : at + 1] != close:
                at = self.skip(self._expect(at, ","))
        node.end = at + 1
        held = {key: member.value for key, member in node.members.items()}
        node.value = held if named else list(held.values())
        return node

    def _expect(self, at: int, letter: str) -> int:
        if self.text[at : at + 1] != letter:
            raise NotJson(f"found {self.text[at : at + 1]!r} at character {at}, where {letter!r} is expected")
        return at + 1


# -- changes -----------------------------------------------------------------------------------------


def set_at(text: str, path: Path, value: Any) -> str:
    """Return the text with a value at a path of keys; missing objects are created."""
    root = parse(text)
    there = root.at(path)
    if there is not None:
        return _put(text, there.start, there.end, _dump(text, value, _indent_at(text, there.start)))
    depth = next(length for length in range(len(path) - 1, -1, -1) if root.at(path[:length]) is not None)
    parent, key, *rest = root.at(path[:depth]), path[depth], *path[depth + 1 :]
    for name in reversed(rest):
        value = {name: value}
    assert parent is not None  # the root always exists
    return _insert(text, parent, key, value)


def append_to(text: str, path: Path, value: Any) -> str:
    """Return the text with a value appended to a list, which is created if missing."""
    there = parse(text).at(path)
    return set_at(text, path, [value]) if there is None else _insert(text, there, None, value)


def remove_at(text: str, path: Path) -> str:
    """Return the text without the value at a path of keys, if there is one."""
    parent, key = parse(text).at(path[:-1]), path[-1]
    if parent is None or key not in parent.members:
        return text
    keys = list(parent.members)
    place = keys.index(key)
    if len(keys) == 1:
        return _put(text, parent.start + 1, parent.end - 1, "")
    if place + 1 < len(keys):
        return _put(text, parent.names[key], parent.names[keys[place + 1]], "")
    return _put(text, parent.members[keys[place - 1]].end, parent.members[key].end, "")


def _insert(text: str, parent: JsonNode, key: str | int | None, value: Any) -> str:
    """Insert a value as the last member, formatted like the members before it."""
    if not isinstance(parent.value, list if key is None else dict):
        raise NotJson(f"the value at character {parent.start} has another type than expected")
    name = "" if key is None else f"{json.dumps(key)}: "
    inside = text[parent.start + 1 : parent.end - 1]
    if parent.members and "\n" not in inside:
        last = list(parent.members.values())[-1].end
        return _put(text, last, parent.end - 1, f", {name}{json.dumps(value)}{_get_trailing_space(inside)}")
    line = "\r\n" if "\r\n" in text else "\n"
    base = _indent_at(text, parent.start)
    own = _find_own_indent(text, parent) or base + _find_indent_unit(text)
    member = f"{line}{own}{name}{_dump(text, value, own)}"
    if not parent.members:
        return _put(text, parent.start + 1, parent.end - 1, f"{inside.rstrip()}{member}{line}{base}")
    last = list(parent.members.values())[-1].end
    rest = text[last : parent.end - 1]
    kept = rest.rstrip()
    comma = "" if _BLANK.sub("", rest, count=1).startswith(",") else ","
    return _put(text, last, parent.end - 1, f"{comma}{kept}{member}{rest[len(kept) :]}")


def _get_trailing_space(inside: str) -> str:
    return inside[len(inside.rstrip()) :]


def _put(text: str, start: int, end: int, what: str) -> str:
    return text[:start] + what + text[end:]


def _dump(text: str, value: Any, base: str) -> str:
    lines = json.dumps(value, indent=_find_indent_unit(text), ensure_ascii=False).split("\n")
    return ("\r\n" if "\r\n" in text else "\n").join([lines[0], *(base + line for line in lines[1:])])


def _find_indent_unit(text: str) -> str:
    """Return the indentation unit of this text; two spaces by default."""
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _indent_at(text: str, at: int) -> str:
    """Return the indentation of the line at this position."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _find_own_indent(text: str, parent: JsonNode) -> str:
    starts = parent.names.values()
    return next((_indent_at(text, at) for at in _list_own_lines(text, starts)), "")


def _list_own_lines(text: str, starts: Any) -> Iterator[int]:
    return (at for at in starts if not text[text.rfind("\n", 0, at) + 1 : at].strip())
