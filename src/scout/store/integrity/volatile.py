"""What may change without an event: listed here once, outside `verify`, lost without harm or rebuilt."""

from collections.abc import Mapping

from scout.model.noun import NOUNS
from scout.store.table import table_of

VOLATILE_TABLES: Mapping[str, str] = {
    "search": "the words of messages and work; rebuilt from the log",
    "indexed": "how far the search index has followed the log",
    "indexed_work": "which event stands in the search index for a work item",
    "receipts": "what was answered to an idempotency key, for a day",
    "looks": "when a person last looked, and up to when the sweeper has",
}

# Heartbeats and last use: fields of replayed tables, which the model names beside each noun.
VOLATILE_FIELDS: Mapping[str, frozenset[str]] = {
    table_of(noun.record).name: noun.volatile for noun in NOUNS.values() if noun.volatile
}
