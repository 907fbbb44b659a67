"""A post as the messages that a platform is given: its text in parts, then its files."""

from typing import NamedTuple

from msgspec.structs import replace

from scout.broker.routing.attention_items import count_held_asks
from scout.broker.transaction.transaction import Transaction
from scout.model.attention import Attention
from scout.model.conversation import Attachment, Message
from scout.model.people.chat import Button
from scout.model.people.chat_post import ChatPost, is_edit
from scout.policy.people.chat_texts import REPEAT, describe_item, name_author, quote_text
from scout.policy.people.choices import OfferedChoices, list_choices, offer_choices, takes_reply
from scout.policy.people.text_parts import FormattedPart, add_tail, format_text
from scout.ports import Blobs
from scout.ports.connector import ConnectorCapabilities, OutboundFile, OutboundText

_ROOM = len(REPEAT) + 2  # characters that are kept free in each part
GONE = "what it shows was removed"


class PostContent(NamedTuple):
    """What a post shows, read from the records: a text, the lines or the outcome below it, and files."""

    text: str
    tail: str = ""
    buttons: tuple[Button, ...] = ()
    files: tuple[Attachment, ...] = ()


def read_content(tx: Transaction, post: ChatPost, capabilities: ConnectorCapabilities) -> PostContent | None:
    """Return what a post shows now; None if its source was removed."""
    if post.message_id is not None:
        return _read_message(tx, post)
    if post.attention_id is not None:
        return _read_item(tx, post, capabilities)
    return PostContent(post.text)


def _read_message(tx: Transaction, post: ChatPost) -> PostContent | None:
    message = tx.get(Message, post.message_id)
    if message is None or message.redacted_at is not None:
        return None
    text = name_author(message.body, tx.address(post.author) if post.author else "")
    return PostContent(text, files=message.attachments)


def _read_item(tx: Transaction, post: ChatPost, capabilities: ConnectorCapabilities) -> PostContent | None:
    item = tx.get(Attention, post.attention_id)
    if item is None:
        return None
    text = describe_item(count_held_asks(tx, item), tx.address(item.agent_id))
    if is_edit(post):
        return PostContent(text, f"**{post.outcome}**")
    offered = _offer(post, item, capabilities)
    return PostContent(text, "\n".join(offered.lines), offered.buttons)


def _offer(post: ChatPost, item: Attention, capabilities: ConnectorCapabilities) -> OfferedChoices:
    return offer_choices(
        post.id,
        post.choices or list_choices(item),
        buttons=capabilities.buttons,
        label_limit=capabilities.label_limit,
        reactions=capabilities.reactions,
        replies=takes_reply(item),
    )


def build_messages(
    post: ChatPost, content: PostContent, capabilities: ConnectorCapabilities, blobs: Blobs
) -> list[OutboundText]:
    """Return the messages of a post. It formats long texts and reads files, so it runs in a thread."""
    limit = capabilities.text_limit - _ROOM
    parts = format_text(content.text, capabilities.markup, limit)
    whole = add_tail(parts, content.tail, capabilities.markup, limit)
    texts = [_build_text(post, part, number) for number, part in enumerate(whole)]
    if texts:
        texts[-1] = replace(texts[-1], buttons=content.buttons)
        texts[0] = replace(texts[0], reply_to=post.reply_to)
    files = [
        _build_file(post, one, len(texts) + number, capabilities, blobs)
        for number, one in enumerate(content.files)
    ]
    return [*texts, *files]


def build_edit(post: ChatPost, content: PostContent, capabilities: ConnectorCapabilities) -> OutboundText:
    """Return what replaces the last message of a post: its text with the outcome, and no buttons."""
    limit = capabilities.text_limit - _ROOM
    parts = format_text(content.text, capabilities.markup, limit)
    apart = len(post.parts) > len(parts)  # the choices were in a message below the text
    shown = add_tail(() if apart else parts[-1:], content.tail, capabilities.markup, limit)
    return _build_text(post, shown[-1], len(post.parts) - 1)


def mark_repeat(message: OutboundText) -> OutboundText:
    """Return a message that may be shown a second time, and says so."""
    if message.files:
        return message
    return replace(message, text=f"{REPEAT}\n{message.text}", plain=f"{REPEAT}\n{message.plain}")


def _build_text(post: ChatPost, part: FormattedPart, number: int) -> OutboundText:
    return OutboundText(id=f"{post.id}.{number}", place=post.place, text=part.text, plain=part.plain)


def _build_file(
    post: ChatPost, file: Attachment, number: int, capabilities: ConnectorCapabilities, blobs: Blobs
) -> OutboundText:
    """Return a file as a message; one that the platform does not take is named instead."""
    data = blobs.get(file.sha256) if file.size <= capabilities.file_limit else None
    if data is None:
        why = "too large for this chat" if file.size > capabilities.file_limit else "gone"
        (part,) = format_text(f"(the file {quote_text(file.name)} is {why})", capabilities.markup, 4096)
        return _build_text(post, part, number)
    sent = OutboundFile(name=file.name, media_type=file.media_type, data=data)
    return replace(_build_text(post, FormattedPart(text="", plain=""), number), files=(sent,))
