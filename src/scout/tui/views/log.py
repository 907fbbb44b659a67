"""Log: what happened, as sentences, the newest last. `w` explains why."""

from typing import Any, ClassVar

from textual.app import ComposeResult

from scout.base.codec import to_plain
from scout.policy.sentences import find_subject
from scout.protocol.log import ReadLog
from scout.tui.rows import Row, RowList, build_note
from scout.tui.sentences import build_event_row
from scout.tui.text import show_text
from scout.tui.view import ScreenView, ViewHost

_PAGE = 200
_MOST = 1000  # rows that are kept


class LogView(ScreenView):
    """The log. The filter takes words, `@agent`, and a family such as `collab.flight`."""

    key: ClassVar[str] = "log"

    def __init__(self, host: ViewHost) -> None:
        super().__init__(host)
        self._filter = ""
        self._events: list[dict[str, Any]] = []
        self._is_filtered = False

    @property
    def subject(self) -> str:
        return f"filter: {show_text(self._filter)}" if self._filter else ""

    def compose(self) -> ComposeResult:
        yield RowList(follow=True)

    async def load(self) -> None:
        words = self._filter.split()
        agent = next((word for word in words if word.startswith(("@", "/"))), None)
        family = next((word for word in words if word.startswith("collab.")), None)
        self._is_filtered = bool(agent or family)
        if self._is_filtered:
            page = await self.host.call(ReadLog(agent=agent, family=family, newest=True, limit=_PAGE))
            self._events = [to_plain(event) for event in page.items]
        else:
            self._events = list(self.host.recent)[-_MOST:]
        self.draw()

    def note(self, event: dict[str, Any]) -> None:
        self.is_stale = True

    def tick(self) -> None:
        words = [word.lower() for word in self._filter.split() if not word.startswith(("@", "/", "collab."))]
        rows = [build_event_row(event, self.host.names) for event in self._events]
        kept = [row for row in rows if all(word in _read(row) for word in words)]
        self.query_one(RowList).set_rows(kept or [build_note("  Nothing here.")])

    def set_filter(self, text: str) -> None:
        """Show only events of an agent, a family, or with these words."""
        self._filter = text
        self.is_stale = True

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        if ident := self._find_record(event.key):
            self.host.show_record(ident)

    def do_why(self) -> None:
        if (event := self._find_event(self.query_one(RowList).key)) is not None:
            self.host.explain(find_subject(event))

    def _find_event(self, key: str) -> dict[str, Any] | None:
        return next((one for one in self._events if one["id"] == key), None)

    def _find_record(self, key: str) -> str:
        """Return the id of the record that an event is about; the flight, where there is one."""
        payload: dict[str, Any] = (self._find_event(key) or {}).get("payload") or {}
        record: dict[str, Any] = payload.get("record") or payload
        return str(record.get("flightId") or record.get("id") or "")


def _read(row: Row) -> str:
    return row.cells[1][0].lower()
