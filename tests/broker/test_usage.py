"""What was spent: two ledgers that are never added, sums by day, and the daily cap that makes flights wait."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.adapters.echo import Echo
from scout.base.time import Time
from scout.broker.upkeep import housekeeping
from scout.model.events.asks import UsageReported
from scout.model.flight import FlightPhase, FlightState
from scout.model.usage import Counters, Usage, UsageLedger, UsageSource, ValueClass
from scout.model.waiting import WaitingKind
from scout.policy.limits import Limits
from scout.policy.usage import Account
from scout.ports import HarnessEvent, Prompt, SessionSpec, TurnUsage
from scout.protocol.asks import FlightView, GetFlight, MakeAsk
from scout.protocol.attention import ListAttention
from scout.protocol.inbox import ListDeliveries
from scout.protocol.insight import GroupBy, ReportUsage, ShowBrief, ShowUsage, UsageReport
from scout.protocol.talk import GetMessage, Send
from tests.broker.rig import (
    Rig,
    advance_clock,
    as_test,
    expect_refusal,
    read_log,
    run_scene,
    wait_for_end,
    wait_until,
    write_program,
)

EXECUTION, OVERHEAD = str(UsageLedger.HARNESS_EXECUTION), str(UsageLedger.PROTOCOL_OVERHEAD)


async def reports(rig: Rig) -> list[Usage]:
    return [
        one.payload.record for one in await read_log(rig, "collab.usage") if isinstance(one, UsageReported)
    ]


def sums(account: Account) -> tuple[int, int, int]:
    """Tokens, the part of them that is a guess, and the part that is not."""
    return account.totals.total_tokens, account.totals.estimated_tokens, account.exact_tokens


async def spend(seat: Any, tokens: int, **more: Any) -> Usage:
    return await seat.call(ReportUsage(prompt_tokens=tokens, **more))


# -- reporting and looking ---------------------------------------------------------------------------


@pytest.mark.rows("R3.7-9")
@as_test
async def test_both_ledgers_are_shown_apart_with_what_is_a_guess(rig: Rig) -> None:
    arc = await rig.agent("arc")
    exact = UsageSource.PROVIDER_EXACT
    made = await spend(arc, 700, completion_tokens=300, usage_source=exact, model="opus", harness="claude")
    assert (made.total_tokens, made.estimated, made.category) == (1000, False, UsageLedger.HARNESS_EXECUTION)
    await spend(arc, 50)
    wrapped = ValueClass.ROUTING
    await spend(
        arc,
        8,
        category=UsageLedger.PROTOCOL_OVERHEAD,
        value_class=wrapped,
        counters=Counters(wake_failures=2),
    )
    shown = await arc.call(ShowUsage())
    assert set(shown.totals) == {EXECUTION, OVERHEAD}
    assert sums(shown.totals[EXECUTION]) == (1050, 50, 1000)
    assert sums(shown.totals[OVERHEAD]) == (8, 8, 0)
    assert shown.totals[OVERHEAD].counters == Counters(wake_failures=2)
    assert not hasattr(shown, "total")


@pytest.mark.rows("R3.7-9")
@as_test
async def test_the_trend_has_every_day_and_other_groups_begin_with_the_largest(rig: Rig) -> None:
    arc, bow = await rig.agent("arc"), await rig.agent("bow")
    await spend(arc, 100, model="opus", harness="claude")
    rig.clock.ahead += 86_400
    await spend(arc, 10, model="gpt", harness="codex")
    await spend(bow, 200)
    daily = await rig.operator(ShowUsage(days=4))
    assert [sums(one.harness_execution)[0] for one in daily.trend] == [0, 0, 100, 210]
    assert [one.key for one in daily.trend] == sorted(one.key for one in daily.trend)
    assert str(daily.since).startswith(daily.trend[0].key)
    today = await rig.operator(ShowUsage(days=1))
    assert sums(today.totals[EXECUTION])[0] == 210

    async def by(group: GroupBy) -> list[tuple[str, int]]:
        shown = await rig.operator(ShowUsage(by=group))
        return [(one.key, one.harness_execution.totals.total_tokens) for one in shown.trend]

    assert await by(GroupBy.AGENT) == [("@bow", 200), ("@arc", 110)]
    assert await by(GroupBy.HARNESS) == [("-", 200), ("claude", 100), ("codex", 10)]
    assert await by(GroupBy.MODEL) == [("-", 200), ("opus", 100), ("gpt", 10)]


@as_test
async def test_an_agent_sees_its_own_and_the_operator_all(rig: Rig) -> None:
    arc, bow = await rig.agent("arc"), await rig.agent("bow")
    await spend(arc, 100)
    await spend(bow, 7)

    async def seen(seat: Any, **more: Any) -> int:
        shown: UsageReport = await seat.call(ShowUsage(**more))
        return shown.totals[EXECUTION].totals.total_tokens

    assert await seen(arc) == await seen(arc, agent="@arc") == 100
    assert (await expect_refusal(arc.call(ShowUsage(agent="@bow")))).code == "forbidden"
    everybody = await rig.scout()
    assert (await seen(everybody), await seen(everybody, agent="@bow")) == (107, 7)
    for days in (0, 367):
        assert (await expect_refusal(arc.call(ShowUsage(days=days)))).field == "days"


@as_test
async def test_one_reports_only_for_oneself(rig: Rig) -> None:
    arc = await rig.agent("arc", harness="echo")
    await rig.register("bow", harness="echo")
    asked = await rig.operator(MakeAsk(to="@bow", body="x", wait=20))
    flight = await wait_for_end(rig, asked.flight_id)
    before = len(await reports(rig))
    foreign = await expect_refusal(spend(arc, 5, flight_id=flight.id))
    assert (foreign.code, foreign.needs) == ("not_owner", ("the token of @bow",))
    assert (await expect_refusal(spend(arc, 5, session_id=flight.session_id))).code == "not_owner"
    assert (await expect_refusal(spend(arc, 5, flight_id="flt_none"))).code == "not_found"
    assert (await expect_refusal(spend(arc, -5))).code == "bad_request"
    assert (await expect_refusal(spend(arc, 10**13))).code == "bad_request"
    assert len(await reports(rig)) == before
    own = await rig.scout(act_as="@bow")
    mine = await spend(own, 5, flight_id=flight.id, session_id=flight.session_id)
    assert mine.agent_id == flight.target


# -- what Scout itself costs -------------------------------------------------------------------------


@pytest.mark.rows("R3.6-12")
@as_test
async def test_each_attempt_reports_what_its_contract_costs(rig: Rig) -> None:
    await rig.register("upper", command=write_program(rig.home, "upper", "tr a-z A-Z"))
    asked = await rig.operator(MakeAsk(to="@upper", body="hello", wait=20))
    assert asked.output == "HELLO"
    cost, run = await reports(rig)
    assert (cost.category, cost.value_class, cost.estimated) == (
        UsageLedger.PROTOCOL_OVERHEAD, ValueClass.ONBOARDING, True,
    )  # fmt: skip
    assert cost.counters == Counters(dispatch_attempts=1)
    assert 400 < cost.total_tokens < 900
    assert (cost.agent_id, cost.flight_id, cost.ask_id) == (asked.target, asked.flight_id, asked.ask_id)
    assert (cost.harness, cost.message_id) == ("command", asked.message_id)
    assert (run.category, run.flight_id) == (UsageLedger.HARNESS_EXECUTION, asked.flight_id)


@as_test
async def test_what_gets_no_contract_costs_none_and_a_failed_start_is_counted(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    await rig.operator(MakeAsk(to="@parrot", body="x", wait=20))
    assert await reports(rig) == []
    await rig.operator(MakeAsk(to="@parrot", body="!refuse"))
    await wait_until(lambda: reports(rig))
    await advance_clock(rig, 3)

    async def both() -> bool:
        return len(await reports(rig)) == 2

    await wait_until(both)
    shown = await rig.operator(ShowUsage(agent="@parrot"))
    assert shown.totals[OVERHEAD].counters == Counters(wake_failures=2)


@as_test
async def test_refusals_and_briefs_are_counted_in_memory_and_reported_together(rig: Rig) -> None:
    arc = await rig.agent("arc")
    for _ in range(5):
        await expect_refusal(arc.call(GetMessage(message_id="msg_none")))
    for _ in range(2):
        await arc.call(ShowBrief())
    await expect_refusal(rig.operator(Send(to="@nobody", body="x")))  # a person's time is not counted
    assert await reports(rig) == []
    await housekeeping.flush(rig.broker)
    await housekeeping.flush(rig.broker)
    (only,) = await reports(rig)
    assert only.counters == Counters(diagnostics_generated=5, orientation_commands_avoided=2)
    assert only.category is UsageLedger.PROTOCOL_OVERHEAD
    assert only.total_tokens == 30  # what the five refusals say
    shown = await arc.call(ShowUsage())
    assert shown.totals[OVERHEAD].counters == only.counters


# -- the cap -----------------------------------------------------------------------------------------


class Hungry(Echo):
    """Each turn costs a hundred tokens."""

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        async for event in super().deliver(spec, prompt):
            yield event
            if event.__struct_config__.tag == "accepted":
                yield TurnUsage(prompt_tokens=60, completion_tokens=40, estimated=False)


def play_capped(scene: Any, home: Path, **limits: int) -> None:
    run_scene(scene, home, harnesses={"echo": Hungry()}, limits=replace(Limits(), **limits))


async def get_flight(rig: Rig, flight_id: str) -> FlightView:
    return await rig.operator(GetFlight(flight_id=flight_id))


async def wait_until_held(rig: Rig, to: str, body: str = "more") -> FlightView:
    asked = await rig.operator(MakeAsk(to=to, body=body))

    async def is_held() -> FlightView | None:
        view = await get_flight(rig, asked.flight_id)
        return view if view.waiting_on is not None else None

    return await wait_until(is_held)


async def budget_items(rig: Rig) -> list[str]:
    items = (await rig.operator(ListAttention())).items
    return [one.title for one in items if (one.dedupe or "").startswith("budget:")]


@pytest.mark.rows("R2.2-67")
def test_at_its_cap_an_agent_waits_for_the_next_day_and_goes_on_by_itself(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo")
        await rig.register("other", harness="echo")
        assert (await rig.operator(MakeAsk(to="@parrot", body="one", wait=20))).output == "one"
        view = await wait_until_held(rig, "@parrot")
        now = rig.clock.now()
        midnight = Time((now // 86_400_000_000 + 1) * 86_400_000_000)
        assert (view.state, view.phase) == (FlightState.QUEUED, FlightPhase.HELD)
        assert view.waiting_on is not None
        assert (view.waiting_on.kind, view.waiting_on.until) == (WaitingKind.BUDGET, midnight)
        assert "100 of 100 tokens spent today" in view.reason
        assert view.attempts == 0
        await wait_until_held(rig, "@parrot", "and more")
        assert await budget_items(rig) == ["daily tokens of @parrot used up"]
        assert (await rig.operator(MakeAsk(to="@other", body="free", wait=20))).output == "free"
        (delivery, *_) = [
            one
            for one in (await rig.operator(ListDeliveries(target="@parrot"))).items
            if one.flight_id == view.id
        ]
        assert delivery.next_attempt_at == view.next_check_at
        assert delivery.next_attempt_at <= midnight
        while rig.clock.now() < midnight:  # looked at again and again, and no attempt is used up
            await advance_clock(rig, min(3600.0, midnight.since(rig.clock.now()) + 1))
        assert (await wait_for_end(rig, view.id)).output == "more"
        assert (await get_flight(rig, view.id)).attempts == 1

    play_capped(scene, tmp_path, agent_tokens_per_day=100)


def test_a_cap_that_is_raised_counts_within_the_hour(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo")
        await rig.register("other", harness="echo")
        assert (await rig.operator(MakeAsk(to="@parrot", body="one", wait=20))).output == "one"
        view = await wait_until_held(rig, "@other")
        assert await budget_items(rig) == ["daily tokens of all agents used up"]
        rules = rig.broker.services.rules
        rig.broker.services.rules = replace(rules, limits=replace(rules.limits, tokens_per_day=1000))
        assert view.next_check_at is not None
        await advance_clock(rig, view.next_check_at.since(rig.clock.now()) + 1)
        assert (await wait_for_end(rig, view.id)).output == "more"

    play_capped(scene, tmp_path, tokens_per_day=100)


def test_a_message_that_wakes_waits_for_the_budget_too(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo")
        await rig.operator(MakeAsk(to="@parrot", body="one", wait=20))
        sent = await rig.operator(Send(to="@parrot", body="later", wake=True))

        async def postponed() -> bool:
            told = await rig.operator(GetMessage(message_id=sent.message_id))
            return "100 of 100 tokens" in told.deliveries[0].reason

        await wait_until(postponed)
        (delivery, *_) = (await rig.operator(ListDeliveries(target="@parrot"))).items
        assert (delivery.state, delivery.attempts) == ("pending", 0)
        assert delivery.next_attempt_at > rig.clock.now()

    play_capped(scene, tmp_path, agent_tokens_per_day=100)
