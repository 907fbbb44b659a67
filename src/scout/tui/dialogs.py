"""Small dialogs: the keys, where to go, one of some choices, a line of text, several requests at once."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from scout.protocol.keys import VIEWS, Key
from scout.tui.pane import TextPane
from scout.tui.text import Paragraph, fit, show_text

_ESCAPE: list[BindingType] = [Binding("escape", "leave", show=False)]


class KeyHelp(ModalScreen[None]):
    """The keys that work in a view."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "leave", show=False)]

    def __init__(self, keys: Sequence[Key]) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield Static("Keys", classes="title", markup=False)
            yield TextPane(id="keys")

    def on_mount(self) -> None:
        told = [(", ".join(row.keys), row) for row in self._keys]
        here = [(keys, row.says) for keys, row in told if row not in VIEWS]
        away = [(keys, row.says) for keys, row in told if row in VIEWS]
        rows = [Paragraph(f"{fit(keys, 10)} {says}") for keys, says in (*here, *OWN_KEYS, *away)]
        self.query_one(TextPane).set_blocks(rows)
        self.query_one(TextPane).focus()

    def action_leave(self) -> None:
        self.dismiss(None)


OWN_KEYS = (
    ("PgDn, PgUp", "Scroll by a page"),
    ("Tab", "Next part of the view"),
    ("q, Ctrl-C", "Quit; everything keeps running"),
)


class KeyChoice(NamedTuple):
    """One choice: its key, what it means, and its value."""

    key: str
    says: str
    value: str


class Chooser(ModalScreen[str | None]):
    """One key decides."""

    BINDINGS: ClassVar[list[BindingType]] = _ESCAPE

    def __init__(self, title: str, choices: Sequence[KeyChoice], blocks: Sequence[Paragraph] = ()) -> None:
        super().__init__()
        self._title = title
        self._choices = {choice.key: choice for choice in choices}
        self._blocks = blocks

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall" if self._blocks else "dialog"):
            yield Static(self._title, classes="title", markup=False)
            if self._blocks:
                yield TextPane(id="whole")
            lines = [f"{fit(one.key, 4)}{one.says}" for one in self._choices.values()]
            yield Static("\n".join([*lines, "Esc Back"]), markup=False)

    def on_mount(self) -> None:
        for pane in self.query(TextPane):
            pane.set_blocks(self._blocks)
            pane.focus()

    def on_key(self, event: events.Key) -> None:
        choice = self._choices.get(event.character or "")
        if choice is None:
            return
        event.stop()
        pane = next(iter(self.query(TextPane)), None)
        if pane is None or pane.is_read:
            self.dismiss(choice.value)
        else:
            self.query_one(".title", Static).update("Read it to its end first: PgDn")

    def action_leave(self) -> None:
        self.dismiss(None)


def build_go_to() -> Chooser:
    """Return the dialog behind `g`."""
    spelled = [(key.partition(" ")[2], row) for row in VIEWS for key in row.keys if key.startswith("g ")]
    return Chooser("Go to", [KeyChoice(key, row.says, row.action) for key, row in spelled])


class TextDialog(ModalScreen[str | None]):
    """One line of text; with options, a number chooses one."""

    BINDINGS: ClassVar[list[BindingType]] = _ESCAPE

    def __init__(self, title: str, *, options: Sequence[str] = (), value: str = "", hint: str = "") -> None:
        super().__init__()
        self._title, self._options, self._value, self._hint = title, options, value, hint

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._title, classes="title", markup=False)
            lines = [f"{number}. {show_text(one)}" for number, one in enumerate(self._options, 1)]
            if lines:
                yield Static("\n".join(lines), markup=False)
            yield Input(self._value, placeholder=self._hint, select_on_focus=False)
            yield Static("Enter sends · Esc goes back", classes="hint", markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        text = event.value.strip()
        number = int(text) if text.isdecimal() and len(text) < 4 else 0
        self.dismiss(self._options[number - 1] if 0 < number <= len(self._options) else text)

    def action_leave(self) -> None:
        self.dismiss(None)
