"""Parsing server-sent events."""

from __future__ import annotations

TYPE_CHECKING = False  # the command line loads this, where `typing` is too slow
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class SseEvent:
    """One event: its type (`message` by default), its id (empty if it has none) and its data."""

    __slots__ = ("data", "id", "type")

    def __init__(self, type: str, id: str, data: str) -> None:  # noqa: A002 (the names of the format)
        self.type, self.id, self.data = type, id, data


class SseParser:
    """Collects lines until an empty one ends the event."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._type, self._id, self._data = "message", "", list[str]()

    def feed(self, line: str) -> SseEvent | None:
        """Take the next line. Return the event that it ends, if it ends one with data."""
        if not line:
            event = SseEvent(self._type, self._id, "\n".join(self._data)) if self._data else None
            self._reset()
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
        elif name == "event":
            self._type = value
        return None


def read_events(chunks: Iterable[bytes]) -> Iterator[SseEvent]:
    """Yield the events of a stream that arrives in chunks, each as soon as it is complete."""
    parser, rest = SseParser(), b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if event := parser.feed(line.rstrip(b"\r").decode("utf-8", "replace")):
                yield event
