"""The JSON Schema of everything that Scout stores and sends, derived from the records."""

import functools
from typing import Any

from scout.base import codec
from scout.base.record import Record
from scout.model.ask import AskReceipt
from scout.model.conversation import Member, Receipt
from scout.model.events import event_types
from scout.model.noun import NOUNS
from scout.model.problems import diagnostics

RECORDS: tuple[type[Record], ...] = (
    *(noun.record for noun in NOUNS.values()),
    Member,
    Receipt,
    AskReceipt,
    *event_types.ALL,
    *diagnostics.ALL,
)


@functools.cache
def build_model_schema() -> dict[str, Any]:
    """Return one document with each noun, event and diagnostic under its name in `$defs`."""
    return codec.build_schema(RECORDS)
