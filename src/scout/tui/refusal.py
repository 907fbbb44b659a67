"""A refusal on the screen: what is wrong, who may be meant, and its remedies as keys that run them."""

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from scout.base.refusal import PLACEHOLDER, Diagnostic, Remedy
from scout.protocol.operations import OPERATIONS, build_command_line
from scout.tui.pane import TextPane
from scout.tui.text import Paragraph, show_text

_MOST = 9


def is_complete(remedy: Remedy) -> bool:
    """Whether a remedy can be run as it is: nothing in it is left to the caller."""
    given = [str(value) for value in remedy.parameters.values()]
    return remedy.operation in OPERATIONS and not any(PLACEHOLDER in value for value in given)


class RefusalDialog(ModalScreen[Remedy | None]):
    """Closed with the remedy whose number was pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "leave", show=False)]

    def __init__(self, problem: Diagnostic) -> None:
        super().__init__()
        self._problem = problem
        known = [one for one in problem.remedies if one.operation in OPERATIONS]
        self._remedies = list({build_command_line(one): one for one in known}.values())[:_MOST]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield Static(f"Refused: {self._problem.code}", classes="title", markup=False)
            yield TextPane(id="problem")
            yield Static("A number runs the command · Esc goes back", classes="hint", markup=False)

    def on_mount(self) -> None:
        blocks = [Paragraph(self._problem.message, "red", exact=True), Paragraph("")]
        for one in self._problem.candidates:
            why = f"  {show_text(one.why)}" if one.why else ""
            blocks.append(Paragraph(f"  {show_text(one.address)}{why}"))
        for number, one in enumerate(self._remedies, 1):
            mark = number if is_complete(one) else " "
            why = f"  # {show_text(one.why)}" if one.why else ""
            blocks.append(Paragraph(f"{mark}  {show_text(build_command_line(one))}{why}", "accent"))
        self.query_one(TextPane).set_blocks(blocks)
        self.query_one(TextPane).focus()

    def on_key(self, event: events.Key) -> None:
        typed = event.character or ""
        number = int(typed) if typed.isdecimal() else 0
        if 0 < number <= len(self._remedies) and is_complete(self._remedies[number - 1]):
            event.stop()
            self.dismiss(self._remedies[number - 1])

    def action_leave(self) -> None:
        self.dismiss(None)
