"""Writing to agents: an input with `@` completion and files, and the dialog that asks from anywhere."""

import os
from pathlib import Path
from typing import ClassVar, NamedTuple

from textual import events, work
from textual.actions import SkipAction
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
from scout.tui.attachments import PathDialog, find_common_start
from scout.tui.describe import AGENT_MARKS
from scout.tui.drafts import Draft
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
    # Agents with handles first: the others, such as those of schedules, are rarely meant.
    named = sorted(page.items, key=lambda agent: not agent.address.startswith("@"))
    fitting = [agent for agent in named if show_text(agent.address).startswith(begun)]
    return [
        Row(
            agent.address,
            (
                AGENT_MARKS[agent.status],
                (show_text(agent.address), ""),
                (show_text(agent.description), "dim"),
            ),
        )
        for agent in (fitting or named)[:_OFFERED]
    ]


class MessageInput(TextArea):
    """Some lines of text, and files. Enter sends, Ctrl-J begins a new line, Tab completes an address.

    Ctrl-O attaches a file; Ctrl-R takes the last one away.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+j", "new_line", show=False, priority=True),
        Binding("ctrl+o", "attach", show=False),
        Binding("ctrl+r", "detach", show=False),
        Binding("ctrl+t", "switch", show=False, priority=True),
    ]

    class Sent(Message):
        """Enter was pressed."""

        def __init__(self, text: str, files: tuple[str, ...]) -> None:
            super().__init__()
            self.text, self.files = text, files

    class FilesChanged(Message):
        """A file was attached, or taken away."""

    class Switched(Message):
        """Ctrl-T was pressed."""

    def __init__(self, host: ViewHost, *, id: str | None = None, clears: bool = False) -> None:  # noqa: A002 (a widget's id)
        super().__init__(id=id, compact=True, show_line_numbers=False, highlight_cursor_line=False)
        self._host, self._clears = host, clears
        self.files: tuple[str, ...] = ()

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_attach(self) -> None:
        self._host.start(self._attach_file())

    async def _attach_file(self) -> None:
        file = await self._host.ask_person(PathDialog())
        if file is not None and file not in self.files:
            self._set_files((*self.files, file))

    def action_detach(self) -> None:
        self._set_files(self.files[:-1])

    def _set_files(self, files: tuple[str, ...]) -> None:
        self.files = files
        self.post_message(self.FilesChanged())

    @property
    def attached(self) -> str:
        """The names of the files, in words; empty if there are none."""
        names = ", ".join(show_text(Path(file).name) for file in self.files)
        return f"attached: {names} (Ctrl-R removes the last)" if names else ""

    def action_switch(self) -> None:
        self.post_message(self.Switched())

    def show_draft(self, draft: Draft) -> None:
        """Continue a text that was not sent."""
        self.load_text(draft.body)
        self.move_cursor(self.document.end)
        self._set_files(draft.files)

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if self.text.strip():
                self.post_message(self.Sent(self.text.strip(), self.files))
                if self._clears:  # at once: what is typed next is the next text
                    self.show_draft(Draft())
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
        common = find_common_start(fitting) if len(fitting) > 1 else f"{fitting[0]} "
        self.insert(common[len(begun) :])
        if len(fitting) > 1:
            self._host.say("  ".join(map(show_text, fitting)))


class AskOrder(NamedTuple):
    """An ask that was composed, the files to store for it, and the place of its draft."""

    request: MakeAsk
    files: tuple[str, ...]
    place: str


class AskDialog(ModalScreen[AskOrder | None]):
    """To whom, and what. The list below the address completes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("enter", "leave_address", show=False, priority=True),
        Binding("ctrl+n", "new_session", show=False, priority=True),
        Binding("ctrl+o", "attach", show=False),
        Binding("ctrl+r", "detach", show=False),
    ]

    def __init__(self, host: ViewHost, to: str = "", conversation_id: str | None = None) -> None:
        super().__init__()
        self._host, self._to = host, to
        self._place = f"ask {to}".strip()
        self._conversation_id = conversation_id
        self._policy: SessionPolicy | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield Static("Ask", classes="title", markup=False)
            to = self._to or self._host.drafts.get(self._place).to
            yield Input(to, placeholder="@agent, /path or a project folder", id="to")
            yield RowList((RowColumn(1), RowColumn(34), RowColumn(0)), id="offers")
            yield MessageInput(self._host, id="body")
            yield Static("", classes="hint", markup=False)

    def on_mount(self) -> None:
        draft = self._host.drafts.get(self._place)
        self.query_one("#body", MessageInput).show_draft(draft)
        self.query_one("#offers").can_focus = False
        self.query_one("#body" if self._to else "#to").focus()
        self._draw_hint()
        self._offer(self._to or draft.to)

    def _draw_hint(self) -> None:
        is_new = self._policy is SessionPolicy.NEW
        sends, other = (
            ("Enter sends in a new session", "no") if is_new else ("Enter sends", "in a new session")
        )
        text = f"{sends} · Ctrl-N {other} · Ctrl-J new line · Ctrl-O attach"
        lines = [self.query_one("#body", MessageInput).attached, text]
        self.query_one(".hint", Static).update("\n".join(line for line in lines if line))

    def on_message_input_files_changed(self) -> None:
        self._keep()
        self._draw_hint()

    def on_text_area_changed(self) -> None:
        self._keep()

    def action_attach(self) -> None:
        self.query_one("#body", MessageInput).action_attach()

    def action_detach(self) -> None:
        self.query_one("#body", MessageInput).action_detach()

    def action_new_session(self) -> None:
        self._policy = None if self._policy else SessionPolicy.NEW
        self._draw_hint()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._keep()
        self._offer(event.value)

    @work(exclusive=True)
    async def _offer(self, begun: str) -> None:
        rows = await find_addresses(self._host, begun) if not _is_folder(begun) else []
        for offers in self.query("#offers").results(RowList):  # none, if the dialog was closed meanwhile
            offers.set_rows(rows)

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

    def action_leave_address(self) -> None:
        """Go on to the text at once, so that what is typed next is not added to the address."""
        to = self.query_one("#to", Input)
        if self.focused is not to:
            raise SkipAction
        self.set_focus(self.query_one("#body"))
        to.call_later(self._complete_address)  # after the keys that were typed into it

    def _complete_address(self) -> None:
        """Take the address under the cursor, if it begins with what was typed."""
        typed, offers = self.query_one("#to", Input).value, self.query_one("#offers", RowList)
        if typed not in [row.key for row in offers.rows] and offers.key.startswith(typed):
            self._take(offers.key)

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
        request = MakeAsk(
            to=None if folder else to,
            project_path=folder,
            body=event.text,
            session_policy=self._policy,
            conversation_id=self._conversation_id if to == self._to else None,
        )
        self.dismiss(AskOrder(request, event.files, self._place))

    def action_leave(self) -> None:
        self._keep()
        self.dismiss(None)

    def _keep(self) -> None:
        body, to = self.query_one("#body", MessageInput), self.query_one("#to", Input).value
        address = to if to != self._to else ""
        self._host.drafts.keep(self._place, Draft(to=address, body=body.text, files=body.files))


def _is_folder(text: str) -> bool:
    """Whether a text names a project folder, and not an agent: `./x`, `../x`, `~/x`."""
    return text.startswith((".", "~"))
