import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import Refused
from scout.model.usage import (
    Counters,
    Totals,
    Usage,
    UsageLedger,
    UsageSource,
    ValueClass,
    check_usage,
    get_day,
    sum_ledgers,
)
from tests.model.generate import wire_names
from tests.model.samples import a_usage

REPORTS = st.builds(
    a_usage,
    category=st.sampled_from(list(UsageLedger)),
    usage_source=st.sampled_from(list(UsageSource)),
    prompt_tokens=st.integers(0, 1000),
    completion_tokens=st.integers(0, 1000),
).map(check_usage)


def test_the_wire_names() -> None:
    assert {
        "promptTokens",
        "completionTokens",
        "totalTokens",
        "model",
        "harness",
        "category",
        "valueClass",
        "usageSource",
        "estimated",
        "sessionId",
        "messageId",
        "askId",
        "flightId",
        "workItemId",
        "counters",
    } <= wire_names(Usage)
    assert wire_names(Counters) == {
        "dispatchAttempts",
        "wakeFailures",
        "diagnosticsGenerated",
        "orientationCommandsAvoided",
    }
    assert {str(value) for value in ValueClass} == {
        "boilerplate",
        "routing",
        "diagnostic",
        "onboarding",
        "feature_guidance",
        "work_context",
    }


@given(REPORTS)
def test_an_estimate_is_marked_and_an_exact_number_is_not(usage: Usage) -> None:
    assert usage.estimated is (usage.usage_source is not UsageSource.PROVIDER_EXACT)


def test_the_total_is_made_from_its_parts_unless_given() -> None:
    assert check_usage(a_usage(prompt_tokens=3, completion_tokens=4)).total_tokens == 7
    cached = check_usage(a_usage(prompt_tokens=3, completion_tokens=4, total_tokens=50))
    assert cached.total_tokens == 50


@pytest.mark.parametrize(
    "usage",
    [
        a_usage(prompt_tokens=-1),
        a_usage(completion_tokens=-1),
        a_usage(prompt_tokens=5, total_tokens=4),
        a_usage(total_tokens=-4),
        a_usage(counters=Counters(wake_failures=-1)),
        a_usage(total_tokens=10**12 + 1),
    ],
)
def test_numbers_that_cannot_be_are_refused(usage: Usage) -> None:
    with pytest.raises(Refused, match="token counts"):
        check_usage(usage)


@given(st.lists(REPORTS))
def test_no_sum_mixes_the_ledgers(reports: list[Usage]) -> None:
    sums = sum_ledgers(map(get_day, reports))
    assert set(sums) == {UsageLedger.PROTOCOL_OVERHEAD, UsageLedger.HARNESS_EXECUTION}
    for ledger, total in sums.items():
        mine = [usage for usage in reports if usage.category is ledger]
        assert total == Totals(
            reports=len(mine),
            prompt_tokens=sum(usage.prompt_tokens for usage in mine),
            completion_tokens=sum(usage.completion_tokens for usage in mine),
            total_tokens=sum(usage.total_tokens for usage in mine),
            estimated_tokens=sum(usage.total_tokens for usage in mine if usage.estimated),
        )
