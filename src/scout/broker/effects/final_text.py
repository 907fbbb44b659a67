"""Preparing a final text for the store: valid, without live tokens, attached if it is long."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.broker.transaction.transactions import until_stored
from scout.model.conversation import BODY_LIMIT, Attachment
from scout.model.final_text import find_secrets, hide_secrets, make_storable, shorten
from scout.model.token import Token, hash_secret, is_valid
from scout.ports import Blobs, Completed

_NAME, _MEDIA_TYPE = "answer.txt", "text/plain; charset=utf-8"
_NOTE_ROOM = 1024
_LOOKED_AT = 1000
_SHORT = 16_384

WriteText = Callable[[Callable[[Transaction], Any]], Awaitable[Any]]


async def keep_text(services: Services, write: WriteText, done: Completed) -> Completed:
    """Return the same end with a text that can be stored; a long one is attached and starts in the body."""
    if _is_plain(done.text):
        return done
    text = await asyncio.to_thread(make_storable, done.text)
    if find_secrets(text):
        text = await write(lambda tx: hide_tokens(tx, text))
    limit = services.rules.limits.attachment
    short, attachments = await until_stored(
        lambda: asyncio.to_thread(_attach, services.blobs, text, limit), services.rules.back_off
    )
    return replace(done, text=short, attachments=(*done.attachments, *attachments))


def _is_plain(text: str) -> bool:
    """Whether a text is short and needs no check; most answers are."""
    return len(text) <= _SHORT and text.isascii() and "\0" not in text and "sct_" not in text


def hide_tokens(tx: Transaction, text: str) -> str:
    """Return the text without Scout tokens that are valid now."""
    live = [one for one in find_secrets(text)[:_LOOKED_AT] if _is_live(tx, one)]
    return hide_secrets(text, live) if live else text


def _is_live(tx: Transaction, secret: str) -> bool:
    token = tx.ledger.one(Token, "token_hashed", hashed=hash_secret(secret))
    return token is not None and is_valid(token, tx.now)


def _attach(blobs: Blobs, text: str, limit: int) -> tuple[str, tuple[Attachment, ...]]:
    """Store a long text as an attachment, off the loop: it is encoded, hashed and written."""
    data = text.encode()
    if len(data) <= BODY_LIMIT:
        return text, ()
    whole = data if len(data) <= limit else shorten(text, limit).encode()
    sha256 = blobs.put(whole)
    attachment = Attachment(sha256=sha256, name=_NAME, size=len(whole), media_type=_MEDIA_TYPE)
    kept = "All of it" if whole is data else f"The first {len(whole)} bytes of it"
    note = f"\n\n[This answer has {len(data)} bytes. {kept}: scout attachment get {sha256}]"
    return shorten(text, BODY_LIMIT - _NOTE_ROOM) + note, (attachment,)
