"""A platform on loopback as the conformance suite uses it: people who type and press, and what they see.

Each connector has one stage: a strict fake of ours, an emulator, or a real server with a client library as the
phone. A stage runs outside of Scout (a thread or a process), so that a test can kill a daemon and look at what
the platform shows afterwards. `tests/connectors/telegram_stage.py` is the model.
"""

from contextlib import AbstractContextManager
from enum import StrEnum
from typing import NamedTuple, Protocol

__all__ = ["Fault", "Shown", "Stage"]


class Shown(NamedTuple):
    """One message of the bot as people see it now.

    `text` is what is read, without markup; `markup` is the text as it was sent. `buttons`: the labels below it,
    or of the reactions that it offers. Where a platform has no buttons, the text of Scout ends with one line for
    each choice: the reaction, a space, and the label.
    """

    message_id: str
    text: str
    markup: str = ""
    buttons: tuple[str, ...] = ()
    file: str | None = None
    data: bytes = b""
    thread: str | None = None
    reply_to: str | None = None
    edited: bool = False


class Fault(StrEnum):
    """What can be wrong with a platform."""

    RATE = "rate"  # the next request is answered with 429 and a time to wait
    DOWN = "down"  # nobody answers
    ERROR = "error"  # every request is answered with an error of the platform
    CREDENTIALS = "credentials"  # the secret is no longer valid
    REFUSED = "refused"  # every message is refused for good


class Stage(Protocol):
    """One platform with one bot.

    People and chats are made by the test under names of its choice; the ids that come back are those that the
    platform uses, and that keys are made of.
    """

    connector: str
    """Its name in `scout connector add NAME`."""

    values: dict[str, str]
    """The values of its set-up fields, secrets included, as `scout connector add` would store them."""

    faults: frozenset[Fault]
    """The faults that this stage can play."""

    # -- what people do ----------------------------------------------------------------------------

    def person(self, name: str) -> str:
        """The id of a person on the platform."""
        ...

    def private(self, person: str) -> str:
        """The id of the chat of one person (named by id) with the bot."""
        ...

    def group(self, name: str, *people: str) -> str:
        """The id of a group chat of these people and the bot."""
        ...

    def thread(self, chat: str, name: str) -> str | None:
        """The id of a thread in a chat; None where the platform has no threads."""
        ...

    def say(
        self,
        person: str,
        chat: str,
        text: str,
        *,
        thread: str | None = None,
        reply_to: str | None = None,
        mention: bool = False,
        file: tuple[str, bytes] | None = None,
    ) -> str:
        """A person types a text, or sends a file with it; the id of the message. `mention`: the bot is named."""
        ...

    def edit(self, person: str, chat: str, message_id: str, text: str) -> None:
        """A person changes a message that they sent."""
        ...

    def press(self, person: str, chat: str, message_id: str, label: str) -> None:
        """A person presses the button, or gives the reaction, with this label."""
        ...

    def press_as_bot(self, chat: str, message_id: str, label: str) -> None:
        """The same by the bot itself, where the platform reports that; else nothing."""
        ...

    def repeat(self) -> None:
        """The platform reports everything again that it has reported so far, where it can; else nothing."""
        ...

    # -- what people see ---------------------------------------------------------------------------

    def shown(self, chat: str) -> list[Shown]:
        """What the bot shows in a chat now, oldest first, in all threads."""
        ...

    def notes(self, person: str) -> list[str]:
        """What only this person was shown: answers to presses, messages for one member."""
        ...

    def typed(self, chat: str) -> int:
        """How often the bot showed that it is writing."""
        ...

    # -- what goes wrong ---------------------------------------------------------------------------

    def fault(self, fault: Fault) -> AbstractContextManager[None]:
        """The platform has this fault for a while. RATE is over after one request."""
        ...

    def restart(self) -> None:
        """The server ends and starts again; what it stored is still there."""
        ...

    def problems(self) -> list[str]:
        """Requests of the connector that the documentation of the platform does not allow."""
        ...
