"""Attachments: stored once by their hash; read by those who stored them or may read a message with them."""

import asyncio
import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.routing import conversations
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import Attachment, Conversation, Message
from scout.model.delivery import Delivery
from scout.model.events.talk import AttachmentStored
from scout.model.problems.request import Forbidden, NotFound
from scout.model.token import TokenKind
from scout.policy.limits import check_attachment
from scout.ports import Blobs
from scout.protocol.talk import Blob, GetBlob, PutBlob
from scout.store.ledger import LAST

_SHA256 = re.compile(r"[0-9a-f]{64}")
_PAGE = 100  # messages that are looked at in one query


def sizes_of(blobs: Blobs, named: Iterable[str]) -> dict[str, int]:
    """How large the stored files are that a request names by hash, with a name behind a colon."""
    hashes = dict.fromkeys(text.partition(":")[0] for text in named)
    return {sha256: size for sha256 in hashes if (size := blobs.size(sha256)) is not None}


async def put_blob(call: CallContext[CallBroker], request: PutBlob) -> Attachment:
    """Store the bytes in a thread, then record who did. The idempotency key stands for the file's hash."""
    stored = await asyncio.to_thread(_store, call.glance(), request)
    hashed = replace(request, data=stored.sha256.encode())
    return await call.write_once(hashed, lambda tx, _: record_upload(tx, stored))


def _store(tx: Transaction, request: PutBlob) -> Attachment:
    """Store a file; the same bytes are the same file."""
    if tx.actor.kind is TokenKind.GUEST or tx.actor.agent_id is None:
        raise Refused(Forbidden(action="store", subject="a file", needs=("the token of an agent",)))
    check_attachment(request.name[:60], len(request.data), tx.rules.limits)
    return Attachment(
        sha256=tx.services.blobs.put(request.data),
        name=request.name,
        size=len(request.data),
        media_type=request.media_type,
    )


def record_upload(tx: Transaction, stored: Attachment) -> Attachment:
    """Note who stored a file: it may read it from now on."""
    if not tx.ledger.value("file_uploaded", hashed=stored.sha256, agent=tx.sender):
        tx.append(AttachmentStored, tx.sender, stored)
    return stored


def get_blob(tx: Transaction, request: GetBlob) -> Blob:
    """Return a stored file. One that the caller may not read is refused as if there were none."""
    if not may_read(tx, request.sha256):
        raise _missing(request.sha256)
    data = tx.services.blobs.get(request.sha256) if _SHA256.fullmatch(request.sha256) else None
    if data is None:
        raise _missing(request.sha256)
    attachment = Attachment(sha256=request.sha256, name=request.sha256[:12], size=len(data))
    return Blob(attachment=attachment, data=data)


# -- who may read -------------------------------------------------------------------------------------


def may_read(tx: Transaction, sha256: str) -> bool:
    """Whether the caller is the operator, stored the file, or may read a message that carries it."""
    me = tx.actor.agent_id
    if tx.is_operator or (me and tx.ledger.value("file_uploaded", hashed=sha256, agent=me)):
        return True
    before = LAST
    while found := _messages(tx, sha256, before):
        if any(_is_shown(tx, one) for one in found):
            return True
        before = found[-1].id
    return False


def _messages(tx: Transaction, sha256: str, before: str) -> Sequence[Message]:
    return tx.ledger.many(Message, "file_messages", hashed=sha256, before=before, limit=_PAGE)


def _is_shown(tx: Transaction, message: Message) -> bool:
    """Whether the caller reads the message in its conversation, or in its own inbox."""
    most = tx.rules.limits.page_most
    deliveries = tx.ledger.many(Delivery, "deliveries_of_message", message=message.id, limit=most)
    if tx.actor.agent_id in [one.target for one in deliveries]:
        return True
    conversation = tx.need(Conversation, "conversation", message.conversation_id)
    try:
        conversations.may_read(tx, conversation)
    except Refused:
        return False
    return True


def _missing(sha256: str) -> Refused:
    return Refused(NotFound(noun="attachment", id=sha256[:80]))
