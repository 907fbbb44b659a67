"""What was spent, by day: read from sums that grow with days and agents, not with reports."""

import sqlite3
from collections.abc import Iterator

from scout.model.usage import Counters, Totals, UsageDay, UsageLedger
from scout.store.query import QUERIES


def days_since(connection: sqlite3.Connection, day: str) -> Iterator[UsageDay]:
    """The sums from a day on, the oldest first."""
    found = connection.execute(QUERIES["usage_since"], {"day": day})
    names = [column[0] for column in found.description]
    for values in found:
        row = dict(zip(names, values, strict=True))
        yield UsageDay(
            day=row["day"],
            agent_id=row["agent_id"],
            category=UsageLedger(row["category"]),
            harness=row["harness"],
            model=row["model"],
            totals=Totals(**{name: row[name] for name in Totals.__struct_fields__}),
            counters=Counters(**{name: row[name] for name in Counters.__struct_fields__}),
        )
