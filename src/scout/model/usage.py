"""Token usage and counters, in two ledgers that are never mixed."""

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar

import msgspec

from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time

_MOST = 10**12  # per report, so that sums of many reports still fit in the store


class UsageLedger(StrEnum):
    """What the tokens were spent on: Scout's protocol text, or the harness's work."""

    PROTOCOL_OVERHEAD = "protocol_overhead"
    HARNESS_EXECUTION = "harness_execution"


class ValueClass(StrEnum):
    BOILERPLATE = "boilerplate"
    ROUTING = "routing"
    DIAGNOSTIC = "diagnostic"
    ONBOARDING = "onboarding"
    FEATURE_GUIDANCE = "feature_guidance"
    WORK_CONTEXT = "work_context"


class UsageSource(StrEnum):
    PROVIDER_EXACT = "provider_exact"
    TOKENIZER_ESTIMATE = "tokenizer_estimate"
    CHAR_HEURISTIC = "char_heuristic"
    MANUAL_ESTIMATE = "manual_estimate"


class Counters(Record, omit_defaults=True):
    dispatch_attempts: int = 0
    wake_failures: int = 0
    diagnostics_generated: int = 0
    orientation_commands_avoided: int = 0


class Usage(Record):
    """One report. `category` is its ledger; `estimated`: not an exact count by the provider."""

    id: str
    agent_id: str
    category: UsageLedger
    value_class: ValueClass | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    model: str | None = None
    harness: str | None = None
    usage_source: UsageSource
    estimated: bool = False
    session_id: str | None = None
    message_id: str | None = None
    ask_id: str | None = None
    flight_id: str | None = None
    work_item_id: str | None = None
    counters: Counters = Counters()
    created_at: Time


class Totals(Record):
    """Sums of one ledger; `estimated_tokens` is the estimated part."""

    reports: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    estimated_tokens: int = 0


class UsageDay(Record):
    """An agent's usage on one UTC day in one ledger, by harness and model ("" if unknown)."""

    day: str
    agent_id: str
    category: UsageLedger
    harness: str = ""
    model: str = ""
    totals: Totals
    counters: Counters


Sums = TypeVar("Sums", Totals, Counters)


def check_usage(usage: Usage) -> Usage:
    """Return the report with its total and `estimated` set; refuse impossible numbers."""
    parts = usage.prompt_tokens + usage.completion_tokens
    counts = (usage.prompt_tokens, usage.completion_tokens, *msgspec.structs.astuple(usage.counters))
    total = usage.total_tokens or parts
    if min(counts) < 0 or total < parts or max(*counts, total) > _MOST:
        problem = "token counts are from 0 to 10^12, and the total is not below its parts"
        raise Refused(BadRequest(problem=problem, field="totalTokens"))
    guessed = usage.usage_source is not UsageSource.PROVIDER_EXACT
    return msgspec.structs.replace(usage, total_tokens=total, estimated=guessed)


def get_day(usage: Usage) -> UsageDay:
    """Return the amounts that a report adds to its day."""
    sums = Totals(
        reports=1,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
        estimated_tokens=usage.total_tokens if usage.estimated else 0,
    )
    return UsageDay(
        day=str(usage.created_at)[:10],
        agent_id=usage.agent_id,
        category=usage.category,
        harness=usage.harness or "",
        model=usage.model or "",
        totals=sums,
        counters=usage.counters,
    )


def sum_ledgers(days: Iterable[UsageDay]) -> dict[UsageLedger, Totals]:
    """Return the sums of each ledger separately."""
    listed = tuple(days)
    return {
        ledger: sum_fields(Totals, (one.totals for one in listed if one.category is ledger))
        for ledger in UsageLedger
    }


def sum_fields(kind: type[Sums], parts: Iterable[Sums]) -> Sums:
    """Return the field-by-field sum."""
    listed = tuple(parts)
    return kind(**{name: sum(getattr(one, name) for one in listed) for name in kind.__struct_fields__})
