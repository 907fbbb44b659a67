"""Conversations and channels: who takes part, who is responsible, how far each has read."""

from typing import TypeVar

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.broker import posting
from scout.broker.page import after_number, page, size
from scout.broker.turn import Turn
from scout.broker.views import enriched
from scout.identity.segment import segment
from scout.model.agent import Agent
from scout.model.conversation import (
    Conversation,
    ConversationKind,
    Member,
    Message,
    advance_cursor,
    channel_id,
    thread_id,
)
from scout.model.delivery import Delivery
from scout.model.ref import Ref
from scout.model.request_problem import NotFound
from scout.model.talk_event import (
    ConversationCursor,
    MessagePosted,
    message_of,
)
from scout.policy.permit import Deed, Subject
from scout.protocol.channels import (
    ConversationView,
    GetConversation,
    ListConversations,
    MarkRead,
    MemberRole,
    MemberView,
)
from scout.protocol.request import Page
from scout.protocol.talk import Latest, LatestItem
from scout.store.ledger import LAST

__all__ = [
    "channel_named",
    "check_company",
    "company",
    "get",
    "latest",
    "list_conversations",
    "mark_read",
    "may_read",
    "members_of",
    "shown",
    "subject_of_place",
    "thread_on",
]

V = TypeVar("V", bound=ConversationView)
_SHOWN = 200
_COUNTED = 1000
_NEWEST = (1 << 63) - 1


def members_of(turn: Turn, conversation_id: str, limit: int = _SHOWN) -> list[Member]:
    """Who takes part."""
    found = turn.ledger.many(Member, "members_of", conversation=conversation_id, after="", limit=limit)
    return [member for member in found if member.left_at is None]


def _membership(turn: Turn, conversation_id: str) -> Member | None:
    me = turn.actor.agent_id
    member = turn.ledger.one(Member, "membership", conversation=conversation_id, agent=me) if me else None
    return member if member is not None and member.left_at is None else None


def may_read(turn: Turn, conversation: Conversation) -> Conversation:
    """The same conversation, if the caller may read it."""
    if conversation.kind is ConversationKind.THREAD:
        may_read(turn, turn.need(Conversation, "conversation", conversation.parent_id or ""))
        return conversation
    mine = _membership(turn, conversation.id)
    told_all = conversation.kind is ConversationKind.BROADCAST and conversation.owner == turn.actor.user
    if mine is None and not told_all:
        turn.permit(Deed.READ, subject_of_place(conversation))
    return conversation


def thread_on(turn: Turn, message_id: str) -> Conversation:
    """The thread that hangs on a message; who may read the message may open it."""
    message = turn.need(Message, "message", message_id)
    parent = may_read(turn, turn.need(Conversation, "conversation", message.conversation_id))
    found = turn.conversation(thread_id(message.id))
    if found is not None:
        return found
    thread = Conversation(
        id=thread_id(message.id),
        created_at=turn.now,
        updated_at=turn.now,
        kind=ConversationKind.THREAD,
        owner=parent.owner,
        parent_id=parent.id,
        root_message_id=message.id,
        quiet=parent.quiet,
        created_by=turn.sender,
    )
    return posting.opened(turn, thread)


def check_company(turn: Turn, conversation: Conversation, agent: Agent) -> Conversation:
    """The same conversation; a direct one is for its two, so a third is spoken to in another."""
    if conversation.kind is ConversationKind.THREAD:
        parent = turn.need(Conversation, "conversation", conversation.parent_id or "")
        check_company(turn, parent, agent)
        return conversation
    direct = conversation.kind is ConversationKind.DM
    if not direct or agent.id in [one.agent_id for one in members_of(turn, conversation.id)]:
        return conversation
    address = turn.canonical(agent.id)
    speak = {"to": address, "body": "…"}
    remedy = Remedy(operation="send", parameters=speak, why="in the direct conversation with it")
    problem = f"{address} takes no part in this direct conversation"
    raise Refused(BadRequest(problem=problem, field="conversationId", remedies=(remedy,)))


def company(turn: Turn, conversation: Conversation) -> list[str]:
    """Whom a message without a target is for: the other of a direct talk, or who began the thread."""
    if conversation.kind is ConversationKind.DM:
        return [one.agent_id for one in members_of(turn, conversation.id) if one.agent_id != turn.sender]
    if conversation.kind is not ConversationKind.THREAD:
        return []
    root = turn.ledger.get(Message, conversation.root_message_id)
    if root is not None and root.sender != turn.sender:
        return [root.sender]
    return company(turn, turn.need(Conversation, "conversation", conversation.parent_id or ""))


def subject_of_place(conversation: Conversation) -> Subject:
    """A conversation as something that a deed is done to."""
    return Subject(
        name=conversation.name or conversation.id,
        conversation_id=conversation.id,
        user=conversation.owner,
    )


def shown(turn: Turn, kind: type[V], conversation: Conversation) -> V:
    """A conversation with who takes part in it, and where the caller has read to."""
    members = members_of(turn, conversation.id)
    mine = next((one for one in members if one.agent_id == turn.actor.agent_id), None)
    views = tuple(_member_view(turn, conversation, one) for one in members)
    return enriched(kind, conversation, members=views, unread=_unread(turn, mine))


def _member_view(turn: Turn, conversation: Conversation, member: Member) -> MemberView:
    channel = conversation.kind is ConversationKind.CHANNEL
    owns = channel and conversation.created_by == member.agent_id
    roles = [MemberRole.OWNER] if owns else []
    roles += [MemberRole.MASTER] if conversation.master_id == member.agent_id else []
    return enriched(MemberView, member, address=turn.canonical(member.agent_id), roles=tuple(roles))


def _unread(turn: Turn, member: Member | None) -> int:
    if member is None:
        return 0
    return turn.ledger.value(
        "messages_unread",
        conversation=member.conversation_id,
        after=member.read_seq,
        reader=member.agent_id,
        limit=_COUNTED,
    )


def get(turn: Turn, request: GetConversation) -> ConversationView:
    """One conversation."""
    conversation = turn.need(Conversation, "conversation", request.conversation_id)
    return shown(turn, ConversationView, may_read(turn, conversation))


def list_conversations(turn: Turn, request: ListConversations) -> Page[ConversationView]:
    """The conversations that the caller takes part in, newest first."""
    wanted = size(request.limit, turn.rules.limits)
    bound = after_number(request.cursor, _NEWEST)
    mine = turn.ledger.many(Member, "memberships", agent=turn.sender, before=bound, limit=wanted + 1)
    listed = page(mine, wanted, lambda member: int(member.created_at))
    found = [turn.need(Conversation, "conversation", member.conversation_id) for member in listed.items]
    return Page(items=tuple(shown(turn, ConversationView, one) for one in found), next=listed.next)


def mark_read(turn: Turn, request: MarkRead) -> ConversationView:
    """The caller has read up to a message, or to the end."""
    conversation = turn.need(Conversation, "conversation", request.conversation_id)
    member = _membership(turn, conversation.id)
    if member is None:
        may_read(turn, conversation)
        problem = "only who takes part in a conversation has a place in it"
        raise Refused(BadRequest(problem=problem, field="conversationId"))
    message = _newest(turn, conversation.id)
    if request.message_id is not None:
        message = turn.need(Message, "message", request.message_id)
        if message.conversation_id != conversation.id:
            raise turn.missing("message", request.message_id)
    moved = advance_cursor(member, message.seq if message else 0, turn.now)
    if moved is not member:
        turn.record(ConversationCursor, moved, move="read", target=conversation.id)
    return shown(turn, ConversationView, conversation)


def _newest(turn: Turn, conversation_id: str) -> Message | None:
    return turn.ledger.one(Message, "messages_before", conversation=conversation_id, before=_NEWEST, limit=1)


def latest(turn: Turn, request: Latest) -> Page[LatestItem]:
    """The newest message of each conversation: those one last joined, and where something came or went."""
    wanted = size(request.limit, turn.rules.limits)
    reach = 4 * wanted
    said = turn.ledger.facts("said_by", ref=str(Ref.to(turn.sender)), limit=reach)
    ours = [message_of(event) for event in said if isinstance(event, MessagePosted)]
    came = turn.ledger.many(Delivery, "deliveries_to", agent=turn.sender, before=LAST, limit=reach)
    got = [turn.ledger.get(Message, one.message_id) for one in came]
    joined = turn.ledger.many(Member, "memberships", agent=turn.sender, before=_NEWEST, limit=reach)
    places = [one.conversation_id for one in (*ours, *(one for one in got if one), *joined)]
    found = [_newest(turn, place) for place in dict.fromkeys(places)]
    newest = sorted((one for one in found if one), key=lambda one: -one.seq)
    return Page(items=tuple(_latest_item(turn, message) for message in newest[:wanted]))


def _latest_item(turn: Turn, newest: Message) -> LatestItem:
    conversation = turn.need(Conversation, "conversation", newest.conversation_id)
    others = [one for one in members_of(turn, conversation.id, 3) if one.agent_id != turn.sender]
    name = conversation.name or ", ".join(turn.canonical(one.agent_id) for one in others)
    return LatestItem(
        conversation_id=conversation.id,
        kind=conversation.kind,
        name=name,
        message=newest,
        unread=_unread(turn, _membership(turn, conversation.id)),
    )


def channel_named(turn: Turn, name: str) -> Conversation:
    """A channel by its name or id, or the refusal that there is none."""
    owner = turn.actor.user or turn.world.operator
    folded = name if name.startswith("cnv_") else segment(name.removeprefix("channel:").lstrip("#"))
    ident = folded if name.startswith("cnv_") else channel_id(owner, folded)
    found = turn.ledger.get(Conversation, ident)
    if found is None or found.kind is not ConversationKind.CHANNEL:
        make = Remedy(operation="channel.create", parameters={"name": folded}, why="make it")
        look = Remedy(operation="channel.list", parameters={}, why="the channels there are")
        remedies = (look,) if name.startswith("cnv_") else (make, look)
        raise Refused(NotFound(noun="channel", id=name[:60], remedies=remedies))
    return found
