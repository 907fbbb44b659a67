"""Requests about what waits for somebody: the inbox, and deliveries."""

from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.model.conversation import Message
from scout.model.delivery import Delivery, DeliveryState
from scout.protocol.agents import Cursor, Limit
from scout.protocol.request import Page, Request, Seconds, Words, Write, says

__all__ = [
    "AckInbox",
    "ClaimInbox",
    "Claimed",
    "GetDelivery",
    "InboxItem",
    "ListDeliveries",
    "ListInbox",
    "NackInbox",
    "RenewInbox",
    "Settled",
]


class InboxItem(Record):
    """One thing for you: how it is delivered, what it says, who says it."""

    delivery: Delivery
    message: Message | None = None
    sender: str = ""
    prompt: str = ""


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


class Settled(Record):
    """The deliveries as they are now."""

    items: tuple[Delivery, ...]


class AckInbox(Write[Settled]):
    """Say that you took it."""

    operation: ClassVar[str] = "inbox.ack"
    route: ClassVar[str] = "POST /v1/inbox/ack"
    words: ClassVar[tuple[str, ...]] = ("deliveryIds",)
    permission: ClassVar[str] = "the holder of the lease"

    delivery_ids: Annotated[tuple[Words, ...], says("the deliveries")]


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
