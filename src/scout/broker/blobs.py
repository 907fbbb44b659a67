"""Attachments: stored once by their hash, named by it ever after."""

import re
from collections.abc import Iterable

from scout.base.refusal import Refused
from scout.broker.turn import Turn
from scout.model.conversation import Attachment
from scout.model.request_problem import Forbidden, NotFound
from scout.model.token import TokenKind
from scout.policy.limits import check_attachment
from scout.ports import Blobs
from scout.protocol.talk import Blob, GetBlob, PutBlob

__all__ = ["get_blob", "put_blob", "sizes_of"]

_SHA256 = re.compile(r"[0-9a-f]{64}")


def sizes_of(blobs: Blobs, named: Iterable[str]) -> dict[str, int]:
    """How large the stored files are that a request names by hash, with a name behind a colon."""
    hashes = dict.fromkeys(text.partition(":")[0] for text in named)
    return {sha256: size for sha256 in hashes if (size := blobs.size(sha256)) is not None}


def put_blob(turn: Turn, request: PutBlob) -> Attachment:
    """Store a file; the same bytes are the same file."""
    if turn.actor.kind is TokenKind.GUEST:
        raise Refused(Forbidden(action="store", subject="a file", needs=("the token of an agent",)))
    check_attachment(request.name[:60], len(request.data), turn.rules.limits)
    return Attachment(
        sha256=turn.world.blobs.put(request.data),
        name=request.name,
        size=len(request.data),
        media_type=request.media_type,
    )


def get_blob(turn: Turn, request: GetBlob) -> Blob:
    """A stored file; who knows the hash may have the bytes."""
    data = turn.world.blobs.get(request.sha256) if _SHA256.fullmatch(request.sha256) else None
    if data is None:
        raise Refused(NotFound(noun="attachment", id=request.sha256[:80]))
    attachment = Attachment(sha256=request.sha256, name=request.sha256[:12], size=len(data))
    return Blob(attachment=attachment, data=data)
