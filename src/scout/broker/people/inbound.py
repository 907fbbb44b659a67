"""What comes from a chat: taken once, in the name of the person who spoke, and turned into what it means.

Each function here is part of one transaction with the record that the event was taken. So an event that is
reported again, after a restart or by the platform, has no second effect.
"""

import hashlib
from typing import NamedTuple

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Diagnostic, Refused
from scout.broker.operations import asks, talk
from scout.broker.people import accounts, links
from scout.broker.people.chat_places import (
    find_binding,
    find_chat_agent,
    find_chat_conversation,
    find_group_key,
)
from scout.broker.people.chat_posts import queue_post
from scout.broker.people.links import ChatAccount, Linked, NotLinked
from scout.broker.routing import conversations, posts
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.model.agent import Agent
from scout.model.ask import Ask
from scout.model.conversation import Conversation, Message, check_body
from scout.model.delivery import Delivery, DeliveryState
from scout.model.events.chats import ChatReceived, ChatStranger, Meaning, Received, Stranger
from scout.model.events.directory import KEY_EVENTS
from scout.model.events.envelope import Metadata
from scout.model.flight import Flight, FlightState
from scout.model.people.binding import Binding
from scout.model.people.chat_post import ChatPost
from scout.model.people.link_code import find_code
from scout.model.people.user import ConnectorKey, KeyMove, update_account
from scout.policy.people.chat_texts import describe_link, describe_refusal
from scout.policy.people.inbound import ChatText, read_meaning
from scout.policy.permit import Deed
from scout.ports.connector import InboundText
from scout.protocol.asks import MakeAsk
from scout.protocol.operations import build_command_line
from scout.protocol.route_operator import apply_route
from scout.protocol.talk import Send

_HASH = 6  # characters: too few to find out whose account it was
_CORRECTS = "Correction of an earlier message:"


class ChatFacts(NamedTuple):
    """What is known about an event: whose account it is, what it replies to, and what it means.

    `key`: the sender's account. `group`: the key of the group that the chat belongs to. `post`: the post that
    it replies to.
    """

    meaning: Meaning
    key: ConnectorKey | None = None
    group: ConnectorKey | None = None
    post: ChatPost | None = None
    binding: Binding | None = None

    @property
    def user(self) -> str:
        """The user whose agent a plain text is for."""
        owner = self.group or self.key
        return owner.user if owner is not None else ""


def is_taken(tx: Transaction, connector: str, inbound_id: str) -> bool:
    """Whether an event was taken before."""
    return bool(tx.ledger.value("chat_received", connector=connector, inbound=inbound_id))


def look_at_text(tx: Transaction, connector: str, inbound: InboundText) -> ChatFacts:
    """Return what a text means now."""
    place = inbound.place
    key = accounts.find_key(tx, connector, inbound.sender.id)
    binding = find_binding(tx, connector, place)
    post = find_shown_post(tx, connector, place.chat_id, inbound.reply_to)
    said = ChatText(
        text=inbound.text,
        by_program=inbound.sender.program,
        addressed=inbound.addressed,
        code=find_code(inbound.text) is not None,
        known=key is not None,
        decides=post is not None and post.attention_id is not None,
        edits=inbound.edits is not None,
        bound=binding is not None,
    )
    return ChatFacts(read_meaning(said), key, find_group_key(tx, connector, place), post, binding)


def find_shown_post(
    tx: Transaction, connector: str, chat_id: str, external_id: str | None
) -> ChatPost | None:
    """Return the post that a message on the platform is a part of."""
    if external_id is None:
        return None
    values = {"connector": connector, "chat": chat_id, "external": external_id}
    return tx.ledger.one(ChatPost, "chat_post_shown", **values)


# -- accounts ----------------------------------------------------------------------------------------


def take_code(tx: Transaction, connector: str, inbound: InboundText) -> Linked | NotLinked:
    """Redeem a link code. A linked account is told in its chat; what is told otherwise is not stored."""
    account = ChatAccount(
        connector=connector,
        external_id=inbound.sender.id,
        chat_id=inbound.place.chat_id,
        label=inbound.sender.name,
        group=inbound.place.group,
    )
    result = links.redeem(tx, account, inbound.text)
    if isinstance(result, Linked):
        text = describe_link(result.user.name, result.agent, group=account.group)
        queue_post(tx, connector, inbound.place, result.user.name, key=result.key, text=text)
        record_received(tx, connector, inbound, Meaning.LINK, result.key)
    return result


def is_greeted(tx: Transaction, connector: str, sender_id: str) -> bool:
    """Whether somebody unknown was told today how to be linked."""
    return bool(tx.ledger.value("chat_stranger", **_describe_stranger(tx, connector, sender_id)))


def take_stranger(tx: Transaction, connector: str, sender_id: str) -> None:
    """Record that somebody unknown wrote today."""
    stranger = Stranger(**_describe_stranger(tx, connector, sender_id))
    tx.append(ChatStranger, tx.services.system_agent, stranger)


def _describe_stranger(tx: Transaction, connector: str, sender_id: str) -> dict[str, str]:
    day = str(tx.now)[:10]
    text = f"{tx.services.node}\0{connector}\0{sender_id}\0{day}"
    return {"connector": connector, "hashed": hashlib.sha256(text.encode()).hexdigest()[:_HASH], "day": day}


def record_received(
    tx: Transaction,
    connector: str,
    inbound: InboundText,
    meaning: Meaning,
    key: ConnectorKey,
    *,
    message_id: str | None = None,
    asks: bool = False,
    refused: str = "",
) -> None:
    """Record that a text was taken, what it became, and that its account was used."""
    taken = Received(
        connector=connector,
        inbound_id=inbound.id,
        meaning=meaning,
        place=inbound.place,
        key_id=key.id,
        external_id=inbound.message_id if inbound.edits is None else None,
        message_id=message_id,
        asks=asks,
        refused=refused,
    )
    tx.append(ChatReceived, key.id, taken)
    _touch_key(tx, key, inbound)


def _touch_key(tx: Transaction, key: ConnectorKey, inbound: InboundText) -> None:
    """Store that an account was used, and the private chat in which its person is reached now."""
    moved = not inbound.place.group and key.chat_id != inbound.place.chat_id
    if moved:
        key = update_account(key, inbound.place.chat_id, key.label, tx.now)
        tx.record(KEY_EVENTS[KeyMove.UPDATE], key, move=KeyMove.UPDATE)
    accounts.mark_used(tx, key)


# -- texts -------------------------------------------------------------------------------------------


def take_text(
    tx: Transaction, connector: str, inbound: InboundText, facts: ChatFacts, files: tuple[str, ...] = ()
) -> None:
    """Take a text that is for an agent or a conversation. A refusal undoes everything."""
    assert facts.key is not None  # an unknown sender has no agents
    if facts.meaning is Meaning.CORRECTION:
        message_id, asked = _take_correction(tx, connector, inbound, facts.key), False
    elif facts.meaning is Meaning.BOUND and facts.binding is not None and facts.binding.conversation_id:
        message_id, asked = _say_in_conversation(tx, inbound, facts.binding.conversation_id, files), False
    elif facts.meaning is Meaning.MENTION:
        message_id, asked = _ask_named(tx, inbound, facts.binding, files), True
    else:
        message_id, asked = _ask_chat_agent(tx, connector, inbound, facts, files)
    record_received(tx, connector, inbound, facts.meaning, facts.key, message_id=message_id, asks=asked)


def _ask_named(tx: Transaction, inbound: InboundText, binding: Binding | None, files: tuple[str, ...]) -> str:
    """Ask the agent that a text begins with; in a bound chat, in its conversation."""
    wish = MakeAsk(body=_read_body(inbound), attachments=files)
    if binding is not None and binding.conversation_id is not None:
        wish = replace(wish, conversation_id=binding.conversation_id)
    return asks.make_ask(tx, apply_route(wish)).message_id


def _say_in_conversation(
    tx: Transaction, inbound: InboundText, conversation_id: str, files: tuple[str, ...]
) -> str:
    said = Send(conversation_id=conversation_id, body=_read_body(inbound), attachments=files)
    return talk.send(tx, said).message_id


def _ask_chat_agent(
    tx: Transaction, connector: str, inbound: InboundText, facts: ChatFacts, files: tuple[str, ...]
) -> tuple[str, bool]:
    """Ask the agent of the chat, or add to an ask that has not started; return whether it is a new ask."""
    bound = facts.binding.agent_id if facts.binding is not None else None
    agent = tx.need(Agent, "agent", bound) if bound else find_chat_agent(tx, facts.user, connector)
    place = find_chat_conversation(tx, connector, inbound.place, agent)
    waiting = _find_waiting_ask(tx, connector, inbound, place, agent)
    if waiting is not None and not files:
        tx.permit(Deed.ASK, build_subject(agent))
        return _add_to_ask(tx, waiting, inbound), False
    wish = MakeAsk(to=agent.id, body=_read_body(inbound), conversation_id=place.id, attachments=files)
    return asks.make_ask(tx, wish).message_id, True


def _find_waiting_ask(
    tx: Transaction, connector: str, inbound: InboundText, place: Conversation, agent: Agent
) -> Ask | None:
    """Return the latest ask of this chat and thread, if no program has taken it yet."""
    where = {"chat": inbound.place.chat_id, "thread": inbound.place.thread_id or ""}
    last = next(iter(tx.ledger.facts("chat_last_ask", connector=connector, **where)), None)
    message_id = last.payload.message_id if isinstance(last, ChatReceived) else None
    ask = tx.ledger.one(Ask, "ask_of_message", message=message_id)
    if ask is None or (ask.conversation_id, ask.target) != (place.id, agent.id):
        return None
    flight = tx.ledger.many(Flight, "flights_of_ask", ask=ask.id)[-1]
    deliveries = tx.ledger.many(Delivery, "deliveries_of_flight", flight=flight.id)
    waits = all(one.state is DeliveryState.PENDING for one in deliveries)
    return ask if flight.state is FlightState.QUEUED and waits else None


def _add_to_ask(tx: Transaction, ask: Ask, inbound: InboundText) -> str:
    """Post a message that the program of the ask gets with it."""
    body = check_body(_read_body(inbound))
    metadata = Metadata(target_agents=(ask.target,), in_reply_to=None)
    message = posts.post_message(tx, ask.conversation_id, body, metadata=metadata)
    posts.create_delivery(tx, message, ask.target, rule="chat", reason=f"it comes with {ask.id}")
    return message.id


def _take_correction(tx: Transaction, connector: str, inbound: InboundText, key: ConnectorKey) -> str | None:
    """Tell the agent that got a text how the person changed it; a text that was not taken has none.

    On some platforms anybody can send an edit of anybody's message, so the account must be the same.
    """
    values = {"connector": connector, "chat": inbound.place.chat_id, "external": inbound.edits}
    event = next(iter(tx.ledger.facts("chat_message", **values)), None)
    came = event.payload if isinstance(event, ChatReceived) else None
    message = tx.get(Message, came.message_id) if came is not None and came.key_id == key.id else None
    if message is None or message.body == inbound.text:
        return None
    conversations.require_readable(tx, tx.need(Conversation, "conversation", message.conversation_id))
    for target in message.target_agents:
        tx.permit(Deed.ADDRESS, build_subject(tx.need(Agent, "agent", target)))
    metadata = Metadata(in_reply_to=message.id, target_agents=message.target_agents)
    body = check_body(f"{_CORRECTS}\n\n{inbound.text}")
    corrected = posts.post_message(tx, message.conversation_id, body, metadata=metadata)
    for target in message.target_agents:
        posts.create_delivery(tx, corrected, target, rule="chat", reason="a correction of an earlier message")
    return corrected.id


def _read_body(inbound: InboundText) -> str:
    names = ", ".join(file.name for file in inbound.files)
    return inbound.text if inbound.text.strip() else f"See the attached file: {names}"


# -- refusals ----------------------------------------------------------------------------------------


def take_refusal(
    tx: Transaction, connector: str, inbound: InboundText, facts: ChatFacts, problem: Diagnostic
) -> None:
    """Record a text that nothing came of, and say why in its chat."""
    assert facts.key is not None
    command = next((build_command_line(one) for one in problem.remedies), "")
    text = describe_refusal(problem, command)
    answer_in_chat(tx, connector, inbound, facts, text)
    record_received(tx, connector, inbound, facts.meaning, facts.key, refused=problem.code)


def answer_in_chat(
    tx: Transaction, connector: str, inbound: InboundText, facts: ChatFacts, text: str
) -> ChatPost:
    """Queue a text of Scout as the answer to a text."""
    key = facts.key
    assert key is not None
    user = facts.group.user if facts.group is not None else key.user
    return queue_post(tx, connector, inbound.place, user, key=key, text=text, reply_to=inbound.message_id)


def refuse_reply(words: str) -> Refused:
    """Return the refusal of a reply that names no choice."""
    return Refused(BadRequest(problem=f"reply with one of: {words}"))
