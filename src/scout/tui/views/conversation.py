"""One conversation, with a composer: `@` completes addresses, Enter sends."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Static

from scout.model.conversation import ConversationKind
from scout.protocol.asks import MakeAsk
from scout.protocol.channels import ConversationView as ConversationRecord
from scout.protocol.channels import GetConversation, MarkRead
from scout.protocol.talk import ListMessages, MessageLine, Send
from scout.tui.composer import MessageInput
from scout.tui.pane import TextPane
from scout.tui.text import Paragraph, format_clock, show_text
from scout.tui.view import ScreenView, ViewHost

_PAGE = 100


class ConversationDetail(ScreenView):
    """The messages, and below them what you write: in a direct conversation an ask, unless you switch."""

    key: ClassVar[str] = "conversation"
    nouns: ClassVar[frozenset[str]] = frozenset({"message", "conversation"})

    def __init__(self, host: ViewHost, ident: str) -> None:
        super().__init__(host)
        self._ident = ident
        self._record: ConversationRecord | None = None
        self._messages: tuple[MessageLine, ...] = ()
        self._is_ask: bool | None = None

    @property
    def subject(self) -> str:
        return show_text(self._get_name())

    def _get_name(self) -> str:
        if self._record is None:
            return self._ident
        return self._record.name or ", ".join(self._list_others()) or "you"

    def _list_others(self) -> list[str]:
        members = self._record.members if self._record else ()
        return [one.address for one in members if one.agent_id != self.host.own_id]

    def compose(self) -> ComposeResult:
        yield TextPane(id="messages", follow=True)
        yield Static("", id="manner", markup=False)
        yield MessageInput(self.host, id="composer")

    async def load(self) -> None:
        first = self._record is None
        self._record = await self.host.call(GetConversation(conversation_id=self._ident))
        if first:
            self._is_ask = self._record.kind is ConversationKind.DM
            self._draw_manner()
        page = await self.host.call(ListMessages(conversation=self._ident, newest=True, limit=_PAGE))
        self._messages = page.items
        self.draw()
        if first:
            self.query_one("#messages", TextPane).scroll_end(animate=False)
        if self._record.unread:
            await self.host.call(MarkRead(conversation_id=self._ident))

    def tick(self) -> None:
        blocks: list[Paragraph] = []
        for message in self._messages:
            who = "you" if message.sender == self.host.own_id else show_text(message.sender_address)
            kind = "" if message.kind == "chat" else f" · {message.kind}"
            style = "bold" if who == "you" else "accent"
            blocks += [Paragraph(f"{who} · {format_clock(message.created_at)}{kind}", style)]
            text = "(erased)" if message.redacted_at else message.body
            blocks += [Paragraph(text, foreign=True)]
            blocks += [Paragraph(f"attached: {show_text(one.name)}", "dim") for one in message.attachments]
        self.query_one("#messages", TextPane).set_blocks(
            blocks or [Paragraph("Nothing was said yet.", "dim")]
        )

    def focus_first(self) -> None:
        self.query_one(MessageInput).focus()

    def do_reply(self) -> None:
        self.query_one(MessageInput).focus()

    def _draw_manner(self) -> None:
        what, other = ("an ask", "a message") if self._is_ask else ("a message", "an ask")
        text = f"Enter sends {what} · Ctrl-T: {other} instead · Tab completes @"
        self.query_one("#manner", Static).update(text)

    def on_message_input_switched(self) -> None:
        self._is_ask = not self._is_ask
        self._draw_manner()

    def on_message_input_sent(self, event: MessageInput.Sent) -> None:
        self.host.start(self._send(event.text))

    async def _send(self, text: str) -> None:
        others = self._list_others()
        if self._is_ask and len(others) == 1:
            receipt = await self.host.call(MakeAsk(to=others[0], body=text, conversation_id=self._ident))
            self.host.say(f"Asked {show_text(receipt.address)}: {receipt.flight_id} {receipt.state}", "green")
        else:
            receipt = await self.host.call(Send(body=text, conversation_id=self._ident))
            states = ", ".join(f"{show_text(one.address)} {one.state}" for one in receipt.deliveries[:4])
            self.host.say(f"Sent. {states}".strip(), "green")
        self.query_one(MessageInput).clear_draft()
        await self.load()
