"""The port of a chat platform: what Scout needs from Telegram, WhatsApp, Matrix, Slack.

A connector carries texts, files and pressed buttons. It never decides who a sender is, whom a text is for,
or what a decision means: the broker does, and hands it finished texts.
"""

from enum import StrEnum
from typing import Protocol

from scout.base.record import Record
from scout.model.people.chat import Button, ChatPlace, Markup


class ConnectorCapabilities(Record):
    """Facts about a platform, so that no other code asks for its name.

    `text_limit`: characters of one message. `buttons`: the maximum below one message; without any, a person
    decides by a reaction (`reactions`) or a reply. `label_limit`: characters of a button's label.
    `file_limit`: bytes of a file; 0: no files. `private_notes`: a note that one member of a group sees.
    `repeats_safely`: a message that is sent again with the same id is shown once. `window`: seconds since a
    person's last message in which free text may be sent to them.
    """

    markup: Markup
    text_limit: int
    buttons: int = 0
    label_limit: int = 20
    reactions: bool = False
    threads: bool = False
    edits: bool = False
    typing: bool = False
    file_limit: int = 0
    private_notes: bool = False
    repeats_safely: bool = False
    window: float | None = None


class ConnectorAccount(Record):
    """The bot as the platform knows it; the result of a check of the credentials.

    `address`: what a person types to find the bot, if that is not its name.
    """

    id: str
    name: str = ""
    address: str = ""


class ExternalSender(Record, omit_defaults=True):
    """A person as the platform names them. `program`: another bot, or this one."""

    id: str
    name: str = ""
    program: bool = False


class RemoteFile(Record):
    """A file that a person sent; `reference` is what `fetch` takes."""

    reference: str
    name: str
    media_type: str = "application/octet-stream"
    size: int | None = None


# -- in ----------------------------------------------------------------------------------------------


class Inbound(Record, tag_field="type"):
    """Something that happened on the platform. `id` is unique there and the same whenever it is reported."""

    id: str
    place: ChatPlace
    sender: ExternalSender


class InboundText(Inbound, tag="text"):
    """A message. `addressed`: it is for the bot, by a private chat, a mention of the bot, or a reply to it.

    `text` is without the mention of the bot. `edits`: the earlier message that this one replaces.
    """

    message_id: str
    text: str
    addressed: bool = True
    reply_to: str | None = None
    edits: str | None = None
    files: tuple[RemoteFile, ...] = ()


class InboundPress(Inbound, tag="press"):
    """A pressed button, or a reaction, on a message of the bot. `value`: the button's, or the reaction.

    `reference` is what `answer_press` needs.
    """

    message_id: str
    value: str
    reference: str = ""


class InboundFailure(Inbound, tag="failure"):
    """The platform reports afterwards that it did not deliver a message of the bot.

    `message_id` is what `send` returned; `sender` is the person it was for.
    """

    message_id: str
    reason: str


InboundEvent = InboundText | InboundPress | InboundFailure


class Inlet(Protocol):
    """The broker as a connector sees it."""

    async def receive(self, inbound: InboundEvent) -> None:
        """Take an event. It is on disk when this returns; a repeated one has no effect."""
        ...

    def get_cursor(self) -> str | None:
        """Return the last position that was stored with `move_cursor`; None at first."""
        ...

    async def move_cursor(self, cursor: str) -> None:
        """Store the position up to which all events were taken."""
        ...


# -- out ---------------------------------------------------------------------------------------------


class OutboundFile(Record):
    name: str
    media_type: str
    data: bytes


class OutboundText(Record):
    """One message to send, already formatted and within the limits of the platform.

    It has a text, or one file and no text. `id` is the same whenever it is sent again. `plain` is the text
    without formatting. `reply_to`: the message on the platform that it answers. `only_for`: the one member of
    a group who sees it.
    """

    id: str
    place: ChatPlace
    text: str
    plain: str
    buttons: tuple[Button, ...] = ()
    files: tuple[OutboundFile, ...] = ()
    reply_to: str | None = None
    only_for: str | None = None


class SentMessage(Record):
    """The id of the message on the platform."""

    message_id: str


class FailureKind(StrEnum):
    """Why a call to a platform failed, as far as it decides what to do next."""

    RETRY = "retry"  # later: unreachable, too many requests, an error of the platform
    REFUSED = "refused"  # this message never
    CREDENTIALS = "credentials"  # nothing, until a person gives another secret


class ConnectorError(Exception):
    """A call to a platform failed. `retry_after`: seconds that the platform asked to wait.

    `uncertain`: the request was sent and no answer came, so the platform may have acted on it.
    """

    def __init__(
        self, kind: FailureKind, reason: str, *, retry_after: float | None = None, uncertain: bool = False
    ) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.retry_after = retry_after
        self.uncertain = uncertain


class Connector(Protocol):
    """One platform. Each method raises `ConnectorError` and nothing else."""

    @property
    def name(self) -> str: ...
    @property
    def capabilities(self) -> ConnectorCapabilities: ...

    async def check(self) -> ConnectorAccount:
        """Prove the credentials."""
        ...

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled. An event is acknowledged on the platform after the inlet has taken it."""
        ...

    async def send(self, message: OutboundText) -> SentMessage:
        """Send a message."""
        ...

    async def edit(self, message_id: str, message: OutboundText) -> None:
        """Replace the text and the buttons of a message that was sent."""
        ...

    async def answer_press(self, press: InboundPress, text: str) -> None:
        """Tell the person who pressed a button what came of it, and nobody else where the platform can."""
        ...

    async def show_typing(self, place: ChatPlace) -> None:
        """Show that an answer is being written, where the platform can."""
        ...

    async def fetch(self, file: RemoteFile, limit: int) -> bytes:
        """Return the bytes of a file; one of more than `limit` bytes is refused."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


# -- set-up ------------------------------------------------------------------------------------------


class SetupField(Record):
    """One value that a connector needs. `secret`: stored in a file of mode 0600, and never shown."""

    name: str
    question: str
    secret: bool = False
    default: str | None = None


class ConnectorSetup(Record):
    """What is set for a connector: the values of its fields, secrets included."""

    connector: str
    values: dict[str, str] = {}


class ConnectorKits(Protocol):
    """The connectors that this Scout could run, and the stored set-up of those that it does run."""

    def list_known(self) -> dict[str, tuple[SetupField, ...]]:
        """Return the fields of each known connector, without loading one."""
        ...

    def list_stored(self) -> tuple[str, ...]:
        """Return the connectors that are set up, by name."""
        ...

    def read(self, connector: str) -> ConnectorSetup:
        """Return a stored set-up. Refused if its file cannot be read, or others could have read it."""
        ...

    async def prepare(self, setup: ConnectorSetup) -> ConnectorSetup:
        """Return the set-up to store: a password, for example, is exchanged for a token."""
        ...

    def store(self, setup: ConnectorSetup) -> None:
        """Store a set-up; its secrets in a file of mode 0600."""
        ...

    def forget(self, connector: str) -> None:
        """Remove a set-up with its secrets."""
        ...

    def build(self, setup: ConnectorSetup) -> Connector:
        """Load and build a connector. Refused with the package to install if its library is missing."""
        ...
