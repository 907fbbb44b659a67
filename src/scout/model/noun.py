"""The table of all nouns: record, lifecycle (if any), and the fields that replay leaves out."""

from typing import Any, NamedTuple

from scout.base.machine import Machine
from scout.base.record import Record
from scout.model.access.allowance import ALLOWANCE, Allowance
from scout.model.access.grant import GRANT, Grant
from scout.model.access.token import TOKEN, Token
from scout.model.agent import AGENT, Agent
from scout.model.alias import ALIAS, Alias
from scout.model.ask import Ask
from scout.model.attention import ATTENTION, Attention
from scout.model.card import CARD, Card
from scout.model.conversation import Conversation, Message
from scout.model.delivery import DELIVERY, Delivery
from scout.model.endpoint import ENDPOINT, Endpoint
from scout.model.flight import FLIGHT, Flight
from scout.model.mesh.member import INVITATION, Invitation
from scout.model.mesh.outbox import OUTBOX, OutboxEntry
from scout.model.node import NODE, Node
from scout.model.people.binding import BINDING, Binding
from scout.model.people.chat_post import CHAT_POST, ChatPost
from scout.model.people.link_code import LINK_CODE, LinkCode
from scout.model.people.schedule import SCHEDULE, Schedule
from scout.model.people.user import KEY, USER, ConnectorKey, User
from scout.model.question import QUESTION, Question
from scout.model.ref import PREFIXES, RefKind
from scout.model.reservation import RESERVATION, Reservation
from scout.model.retention.archive import ARCHIVE, Archive
from scout.model.session import SESSION, Session
from scout.model.usage import Usage
from scout.model.work_item import WORK_ITEM, WorkItem


class Noun(NamedTuple):
    """One noun. `machine`: None without states; `volatile`: fields that change without event or revision."""

    kind: RefKind
    record: type[Record]
    machine: Machine[Any, Any] | None = None
    volatile: frozenset[str] = frozenset()

    @property
    def prefix(self) -> str:
        """The prefix of its ids."""
        return PREFIXES[self.kind]


_TABLE = (
    Noun(RefKind.AGENT, Agent, AGENT, frozenset({"last_active_at"})),
    Noun(RefKind.ENDPOINT, Endpoint, ENDPOINT, frozenset({"last_seen"})),
    Noun(RefKind.SESSION, Session, SESSION, frozenset({"last_event_at"})),
    Noun(RefKind.CONVERSATION, Conversation),
    Noun(RefKind.MESSAGE, Message),
    Noun(RefKind.ASK, Ask),
    Noun(RefKind.FLIGHT, Flight, FLIGHT),
    Noun(RefKind.DELIVERY, Delivery, DELIVERY),
    Noun(RefKind.QUESTION, Question, QUESTION),
    Noun(RefKind.WORK, WorkItem, WORK_ITEM),
    Noun(RefKind.ATTENTION, Attention, ATTENTION),
    Noun(RefKind.ALLOWANCE, Allowance, ALLOWANCE),
    Noun(RefKind.BINDING, Binding, BINDING),
    Noun(RefKind.CARD, Card, CARD),
    Noun(RefKind.CHAT_POST, ChatPost, CHAT_POST),
    Noun(RefKind.ALIAS, Alias, ALIAS),
    Noun(RefKind.ARCHIVE, Archive, ARCHIVE),
    Noun(RefKind.USAGE, Usage),
    Noun(RefKind.USER, User, USER),
    Noun(RefKind.KEY, ConnectorKey, KEY, frozenset({"last_used_at"})),
    Noun(RefKind.LINK_CODE, LinkCode, LINK_CODE),
    Noun(RefKind.NODE, Node, NODE, frozenset({"last_seen"})),
    Noun(RefKind.INVITATION, Invitation, INVITATION),
    Noun(RefKind.TOKEN, Token, TOKEN, frozenset({"last_used_at"})),
    Noun(RefKind.GRANT, Grant, GRANT),
    Noun(RefKind.SCHEDULE, Schedule, SCHEDULE),
    Noun(RefKind.RESERVATION, Reservation, RESERVATION),
    Noun(RefKind.ENVELOPE, OutboxEntry, OUTBOX),
)

NOUNS: dict[RefKind, Noun] = {noun.kind: noun for noun in _TABLE}
