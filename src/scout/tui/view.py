"""What every view has: its name in the table of keys, when it is read again, and the application."""

from collections.abc import Coroutine, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from textual.containers import Vertical
from textual.screen import Screen

from scout.protocol.overview import Now
from scout.protocol.request import Request
from scout.tui.drafts import DraftBook
from scout.tui.names import NameBook

T = TypeVar("T")


class ViewHost(Protocol):
    """The application, as views and dialogs see it."""

    names: NameBook
    drafts: DraftBook

    @property
    def own_id(self) -> str:
        """The agent that the person is in Scout; empty until that is known."""
        ...

    @property
    def recent(self) -> Sequence[dict[str, Any]]: ...

    async def call(self, request: Request[T]) -> T:
        """Return the result of a request; raise its refusal."""
        ...

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something beside the screen; a refusal is shown with its remedies."""
        ...

    async def ask_person(self, dialog: Screen[T]) -> T | None:
        """Show a dialog and return what it was closed with."""
        ...

    def say(self, text: str, style: str = "") -> None:
        """Show a sentence in the last line."""
        ...

    def copy(self, text: str) -> None:
        """Put a text on the clipboard, if the terminal allows it."""
        ...

    def show_needs(self, now: Now) -> None:
        """Show in the first line how many items need the person, and whether the machine is paused."""
        ...

    def show_record(self, ident: str) -> None:
        """Go to a flight, a conversation, an item, an agent or a work item."""
        ...

    def compose_ask(self, to: str = "", conversation_id: str | None = None) -> None:
        """Open the composer."""
        ...

    def open_session(self, address: str) -> None:
        """Continue a session in this terminal, and come back."""
        ...

    def show_diff(self, flight_id: str) -> None:
        """Show what changed in the work tree of a flight."""
        ...

    def explain(self, ident: str) -> None:
        """Show why a record is as it is."""
        ...


class ScreenView(Vertical):
    """One view. `key`: its name in the table of keys. `nouns`: the events after which it is read again.

    `is_stale`: something changed since it was read. `is_reading`: it is being read now.
    """

    key: ClassVar[str] = ""
    nouns: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, host: ViewHost) -> None:
        super().__init__()
        self.host = host
        self.is_stale = True
        self.is_reading = False

    @property
    def subject(self) -> str:
        """What it is about, for the line above it; empty if the name of the view says enough."""
        return ""

    async def load(self) -> None:
        """Read what it shows."""

    def tick(self) -> None:
        """Draw what was read, as it is now."""

    @property
    def is_shown(self) -> bool:
        """Whether all its parts are there: it is neither being opened, nor hidden, nor being closed."""
        return self.is_mounted and self.display

    def draw(self) -> None:
        """Draw it; a view that is not shown is read again once it is."""
        if self.is_shown:
            self.tick()
        else:
            self.is_stale = True

    def note(self, event: dict[str, Any]) -> None:
        """Look at an event: it may concern what is shown."""
        if str(event["type"]).split(".")[1] in self.nouns:
            self.is_stale = True

    def focus_first(self) -> None:
        """Give the focus to its main part."""
        for widget in self.query("RowList, TextPane"):
            widget.focus()
            return

    @property
    def typing_keys(self) -> list[tuple[str, str]]:
        """The keys that work while the person types, for the last line; empty if nobody types here."""
        return []

    def offers(self, action: str) -> bool:
        """Whether an action of the view is possible now; only such ones are named in the last line."""
        return True

    def can(self, action: str) -> bool:
        """Whether a key of the view means something here."""
        return hasattr(self, f"do_{action.replace('.', '_')}")

    def act(self, action: str) -> bool:
        """Do what a key of the view means; False if it means nothing here."""
        if self.can(action):
            getattr(self, f"do_{action.replace('.', '_')}")()
        return self.can(action)
