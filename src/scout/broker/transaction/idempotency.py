"""Idempotency keys: a repeated request returns the first answer and changes nothing."""

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from scout.base.codec import decode, encode, encode_for_store
from scout.base.refusal import Refused
from scout.broker.transaction.transaction import Transaction
from scout.model.problems.request import KeyReused
from scout.protocol.access import Minted
from scout.protocol.agents import Registered
from scout.protocol.enrolment import Enrolled
from scout.protocol.inbox import Claimed
from scout.protocol.request import Write, get_result_type
from scout.store.receipts import Remembered, recall, remember

T = TypeVar("T")


def run_once(tx: Transaction, request: Write[T], handler: Callable[[Transaction, Any], T]) -> T:
    """Run a request once per key and return its first answer again; refuse another request under the key."""
    if request.idempotency_key is None:
        return handler(tx, request)
    connection, actor = tx.ledger.connection, tx.actor.agent_id or tx.actor.token_id
    key = request.idempotency_key
    hashed = hashlib.sha256(encode(_without_wait(request))).hexdigest()
    known = recall(connection, actor, request.operation, key)
    if known is not None:
        if known.hash != hashed:
            raise Refused(KeyReused(key=key, operation=request.operation))
        return decode(known.answer, get_result_type(type(request)))
    answer = handler(tx, request)
    if isinstance(answer, Claimed) and not answer.items:
        return answer  # nothing was written, so a repeat is harmless
    receipt = Remembered(hashed, encode_for_store(_without_secret(answer)))
    remember(connection, actor, request.operation, key, receipt=receipt, now=tx.now)
    return answer


def _without_secret(answer: T) -> T:
    """Return the answer to store: a secret is shown once and stored nowhere."""
    if isinstance(answer, Registered | Enrolled):
        return replace(answer, token=None)
    return replace(answer, secret="") if isinstance(answer, Minted) else answer


def _without_wait(request: Write[T]) -> Write[T]:
    """Return the request without its wait, which is no part of its identity."""
    return replace(request, wait=0) if getattr(request, "wait", 0) else request
