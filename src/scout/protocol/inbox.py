"""Requests about the inbox and deliveries."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.model.conversation import Message
from scout.model.delivery import Delivery, DeliveryState
from scout.protocol.parameters import Cursor, Limit, Seconds, Words, describe
from scout.protocol.request import Page, Request, Write


class InboxItem(Record, omit_defaults=True):
    """One inbox item: its content, its sender, and how to acknowledge it.

    Items for you alone have `deliveryId` and `delivery`. Channel messages have `conversationId` and
    `seq` instead: acknowledged, it moves your cursor there. `channel` is where it was said; `about` is what
    an answer answers, in a line. `senderNode`: the sender's machine, if it is another one.
    """

    delivery_id: str | None = None
    conversation_id: str | None = None
    seq: int | None = None
    delivery: Delivery | None = None
    message: Message | None = None
    sender: str = ""
    sender_node: str | None = None
    prompt: str = ""
    channel: str | None = None
    broadcast: bool = False
    about: str = ""
    read: bool = False

    @property
    def delivered(self) -> Delivery:
        """The item's delivery. Channel messages have none."""
        assert self.delivery is not None, "a channel message has no delivery"
        return self.delivery


class ListInbox(Request[Page[InboxItem]]):
    """List your inbox without claiming anything."""

    operation: ClassVar[str] = "inbox"
    route: ClassVar[str] = "GET /v1/inbox"
    permission: ClassVar[str] = "only your own"

    all: Annotated[bool, describe("include items you already acknowledged")] = False
    cursor: Cursor = None
    limit: Limit = None


class Claimed(Record):
    """The items leased to you. Acknowledge each before its lease ends."""

    items: tuple[InboxItem, ...]


class ClaimInbox(Write[Claimed]):
    """Claim inbox items for the time of a lease."""

    operation: ClassVar[str] = "inbox.claim"
    route: ClassVar[str] = "POST /v1/inbox/claim"
    permission: ClassVar[str] = "only your own"

    limit: Limit = None
    wait: Annotated[Seconds, describe("wait up to this many seconds for an item, maximum 60")] = 0


class ReadTo(Record):
    """How far you have read a channel."""

    conversation_id: str
    seq: int


class Settled(Record):
    """The deliveries after the change, and how far you have read."""

    items: tuple[Delivery, ...]
    cursors: tuple[ReadTo, ...] = ()


class AckInbox(Write[Settled]):
    """Acknowledge claimed items: deliveries by id, or a conversation up to a message."""

    operation: ClassVar[str] = "inbox.ack"
    route: ClassVar[str] = "POST /v1/inbox/ack"
    words: ClassVar[tuple[str, ...]] = ("deliveryIds",)
    flags: ClassVar[dict[str, str]] = {"conversationId": "conversation"}
    permission: ClassVar[str] = "the holder of the lease"

    delivery_ids: Annotated[tuple[Words, ...], describe("delivery ids")] = ()
    conversation_id: Annotated[Words | None, describe("the conversation of an item without a delivery")] = (
        None
    )
    seq: Annotated[int | None, describe("the item's number there; everything up to it counts as read")] = None


def build_acknowledgements(items: Sequence[InboxItem]) -> list[AckInbox]:
    """Return the requests that acknowledge these items: one for all deliveries, one per channel."""
    ids = tuple(item.delivery_id for item in items if item.delivery_id)
    furthest: dict[str, int] = {}
    for item in items:
        if item.conversation_id is not None and item.seq is not None:
            furthest[item.conversation_id] = max(item.seq, furthest.get(item.conversation_id, 0))
    read = [AckInbox(conversation_id=ident, seq=seq) for ident, seq in furthest.items()]
    return [AckInbox(delivery_ids=ids), *read] if ids else read


class NackInbox(Write[Settled]):
    """Return claimed items. They are delivered again, and go back to the sender after the last attempt."""

    operation: ClassVar[str] = "inbox.nack"
    route: ClassVar[str] = "POST /v1/inbox/nack"
    words: ClassVar[tuple[str, ...]] = ("deliveryIds",)
    permission: ClassVar[str] = "the holder of the lease"

    delivery_ids: Annotated[tuple[Words, ...], describe("delivery ids")]
    retry_after: Annotated[Seconds | None, describe("seconds before the next attempt")] = None
    problem: Annotated[Words, describe("the reason")] = ""


class RenewInbox(Write[Settled]):
    """Renew the lease of claimed items."""

    operation: ClassVar[str] = "inbox.renew"
    route: ClassVar[str] = "POST /v1/inbox/renew"
    words: ClassVar[tuple[str, ...]] = ("deliveryIds",)
    permission: ClassVar[str] = "the holder of the lease"

    delivery_ids: Annotated[tuple[Words, ...], describe("delivery ids")]


class ListDeliveries(Request[Page[Delivery]]):
    """List deliveries, newest first."""

    operation: ClassVar[str] = "delivery.list"
    route: ClassVar[str] = "GET /v1/deliveries"
    permission: ClassVar[str] = "only what you may read"

    target: Annotated[Words | None, describe("only deliveries to this agent; default: you")] = None
    state: DeliveryState | None = None
    cursor: Cursor = None
    limit: Limit = None


class GetDelivery(Request[Delivery]):
    """Show one delivery."""

    operation: ClassVar[str] = "delivery.show"
    route: ClassVar[str] = "GET /v1/deliveries/{deliveryId}"
    words: ClassVar[tuple[str, ...]] = ("deliveryId",)
    permission: ClassVar[str] = "the sender, the target, or callers who may read them"

    delivery_id: Words
