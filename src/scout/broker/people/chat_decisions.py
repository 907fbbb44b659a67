"""Decisions about attention items that come from a chat: by a button, a reaction or a reply."""

from collections.abc import Callable

from scout.base.refusal import Diagnostic, WrongState
from scout.broker.operations import decisions
from scout.broker.people import accounts
from scout.broker.people.inbound import ChatFacts, find_shown_post, record_received, refuse_reply
from scout.broker.transaction.transaction import Transaction
from scout.model.attention import Attention, AttentionMove
from scout.model.events.chats import ChatReceived, Meaning, Received
from scout.model.people.chat import Markup
from scout.model.people.chat_post import ChatChoice, ChatPost
from scout.model.people.user import ConnectorKey
from scout.policy.people.chat_texts import describe_outcome
from scout.policy.people.choices import find_reaction, find_reply, read_value, takes_reply
from scout.policy.people.text_parts import format_text
from scout.ports.connector import InboundPress, InboundText
from scout.protocol.attention import (
    AnswerAttention,
    ApproveAttention,
    AttentionView,
    DenyAttention,
    DismissAttention,
)

NOT_LINKED = "Your account is not linked to Scout, so you cannot decide this."
NOT_YOURS = "You may not decide this."
_LONGEST_NOTE = 1000
_GONE = "This is no longer open."

_DECIDE: dict[AttentionMove, Callable[[Transaction, str, ChatChoice], AttentionView]] = {
    AttentionMove.APPROVE: lambda tx, ident, choice: decisions.approve(
        tx, ApproveAttention(attention_id=ident, always=choice.scope is not None, scope=choice.scope)
    ),
    AttentionMove.DENY: lambda tx, ident, _: decisions.deny(tx, DenyAttention(attention_id=ident)),
    AttentionMove.DISMISS: lambda tx, ident, _: decisions.dismiss(tx, DismissAttention(attention_id=ident)),
    AttentionMove.ANSWER: lambda tx, ident, choice: decisions.answer(
        tx, AnswerAttention(attention_id=ident, answer=choice.answer or "")
    ),
}


def decide_by_reply(tx: Transaction, connector: str, inbound: InboundText, facts: ChatFacts) -> None:
    """Decide the item of the post that a text replies to."""
    assert facts.key is not None
    assert facts.post is not None
    item = tx.need(Attention, "attention item", facts.post.attention_id or "")
    choice = find_reply(facts.post.choices, inbound.text)
    if choice is None and takes_reply(item):
        choice = ChatChoice(label="Answer", move=AttentionMove.ANSWER, answer=inbound.text)
    if choice is None:
        raise refuse_reply(", ".join(one.word for one in facts.post.choices))
    _DECIDE[choice.move](tx, item.id, choice)
    record_received(tx, connector, inbound, Meaning.DECISION, facts.key)


def decide_by_press(tx: Transaction, connector: str, press: InboundPress, key: ConnectorKey) -> str:
    """Decide the item of the post whose button was pressed; return what came of it, in words."""
    post = find_pressed_post(tx, connector, press)
    choice = _find_choice(post, press.value) if post is not None else None
    if post is None or choice is None or post.attention_id is None:
        return _GONE
    item = _DECIDE[choice.move](tx, post.attention_id, choice)
    taken = Received(
        connector=connector, inbound_id=press.id, meaning=Meaning.DECISION, place=press.place, key_id=key.id
    )
    tx.append(ChatReceived, key.id, taken)
    accounts.mark_used(tx, key)
    (note, *_) = format_text(describe_outcome(item, "you"), Markup.PLAIN, _LONGEST_NOTE)
    return note.plain


def find_pressed_post(tx: Transaction, connector: str, press: InboundPress) -> ChatPost | None:
    """Return the post of a pressed button, which names it, or of a reaction on one of its messages."""
    named = read_value(press.value)
    if named is None:
        return find_shown_post(tx, connector, press.place.chat_id, press.message_id)
    post = tx.get(ChatPost, named[0])
    here = (connector, press.place.chat_id)
    return post if post is not None and (post.connector, post.chat_id) == here else None


def _find_choice(post: ChatPost, value: str) -> ChatChoice | None:
    named = read_value(value)
    if named is None:
        return find_reaction(post.choices, value)
    return post.choices[named[1]] if named[1] < len(post.choices) else None


def describe_refused_press(problem: Diagnostic) -> str:
    """Return why a press had no effect, for the person who pressed."""
    if isinstance(problem, WrongState):
        return f"Too late: {problem.how}." if problem.how else _GONE
    return NOT_YOURS if problem.code in ("not_found", "forbidden") else problem.message
