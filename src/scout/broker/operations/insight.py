"""Briefs and usage: an agent's open obligations in one call, and token accounting."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.base.time import Time
from scout.broker.effects import budget
from scout.broker.operations import agents, attention
from scout.broker.routing.reserved_files import list_relevant_reservations
from scout.broker.routing.unread import count_unread
from scout.broker.routing.views import build_flight_view, build_question_view, build_work_view
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.model.agent import Agent
from scout.model.attention import Attention
from scout.model.flight import Flight
from scout.model.problems.request import NotOwner
from scout.model.question import Question, QuestionState
from scout.model.session import Session
from scout.model.usage import Usage, UsageDay, UsageLedger, check_usage
from scout.model.work_item import WorkItem, WorkState
from scout.policy.permit import Deed
from scout.policy.usage import build_accounts
from scout.protocol.agents import WhoAmI
from scout.protocol.asks import FlightView
from scout.protocol.insight import (
    Brief,
    GroupBy,
    ReportUsage,
    ShowBrief,
    ShowUsage,
    Spent,
    UsageCaps,
    UsageReport,
)
from scout.store.derived import read_days
from scout.store.ledger import LAST

_LISTED = 20
_EVER = 1 << 62
_COUNTED = 1000
_BODY = 2000  # characters of an ask's body; `flight.get` shows all of it
_STEPS = 5
_WORK_STEPS = {
    WorkState.OPEN: Remedy(operation="work.start", parameters={"workItemId": ""}),
    WorkState.WORKING: Remedy(operation="work.submit", parameters={"workItemId": ""}),
    WorkState.REVIEW: Remedy(operation="work.accept", parameters={"workItemId": ""}),
    WorkState.WAITING: Remedy(operation="work.show", parameters={"workItemId": ""}),
}
_DAY = 86_400
_MOST_DAYS = 366


async def show_brief(call: CallContext[CallBroker], request: ShowBrief) -> Brief:
    """Return a brief, and count the orientation commands that it saves."""
    shown = await call.read(lambda tx: build_brief(tx, request))
    call.count("orientation_commands_avoided")
    return shown


def build_brief(tx: Transaction, request: ShowBrief) -> Brief:
    """Return enough to continue after a lost context; each list is short and indexed."""
    many, me, page = tx.ledger.many, tx.sender, {"before": LAST, "limit": _LISTED}
    flights = many(Flight, "flights_open_to", agent=me, **page)
    owed = many(Question, "questions_owed", agent=me, **page)
    questions = [one for one in owed if one.state is QuestionState.OPEN]
    work = many(WorkItem, "work_owed", agent=me, **page)
    answered = [one for one in owed if one.state is QuestionState.ANSWERED]
    asked = many(Flight, "flights_open_for", agent=me, **page)
    needs = many(Attention, "attention_by_open", agent=me, **page)
    unread = count_unread(tx, me)
    awaited = _find_awaiting(tx, me)
    waiting = [one.requester_id for one in (*flights, *work)] + [one.asker_id for one in questions]
    waiting += [one.target for one in awaited]
    told = Brief(
        me=agents.show_identity(tx, WhoAmI()),
        flights=tuple(_shorten_body(build_flight_view(tx, one)) for one in flights),
        questions=tuple(build_question_view(tx, one) for one in questions),
        work=tuple(build_work_view(tx, one) for one in work),
        answered=tuple(build_question_view(tx, one) for one in answered),
        asked=tuple(_shorten_body(build_flight_view(tx, one)) for one in asked),
        needs=tuple(attention.show_item(tx, one) for one in needs),
        awaited=tuple(_shorten_body(build_flight_view(tx, one)) for one in awaited),
        waiting_for_me=tuple(tx.address(one) for one in dict.fromkeys(waiting) if one != me),
        unread=unread,
        next=(),
        paused=tx.services.paused,
        reservations=list_relevant_reservations(tx),
    )
    return replace(told, next=tuple(islice(_list_steps(told, me), _STEPS)))


def _find_awaiting(tx: Transaction, me: str) -> list[Flight]:
    """Return open flights of others that wait for the caller's next move."""
    opened = tx.ledger.many(Flight, "flights_due", now=_EVER, limit=_COUNTED)
    mine = [
        one for one in opened if one.next_move_owner_id == me and me not in (one.target, one.requester_id)
    ]
    return mine[:_LISTED]


def _shorten_body(view: FlightView) -> FlightView:
    return view if len(view.body) <= _BODY else replace(view, body=f"{view.body[:_BODY]}…")


def _list_steps(told: Brief, me: str) -> Iterator[Remedy]:
    """Yield the next steps, longest waiting first; the lists come newest first."""
    for flight in reversed(told.flights):
        if flight.next_move_owner_id in (None, me):
            why = f"{flight.requester_address} waits for the result"
            result = {"flightId": flight.id, "output": "…"}
            yield Remedy(operation="flight.complete", parameters=result, why=why)
    for flight in told.awaited:
        why = f"it waits for you: {flight.reason}"
        yield Remedy(operation="send", parameters={"to": flight.target_address, "body": "…"}, why=why)
    for question in reversed(told.questions):
        answer = {"questionId": question.id, "answer": "…"}
        yield Remedy(operation="question.answer", parameters=answer, why=f"{question.asker_address} asks")
    for item in reversed(told.work):
        why = f"{item.state}: {item.title}"
        yield replace(_WORK_STEPS[item.state], parameters={"workItemId": item.id}, why=why)
    for question in reversed(told.answered):
        why = f"{question.responder_address} has answered"
        yield Remedy(operation="question.close", parameters={"questionId": question.id}, why=why)
    if told.unread:
        yield Remedy(operation="inbox", parameters={}, why=f"{told.unread} unread")


# -- usage -------------------------------------------------------------------------------------------


def report_usage(tx: Transaction, request: ReportUsage) -> Usage:
    """Record tokens that the caller spent; a named flight or session must be its own."""
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
    return budget.record_usage(tx, check_usage(usage))


def _check_own(tx: Transaction, noun: str, ident: str, owner: str) -> None:
    if owner != tx.sender:
        needs = (f"the token of {tx.address(owner)}",)
        raise Refused(NotOwner(noun=noun, id=ident, owner_id=owner, needs=needs))


def show_usage(tx: Transaction, request: ShowUsage) -> UsageReport:
    """Return the usage of both ledgers over the last days: totals, and grouped as requested."""
    return build_usage_report(tx, request, tx.now, lambda since: read_days(tx.ledger.connection, since))


def build_usage_report(
    tx: Transaction, request: ShowUsage, until: Time, read: Callable[[str], Iterable[UsageDay]]
) -> UsageReport:
    """Return the report of the days up to a time. `read` returns the usage since a day."""
    if not 1 <= request.days <= _MOST_DAYS:
        raise Refused(BadRequest(problem=f"days are 1 to {_MOST_DAYS}", field="days"))
    agent = agents.find(tx, request.agent, Deed.READ) if request.agent else None
    since = _floor_to_day(until).plus(-_DAY * (request.days - 1))
    wanted, today = _build_filter(tx, agent), format_date(until)
    found = tuple(read(format_date(since)))
    days = [one for one in found if one.day <= today and wanted(one.agent_id)]
    daily = request.by is GroupBy.DAY
    return UsageReport(
        since=since,
        until=until,
        by=request.by,
        agent=tx.address(agent.id) if agent else None,
        totals={str(ledger): account for ledger, account in build_accounts(days).items()},
        trend=_group_by_day(days, since, request.days) if daily else _group_by(tx, days, request.by),
        caps=_build_caps(tx, [one for one in found if one.day == today], agent),
    )


def _build_caps(tx: Transaction, today: Iterable[UsageDay], agent: Agent | None) -> UsageCaps:
    """Return the caps, and what counts against them: execution tokens of today."""
    may_read, spent = _build_filter(tx, None), dict[str, int]()
    for one in today:
        if one.category is UsageLedger.HARNESS_EXECUTION and may_read(one.agent_id):
            spent[one.agent_id] = spent.get(one.agent_id, 0) + one.totals.total_tokens
    highest = agent.id if agent else max(spent, key=lambda ident: spent[ident], default=None)
    return UsageCaps(
        tokens_per_day=tx.rules.limits.tokens_per_day,
        agent_tokens_per_day=tx.rules.limits.agent_tokens_per_day,
        spent_today=sum(spent.values()),
        highest=tx.address(highest) if highest else None,
        highest_today=spent.get(highest or "", 0),
    )


def _floor_to_day(now: Time) -> Time:
    return Time(now - now % (_DAY * 1_000_000))


def format_date(moment: Time) -> str:
    """Return the UTC day of a time."""
    return str(moment)[:10]


def _build_filter(tx: Transaction, agent: Agent | None) -> Callable[[str], bool]:
    """Return a filter by agent: the requested one, or every agent that the caller may read."""
    if agent is not None:
        return lambda agent_id: agent_id == agent.id

    @cache
    def may_read(agent_id: str) -> bool:
        other = tx.agent(agent_id)
        return other is not None and tx.allows(Deed.READ, build_subject(other))

    return may_read


def _group_by_day(days: Iterable[UsageDay], since: Time, count: int) -> tuple[Spent, ...]:
    """Return the usage of every day, including days without usage."""
    found: dict[str, list[UsageDay]] = {format_date(since.plus(_DAY * number)): [] for number in range(count)}
    for one in days:
        found[one.day].append(one)
    return tuple(_build_spent(key, listed) for key, listed in found.items())


def _group_by(tx: Transaction, days: Iterable[UsageDay], by: GroupBy) -> tuple[Spent, ...]:
    """Return usage by group, largest first."""
    found: dict[str, list[UsageDay]] = {}
    for one in days:
        found.setdefault(_get_group_key(tx, one, by), []).append(one)
    spent = [_build_spent(key, listed) for key, listed in found.items()]
    return tuple(sorted(spent, key=lambda one: (-_get_execution_tokens(one), one.key)))


def _get_group_key(tx: Transaction, day: UsageDay, by: GroupBy) -> str:
    if by is GroupBy.AGENT:
        return tx.address(day.agent_id)
    return (day.harness if by is GroupBy.HARNESS else day.model) or "-"


def _get_execution_tokens(spent: Spent) -> int:
    return spent.harness_execution.totals.total_tokens


def _build_spent(key: str, days: Iterable[UsageDay]) -> Spent:
    both = build_accounts(days)
    return Spent(
        key=key,
        protocol_overhead=both[UsageLedger.PROTOCOL_OVERHEAD],
        harness_execution=both[UsageLedger.HARNESS_EXECUTION],
    )
