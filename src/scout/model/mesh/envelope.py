"""Envelopes: what one node tells another. Signed by the sending node, taken once by the receiving one."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, cast

import msgspec

from scout.base.codec import decode, encode
from scout.base.record import Record
from scout.base.time import Time
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.ask import Ask
from scout.model.attention import Attention
from scout.model.conversation import Attachment, Message
from scout.model.flight import Flight, FlightError
from scout.model.mesh.entry import AgentEntry
from scout.model.question import Question
from scout.model.work_item import WorkItem

VERSION = 1
ENVELOPE_LIMIT = 1_000_000  # bytes: a body of 256 KiB with its records fits several times
SIGNED_AS = b"scout-envelope-1\0"  # before the signed bytes: a signature of something else is no envelope
BUNDLE_SIGNED_AS = b"scout-bundle-1\0"
# What a node can read, as its heartbeat says. 1: single envelopes. 2: also bundles and lists of receipts.
FORMAT, BUNDLES = 2, 2


class EnvelopeKind(StrEnum):
    MESSAGE = "message"
    BROADCAST = "broadcast"
    ASK = "ask"
    FLIGHT = "flight"
    CANCEL = "cancel"
    QUESTION = "question"
    ATTENTION = "attention"
    DECISION = "decision"
    WORK = "work"
    MOVE = "move"
    MAIL = "mail"
    RECEIPT = "receipt"
    RECEIPTS = "receipts"
    FETCH = "fetch"
    FILE = "file"


class ReceiptState(StrEnum):
    """What the receiving node did with an envelope: stored it, handed it to its agent, or refused it."""

    ACCEPTED = "accepted"
    DELIVERED = "delivered"
    REFUSED = "refused"


class MessagePayload(Record, tag=EnvelopeKind.MESSAGE.value, tag_field="kind"):
    """A message to an agent of the other node. `wake`: its sender asked to wake the recipient."""

    message: Message
    to: str
    wake: bool = False


class BroadcastPayload(Record, tag=EnvelopeKind.BROADCAST.value, tag_field="kind"):
    """A message to all agents of the operator on the other node, unread and without a wake."""

    message: Message


class AskPayload(Record, tag=EnvelopeKind.ASK.value, tag_field="kind"):
    """An ask with its message and its first flight; the ids are the same on both nodes."""

    message: Message
    ask: Ask
    flight: Flight


class FlightPayload(Record, tag=EnvelopeKind.FLIGHT.value, tag_field="kind"):
    """The state of a flight, from the node that runs it. `answer`: the message that completed it."""

    flight: Flight
    answer: Message | None = None


class CancelPayload(Record, tag=EnvelopeKind.CANCEL.value, tag_field="kind"):
    """The asker cancels a flight. The node that runs it decides and answers with the flight's state."""

    flight_id: str
    reason: str = ""


class QuestionPayload(Record, tag=EnvelopeKind.QUESTION.value, tag_field="kind", omit_defaults=True):
    """A question, or its new state, with the message that asks or answers it. `to`: who gets the message."""

    question: Question
    move: str
    message: Message | None = None
    to: str | None = None
    wake: bool = False


class AttentionPayload(Record, tag=EnvelopeKind.ATTENTION.value, tag_field="kind"):
    """An item that needs the operator, or its new state; sent only if the node shares its items."""

    item: Attention


class DecisionPayload(Record, tag=EnvelopeKind.DECISION.value, tag_field="kind"):
    """The operator decides an item of the other node from here."""

    item_id: str
    move: str
    answer: str | None = None


class WorkPayload(Record, tag=EnvelopeKind.WORK.value, tag_field="kind"):
    """A work item of which an agent of the other node has a part, as its last move left it.

    `parties`: the agents of the sending node that have a part. The directory does not list people.
    """

    item: WorkItem
    move: str
    reason: str = ""
    parties: tuple[AgentEntry, ...] = ()


class MovePayload(Record, tag=EnvelopeKind.MOVE.value, tag_field="kind"):
    """An agent moves to the other node: its record, its aliases, its open work and questions.

    `parties`: the agents of the sending node that have a part in the work and the questions.
    """

    agent: Agent
    aliases: tuple[Alias, ...] = ()
    work_items: tuple[WorkItem, ...] = ()
    questions: tuple[Question, ...] = ()
    parties: tuple[AgentEntry, ...] = ()


class MailPayload(Record, tag=EnvelopeKind.MAIL.value, tag_field="kind"):
    """A message that a moved agent had not read; its sender is an agent of another node than the sending."""

    message: Message
    to: str


class ReceiptPayload(Record, tag=EnvelopeKind.RECEIPT.value, tag_field="kind", omit_defaults=True):
    """What became of an envelope of the other node. `moved_to`: where the target lives, if it moved away."""

    of: str
    state: ReceiptState
    problem: FlightError | None = None
    moved_to: str | None = None


class ReceiptsPayload(Record, tag=EnvelopeKind.RECEIPTS.value, tag_field="kind"):
    """What became of several envelopes of the other node."""

    receipts: tuple[ReceiptPayload, ...]


class FetchPayload(Record, tag=EnvelopeKind.FETCH.value, tag_field="kind"):
    """The other node wants the bytes of an attachment, from `offset` on."""

    sha256: str
    offset: int = 0


class FilePayload(Record, tag=EnvelopeKind.FILE.value, tag_field="kind"):
    """A piece of an attachment. `attachment.size` tells when the last piece has arrived."""

    attachment: Attachment
    offset: int
    data: bytes


Payload = (
    MessagePayload
    | BroadcastPayload
    | AskPayload
    | FlightPayload
    | CancelPayload
    | QuestionPayload
    | AttentionPayload
    | DecisionPayload
    | WorkPayload
    | MovePayload
    | MailPayload
    | ReceiptPayload
    | ReceiptsPayload
    | FetchPayload
    | FilePayload
)


class Envelope(Record, omit_defaults=True):
    """What is signed. `sender`: the agent that speaks, which must be one of the sending node.

    `after`: the envelope of the same conversation that must be taken before this one. `expires_at` is
    compared with `sent_at` and never with the receiver's clock: clocks of two machines may differ by hours.
    """

    v: int = VERSION
    id: str
    mesh: str
    from_node: str
    to_node: str
    sent_at: Time
    lives: float
    conversation_id: str | None = None
    after: str | None = None
    sender: AgentEntry | None = None
    payload: Payload


class EnvelopeHeader(Record):
    """An envelope whose payload is not read yet: it may be of a kind that this version does not know."""

    v: int = VERSION
    id: str
    mesh: str
    from_node: str
    to_node: str
    sent_at: Time
    lives: float
    conversation_id: str | None = None
    after: str | None = None
    sender: AgentEntry | None = None
    payload: msgspec.Raw


class PayloadHeader(Record):
    """The kind of a payload."""

    kind: str = ""


class SignedEnvelope(Record):
    """An envelope on its way: the exact bytes that were signed, as text, and the signature in hex."""

    body: str
    signature: str

    @property
    def signed_bytes(self) -> bytes:
        return SIGNED_AS + self.body.encode()


class SignedBundle(Record):
    """Several envelopes of one node on their way: a list as text, and one signature for all, in hex."""

    bundle: str
    signature: str

    @property
    def signed_bytes(self) -> bytes:
        return BUNDLE_SIGNED_AS + self.bundle.encode()


class _Parcel(Record):
    """Either of the two, before it is known which."""

    body: str | None = None
    bundle: str | None = None
    signature: str


def build_signed_bytes(envelope: Envelope) -> tuple[str, bytes]:
    """Return the text of an envelope, and the bytes that are signed for it."""
    body = encode(envelope).decode()
    return body, SIGNED_AS + body.encode()


def build_bundle(bodies: Iterable[bytes]) -> str:
    """Return the text of a bundle of encoded envelopes."""
    return f"[{b','.join(bodies).decode()}]"


def read_parcel(data: bytes) -> SignedEnvelope | SignedBundle:
    """Return what came from another node; refuse what is neither an envelope nor a bundle."""
    parcel = decode(data, _Parcel)
    if parcel.bundle is not None:
        return SignedBundle(bundle=parcel.bundle, signature=parcel.signature)
    return SignedEnvelope(body=parcel.body or "", signature=parcel.signature)


def read_headers(parcel: SignedEnvelope | SignedBundle) -> tuple[EnvelopeHeader, ...]:
    """Return the envelopes of a parcel without their payloads; refuse a parcel with anything else in it."""
    if isinstance(parcel, SignedEnvelope):
        return (read_header(parcel),)
    return decode(parcel.bundle, tuple[EnvelopeHeader, ...])


def read_header(signed: SignedEnvelope) -> EnvelopeHeader:
    """Return an envelope without its payload; refuse what is none."""
    return decode(signed.body, EnvelopeHeader)


def read_kind(header: EnvelopeHeader) -> str:
    """Return the kind of the payload, which this version may not know."""
    return decode(bytes(header.payload), PayloadHeader).kind


def read_payload(header: EnvelopeHeader) -> Payload:
    """Return the payload; refuse a kind that this version does not know."""
    found: Payload = decode(bytes(header.payload), cast("type[Any]", Payload))  # a union of records
    return found
