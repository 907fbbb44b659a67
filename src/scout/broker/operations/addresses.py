"""Reading addresses as an operation: the same answers as offline."""

from typing import Any

from scout.base.codec import render
from scout.base.refusal import Refused
from scout.broker.transaction.transaction import Transaction
from scout.identity.describe import describe, describe_mentions
from scout.protocol.agents import Parse, Parsed


def parse(tx: Transaction, request: Parse) -> Parsed:
    """One answer per text, in their order."""
    return Parsed(items=tuple(_answer(text, mentions=request.mentions) for text in request.texts))


def _answer(text: str, *, mentions: bool) -> dict[str, Any]:
    try:
        return describe_mentions(text) if mentions else describe(text)
    except Refused as refusal:
        return {"input": text, "error": render(refusal.diagnostic)}
