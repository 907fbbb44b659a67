"""Inbox: what needs you, decided in place.

The decision is about the item that is shown below the list, at the revision that is shown. An item that is
decided elsewhere stays in the list with its outcome until the view is left, so that no other one moves under
a key that is about to be pressed.
"""

from typing import ClassVar

from textual.app import ComposeResult

from scout.base.refusal import Refused, WrongState
from scout.model.access.allowance import AllowanceScope
from scout.model.attention import AttentionMove, Risk
from scout.protocol.attention import (
    AnswerAttention,
    ApproveAttention,
    AttentionView,
    DecideAttention,
    DenyAttention,
    DismissAttention,
    GetAttention,
    ListAttention,
)
from scout.tui.describe import (
    OPEN_STATES,
    RISK_MARKS,
    build_item_blocks,
    build_request_blocks,
    describe_outcome,
)
from scout.tui.dialogs import Chooser, KeyChoice, TextDialog
from scout.tui.pane import TextPane
from scout.tui.rows import Row, RowColumn, RowList, build_note, build_title
from scout.tui.text import Paragraph, format_age, shorten_ids, show_text
from scout.tui.view import ScreenView, ViewHost

_URGENCY = {Risk.HIGH: 0, Risk.MEDIUM: 1, Risk.LOW: 2}
_MOST = 200
_DONE = {"approve": "Approved", "deny": "Denied", "answer": "Answered", "dismiss": "Dismissed"}
_SCOPES = (
    KeyChoice("a", "this agent", "agent"),
    KeyChoice("s", "this session only", "session"),
    KeyChoice("p", "this project", "project"),
    KeyChoice("e", "everywhere", "everywhere"),
)


class InboxView(ScreenView):
    """The list, and below it the item whole."""

    key: ClassVar[str] = "inbox"
    nouns: ClassVar[frozenset[str]] = frozenset({"attention"})

    def __init__(self, host: ViewHost) -> None:
        super().__init__(host)
        self._items: dict[str, AttentionView] = {}
        self._chosen = set[str]()
        self._shown: tuple[str, int] = ("", 0)
        self._wanted = ""

    def compose(self) -> ComposeResult:
        yield RowList((RowColumn(1), RowColumn(1), RowColumn(0), RowColumn(24, right=True)), id="items")
        yield TextPane(id="item")

    # -- reading ---------------------------------------------------------------------------------------

    async def load(self) -> None:
        page = await self.host.call(ListAttention(limit=_MOST))
        found = {item.id: item for item in page.items}
        for ident, item in list(self._items.items()):
            if ident not in found and item.state in OPEN_STATES:
                found[ident] = await self._read_outcome(item)
            elif ident not in found:
                found[ident] = item
        self._items = dict(list(found.items())[: 2 * _MOST])
        self._chosen &= {ident for ident, item in self._items.items() if item.state in OPEN_STATES}
        self.draw()

    async def _read_outcome(self, item: AttentionView) -> AttentionView:
        try:
            return await self.host.call(GetAttention(attention_id=item.id))
        except Refused:
            return item

    def forget_decided(self) -> None:
        """Drop decided items: the view is left."""
        self._items = {ident: item for ident, item in self._items.items() if item.state in OPEN_STATES}

    def tick(self) -> None:
        rows = self.query_one("#items", RowList)
        rows.set_rows(self._build_rows())
        if self._wanted in self._items:
            rows.choose(self._wanted)
            self._wanted = ""
        self._show_item()

    def show_item(self, ident: str) -> None:
        """Put the cursor on an item, now or when it is read."""
        self._wanted = ident
        self.draw()

    def _build_rows(self) -> list[Row]:
        if not self._items:
            return [
                build_note(""),
                build_note("  Your inbox is empty."),
                build_note("  What an agent may not decide alone is asked here."),
            ]
        groups: dict[str, list[AttentionView]] = {}
        for item in self._items.values():
            groups.setdefault(item.agent_address, []).append(item)
        for items in groups.values():
            items.sort(key=_rate)
        order = sorted(groups.items(), key=lambda one: min(_rate(item) for item in one[1]))
        rows: list[Row] = []
        for address, items in order:
            still = sum(1 for item in items if item.state in OPEN_STATES)
            rows.append(build_title(show_text(address) or "scout", f"{still} open"))
            rows += [self._build_row(item) for item in items]
        return rows

    def _build_row(self, item: AttentionView) -> Row:
        outcome = describe_outcome(item, self.host.names)
        mark = ("✓", "green") if item.id in self._chosen else ("", "")
        end = outcome or f"{item.kind} {format_age(item.created_at)}"
        cells = (mark, ("", "") if outcome else RISK_MARKS[item.risk])
        return Row(
            item.id, (*cells, (shorten_ids(show_text(item.title)), "dim" if outcome else ""), (end, "dim"))
        )

    def on_row_list_highlighted(self) -> None:
        self._show_item()

    def on_row_list_chosen(self) -> None:
        self.query_one("#item", TextPane).focus()

    def _show_item(self) -> None:
        item, pane = self._item, self.query_one("#item", TextPane)
        if item is None:
            pane.set_blocks([])
            self._shown = ("", 0)
            return
        is_new = self._shown != (item.id, item.revision)
        self._shown = (item.id, item.revision)
        pane.set_blocks(build_item_blocks(item, self.host.names), home=is_new)

    @property
    def _item(self) -> AttentionView | None:
        return self._items.get(self.query_one("#items", RowList).key)

    # -- deciding --------------------------------------------------------------------------------------

    def do_approve(self) -> None:
        self._begin("approve")

    def do_deny(self) -> None:
        self._begin("deny")

    def do_dismiss(self) -> None:
        self._begin("dismiss")

    def do_answer(self) -> None:
        if self._takes("answer"):
            self.host.start(self._answer(self._open_item()))

    def do_approve_always(self) -> None:
        if self._takes("approve"):
            self.host.start(self._approve_always(self._open_item()))

    def do_select(self) -> None:
        item = self._item
        if item is not None and item.state in OPEN_STATES:
            self._chosen ^= {item.id}
            self.draw()
            self.query_one("#items", RowList).action_move(1)

    def do_why(self) -> None:
        if (item := self._item) is not None:
            self.host.explain(item.id)

    def _begin(self, move: str) -> None:
        if self._chosen:
            self.host.start(self._decide_several(move))
        elif self._takes(move):
            self.host.start(self._decide(self._open_item(), move))

    def _open_item(self) -> AttentionView:
        item = self._item
        assert item is not None
        return item

    def _takes(self, move: str) -> bool:
        """Whether the item that is shown can be decided so; says why not."""
        item = self._item
        if item is None:
            return False
        if item.state not in OPEN_STATES:
            self.host.say(f"Already {describe_outcome(item, self.host.names)}.", "yellow")
            return False
        offered = list(dict.fromkeys(action.move.value for action in item.actions))
        if move not in offered:
            self.host.say(f"This item takes {', '.join(offered)}, not {move}.", "yellow")
            return False
        if move == "approve" and not self.query_one("#item", TextPane).is_read:
            self.query_one("#item", TextPane).focus()
            self.host.say("There is more below. Read it to its end (PgDn), then press y.", "yellow")
            return False
        return True

    async def _decide(self, item: AttentionView, move: str) -> None:
        kinds = {"approve": ApproveAttention, "deny": DenyAttention, "dismiss": DismissAttention}
        await self._settle(item, kinds[move](attention_id=item.id, revision=item.revision))

    async def _answer(self, item: AttentionView) -> None:
        options = [action.value for action in item.actions if action.value]
        dialog = TextDialog(f"Answer {show_text(item.agent_address) or 'scout'}", options=options)
        text = await self.host.ask_person(dialog)
        if text:
            await self._settle(
                item, AnswerAttention(attention_id=item.id, answer=text, revision=item.revision)
            )

    async def _approve_always(self, item: AttentionView) -> None:
        if item.permission is None or item.permission.observed:
            self.host.say("Only a request for a tool can be allowed from now on. Press y.", "yellow")
            return
        scope = await self.host.ask_person(Chooser("Approve, and allow the same from now on, for:", _SCOPES))
        if scope:
            await self._settle(
                item,
                ApproveAttention(
                    attention_id=item.id, revision=item.revision, always=True, scope=AllowanceScope(scope)
                ),
            )

    async def _settle(
        self,
        item: AttentionView,
        request: ApproveAttention | DenyAttention | DismissAttention | AnswerAttention,
    ) -> None:
        """Decide an item; if somebody else was first, show who."""
        try:
            done = await self.host.call(request)
        except Refused as refused:
            current = await self._read_outcome(item)
            self._items[item.id] = current
            self.draw()
            if not isinstance(refused.diagnostic, WrongState) or current.state in OPEN_STATES:
                raise
            self.host.say(f"Already {describe_outcome(current, self.host.names)}.", "yellow")
            return
        self._items[item.id] = done
        self.draw()
        standing = f" From now on; undo: scout allow revoke {done.allowance_id}" if done.allowance_id else ""
        move = request.operation.rpartition(".")[2]
        self.host.say(f"{_DONE[move]}: {show_text(item.title)}{standing}", "green")

    async def _decide_several(self, move: str) -> None:
        items = [item for item in self._items.values() if item.id in self._chosen]
        blocks = [block for item in items for block in (*build_request_blocks(item), Paragraph(""))]
        key = {"approve": "y", "deny": "n", "dismiss": "d"}[move]
        choices = [KeyChoice(key, f"{move} all {len(items)}", move)]
        if await self.host.ask_person(Chooser(f"{move.capitalize()} {len(items)} items", choices, blocks)):
            request = DecideAttention(
                move=AttentionMove(move), attention_ids=tuple(item.id for item in items)
            )
            told = await self.host.call(request)
            failed = [one.problem for one in told.items if not one.decided]
            self._chosen.clear()
            await self.load()
            words = f"{_DONE[move]} {len(told.items) - len(failed)} of {len(told.items)}."
            self.host.say(f"{words} {' '.join(failed)}".strip(), "yellow" if failed else "green")


def _rate(item: AttentionView) -> tuple[int, int]:
    """Return the place of an item: high risk first, then the oldest. A decided one keeps its place."""
    return (_URGENCY[item.risk], item.created_at)
