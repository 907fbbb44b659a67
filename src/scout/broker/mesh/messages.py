"""Messages of agents of other nodes: posted under their own ids, delivered by the wake rules of this node."""

from scout.base.refusal import BadRequest, Refused
from scout.broker.routing import posts, wake
from scout.broker.routing.remote import is_leaving
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent, Lifecycle
from scout.model.conversation import Conversation, Member, Message, check_body, derive_dm_id
from scout.model.events.envelope import Metadata
from scout.model.problems.request import NotFound, TooLarge
from scout.model.problems.target import RemoteTarget
from scout.policy.directory import Party
from scout.policy.wake import Cause, Occasion

FILES = 32  # files of one message


class TargetLeaving(Exception):  # noqa: N818 (no error: it is decided when the other node has answered)
    """The target is on its way to another node."""


def require_recipient(tx: Transaction, agent_id: str) -> Agent:
    """Return an agent of this node, else refuse. An agent of another node is not passed on.

    For one that moved from here, the refusal names the node on which it lives now.
    """
    agent = tx.agent(agent_id)
    if agent is not None and agent.moved_to is not None:
        if is_leaving(tx, agent_id):
            raise TargetLeaving
        raise Refused(RemoteTarget(address=tx.address(agent.id), node=agent.node, node_id=agent.moved_to))
    if agent is None or agent.is_remote or agent.lifecycle is Lifecycle.RETIRED:
        raise Refused(NotFound(noun="agent of this node", id=agent_id[:60]))
    return agent


def deliver_message(tx: Transaction, message: Message, agent: Agent, cause: Cause) -> None:
    """Post a message of a remote agent under its own id, and deliver it by the wake rules of this node."""
    if tx.get(Message, message.id) is not None:
        raise Refused(BadRequest(problem="a message of this id is stored already", field="message"))
    conversation = find_conversation(tx, message, agent)
    occasion = Occasion(
        cause=cause,
        sender=Party(agent_id=message.sender, session_id=message.sender_session_id),
        kind=message.kind,
        targets=(Party(agent_id=agent.id),),
        place=wake.build_wake_context(tx, conversation),
    )
    decision = wake.decide_who_is_woken(tx, occasion)
    said = post_copy(tx, message, conversation, agent.id)
    wake.deliver_message(tx, said, agent.id, decision, delegates=cause is Cause.WAKE)


def find_conversation(tx: Transaction, message: Message, agent: Agent) -> Conversation:
    """Return the conversation of a message if both take part in it here, else their direct one.

    Channels are named by their owner, and two operators may have the same login name: what a guest says
    is never taken for a message in a channel of this node.
    """
    direct = derive_dm_id(message.sender, agent.id)
    sender = tx.agent(message.sender)
    own = sender is not None and sender.owner == tx.services.operator
    if own and message.conversation_id != direct:
        found = tx.conversation(message.conversation_id)
        both = (message.sender, agent.id)
        if found is not None and all(_is_member(tx, found.id, one) for one in both):
            return found
    return posts.ensure_direct_conversation(tx, message.sender, agent.id)


def _is_member(tx: Transaction, conversation_id: str, agent_id: str) -> bool:
    found = tx.ledger.one(Member, "membership", conversation=conversation_id, agent=agent_id)
    return found is not None and found.left_at is None


def post_copy(
    tx: Transaction, message: Message, conversation: Conversation, to: str | None = None
) -> Message:
    """Post a message of another node under its own id, without references to what is not known here."""
    if len(message.attachments) > FILES:
        raise Refused(TooLarge(what="list of attachments", size=len(message.attachments), limit=FILES))
    asked = tx.get(Message, message.in_reply_to)
    reply_to = message.reply_to if tx.agent(message.reply_to) is not None else None
    return posts.post_message(
        tx,
        conversation.id,
        check_body(message.body),
        sender=message.sender,
        kind=message.kind,
        message_id=message.id,
        follow_up=message.follow_up,
        reply_to=reply_to,
        attachments=message.attachments,
        metadata=Metadata(target_agents=(to,) if to else (), in_reply_to=asked.id if asked else None),
    )


def post_broadcast(tx: Transaction, message: Message) -> None:
    """Post a message of another node to all agents of the operator here: unread, and without a wake."""
    if tx.get(Message, message.id) is not None:
        raise Refused(BadRequest(problem="a message of this id is stored already", field="message"))
    place = posts.ensure_broadcast_conversation(tx, tx.services.operator)
    post_copy(tx, message, place)
