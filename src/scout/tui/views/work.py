"""Work items: their state, who owns them, and who holds the next move."""

from typing import ClassVar

from textual.app import ComposeResult

from scout.protocol.work import ListWork, WorkView
from scout.tui.rows import Row, RowColumn, RowList, build_note, build_title
from scout.tui.text import format_age, show_text
from scout.tui.view import ScreenView, ViewHost

_PAGE = 200
_STYLES = {"working": "green", "waiting": "yellow", "review": "cyan", "blocked": "red"}


class WorkListView(ScreenView):
    """Open work, by state."""

    key: ClassVar[str] = "work"
    nouns: ClassVar[frozenset[str]] = frozenset({"work_item"})

    def __init__(self, host: ViewHost) -> None:
        super().__init__(host)
        self._items: tuple[WorkView, ...] = ()

    def compose(self) -> ComposeResult:
        yield RowList((RowColumn(1), RowColumn(18), RowColumn(0), RowColumn(22, right=True)))

    async def load(self) -> None:
        self._items = (await self.host.call(ListWork(limit=_PAGE))).items
        self.draw()

    def tick(self) -> None:
        groups: dict[str, list[WorkView]] = {}
        for item in self._items:
            groups.setdefault(item.state.value, []).append(item)
        rows: list[Row] = []
        for state, items in groups.items():
            rows += [build_title(state.replace("_", " ").capitalize(), str(len(items)))]
            rows += [self._build_row(item) for item in items]
        note = build_note("  No open work. Create some: scout work create 'TITLE' --owner @agent")
        self.query_one(RowList).set_rows(rows or [note])

    def _build_row(self, item: WorkView) -> Row:
        names = self.host.names
        owes = names.name(item.next_move_address)
        return Row(
            item.id,
            (
                ("●", _STYLES.get(item.state.value, "dim")),
                (show_text(names.name(item.owner_address)), ""),
                (show_text(item.title), ""),
                (f"{f'next: {show_text(owes)} ' if owes else ''}{format_age(item.updated_at)}", "dim"),
            ),
        )

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        self.host.explain(event.key)

    def do_why(self) -> None:
        self.host.explain(self.query_one(RowList).key)
