"""Conversations: the newest message of each."""

from typing import ClassVar

from textual.app import ComposeResult

from scout.protocol.talk import Latest, LatestItem
from scout.tui.rows import Row, RowColumn, RowList, build_note
from scout.tui.text import format_age, show_text
from scout.tui.view import ScreenView, ViewHost

_PAGE = 100


class ConversationsView(ScreenView):
    """The list. Enter opens a conversation."""

    key: ClassVar[str] = "conversations"
    nouns: ClassVar[frozenset[str]] = frozenset({"message", "conversation"})

    def __init__(self, host: ViewHost) -> None:
        super().__init__(host)
        self._items: tuple[LatestItem, ...] = ()

    def compose(self) -> ComposeResult:
        yield RowList((RowColumn(2), RowColumn(24), RowColumn(0), RowColumn(5, right=True)))

    async def load(self) -> None:
        self._items = (await self.host.call(Latest(limit=_PAGE))).items
        self.draw()

    def tick(self) -> None:
        rows = [self._build_row(item) for item in self._items]
        note = build_note("  No conversations yet. Press c to ask an agent.")
        self.query_one(RowList).set_rows(rows or [note])

    def _build_row(self, item: LatestItem) -> Row:
        unread = (str(item.unread), "accent") if item.unread else ("", "")
        style = "bold" if item.unread else ""
        message = item.message
        who = f"{self.host.names.agent(message.sender)}: " if message else ""
        text = f"{who}{show_text(message.body)}" if message else "nothing yet"
        age = format_age(message.created_at) if message else ""
        return Row(item.conversation_id, (unread, (show_text(item.name), style), (text, "dim"), (age, "dim")))

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        self.host.show_record(event.key)

    def do_reply(self) -> None:
        if key := self.query_one(RowList).key:
            self.host.show_record(key)
