"""Attachments of messages from other nodes: asked for by their hash, and sent in pieces.

The node that wants a file asks for one piece after the other, so that it decides how much arrives. Pieces are
kept in memory until the file is whole; after a restart the first piece is asked for again.
"""

import asyncio
import hashlib

from scout.base.refusal import BadRequest, Refused
from scout.broker.mesh.outbox import queue_entry
from scout.broker.routing.attachments import SHA256, build_missing_refusal
from scout.broker.routing.remote import list_entries
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import Attachment, Message
from scout.model.mesh.envelope import EnvelopeKind, FilePayload
from scout.policy.limits import check_attachment
from scout.store.ledger import LAST

PIECE = 256 * 1024
_SOME = 100
_KEPT = 4  # files that arrive at the same time; others begin again when their turn comes


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
    data = tx.services.blobs.get(sha256)
    if data is None:
        return None
    stored = Attachment(sha256=sha256, name=sha256[:12], size=len(data))
    return FilePayload(attachment=stored, offset=offset, data=data[offset : offset + PIECE])


class ArrivingFiles:
    """The files that are arriving now."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._parts: dict[str, bytearray] = {}

    async def take_piece(self, piece: FilePayload) -> int | None:
        """Keep a piece, and store a file that is whole; return where the next piece begins, if any."""
        sha256, size = piece.attachment.sha256, piece.attachment.size
        check_attachment(sha256[:12], max(size, piece.offset + len(piece.data)), self._services.rules.limits)
        if self._services.blobs.size(sha256) is not None:
            return None
        if piece.offset == 0:
            self._begin(sha256)
        part = self._parts.get(sha256, bytearray())
        if piece.offset != len(part) or not (piece.data or size == 0):
            return 0  # what came before was lost
        part += piece.data
        if len(part) < size:
            return len(part)
        del self._parts[sha256]
        if hashlib.sha256(part).hexdigest() != sha256:
            raise Refused(BadRequest(problem="the bytes of the file do not match its hash", field="data"))
        await asyncio.to_thread(self._services.blobs.put, bytes(part))
        return None

    def _begin(self, sha256: str) -> None:
        while len(self._parts) >= _KEPT:
            del self._parts[next(iter(self._parts))]
        self._parts[sha256] = bytearray()
