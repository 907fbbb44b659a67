"""Token usage of Scout and the harnesses: estimates, reports in two ledgers, and the daily cap."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.model.attention import AttentionKind
from scout.model.usage import (
    Counters,
    Totals,
    Usage,
    UsageDay,
    UsageLedger,
    UsageSource,
    ValueClass,
    check_usage,
    sum_fields,
    sum_ledgers,
)
from scout.model.waiting import WaitingKind, WaitingOn
from scout.policy.limits import Alarm, Limits, raise_limit

_CHARACTERS_PER_TOKEN = 4
_DAY = 86_400_000_000


class Estimate(Record):
    """An estimated number of tokens."""

    tokens: int
    characters: int
    usage_source: UsageSource = UsageSource.CHAR_HEURISTIC
    estimated: bool = True


class Overhead(StrEnum):
    """The overhead that Scout adds to a task."""

    ONBOARDING = "onboarding"
    GUIDANCE = "guidance"
    ROUTING = "routing"
    WRAPPING = "wrapping"
    REPLY_CONTEXT = "reply_context"
    DIAGNOSTIC = "diagnostic"
    SUMMARY = "summary"
    WAKE_PROMPT = "wake_prompt"


_VALUE = {
    Overhead.ONBOARDING: ValueClass.ONBOARDING,
    Overhead.GUIDANCE: ValueClass.FEATURE_GUIDANCE,
    Overhead.ROUTING: ValueClass.ROUTING,
    Overhead.WRAPPING: ValueClass.BOILERPLATE,
    Overhead.REPLY_CONTEXT: ValueClass.WORK_CONTEXT,
    Overhead.DIAGNOSTIC: ValueClass.DIAGNOSTIC,
    Overhead.SUMMARY: ValueClass.WORK_CONTEXT,
    Overhead.WAKE_PROMPT: ValueClass.ROUTING,
}


class About(Record):
    """The records that a report belongs to."""

    agent_id: str
    model: str | None = None
    harness: str | None = None
    session_id: str | None = None
    message_id: str | None = None
    ask_id: str | None = None
    flight_id: str | None = None
    work_item_id: str | None = None


class Account(Record):
    """One ledger: its totals, the number of exactly counted tokens, and its counters."""

    totals: Totals
    exact_tokens: int
    counters: Counters


class BudgetDecision(Record):
    """Continue, or wait until the end of the day, based on `spent` of `cap` tokens."""

    rule: str
    spent: int
    cap: int | None
    waiting_on: WaitingOn | None = None
    alarm: Alarm | None = None


def estimate_tokens(text: str) -> Estimate:
    """Estimate one token per four ASCII characters, and one per other character."""
    ascii_characters = len(text.encode("ascii", "ignore"))
    others = len(text) - ascii_characters
    return Estimate(tokens=-(-ascii_characters // _CHARACTERS_PER_TOKEN) + others, characters=len(text))


def report_overhead(
    usage_id: str,
    about: About,
    what: Overhead,
    now: Time,
    *,
    prompt: str = "",
    completion: str = "",
    value_class: ValueClass | None = None,
    counters: Counters = Counters(),
) -> Usage:
    """Return a report of Scout's own text, estimated from its length."""
    report = Usage(
        id=usage_id,
        category=UsageLedger.PROTOCOL_OVERHEAD,
        value_class=value_class or _VALUE[what],
        prompt_tokens=estimate_tokens(prompt).tokens,
        completion_tokens=estimate_tokens(completion).tokens,
        usage_source=UsageSource.CHAR_HEURISTIC,
        counters=counters,
        created_at=now,
        **msgspec.structs.asdict(about),
    )
    return check_usage(report)


def report_execution(
    usage_id: str,
    about: About,
    now: Time,
    *,
    prompt_tokens: int,
    completion_tokens: int,
    source: UsageSource = UsageSource.PROVIDER_EXACT,
    counters: Counters = Counters(),
) -> Usage:
    """Return a report of the harness's work; any count but the provider's is marked as an estimate."""
    report = Usage(
        id=usage_id,
        category=UsageLedger.HARNESS_EXECUTION,
        value_class=ValueClass.WORK_CONTEXT,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        usage_source=source,
        counters=counters,
        created_at=now,
        **msgspec.structs.asdict(about),
    )
    return check_usage(report)


def build_accounts(days: Iterable[UsageDay]) -> dict[UsageLedger, Account]:
    """Return both ledgers separately; they are never added up."""
    listed = tuple(days)
    sums = sum_ledgers(listed)
    return {
        ledger: Account(
            totals=sums[ledger],
            exact_tokens=sums[ledger].total_tokens - sums[ledger].estimated_tokens,
            counters=sum_fields(Counters, (one.counters for one in listed if one.category is ledger)),
        )
        for ledger in UsageLedger
    }


def decide_budget(address: str, spent_by_agent: int, spent: int, limits: Limits, now: Time) -> BudgetDecision:
    """Decide whether a flight of the agent may start, given today's harness execution tokens.

    Scout's text is part of the harness's prompts: adding that ledger would count it twice.
    """
    mine, all_agents = limits.agent_tokens_per_day, limits.tokens_per_day
    if mine is not None and spent_by_agent >= mine:
        return _wait(address, "agentTokensPerDay", spent_by_agent, mine, now)
    if all_agents is not None and spent >= all_agents:
        return _wait("all agents", "tokensPerDay", spent, all_agents, now)
    cap = mine if mine is not None else all_agents
    used = spent_by_agent if mine is not None else spent
    return BudgetDecision(rule="no cap" if cap is None else "below the cap", spent=used, cap=cap)


def _wait(who: str, setting: str, spent: int, cap: int, now: Time) -> BudgetDecision:
    midnight = Time((now // _DAY + 1) * _DAY)
    alarm = Alarm(
        kind=AttentionKind.WAITING,
        title=f"daily tokens of {who} used up",
        body=f"{spent} of {cap} tokens spent today; flights wait until {midnight}",
        dedupe=f"budget:{who}:{str(now)[:10]}",
        remedies=(raise_limit(setting, cap), Remedy(operation="usage", parameters={})),
    )
    waiting_on = WaitingOn(kind=WaitingKind.BUDGET, ref=f"limits.{setting}", until=midnight)
    return BudgetDecision(rule=f"limits.{setting}", spent=spent, cap=cap, waiting_on=waiting_on, alarm=alarm)
