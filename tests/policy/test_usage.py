"""Estimates are marked, the ledgers stay apart, a cap makes flights wait."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.codec import to_plain
from scout.base.refusal import BadRequest, Refused, Remedy
from scout.base.time import Time
from scout.model.attention import AttentionKind
from scout.model.usage import Counters, Totals, Usage, UsageLedger, UsageSource, ValueClass, get_day
from scout.model.waiting import WaitingKind, WaitingOn
from scout.policy.limits import Alarm, Limits, raise_limit
from scout.policy.usage import (
    About,
    Account,
    BudgetDecision,
    Estimate,
    Overhead,
    build_accounts,
    decide_budget,
    estimate_tokens,
    report_execution,
    report_overhead,
)

NOW = Time.parse("2026-11-15T23:59:00.000Z")
ABOUT = About(
    agent_id="agt_1",
    model="opus",
    harness="claude",
    session_id="ses_1",
    message_id="msg_1",
    ask_id="ask_1",
    flight_id="flt_1",
    work_item_id="wrk_1",
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é", 1), ("日本語", 3), ("abcd日", 2), ("abc日de", 3)],
)
def test_an_estimate_counts_characters(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == Estimate(
        tokens=tokens,
        characters=len(text),
        usage_source=UsageSource.CHAR_HEURISTIC,
        estimated=True,
    )


@given(st.text(), st.text())
def test_more_text_never_costs_less(one: str, other: str) -> None:
    both = estimate_tokens(one + other).tokens
    assert estimate_tokens(one).tokens <= both <= estimate_tokens(one).tokens + estimate_tokens(other).tokens


@pytest.mark.rows("R3.7-2", "R3.7-4")
@pytest.mark.parametrize(
    ("what", "value_class"),
    [
        (Overhead.ROUTING, ValueClass.ROUTING),
        (Overhead.WRAPPING, ValueClass.BOILERPLATE),
        (Overhead.REPLY_CONTEXT, ValueClass.WORK_CONTEXT),
        (Overhead.DIAGNOSTIC, ValueClass.DIAGNOSTIC),
        (Overhead.SUMMARY, ValueClass.WORK_CONTEXT),
        (Overhead.WAKE_PROMPT, ValueClass.ROUTING),
        (Overhead.ONBOARDING, ValueClass.ONBOARDING),
        (Overhead.GUIDANCE, ValueClass.FEATURE_GUIDANCE),
    ],
)
def test_all_that_scout_adds_is_protocol_overhead(what: Overhead, value_class: ValueClass) -> None:
    counters = Counters(dispatch_attempts=1)
    report = report_overhead("usg_1", ABOUT, what, NOW, prompt="x" * 8, completion="y" * 5, counters=counters)
    assert report == Usage(
        id="usg_1",
        agent_id="agt_1",
        category=UsageLedger.PROTOCOL_OVERHEAD,
        value_class=value_class,
        prompt_tokens=2,
        completion_tokens=2,
        total_tokens=4,
        model="opus",
        harness="claude",
        usage_source=UsageSource.CHAR_HEURISTIC,
        estimated=True,
        session_id="ses_1",
        message_id="msg_1",
        ask_id="ask_1",
        flight_id="flt_1",
        work_item_id="wrk_1",
        counters=counters,
        created_at=NOW,
    )


def test_overhead_may_have_a_value_of_its_own() -> None:
    report = report_overhead("usg_1", ABOUT, Overhead.WRAPPING, NOW, value_class=ValueClass.ONBOARDING)
    assert (report.value_class, report.total_tokens, report.counters) == (
        ValueClass.ONBOARDING,
        0,
        Counters(),
    )


@pytest.mark.rows("R3.7-6", "R3.7-5")
@pytest.mark.parametrize("source", list(UsageSource))
def test_whatever_the_provider_did_not_count_is_marked_as_an_estimate(source: UsageSource) -> None:
    report = report_execution("usg_2", ABOUT, NOW, prompt_tokens=7, completion_tokens=5, source=source)
    assert report == Usage(
        id="usg_2",
        category=UsageLedger.HARNESS_EXECUTION,
        value_class=ValueClass.WORK_CONTEXT,
        prompt_tokens=7,
        completion_tokens=5,
        total_tokens=12,
        usage_source=source,
        estimated=source is not UsageSource.PROVIDER_EXACT,
        created_at=NOW,
        **msgspec.structs.asdict(ABOUT),
    )


def test_the_providers_own_count_is_the_default() -> None:
    report = report_execution("usg_2", ABOUT, NOW, prompt_tokens=1, completion_tokens=0)
    assert (report.usage_source, report.estimated) == (UsageSource.PROVIDER_EXACT, False)


def test_numbers_that_cannot_be_are_refused() -> None:
    with pytest.raises(Refused) as caught:
        report_execution("usg_2", ABOUT, NOW, prompt_tokens=-1, completion_tokens=5)
    assert isinstance(caught.value.diagnostic, BadRequest)


@pytest.mark.rows("R3.7-3", "R3.7-7", "R3.7-8")
def test_the_names_on_the_wire() -> None:
    counters = Counters(
        dispatch_attempts=1, wake_failures=2, diagnostics_generated=3, orientation_commands_avoided=4
    )
    sent = to_plain(
        report_execution("usg_2", ABOUT, NOW, prompt_tokens=1, completion_tokens=2, counters=counters)
    )
    names = ("promptTokens", "completionTokens", "totalTokens", "model", "harness", "category")
    assert [sent[name] for name in names] == [1, 2, 3, "opus", "claude", "harness_execution"]
    assert [sent[name] for name in ("sessionId", "messageId", "flightId", "workItemId")] == [
        "ses_1", "msg_1", "flt_1", "wrk_1",
    ]  # fmt: skip
    assert sent["counters"] == {
        "dispatchAttempts": 1,
        "wakeFailures": 2,
        "diagnosticsGenerated": 3,
        "orientationCommandsAvoided": 4,
    }


@pytest.mark.rows("R3.7-1", "R3.7-6", "R3.7-8")
def test_the_ledgers_are_summed_apart_and_exact_numbers_apart_from_guesses() -> None:
    attempts = Counters(dispatch_attempts=2, wake_failures=1)
    reports = [
        report_overhead("a", ABOUT, Overhead.ROUTING, NOW, prompt="x" * 40, counters=attempts),
        report_overhead("b", ABOUT, Overhead.SUMMARY, NOW, completion="x" * 8, counters=attempts),
        report_execution("c", ABOUT, NOW, prompt_tokens=100, completion_tokens=20),
        report_execution(
            "d",
            ABOUT,
            NOW,
            prompt_tokens=3,
            completion_tokens=4,
            source=UsageSource.MANUAL_ESTIMATE,
            counters=Counters(diagnostics_generated=5, orientation_commands_avoided=6),
        ),
    ]
    found = build_accounts(map(get_day, reports))
    assert found == {
        UsageLedger.PROTOCOL_OVERHEAD: Account(
            totals=Totals(
                reports=2, prompt_tokens=10, completion_tokens=2, total_tokens=12, estimated_tokens=12
            ),
            exact_tokens=0,
            counters=Counters(dispatch_attempts=4, wake_failures=2),
        ),
        UsageLedger.HARNESS_EXECUTION: Account(
            totals=Totals(
                reports=2, prompt_tokens=103, completion_tokens=24, total_tokens=127, estimated_tokens=7
            ),
            exact_tokens=120,
            counters=Counters(diagnostics_generated=5, orientation_commands_avoided=6),
        ),
    }


@pytest.mark.rows("R3.7-1")
@given(st.lists(st.tuples(st.sampled_from(UsageLedger), st.integers(0, 100), st.sampled_from(UsageSource))))
def test_no_sum_mixes_the_ledgers(rows: list[tuple[UsageLedger, int, UsageSource]]) -> None:
    reports = [
        msgspec.structs.replace(
            report_execution("u", ABOUT, NOW, prompt_tokens=tokens, completion_tokens=0, source=source),
            category=ledger,
        )
        for ledger, tokens, source in rows
    ]
    for ledger, account in build_accounts(map(get_day, reports)).items():
        mine = [(tokens, source) for other, tokens, source in rows if other is ledger]
        exact = [tokens for tokens, source in mine if source is UsageSource.PROVIDER_EXACT]
        assert account.totals.total_tokens == sum(tokens for tokens, _ in mine)
        assert account.exact_tokens == sum(exact)
        assert account.totals.reports == len(mine)


def decide(agent: int, everybody: int, **limits: Any) -> BudgetDecision:
    return decide_budget("@arc", agent, everybody, msgspec.structs.replace(Limits(), **limits), NOW)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, BudgetDecision(rule="no cap", spent=90, cap=None)),
        ({"agent_tokens_per_day": 51}, BudgetDecision(rule="below the cap", spent=50, cap=51)),
        ({"tokens_per_day": 91}, BudgetDecision(rule="below the cap", spent=90, cap=91)),
        (
            {"agent_tokens_per_day": 51, "tokens_per_day": 91},
            BudgetDecision(rule="below the cap", spent=50, cap=51),
        ),
    ],
)
def test_below_the_cap_flights_go_on(limits: dict[str, int], expected: BudgetDecision) -> None:
    assert decide(50, 90, **limits) == expected


@pytest.mark.rows("R2.2-66")
@pytest.mark.parametrize(
    ("limits", "who", "setting", "spent", "cap"),
    [
        ({"agent_tokens_per_day": 50}, "@arc", "agentTokensPerDay", 50, 50),
        ({"agent_tokens_per_day": 10, "tokens_per_day": 10}, "@arc", "agentTokensPerDay", 50, 10),
        ({"tokens_per_day": 90}, "all agents", "tokensPerDay", 90, 90),
        ({"agent_tokens_per_day": 51, "tokens_per_day": 80}, "all agents", "tokensPerDay", 90, 80),
    ],
)
def test_at_the_cap_a_flight_waits_on_its_budget_and_the_operator_is_told(
    limits: dict[str, int], who: str, setting: str, spent: int, cap: int
) -> None:
    midnight = Time.parse("2026-11-16T00:00:00.000Z")
    assert decide(50, 90, **limits) == BudgetDecision(
        rule=f"limits.{setting}",
        spent=spent,
        cap=cap,
        waiting_on=WaitingOn(kind=WaitingKind.BUDGET, ref=f"limits.{setting}", until=midnight),
        alarm=Alarm(
            kind=AttentionKind.WAITING,
            title=f"daily tokens of {who} used up",
            body=f"{spent} of {cap} tokens spent today; flights wait until 2026-11-16T00:00:00.000Z",
            dedupe=f"budget:{who}:2026-11-15",
            remedies=(raise_limit(setting, cap), Remedy(operation="usage", parameters={})),
        ),
    )
