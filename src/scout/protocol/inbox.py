"""Requests about what waits for somebody: the inbox, and deliveries."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.model.conversation import Message
from scout.model.delivery import Delivery, DeliveryState
from scout.protocol.parameters import Cursor, Limit, Seconds, Words, says
from scout.protocol.request import Page, Request, Write

__all__ = [
    "AckInbox",
    "ClaimInbox",
    "Claimed",
    "GetDelivery",
    "InboxItem",
    "ListDeliveries",
    "ListInbox",
    "NackInbox",
    "ReadTo",
    "RenewInbox",
    "Settled",
    "acknowledgements",
]


class InboxItem(Record, omit_defaults=True):
    """One thing for you: what it says, who says it, and how you take it.

    What is for you alone has `deliveryId` and its delivery. What was said to many has `conversationId` and
    `seq` instead: acknowledged, it moves your cursor there. `channel` is where it was said; `about` is what
    an answer answers, in a line.
    """

    delivery_id: str | None = None
    conversation_id: str | None = None
    seq: int | None = None
    delivery: Delivery | None = None
    message: Message | None = None
    sender: str = ""
    prompt: str = ""
    channel: str | None = None
    broadcast: bool = False
    about: str = ""
    read: bool = False

    @property
    def delivered(self) -> Delivery:
        """Its delivery; only what is for you alone has one."""
        assert self.delivery is not None, "it was said to many"
        return self.delivery


class ListInbox(Request[Page[InboxItem]]):
    """List what waits for you; nothing is taken."""

    operation: ClassVar[str] = "inbox"
    route: ClassVar[str] = "GET /v1/inbox"
    permission: ClassVar[str] = "your own"

    all: Annotated[bool, says("also what you already took")] = False
    cursor: Cursor = None
    limit: Limit = None


class Claimed(Record):
    """What is leased to you now; acknowledge each before its lease ends."""

    items: tuple[InboxItem, ...]


class ClaimInbox(Write[Claimed]):
    """Take what waits for you, for the time of a lease."""

    operation: ClassVar[str] = "inbox.claim"
    route: ClassVar[str] = "POST /v1/inbox/claim"
    permission: ClassVar[str] = "your own"

    limit: Limit = None
    wait: Annotated[Seconds, says("wait this long for something to come, at most 60")] = 0


class ReadTo(Record):
    """How far you have read a conversation of many."""

    conversation_id: str
    seq: int


class Settled(Record):
    """The deliveries as they are now, and how far you have read."""

    items: tuple[Delivery, ...]
    cursors: tuple[ReadTo, ...] = ()


class AckInbox(Write[Settled]):
    """Acknowledge what you took: deliveries by their ids, or a conversation up to a message."""

    operation: ClassVar[str] = "inbox.ack"
    route: ClassVar[str] = "POST /v1/inbox/ack"
    words: ClassVar[tuple[str, ...]] = ("deliveryIds",)
    flags: ClassVar[dict[str, str]] = {"conversationId": "conversation"}
    permission: ClassVar[str] = "the holder of the lease"

    delivery_ids: Annotated[tuple[Words, ...], says("the deliveries")] = ()
    conversation_id: Annotated[Words | None, says("an item's conversation, where it has no delivery")] = None
    seq: Annotated[int | None, says("the item's number there: you have read up to it")] = None


def acknowledgements(items: Sequence[InboxItem]) -> list[AckInbox]:
    """The requests that take these items: one for the deliveries, one for each conversation of many."""
    ids = tuple(item.delivery_id for item in items if item.delivery_id)
    furthest: dict[str, int] = {}
    for item in items:
        if item.conversation_id is not None and item.seq is not None:
            furthest[item.conversation_id] = max(item.seq, furthest.get(item.conversation_id, 0))
    told = [AckInbox(conversation_id=ident, seq=seq) for ident, seq in furthest.items()]
    return [AckInbox(delivery_ids=ids), *told] if ids else told


class NackInbox(Write[Settled]):
    """Say that you cannot take it now: it comes again, and in the end goes back to its sender."""

    operation: ClassVar[str] = "inbox.nack"
    route: ClassVar[str] = "POST /v1/inbox/nack"
    words: ClassVar[tuple[str, ...]] = ("deliveryIds",)
    permission: ClassVar[str] = "the holder of the lease"

    delivery_ids: Annotated[tuple[Words, ...], says("the deliveries")]
    retry_after: Annotated[Seconds | None, says("seconds before it comes again")] = None
    problem: Annotated[Words, says("why not")] = ""


class RenewInbox(Write[Settled]):
    """Say that you are still at it: the lease begins anew."""

    operation: ClassVar[str] = "inbox.renew"
    route: ClassVar[str] = "POST /v1/inbox/renew"
    words: ClassVar[tuple[str, ...]] = ("deliveryIds",)
    permission: ClassVar[str] = "the holder of the lease"

    delivery_ids: Annotated[tuple[Words, ...], says("the deliveries")]


class ListDeliveries(Request[Page[Delivery]]):
    """List deliveries, newest first."""

    operation: ClassVar[str] = "delivery.list"
    route: ClassVar[str] = "GET /v1/deliveries"
    permission: ClassVar[str] = "what you may read"

    target: Annotated[Words | None, says("only to this agent; you unless said")] = None
    state: DeliveryState | None = None
    cursor: Cursor = None
    limit: Limit = None


class GetDelivery(Request[Delivery]):
    """Show one delivery."""

    operation: ClassVar[str] = "delivery.show"
    route: ClassVar[str] = "GET /v1/deliveries/{deliveryId}"
    words: ClassVar[tuple[str, ...]] = ("deliveryId",)
    permission: ClassVar[str] = "sender, target, or who may read them"

    delivery_id: Words
