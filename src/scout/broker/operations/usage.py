"""What was spent, in two ledgers that are never added up: reporting it, and looking at it."""

from collections.abc import Callable, Iterable
from functools import cache

from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.broker.effects import budget
from scout.broker.operations import agents
from scout.broker.transaction.transaction import Transaction, subject_of
from scout.model.agent import Agent
from scout.model.flight import Flight
from scout.model.problems.request import NotOwner
from scout.model.session import Session
from scout.model.usage import Usage, UsageDay, UsageLedger, checked_usage
from scout.policy.permit import Deed
from scout.policy.usage import accounts
from scout.protocol.insight import GroupBy, ReportUsage, ShowUsage, Spent, UsageReport
from scout.store.derived import days_since

_DAY = 86_400
_MOST_DAYS = 366


def report(tx: Transaction, request: ReportUsage) -> Usage:
    """Tokens that the caller spent; a flight or session that they are said to belong to is its own."""
    if request.flight_id is not None:
        _check_own(tx, "flight", request.flight_id, tx.need(Flight, "flight", request.flight_id).target)
    if request.session_id is not None:
        session = tx.need(Session, "session", request.session_id)
        _check_own(tx, "session", session.id, session.agent_id)
    usage = Usage(
        id=tx.mint("usg"),
        agent_id=tx.sender,
        category=request.category,
        value_class=request.value_class,
        prompt_tokens=request.prompt_tokens,
        completion_tokens=request.completion_tokens,
        total_tokens=request.total_tokens,
        model=request.model,
        harness=request.harness,
        usage_source=request.usage_source,
        session_id=request.session_id,
        message_id=request.message_id,
        ask_id=request.ask_id,
        flight_id=request.flight_id,
        work_item_id=request.work_item_id,
        counters=request.counters,
        created_at=tx.now,
    )
    return budget.record_usage(tx, checked_usage(usage))


def _check_own(tx: Transaction, noun: str, ident: str, owner: str) -> None:
    if owner != tx.sender:
        needs = (f"the token of {tx.address(owner)}",)
        raise Refused(NotOwner(noun=noun, id=ident, owner_id=owner, needs=needs))


def show(tx: Transaction, request: ShowUsage) -> UsageReport:
    """Both ledgers since a day, in sum and by what was asked for."""
    if not 1 <= request.days <= _MOST_DAYS:
        raise Refused(BadRequest(problem=f"days are 1 to {_MOST_DAYS}", field="days"))
    agent = agents.find(tx, request.agent, Deed.READ) if request.agent else None
    since = _midnight(tx.now).plus(-_DAY * (request.days - 1))
    wanted, today = _wanted(tx, agent), _date(tx.now)
    found = days_since(tx.ledger.connection, _date(since))
    days = [one for one in found if one.day <= today and wanted(one.agent_id)]
    daily = request.by is GroupBy.DAY
    return UsageReport(
        since=since,
        until=tx.now,
        by=request.by,
        agent=tx.address(agent.id) if agent else None,
        totals={str(ledger): account for ledger, account in accounts(days).items()},
        trend=_by_day(days, since, request.days) if daily else _by(tx, days, request.by),
    )


def _midnight(now: Time) -> Time:
    return Time(now - now % (_DAY * 1_000_000))


def _date(moment: Time) -> str:
    return str(moment)[:10]


def _wanted(tx: Transaction, agent: Agent | None) -> Callable[[str], bool]:
    """Whose usage is shown: one agent's, or that of everybody whom the caller may read."""
    if agent is not None:
        return lambda agent_id: agent_id == agent.id

    @cache
    def may_read(agent_id: str) -> bool:
        other = tx.agent(agent_id)
        return other is not None and tx.allows(Deed.READ, subject_of(other))

    return may_read


def _by_day(days: Iterable[UsageDay], since: Time, count: int) -> tuple[Spent, ...]:
    """Every day, also those on which nothing was spent: a trend has no holes."""
    found: dict[str, list[UsageDay]] = {_date(since.plus(_DAY * number)): [] for number in range(count)}
    for one in days:
        found[one.day].append(one)
    return tuple(_spent(key, listed) for key, listed in found.items())


def _by(tx: Transaction, days: Iterable[UsageDay], by: GroupBy) -> tuple[Spent, ...]:
    """The largest first."""
    found: dict[str, list[UsageDay]] = {}
    for one in days:
        found.setdefault(_key(tx, one, by), []).append(one)
    spent = [_spent(key, listed) for key, listed in found.items()]
    return tuple(sorted(spent, key=lambda one: (-_execution(one), one.key)))


def _key(tx: Transaction, day: UsageDay, by: GroupBy) -> str:
    if by is GroupBy.AGENT:
        return tx.address(day.agent_id)
    return (day.harness if by is GroupBy.HARNESS else day.model) or "-"


def _execution(spent: Spent) -> int:
    return spent.harness_execution.totals.total_tokens


def _spent(key: str, days: Iterable[UsageDay]) -> Spent:
    both = accounts(days)
    return Spent(
        key=key,
        protocol_overhead=both[UsageLedger.PROTOCOL_OVERHEAD],
        harness_execution=both[UsageLedger.HARNESS_EXECUTION],
    )
