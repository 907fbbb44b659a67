"""Attachments of messages from other nodes: asked for by their hash, and sent in pieces.

The node that wants a file asks for one piece after the other, so that it decides how much arrives. Pieces are
written to disk as they come, so no more than one is in memory, and a restart continues where it was.
"""

import asyncio

from scout.base.refusal import BadRequest, Refused
from scout.broker.mesh.outbox_rows import queue_entry
from scout.broker.routing.attachments import SHA256, build_missing_refusal
from scout.broker.routing.remote import list_entries
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import Attachment, Message
from scout.model.mesh.envelope import EnvelopeKind, FilePayload
from scout.policy.limits import check_attachment
from scout.ports import Blobs
from scout.store.ledger import LAST

PIECE = 256 * 1024
_SOME = 100


def request_files(tx: Transaction, node_id: str, message: Message) -> None:
    """Ask the sender's node for the files of a message that are not here; one above the limit stays there."""
    for one in message.attachments:
        fits = one.size <= tx.rules.limits.attachment and SHA256.fullmatch(one.sha256)
        if fits and tx.services.blobs.size(one.sha256) is None:
            queue_entry(tx, node_id, EnvelopeKind.FETCH, one.sha256)


def send_piece(tx: Transaction, node_id: str, sha256: str, offset: int) -> None:
    """Queue a piece of a file for a node that has a message with it."""
    size = tx.services.blobs.size(sha256)
    if size is None or not 0 <= offset < max(size, 1) or not _is_sent_to(tx, node_id, sha256):
        raise build_missing_refusal(sha256)
    queue_entry(tx, node_id, EnvelopeKind.FILE, sha256, offset=offset)


def _is_sent_to(tx: Transaction, node_id: str, sha256: str) -> bool:
    """Whether a message, ask or answer with the file went to a node."""
    found = tx.ledger.many(Message, "file_messages", hashed=sha256, before=LAST, limit=_SOME)
    subjects = {ident for one in found for ident in (one.id, one.flight_id) if ident is not None}
    return any(entry.node_id == node_id for one in subjects for entry in list_entries(tx, one))


def build_piece(tx: Transaction, sha256: str, offset: int) -> FilePayload | None:
    """Return a piece of a file; None if the file is gone."""
    blobs = tx.services.blobs
    size, data = blobs.size(sha256), blobs.read_part(sha256, offset, PIECE)
    if size is None or data is None:
        return None
    return FilePayload(
        attachment=Attachment(sha256=sha256, name=sha256[:12], size=size), offset=offset, data=data
    )


async def take_piece(services: Services, piece: FilePayload) -> int | None:
    """Keep a piece on disk, and store a file that is whole; return where the next piece begins, if any."""
    sha256, size = piece.attachment.sha256, piece.attachment.size
    check_attachment(sha256[:12], max(size, piece.offset + len(piece.data)), services.rules.limits)
    if services.blobs.size(sha256) is not None:
        return None
    return await asyncio.to_thread(_store_piece, services.blobs, piece)


def _store_piece(blobs: Blobs, piece: FilePayload) -> int | None:
    sha256, size = piece.attachment.sha256, piece.attachment.size
    length = blobs.add_part(sha256, piece.offset, piece.data)
    if length < size:
        return length if piece.data else 0
    if not blobs.finish(sha256):
        raise Refused(BadRequest(problem="the bytes of the file do not match its hash", field="data"))
    return None
