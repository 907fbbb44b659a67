"""Work: the items by state, with their owners and next moves, and the moves by key."""

from typing import ClassVar

from textual.app import ComposeResult

from scout.model.work_item import WorkState
from scout.protocol.work import CreateWork, ListWork, WorkView
from scout.tui.dialogs import TextDialog
from scout.tui.rows import Row, RowColumn, RowList, build_note, build_title
from scout.tui.text import format_age, show_text
from scout.tui.view import ScreenView, ViewHost
from scout.tui.work_actions import WorkActions

_PAGE = 200
_SETTLED = 20
WORK_STYLES = {
    WorkState.OPEN: "dim",
    WorkState.WORKING: "green",
    WorkState.WAITING: "yellow",
    WorkState.REVIEW: "cyan",
    WorkState.DONE: "green",
    WorkState.CANCELLED: "dim",
}


class WorkListView(WorkActions, ScreenView):
    """Open work, by state, and what was done last. The filter knows `mine`; other words are looked for."""

    key: ClassVar[str] = "work"
    nouns: ClassVar[frozenset[str]] = frozenset({"work_item"})

    def __init__(self, host: ViewHost) -> None:
        super().__init__(host)
        self._items: dict[str, WorkView] = {}
        self._filter = ""
        self._more = False

    @property
    def subject(self) -> str:
        return f"filter: {show_text(self._filter)}" if self._filter else ""

    @property
    def item(self) -> WorkView | None:
        return self._items.get(self.query_one(RowList).key)

    def compose(self) -> ComposeResult:
        yield RowList((RowColumn(1), RowColumn(18), RowColumn(0), RowColumn(22, right=True)))

    async def load(self) -> None:
        owed = "mine" in self._filter.split()
        page = await self.host.call(ListWork(owed=owed, limit=_PAGE))
        found = list(page.items)
        if not owed:
            found += (await self.host.call(ListWork(state=WorkState.DONE, limit=_SETTLED))).items
        self._items = {item.id: item for item in found}
        self._more = page.next is not None
        self.draw()

    def tick(self) -> None:
        words = [word.lower() for word in self._filter.split() if word != "mine"]
        rows: list[Row] = []
        for state in WORK_STYLES:
            group = [self._build_row(item) for item in self._items.values() if item.state is state]
            kept = [row for row in group if all(word in _read(row) for word in words)]
            rows += [build_title(state.value.capitalize(), str(len(kept))), *kept] if kept else []
        if self._more:
            rows.append(build_note(f"  … only the newest {_PAGE}"))
        empty = "No work item matches." if self._filter else "There are no work items. Press + for a new one."
        self.query_one(RowList).set_rows(rows or [build_note(f"  {empty}")])

    def _build_row(self, item: WorkView) -> Row:
        names = self.host.names
        owes = names.name(item.next_move_address)
        return Row(
            item.id,
            (
                ("●", WORK_STYLES[item.state]),
                (show_text(names.name(item.owner_address)), ""),
                (show_text(item.title), ""),
                (f"{f'next: {show_text(owes)} ' if owes else ''}{format_age(item.updated_at)}", "dim"),
            ),
        )

    def set_filter(self, text: str) -> None:
        """Show only items with these words."""
        self._filter = text
        self.is_stale = True

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        self.host.show_record(event.key)

    def do_new(self) -> None:
        self.host.start(self._create())

    async def _create(self) -> None:
        title = await self.host.ask_person(TextDialog("New work item: what is to be done?"))
        if not title:
            return
        owner = await self.host.ask_person(TextDialog("Owner", hint="@agent; empty: you"))
        if owner is None:
            return
        made = await self.host.call(CreateWork(title=title, owner_id=owner or None))
        self.host.say(f"Created: {show_text(made.title)}", "green")
        await self.load()
        self.query_one(RowList).choose(made.id)


def _read(row: Row) -> str:
    return " ".join(text for text, _ in row.cells).lower()
