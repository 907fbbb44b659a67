"""Import: records of another system, in a form that all systems share.

`scout import` reads the files of the other system and sends what it finds in parts, in this order: agents
(parents first), aliases, conversations, messages, work and questions. A record refers to earlier ones by the
ids that their outcomes gave. Repeating a part changes nothing.
"""

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from scout.base.record import Record
from scout.base.time import Time
from scout.model.conversation import MessageKind
from scout.model.work_item import Acceptance, Priority

SourceId = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


class ImportSystem(StrEnum):
    """The systems that Scout can import from."""

    OPENSCOUT = "openscout"
    DAYCARE = "daycare"
    EXOMONAD = "exomonad"


class ImportedRecord(Record, tag_field="type"):
    """What all imported records have: the id in the other system, and when it was created there."""

    id: SourceId
    created_at: Time | None = None


class ImportedAgent(ImportedRecord, tag="agent"):
    """An agent. It has a `path`, a `name` with workspace and profile, or a `parent`.

    A child with a path is of the path's kind; one with a birth branch has its own branch, and any other is a
    worker. The parent gives the child its number.
    """

    path: str | None = None
    name: str | None = None
    workspace: str | None = None
    profile: str | None = None
    parent: str | None = None
    birth_branch: str | None = None
    root_branch: str | None = None
    project_root: str | None = None
    working_dir: str | None = None
    harness: str | None = None
    model: str | None = None
    tool_role: str | None = None
    retired: bool = False
    config: dict[str, str] = {}


class ImportedAlias(ImportedRecord, tag="alias"):
    """A short name for an agent."""

    name: str
    target: str


class ImportedConversation(ImportedRecord, tag="conversation"):
    """A conversation. A thread names its parent, and the other system's id of its first message."""

    kind: Literal["dm", "channel", "thread"]
    name: str = ""
    members: tuple[str, ...] = ()
    parent: str | None = None
    root_message: str | None = None


class ImportedMessage(ImportedRecord, tag="message"):
    """A message. `inReplyTo` is an id of the other system. `unread`: its readers have not read it."""

    conversation: str
    sender: str
    body: str
    kind: MessageKind = MessageKind.CHAT
    in_reply_to: str | None = None
    unread: bool = False


class ImportedWork(ImportedRecord, tag="work"):
    """Open work."""

    title: str
    description: str = ""
    owner: str
    requester: str
    next_move_owner: str | None = None
    state: Literal["open", "working", "waiting", "review"] = "open"
    acceptance: Acceptance = Acceptance.PENDING
    priority: Priority = Priority.NORMAL
    labels: tuple[str, ...] = ()
    conversation: str | None = None


class ImportedQuestion(ImportedRecord, tag="question"):
    """An open question."""

    body: str
    asker: str
    responder: str
    conversation: str | None = None


AnyImported = (
    ImportedAgent | ImportedAlias | ImportedConversation | ImportedMessage | ImportedWork | ImportedQuestion
)


def get_type(record: AnyImported) -> str:
    """Return the word for a kind of record."""
    return str(record.__struct_config__.tag)
