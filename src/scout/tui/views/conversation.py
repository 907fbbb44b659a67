"""One conversation, with receipts and a composer: `@` completes addresses, Enter sends."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Static

from scout.base.codec import to_plain
from scout.base.refusal import Refused
from scout.model.conversation import ConversationKind, DeliveryReceipt
from scout.model.delivery import DeliveryState
from scout.policy.sentences import add_node, describe_receipt
from scout.protocol.asks import MakeAsk
from scout.protocol.channels import ConversationView as ConversationRecord
from scout.protocol.channels import GetConversation, MarkRead
from scout.protocol.talk import GetMessage, ListMessages, MessageLine, Send
from scout.tui.attachments import store_files
from scout.tui.composer import MessageInput
from scout.tui.drafts import Draft
from scout.tui.pane import MessagePane
from scout.tui.text import Paragraph, format_clock, show_text
from scout.tui.view import ScreenView, ViewHost

_PAGE = 100
_RECEIPTS = 20  # newest messages whose deliveries are shown
_MOVING = (DeliveryState.PENDING, DeliveryState.LEASED)
_DELIVERED: dict[str, tuple[str, str, str]] = {
    DeliveryState.PENDING: ("○", "pending", "dim"),
    DeliveryState.LEASED: ("◌", "on its way", "cyan"),
    DeliveryState.ACKED: ("✓", "acknowledged", "green"),
    DeliveryState.DEAD_LETTERED: ("✗", "returned", "red"),
    DeliveryState.CANCELLED: ("–", "cancelled", "dim"),
}
_UNTOLD = ("", "accepted")  # reasons that say nothing more than the state


class ConversationDetail(ScreenView):
    """The messages, and below them what you write: in a direct conversation an ask, unless you switch."""

    key: ClassVar[str] = "conversation"
    nouns: ClassVar[frozenset[str]] = frozenset({"message", "conversation", "delivery"})

    def __init__(self, host: ViewHost, ident: str) -> None:
        super().__init__(host)
        self._ident = ident
        self._receipts: dict[str, tuple[DeliveryReceipt, ...]] = {}
        self._record: ConversationRecord | None = None
        self._messages: tuple[MessageLine, ...] = ()
        self._is_ask: bool | None = None
        self._chosen_id = ""
        self._places = dict[str, int]()  # the first block of each message

    @property
    def subject(self) -> str:
        return show_text(self._get_name())

    def _get_name(self) -> str:
        if self._record is None:
            return self._ident
        return self._record.name or ", ".join(self._list_names()) or "you"

    def _list_others(self) -> list[str]:
        members = self._record.members if self._record else ()
        return [one.address for one in members if one.agent_id != self.host.own_id]

    def _list_names(self) -> list[str]:
        members = self._record.members if self._record else ()
        return [add_node(one.address, one.node) for one in members if one.agent_id != self.host.own_id]

    def compose(self) -> ComposeResult:
        yield MessagePane(id="messages", follow=True)
        yield Static("", id="manner", markup=False)
        yield MessageInput(self.host, id="composer", clears=True)

    def on_mount(self) -> None:
        self.query_one(MessageInput).show_draft(self.host.drafts.get(self._ident))

    async def load(self) -> None:
        first = self._record is None
        self._record = await self.host.call(GetConversation(conversation_id=self._ident))
        if first:
            self._is_ask = self._record.kind is ConversationKind.DM
            self._draw_manner()
        page = await self.host.call(ListMessages(conversation=self._ident, newest=True, limit=_PAGE))
        self._messages = page.items
        await self._read_receipts()
        self.draw()
        if first:
            self.query_one("#messages", MessagePane).scroll_end(animate=False)
        if self._record.unread:
            await self.host.call(MarkRead(conversation_id=self._ident))

    async def _read_receipts(self) -> None:
        """Read what became of the newest messages; what is settled is read once."""
        for message in self._messages[-_RECEIPTS:]:
            known = self._receipts.get(message.id)
            if known is None or any(one.state in _MOVING for one in known):
                try:
                    found = await self.host.call(GetMessage(message_id=message.id))
                    self._receipts[message.id] = found.deliveries
                except Refused:
                    self._receipts[message.id] = ()

    def _show_receipts(self, message: MessageLine) -> list[Paragraph]:
        blocks: list[Paragraph] = []
        for one in self._receipts.get(message.id, ()):
            mark, state, style = _DELIVERED.get(one.state, ("·", one.state, "dim"))
            reason = show_text(self.host.names.say_you(one.reason))
            why = f": {reason}" if reason not in _UNTOLD else ""
            who = show_text(self.host.names.name(one.address, one.mesh.node if one.mesh else None))
            way = f", the message {show_text(describe_receipt(to_plain(one.mesh)))}" if one.mesh else ""
            blocks.append(Paragraph(f"{mark} {who} {state}{why}{way}", style, cut=True))
        return blocks

    def tick(self) -> None:
        blocks: list[Paragraph] = []
        pane = self.query_one("#messages", MessagePane)
        chosen = self._chosen if pane.has_focus else None
        self._places.clear()
        for message in self._messages:
            self._places[message.id] = len(blocks)
            name = add_node(message.sender_address, message.sender_node)
            who = "you" if message.sender == self.host.own_id else show_text(name)
            kind = "" if message.kind == "chat" else f" · {message.kind}"
            style = "reverse" if message is chosen else "bold" if who == "you" else "accent"
            blocks += [Paragraph(f"{who} · {format_clock(message.created_at)}{kind}", style)]
            text = "(erased)" if message.redacted_at else message.body
            blocks += [Paragraph(text, foreign=True)]
            blocks += [
                Paragraph(f"attached: {show_text(one.name)} ({one.size} bytes)", "dim")
                for one in message.attachments
            ]
            blocks += self._show_receipts(message)
        pane.set_blocks(blocks or [Paragraph("No messages yet. Write the first one below.", "dim")])

    @property
    def _chosen(self) -> MessageLine | None:
        """The message that was chosen by keys, else the newest."""
        newest = self._messages[-1] if self._messages else None
        return next((one for one in self._messages if one.id == self._chosen_id), newest)

    def on_message_pane_moved(self, event: MessagePane.Moved) -> None:
        chosen = self._chosen
        if chosen is None:
            return
        place = self._messages.index(chosen) + event.step
        self._chosen_id = self._messages[min(max(place, 0), len(self._messages) - 1)].id
        self.tick()
        self.query_one("#messages", MessagePane).show_block(self._places[self._chosen_id])

    def focus_first(self) -> None:
        self.query_one(MessageInput).focus()

    @property
    def typing_keys(self) -> list[tuple[str, str]]:
        if not self.query_one(MessageInput).has_focus:
            return []
        return [("Tab", "to the messages and the other keys"), ("Ctrl-J", "new line")]

    def do_reply(self) -> None:
        self.query_one(MessageInput).focus()

    def _draw_manner(self) -> None:
        what, other = ("an ask", "a message") if self._is_ask else ("a message", "an ask")
        text = f"Enter sends {what} · Ctrl-T {other} · Ctrl-O attach · Tab completes @"
        lines = [self.query_one(MessageInput).attached, text]
        self.query_one("#manner", Static).update("\n".join(line for line in lines if line))

    def on_message_input_files_changed(self) -> None:
        self._keep()
        self._draw_manner()

    def on_text_area_changed(self) -> None:
        self._keep()

    def _keep(self) -> None:
        composer = self.query_one(MessageInput)
        self.host.drafts.keep(self._ident, Draft(body=composer.text, files=composer.files))

    def do_why(self) -> None:
        if self._chosen is not None:
            self.host.explain(self._chosen.id)

    def on_message_input_switched(self) -> None:
        self._is_ask = not self._is_ask
        self._draw_manner()

    def on_message_input_sent(self, event: MessageInput.Sent) -> None:
        self.host.start(self._send(event.text, event.files))

    async def _send(self, text: str, files: tuple[str, ...]) -> None:
        try:
            await self._post(text, await store_files(self.host, files))
        except Refused:
            composer = self.query_one(MessageInput)
            later = f"\n{composer.text}" if composer.text else ""
            composer.show_draft(Draft(body=f"{text}{later}", files=files + composer.files))
            raise
        await self.load()

    async def _post(self, text: str, stored: tuple[str, ...]) -> None:
        others = self._list_others()
        if self._is_ask and len(others) == 1:
            ask = MakeAsk(to=others[0], body=text, conversation_id=self._ident, attachments=stored)
            receipt = await self.host.call(ask)
            where = show_text(add_node(receipt.address or receipt.target, receipt.node))
            self.host.say(f"Asked {where}: {receipt.flight_id} {receipt.state}", "green")
        else:
            sent = await self.host.call(Send(body=text, conversation_id=self._ident, attachments=stored))
            states = ", ".join(f"{show_text(one.address)} {one.state}" for one in sent.deliveries[:4])
            self.host.say(f"Sent. {states}".strip(), "green")
