"""Usage as it was at a moment: whole days from their sums, the last day from its reports."""

from collections.abc import Iterator

from msgspec.structs import replace

from scout.broker.operations.insight import build_usage_report, format_date
from scout.broker.transaction.transaction import Transaction
from scout.model.moment import Moment
from scout.model.usage import Usage, UsageDay, get_day
from scout.protocol.insight import ShowUsage, UsageReport
from scout.store.derived import read_days

_MOST = 100_000  # reports of one agent on one day
_DAY = 86_400 * 1_000_000


def show_usage(tx: Transaction, request: ShowUsage, moment: Moment) -> UsageReport:
    """Return the usage of the days up to a moment. The caps are those of today."""
    report = build_usage_report(tx, request, moment.at, lambda since: _read_days_until(tx, since, moment))
    return replace(report, moment=moment)


def _read_days_until(tx: Transaction, since: str, moment: Moment) -> Iterator[UsageDay]:
    last = format_date(moment.at)
    begun = dict[str, None]()  # the agents with usage on the last day, which is not over at the moment
    for one in read_days(tx.ledger.connection, since):
        if one.day < last:
            yield one
        elif one.day == last:
            begun[one.agent_id] = None
    begins = int(moment.at) - int(moment.at) % _DAY
    for agent_id in begun:
        for usage in tx.ledger.many(Usage, "usage_of_agent", agent=agent_id, since=begins, limit=_MOST):
            if usage.created_at <= moment.at:
                yield get_day(usage)
