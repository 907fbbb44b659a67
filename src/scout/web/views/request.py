"""What a view is given."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from scout.protocol.scout import Scout
from scout.web.layout import PageBody


class PageRequest(NamedTuple):
    """One request for a view: Scout as the caller sees it, the parts of the path, and the query."""

    scout: Scout
    segments: tuple[str, ...]
    query: Mapping[str, str]

    @property
    def at(self) -> str | None:
        """The moment of the past that is wanted; None for the present."""
        return self.query.get("at") or None

    def get_flag(self, name: str) -> bool:
        return self.query.get(name, "") not in ("", "0", "false")


View = Callable[[PageRequest], Awaitable[PageBody]]
