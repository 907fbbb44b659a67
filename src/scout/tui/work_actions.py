"""What can be done with a work item, in the list and in its own view."""

from typing import ClassVar, NamedTuple

from scout.base.codec import decode
from scout.model.waiting import WaitingKind
from scout.model.work_item import WORK_ITEM, WorkMove, WorkState
from scout.protocol.keys import IN_VIEWS
from scout.protocol.request import Write
from scout.protocol.work import (
    AcceptWork,
    CancelWork,
    HandOverWork,
    ProgressWork,
    ReopenWork,
    ResumeWork,
    StartWork,
    SubmitWork,
    WaitWork,
    WorkView,
)
from scout.tui.dialogs import Chooser, KeyChoice, TextDialog
from scout.tui.text import Paragraph, show_text
from scout.tui.view import ViewHost


class _Move(NamedTuple):
    """A move: its request, what is said when it is done, and the text that it needs, if any."""

    request: type[Write[WorkView]]
    done: str
    field: str = ""
    asks: str = ""
    hint: str = ""


_MOVES = {
    WorkMove.START: _Move(StartWork, "Started"),
    WorkMove.RESUME: _Move(ResumeWork, "Resumed"),
    WorkMove.SUBMIT: _Move(SubmitWork, "Submitted for review"),
    WorkMove.ACCEPT: _Move(AcceptWork, "Accepted"),
    WorkMove.CANCEL: _Move(CancelWork, "Cancelled"),
    WorkMove.WAIT: _Move(WaitWork, "Waiting"),
    WorkMove.REOPEN: _Move(ReopenWork, "Reopened", "reason", "What is missing?"),
    WorkMove.PROGRESS: _Move(ProgressWork, "Noted", "summary", "Progress in one sentence"),
    WorkMove.HAND_OVER: _Move(HandOverWork, "Handed over", "to", "Hand it over to", "@agent"),
}
_WAITS = (
    KeyChoice("a", "an agent or a person", WaitingKind.ACTOR),
    KeyChoice("w", "another work item", WaitingKind.WORK_ITEM),
    KeyChoice("p", "an approval", WaitingKind.APPROVAL),
    KeyChoice("f", "a file", WaitingKind.ARTIFACT),
    KeyChoice("c", "a condition", WaitingKind.CONDITION),
)
_ACTIONS = {WorkMove.RESUME: "start", WorkMove.CANCEL: "work.cancel"}  # others are named as the move


def list_work_moves(state: WorkState, view: str) -> str:
    """Return the moves that a state allows, with their keys in a view."""
    keys = {row.action: row.keys[0] for row in IN_VIEWS if view in row.views}
    moves = [
        (_ACTIONS.get(move, move.value), move.value.replace("_", " ")) for move in WORK_ITEM.accepts(state)
    ]
    return " · ".join(f"{keys[action]} {name}" for action, name in moves if action in keys)


class WorkActions:
    """Start, submit, accept, reopen, report, wait, hand over and cancel."""

    host: ViewHost
    key: ClassVar[str]

    @property
    def item(self) -> WorkView | None:
        """The work item that is meant."""
        raise NotImplementedError

    def offers(self, action: str) -> bool:
        """Whether the state of the item allows what a key does."""
        moves = [move for move in WorkMove if _ACTIONS.get(move, move.value) == action]
        return not moves or any(map(self._allows, moves))

    def do_start(self) -> None:
        self._begin(WorkMove.RESUME if self._allows(WorkMove.RESUME) else WorkMove.START)

    def do_submit(self) -> None:
        self._begin(WorkMove.SUBMIT)

    def do_accept(self) -> None:
        self._begin(WorkMove.ACCEPT)

    def do_reopen(self) -> None:
        self._begin(WorkMove.REOPEN)

    def do_progress(self) -> None:
        self._begin(WorkMove.PROGRESS)

    def do_wait(self) -> None:
        self._begin(WorkMove.WAIT)

    def do_hand_over(self) -> None:
        self._begin(WorkMove.HAND_OVER)

    def do_work_cancel(self) -> None:
        self._begin(WorkMove.CANCEL)

    def do_why(self) -> None:
        if (item := self.item) is not None:
            self.host.explain(item.id)

    def _allows(self, move: WorkMove) -> bool:
        return self.item is not None and move in WORK_ITEM.accepts(self.item.state)

    def _begin(self, move: WorkMove) -> None:
        item = self.item
        if item is None:
            self.host.say("Choose a work item first.", "yellow")
        elif not self._allows(move):
            offered = list_work_moves(item.state, self.key)
            self.host.say(f"It is {item.state}. Possible: {offered or 'nothing'}", "yellow")
        else:
            self.host.start(self._move(item, move))

    async def _move(self, item: WorkView, move: WorkMove) -> None:
        """Ask for what the move needs, make it at the revision that is shown, and say so."""
        given = await self._ask(item, move)
        if given is not None:
            plain = {"workItemId": item.id, "revision": item.revision, **given}
            moved = await self.host.call(decode(plain, _MOVES[move].request))
            self.host.say(f"{_MOVES[move].done}: {show_text(moved.title)} is {moved.state}.", "green")
            await self.load()

    async def load(self) -> None:
        """Read the view again."""

    async def _ask(self, item: WorkView, move: WorkMove) -> dict[str, str] | None:
        """Return what the person gives for a move; None if they change their mind."""
        told = _MOVES[move]
        if move is WorkMove.WAIT:
            return await self._ask_wait()
        if told.field:
            text = await self.host.ask_person(TextDialog(told.asks, hint=told.hint))
            return {told.field: text} if text else None
        return {} if move is not WorkMove.CANCEL or await self._confirm(item) else None

    async def _confirm(self, item: WorkView) -> bool:
        dialog = Chooser(
            "Cancel this work item? This cannot be undone.",
            [KeyChoice("x", "cancel it", "cancel")],
            [Paragraph(item.title, foreign=True)],
        )
        return bool(await self.host.ask_person(dialog))

    async def _ask_wait(self) -> dict[str, str] | None:
        kind = await self.host.ask_person(Chooser("It waits for:", _WAITS))
        if not kind:
            return None
        hint = "an address, an id, a file or a sentence; empty if unknown"
        text = await self.host.ask_person(TextDialog("For which one?", hint=hint))
        return None if text is None else {"on": kind, **({"ref": text} if text else {})}
