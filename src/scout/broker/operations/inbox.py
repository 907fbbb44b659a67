"""The inbox of whoever pulls: look, claim for the time of a lease, acknowledge or give back."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused
from scout.broker.effects import flight_state
from scout.broker.routing import conversations, posts, routes, unread
from scout.broker.routing.attention_items import title_of
from scout.broker.routing.unread import LATEST, START, Position, Unread
from scout.broker.transaction.paging import before, cursor, page, place_text, size
from scout.broker.transaction.transaction import Turn, subject_of
from scout.model.agent import Agent
from scout.model.ask import Ask
from scout.model.conversation import Conversation, ConversationKind, Message
from scout.model.delivery import (
    DELIVERY,
    Delivery,
    DeliveryMove,
    DeliveryState,
    ack,
    is_due,
    lease,
    nack,
    renew,
)
from scout.model.flight import Flight
from scout.model.problems.request import NotOwner
from scout.policy.permit import Deed
from scout.protocol.channels import ConversationView, MarkRead
from scout.protocol.inbox import (
    AckInbox,
    Claimed,
    ClaimInbox,
    GetDelivery,
    InboxItem,
    ListDeliveries,
    ListInbox,
    NackInbox,
    ReadTo,
    RenewInbox,
    Settled,
)
from scout.protocol.request import Page

__all__ = [
    "acked",
    "acknowledge",
    "answers_to",
    "claim",
    "claimed",
    "get_delivery",
    "give_back",
    "handed_over",
    "hold_longer",
    "is_for",
    "list_deliveries",
    "list_inbox",
    "read_conversation",
]

_MAIL = 1000  # as much as is counted
_REPLIES = 20


def _item(turn: Turn, one: Unread, *, read: bool = False) -> InboxItem:
    message, delivery = one.message, one.delivery
    told = InboxItem(
        message=message,
        sender=turn.address(delivery.sender if delivery else message.sender if message else None),
        about=_about(turn, message),
        read=read,
    )
    if message is not None:
        where = turn.conversation(message.conversation_id)
        channel = where.name if where is not None and where.kind is ConversationKind.CHANNEL else None
        to_all = where is not None and where.kind is ConversationKind.BROADCAST
        told = replace(told, channel=channel, broadcast=to_all)
    if delivery is not None:
        return replace(told, delivery_id=delivery.id, delivery=delivery)
    assert message is not None  # what has no delivery is a message
    return replace(told, conversation_id=message.conversation_id, seq=message.seq)


def _about(turn: Turn, message: Message | None) -> str:
    """What an answer answers, in a line."""
    asked = turn.ledger.get(Message, message.in_reply_to) if message else None
    return title_of(asked.body) if asked else ""


def list_inbox(turn: Turn, request: ListInbox) -> Page[InboxItem]:
    """What is unread, oldest first; with `all` everything that ever came, newest first."""
    wanted = size(request.limit, turn.rules.limits)
    if request.all:
        begin = _position(request.cursor, LATEST)
        found = unread.list_read(turn, turn.sender, wanted + 1, begin)
    else:
        begin = _position(request.cursor, START)
        found = unread.list_unread(turn, turn.sender, wanted + 1, begin)
    shown = found[:wanted]
    items = tuple(_item(turn, one, read=request.all and _is_read(turn, one)) for one in shown)
    return Page(items=items, next=_after(begin, shown) if len(found) > wanted else None)


def _is_read(turn: Turn, one: Unread) -> bool:
    if one.delivery is not None:
        return one.delivery.state in DELIVERY.terminal
    message = one.message
    return message is not None and message.seq <= unread.read_up_to(
        turn, turn.sender, message.conversation_id
    )


def _position(text: str | None, begin: Position) -> Position:
    """Where a page begins: after a delivery, and after a number of the log."""
    place = cursor(text)
    if place is None:
        return begin
    delivery_id, _, number = place.partition(" ")
    if not (number.isascii() and number.isdigit() and int(number) <= LATEST.seq):
        raise Refused(BadRequest(problem="this is no cursor of this list", field="cursor"))
    return Position(delivery_id, int(number))


def _after(begin: Position, shown: Sequence[Unread]) -> str:
    """The cursor of what follows a page."""
    deliveries = [one.delivery.id for one in shown if one.delivery]
    numbers = [one.message.seq for one in shown if one.delivery is None and one.message]
    place = Position([begin.delivery_id, *deliveries][-1], [begin.seq, *numbers][-1])
    return place_text(f"{place.delivery_id} {place.seq}")


def claim(turn: Turn, request: ClaimInbox) -> Claimed:
    """Lease what is due to the caller, and give it what was said to many.

    What a program of Scout's carries is not for the taking. A message to many is not leased: it comes again
    until the cursor has moved past it.
    """
    wanted = size(request.limit, turn.rules.limits)
    found = unread.list_unread(turn, turn.sender, wanted, START, lambda one: _is_free(turn, one))
    return Claimed(items=handed_over(turn, found))


def handed_over(turn: Turn, found: Sequence[Unread]) -> tuple[InboxItem, ...]:
    """Lease what has a delivery to the caller, and show all of it."""
    taken = [Unread(one.message, _leased(turn, one.delivery) if one.delivery else None) for one in found]
    return tuple(_item(turn, one) for one in taken)


def _is_free(turn: Turn, delivery: Delivery) -> bool:
    return is_due(delivery, turn.now) and not delivery.wake and _is_mine(turn, delivery)


def _leased(turn: Turn, delivery: Delivery) -> Delivery:
    leased = lease(delivery, _holder(turn), turn.now, seconds=turn.rules.periods.lease)
    return flight_state.delivered(turn, delivery, leased, DeliveryMove.LEASE)


def _is_mine(turn: Turn, delivery: Delivery) -> bool:
    session_id = turn.actor.session_id
    return session_id is None or is_for(delivery, session_id)


def is_for(delivery: Delivery, session_id: str) -> bool:
    """Whether a session may take it: it is for no other one, and no other holds it."""
    held = delivery.leased_by if delivery.state is DeliveryState.LEASED else None
    return delivery.session_id in (None, session_id) and held in (None, session_id)


def claimed(turn: Turn, deliveries: Sequence[Delivery]) -> tuple[InboxItem, ...]:
    """Lease exactly these to the caller."""
    taken = [_leased(turn, one) for one in deliveries]
    return tuple(_item(turn, Unread(turn.ledger.get(Message, one.message_id), one)) for one in taken)


def _holder(turn: Turn) -> str:
    """Who holds a lease: the session, where the credential is for one."""
    return turn.actor.session_id or turn.sender


def acknowledge(turn: Turn, request: AckInbox) -> Settled:
    """Taken. What was taken before stays so; what nobody claimed is claimed by this."""
    if not (request.delivery_ids or request.conversation_id):
        raise Refused(
            BadRequest(problem="name deliveries, or a conversation and a number", field="deliveryIds")
        )
    if (request.conversation_id is None) is not (request.seq is None):
        raise Refused(BadRequest(problem="conversationId and seq belong together", field="seq"))
    settled = _each(turn, request.delivery_ids, _acked)
    if request.conversation_id is None or request.seq is None:
        return settled
    return replace(settled, cursors=(_read(turn, request.conversation_id, request.seq),))


def _read(turn: Turn, conversation_id: str, seq: int) -> ReadTo:
    """Move the caller's cursor in a conversation of many that it takes part in."""
    conversation = conversations.may_read(turn, turn.need(Conversation, "conversation", conversation_id))
    if seq < 1:
        raise Refused(BadRequest(problem="numbers of the log begin with 1", field="seq"))
    unread.mark_read(turn, turn.sender, conversation.id, seq)
    return ReadTo(conversation_id=conversation.id, seq=unread.read_up_to(turn, turn.sender, conversation.id))


def _acked(turn: Turn, delivery: Delivery) -> Delivery:
    if delivery.state is DeliveryState.ACKED:
        return delivery
    if delivery.state is DeliveryState.PENDING and not delivery.wake:
        delivery = _leased(turn, delivery)
    return acked(turn, delivery)


def acked(turn: Turn, delivery: Delivery) -> Delivery:
    """Store that the caller took a delivery, and in which session."""
    session_id = turn.actor.session_id
    endpoint = routes.endpoint_of(turn, session_id)
    taken = ack(
        delivery,
        _holder(turn),
        turn.now,
        session_id=session_id,
        endpoint_id=endpoint.id if endpoint else None,
    )
    return flight_state.delivered(turn, delivery, taken, DeliveryMove.ACK)


def read_conversation(turn: Turn, request: MarkRead) -> ConversationView:
    """The caller has read up to a message, or to the end."""
    conversation = turn.need(Conversation, "conversation", request.conversation_id)
    takes_part = conversations.membership(turn, conversation.id) is not None
    if not takes_part and conversation != unread.broadcast_for(turn, turn.sender):
        conversations.may_read(turn, conversation)
        problem = "only who takes part in a conversation has a place in it"
        raise Refused(BadRequest(problem=problem, field="conversationId"))
    message = posts.newest_in(turn, conversation.id)
    if request.message_id is not None:
        message = turn.need(Message, "message", request.message_id)
        if message.conversation_id != conversation.id:
            raise turn.missing("message", request.message_id)
    if message is not None:
        unread.mark_read(turn, turn.sender, conversation.id, message.seq)
        _take_mail(turn, conversation.id, message.seq)
    return conversations.shown(turn, ConversationView, conversation)


def _take_mail(turn: Turn, conversation_id: str, seq: int) -> None:
    """What was delivered there to the caller alone is read as well; an ask is taken by answering it."""
    for one in unread.list_unread(turn, turn.sender, _MAIL, wanted=lambda mail: _is_free(turn, mail)):
        message, delivery = one.message, one.delivery
        there = message is not None and message.conversation_id == conversation_id and message.seq <= seq
        if there and delivery is not None and delivery.flight_id is None:
            _acked(turn, delivery)


def give_back(turn: Turn, request: NackInbox) -> Settled:
    """Not now: again later, or in the end back to its sender."""

    def again(turn: Turn, delivery: Delivery) -> Delivery:
        after = nack(
            delivery,
            _holder(turn),
            turn.now,
            problem=request.problem,
            retry_after=request.retry_after,
            rule=turn.rules.back_off,
        )
        return flight_state.delivered(turn, delivery, after, DeliveryMove.NACK)

    return _each(turn, request.delivery_ids, again)


def hold_longer(turn: Turn, request: RenewInbox) -> Settled:
    """Still at it."""
    seconds = turn.rules.periods.lease

    def longer(turn: Turn, delivery: Delivery) -> Delivery:
        after = renew(delivery, _holder(turn), turn.now, seconds=seconds)
        return flight_state.delivered(turn, delivery, after, DeliveryMove.RENEW)

    return _each(turn, request.delivery_ids, longer)


def _each(turn: Turn, idents: tuple[str, ...], change: Callable[[Turn, Delivery], Delivery]) -> Settled:
    return Settled(items=tuple(change(turn, _mine(turn, ident)) for ident in dict.fromkeys(idents)))


def _mine(turn: Turn, ident: str) -> Delivery:
    delivery = turn.need(Delivery, "delivery", ident)
    if delivery.target != turn.sender:
        needs = ("the token of its target",)
        raise Refused(NotOwner(noun="delivery", id=ident, owner_id=delivery.target, needs=needs))
    return delivery


def answers_to(turn: Turn, flight_id: str) -> tuple[str, ...]:
    """The deliveries to the caller that say how a flight ended, as far as they are unread."""
    flight = turn.need(Flight, "flight", flight_id)
    ask = turn.ledger.get(Ask, flight.ask_id)
    if ask is None or ask.sender != turn.sender:
        return ()
    said = turn.ledger.many(Message, "replies_to", message=ask.message_id, limit=_REPLIES)
    mail = [
        delivery
        for one in said
        for delivery in turn.ledger.many(Delivery, "deliveries_of_message", message=one.id, limit=_REPLIES)
    ]
    return tuple(one.id for one in mail if one.target == turn.sender and _is_free(turn, one))


# -- looking -----------------------------------------------------------------------------------------


def list_deliveries(turn: Turn, request: ListDeliveries) -> Page[Delivery]:
    """The deliveries to one agent, newest first."""
    target = turn.sender
    if request.target is not None:
        agent = turn.resolve(request.target).agent
        if agent.id != turn.sender:
            turn.permit(Deed.READ, subject_of(agent))
        target = agent.id
    wanted = size(request.limit, turn.rules.limits)
    bound = before(request.cursor)
    found = turn.ledger.many(Delivery, "deliveries_to", agent=target, before=bound, limit=wanted + 1)
    listed = page(found, wanted, lambda delivery: delivery.id)
    kept = tuple(one for one in listed.items if request.state in (None, one.state))
    return Page(items=kept, next=listed.next)


def get_delivery(turn: Turn, request: GetDelivery) -> Delivery:
    """One delivery, for its sender, its target, and who may read them."""
    delivery = turn.need(Delivery, "delivery", request.delivery_id)
    if turn.sender not in (delivery.sender, delivery.target):
        turn.permit(Deed.READ, subject_of(turn.need(Agent, "agent", delivery.target)))
    return delivery
