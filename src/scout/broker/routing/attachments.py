"""Attachments: stored once by hash, readable for their uploader and for readers of a message with them."""

import mimetypes
import re
from collections.abc import Iterable, Sequence

from scout.base.refusal import Refused
from scout.broker.routing import (
    conversations,
)
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import Attachment, Conversation, Message
from scout.model.delivery import Delivery
from scout.model.problems.request import NotFound
from scout.ports import Blobs
from scout.store.ledger import LAST

SHA256 = re.compile(r"[0-9a-f]{64}")
_PAGE = 100  # messages per query
_MEDIA_TYPES = mimetypes.MimeTypes()  # created once, because it reads system files


def read_sizes(blobs: Blobs, named: Iterable[str]) -> dict[str, int]:
    """Return the sizes of the stored files that a request names as `hash` or `hash:name`."""
    hashes = dict.fromkeys(text.partition(":")[0] for text in named)
    return {sha256: size for sha256 in hashes if (size := blobs.size(sha256)) is not None}


# -- read permission ----------------------------------------------------------------------------------


def may_read(tx: Transaction, sha256: str) -> bool:
    """Whether the caller is the operator, stored the file, or may read a message that carries it."""
    me = tx.actor.agent_id
    if tx.is_operator or (me and tx.ledger.value("file_uploaded", hashed=sha256, agent=me)):
        return True
    before = LAST
    while found := _list_messages(tx, sha256, before):
        if any(_is_shown(tx, one) for one in found):
            return True
        before = found[-1].id
    return False


def _list_messages(tx: Transaction, sha256: str, before: str) -> Sequence[Message]:
    return tx.ledger.many(Message, "file_messages", hashed=sha256, before=before, limit=_PAGE)


def _is_shown(tx: Transaction, message: Message) -> bool:
    """Whether the caller may read the message, in its conversation or in its own inbox."""
    most = tx.rules.limits.page_most
    deliveries = tx.ledger.many(Delivery, "deliveries_of_message", message=message.id, limit=most)
    if tx.actor.agent_id in [one.target for one in deliveries]:
        return True
    conversation = tx.need(Conversation, "conversation", message.conversation_id)
    try:
        conversations.require_readable(tx, conversation)
    except Refused:
        return False
    return True


def build_missing_refusal(sha256: str) -> Refused:
    return Refused(NotFound(noun="attachment", id=sha256[:80]))


def find_attachments(tx: Transaction, hashes: Sequence[str]) -> tuple[Attachment, ...]:
    """Return the stored files that a message names, without duplicates; `tx.files` has their sizes."""
    if not hashes:
        return ()
    return tuple({one.sha256: one for one in (_find_attachment(tx, text) for text in hashes)}.values())


def _find_attachment(tx: Transaction, text: str) -> Attachment:
    """Return the file named as `hash` or `hash:name`."""
    sha256, _, name = text.partition(":")
    size = tx.files.get(sha256)
    if size is None or not may_read(tx, sha256):
        raise Refused(NotFound(noun="attachment", id=text[:80]))
    media_type = _MEDIA_TYPES.guess_type(name)[0] or "application/octet-stream"
    return Attachment(sha256=sha256, name=name or sha256[:12], size=size, media_type=media_type)
