"""Writing to agents: an input with `@` completion, and the dialog that makes an ask from anywhere."""

import os
from typing import ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static, TextArea

from scout.base.refusal import Refused
from scout.model.ask import SessionPolicy
from scout.protocol.agents import Who
from scout.protocol.asks import MakeAsk
from scout.tui.describe import AGENT_MARKS
from scout.tui.rows import Row, RowColumn, RowList
from scout.tui.text import show_text
from scout.tui.view import ViewHost

_OFFERED = 5


async def find_addresses(host: ViewHost, begun: str) -> list[Row]:
    """Return the agents whose address begins so, with their status."""
    query = begun.removeprefix("@").partition(".")[0]
    try:
        page = await host.call(Who(query=query or None, limit=20))
    except Refused:
        return []
    fitting = [agent for agent in page.items if show_text(agent.address).startswith(begun)]
    return [
        Row(
            agent.address,
            (
                AGENT_MARKS[agent.status],
                (show_text(agent.address), ""),
                (show_text(agent.description), "dim"),
            ),
        )
        for agent in (fitting or page.items)[:_OFFERED]
    ]


def _find_common_start(words: list[str]) -> str:
    first, last = min(words), max(words)
    differ = (number for number in range(len(first)) if not last.startswith(first[: number + 1]))
    return first[: next(differ, len(first))]


class MessageInput(TextArea):
    """Some lines of text. Enter sends, Ctrl-J begins a new line, Tab completes an address."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+j", "new_line", show=False, priority=True),
        Binding("ctrl+t", "switch", show=False, priority=True),
    ]

    class Sent(Message):
        """Enter was pressed."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Switched(Message):
        """Ctrl-T was pressed."""

    def __init__(self, host: ViewHost, *, id: str | None = None) -> None:  # noqa: A002 (a widget's id)
        super().__init__(id=id, compact=True, show_line_numbers=False, highlight_cursor_line=False)
        self._host = host

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_switch(self) -> None:
        self.post_message(self.Switched())

    def clear_draft(self) -> None:
        self.load_text("")

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if self.text.strip():
                self.post_message(self.Sent(self.text.strip()))
            return
        if event.key == "tab" and self._get_begun().startswith("@"):
            event.stop()
            event.prevent_default()
            self._complete(self._get_begun())
            return
        await super()._on_key(event)

    def _get_begun(self) -> str:
        row, column = self.cursor_location
        before = self.document.get_line(row)[:column]
        return before.rpartition(" ")[2]

    @work(exclusive=True)
    async def _complete(self, begun: str) -> None:
        rows = await find_addresses(self._host, begun)
        fitting = [row.key for row in rows if row.key.startswith(begun)]
        if not fitting:
            self._host.say(f"No agent begins with {show_text(begun)}", "yellow")
            return
        common = _find_common_start(fitting) if len(fitting) > 1 else f"{fitting[0]} "
        self.insert(common[len(begun) :])
        if len(fitting) > 1:
            self._host.say("  ".join(map(show_text, fitting)))


class Draft:
    """What was written last and not sent."""

    def __init__(self) -> None:
        self.to = ""
        self.body = ""


class AskDialog(ModalScreen[MakeAsk | None]):
    """To whom, and what. The list below the address completes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("ctrl+n", "new_session", show=False, priority=True),
    ]

    def __init__(
        self, host: ViewHost, draft: Draft, to: str = "", conversation_id: str | None = None
    ) -> None:
        super().__init__()
        self._host, self._draft, self._to = host, draft, to
        self._conversation_id = conversation_id
        self._policy: SessionPolicy | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield Static("Ask", classes="title", markup=False)
            yield Input(self._to or self._draft.to, placeholder="@agent, /path or a project folder", id="to")
            yield RowList((RowColumn(1), RowColumn(34), RowColumn(0)), id="offers")
            yield MessageInput(self._host, id="body")
            yield Static("", classes="hint", markup=False)

    def on_mount(self) -> None:
        self.query_one("#body", MessageInput).load_text(self._draft.body)
        self.query_one("#offers").can_focus = False
        self.query_one("#body" if self._to else "#to").focus()
        self._draw_hint()
        self._offer(self._to or self._draft.to)

    def _draw_hint(self) -> None:
        session = "in its session" if self._policy is SessionPolicy.NEW else "in a new session"
        text = f"Enter sends · Ctrl-J new line · Ctrl-N {session} · Esc keeps the draft"
        self.query_one(".hint", Static).update(text)

    def action_new_session(self) -> None:
        self._policy = None if self._policy else SessionPolicy.NEW
        self._draw_hint()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._offer(event.value)

    @work(exclusive=True)
    async def _offer(self, begun: str) -> None:
        rows = await find_addresses(self._host, begun) if not _is_folder(begun) else []
        self.query_one("#offers", RowList).set_rows(rows)

    async def on_key(self, event: events.Key) -> None:
        to = self.query_one("#to", Input)
        if self.focused is not to:
            return
        offers = self.query_one("#offers", RowList)
        if event.key in ("down", "up"):
            event.stop()
            offers.action_move(1 if event.key == "down" else -1)
        elif event.key == "tab" and offers.key and to.value != offers.key and not _is_folder(to.value):
            event.stop()
            event.prevent_default()
            self._take(offers.key)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        offers = self.query_one("#offers", RowList)
        known = [row.key for row in offers.rows]
        if offers.key and event.value not in known and not _is_folder(event.value):
            self._take(offers.key)
        self.query_one("#body").focus()

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        self._take(event.key)
        self.query_one("#body").focus()

    def _take(self, address: str) -> None:
        to = self.query_one("#to", Input)
        to.value = address
        to.cursor_position = len(address)

    def on_message_input_sent(self, event: MessageInput.Sent) -> None:
        to = self.query_one("#to", Input).value.strip()
        if not to:
            self.query_one("#to").focus()
            return
        self._keep()
        folder = os.path.abspath(os.path.expanduser(to)) if _is_folder(to) else None  # noqa: PTH100, PTH111 (as typed)
        self.dismiss(
            MakeAsk(
                to=None if folder else to,
                project_path=folder,
                body=event.text,
                session_policy=self._policy,
                conversation_id=self._conversation_id if to == self._to else None,
            )
        )

    def action_leave(self) -> None:
        self._keep()
        self.dismiss(None)

    def _keep(self) -> None:
        self._draft.to = self.query_one("#to", Input).value
        self._draft.body = self.query_one("#body", MessageInput).text


def _is_folder(text: str) -> bool:
    """Whether a text names a project folder, and not an agent: `./x`, `../x`, `~/x`."""
    return text.startswith((".", "~"))
