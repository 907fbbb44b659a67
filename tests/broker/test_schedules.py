"""Schedules run each time once: where clocks change, after a restart, and when the clock is set."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from datetime import time as wall_time
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from scout.base.time import Time
from scout.broker.people import schedule_runner
from scout.model.attention import AttentionKind
from scout.model.flight import FlightState
from scout.model.people.schedule import Missed, Overlap, ScheduleState
from scout.policy.limits import Limits
from scout.protocol.agents import RetireAgent, ShowAgent
from scout.protocol.asks import CancelFlight, GetFlight, ListFlights
from scout.protocol.attention import ListAttention
from scout.protocol.channels import CreateChannel
from scout.protocol.overview import PauseScout, ResumeScout
from scout.protocol.people.schedules import (
    ListSchedules,
    PauseSchedule,
    RemoveSchedule,
    ResumeSchedule,
    RunSchedule,
    UpdateSchedule,
)
from scout.protocol.talk import ListMessages
from scout.store.integrity.verify import verify
from tests import seeds
from tests.broker.puppet import Puppet
from tests.broker.rig import Rig, expect_refusal, inbox_items, open_rig, run_scene, wait_until
from tests.broker.scheduled import (
    StillClock,
    add_schedule,
    list_events,
    list_fired,
    list_runs,
    show,
    tick,
    wait_for_run,
)
from tests.soak import Soaked

START = "2025-11-15T00:00:00Z"
NINE = Time.parse("2025-11-15T09:00:00Z")
DAY, HOUR = 86_400, 3600
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


def play(scene: Callable[[Rig], Awaitable[None]], home: Path, **more: Any) -> None:
    """A scene that begins at a fixed time, with the harness `echo` and one that waits on request."""
    run_scene(scene, home, clock=StillClock(START), **more)


def play_slow(scene: Callable[[Rig], Awaitable[None]], home: Path) -> None:
    """The same with a harness whose turns end only when a test says so."""
    play(scene, home, harnesses={"acp": Puppet()})


# -- clocks that change -------------------------------------------------------------------------------------------


def list_expected(zone: ZoneInfo, first: date, days: int) -> list[Time]:
    """02:30 by the clock of a zone, once a day; in a skipped hour, the first minute after it."""
    found = list[Time]()
    for number in range(days):
        wall = datetime.combine(first + timedelta(days=number), wall_time(2, 30), tzinfo=zone)
        while wall.astimezone(UTC).astimezone(zone) != wall:
            wall += timedelta(minutes=1)
        found.append(Time.parse(wall.isoformat()))
    return found


# In each, New York, Berlin and Lord Howe Island change their clocks once, on three different days.
@pytest.mark.slow
@pytest.mark.parametrize("first", [date(2026, 3, 6), date(2026, 10, 2)], ids=["spring", "autumn"])
def test_five_weeks_in_which_clocks_change_in_four_time_zones(tmp_path: Path, first: date) -> None:
    assert count_changes(first, 33) == 3
    live_in_four_zones(tmp_path, first, 33)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_two_years_in_four_time_zones(tmp_path: Path, soaked: Soaked) -> None:
    first, days = date(2025, 11, 16), 2 * 365
    soaked(runs=live_in_four_zones(tmp_path, first, days), changes=count_changes(first, days))


def count_changes(first: date, days: int) -> int:
    """How often a clock of a zone is put forward or back."""
    noons = [datetime.combine(first, wall_time(12), tzinfo=UTC) + timedelta(days=day) for day in range(days)]
    offsets = [[noon.astimezone(ZoneInfo(name)).utcoffset() for noon in noons] for name in ZONES]
    return sum(before != after for zone in offsets for before, after in pairwise(zone))


def live_in_four_zones(home: Path, first: date, days: int) -> int:
    """Now and then the daemon is away for hours, or the clock is wrong for a while; the number of runs."""
    expected = {name: list_expected(ZoneInfo(name), first, days) for name in ZONES}
    before = datetime.combine(first - timedelta(days=1), wall_time(14), tzinfo=UTC)  # all have run that day
    clock, chance = StillClock(f"{before:%Y-%m-%dT%H:%M:%SZ}"), random.Random(seeds.run_seed())
    limits = Limits(wakes_per_hour=10_000)

    async def prepare() -> dict[str, str]:
        async with open_rig(home, clock=clock, limits=limits) as rig:
            await rig.register("arc", harness="echo")
            made = [await add_schedule(rig, "30 2 * * *", time_zone=name) for name in ZONES]
        return {one.time_zone: one.id for one in made}

    async def live(moments: list[tuple[Time, str]]) -> None:
        """One life of a daemon: it runs what is due at these times, then ends."""
        async with open_rig(home, clock=clock, limits=limits) as rig:
            for moment, name in moments:
                await tick(rig, moment)
                await wait_for_run(rig, schedules[name])
                if chance.random() < 0.02:  # an hour behind for a while
                    clock.at = moment.plus(-3 * HOUR)
                    await rig.broker.schedules.plan_ahead_again()
                    await rig.broker.schedules.run_due()
                    await tick(rig, moment)

    schedules = asyncio.run(prepare())
    moments = sorted((slot.plus(chance.random() * 30), name) for name in ZONES for slot in expected[name])
    longest = max(20, days // 4)  # runs of one life
    while moments:
        some = chance.randrange(10, longest)
        asyncio.run(live(moments[:some]))
        away = chance.choice([0, 0, 1, 2]) if len(moments) > some + 10 else 0
        moments = moments[some + away :]  # at most one run of each zone is late

    async def read() -> dict[str, list[Time]]:
        async with open_rig(home, clock=clock) as rig:
            events = await list_events(rig)
            return {name: list_fired(events, ident) for name, ident in schedules.items()}

    fired = asyncio.run(read())
    for name, slots in fired.items():
        assert len(slots) == len(set(slots)), name
        assert set(slots) ^ set(expected[name]) == set(), name
    assert verify(home / "scout.db").clean
    return sum(map(len, fired.values()))


def test_housekeeping_notices_that_the_machine_slept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_runner, "_LOOK", 3600.0)  # the runner's own look comes much later

    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="echo")
        made = await add_schedule(rig)
        assert isinstance(rig.clock, StillClock)
        rig.clock.at = NINE.plus(1)
        await wait_until(lambda: list_runs(rig, made.id))
        await wait_for_run(rig, made.id)

    play(scene, tmp_path)


# -- missed runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("missed", "fired", "skipped"), [(Missed.ONCE, 1, 0), (Missed.SKIP, 0, 1)])
def test_runs_that_were_due_while_no_daemon_ran(
    tmp_path: Path, missed: Missed, fired: int, skipped: int
) -> None:
    clock = StillClock(START)

    async def scene() -> None:
        async with open_rig(tmp_path, clock=clock) as rig:
            await rig.register("arc", harness="echo")
            made = await add_schedule(rig, missed=missed)
        clock.at = NINE.plus(3 * DAY + HOUR)
        async with open_rig(tmp_path, clock=clock) as rig:  # it runs what is due by itself

            async def moved() -> bool:
                return (await show(rig, made.id)).slot == NINE.plus(4 * DAY)

            await wait_until(moved)
            await wait_for_run(rig, made.id)
            after = await show(rig, made.id)
            assert (after.fired, after.skipped) == (fired, skipped)
            (run,) = await list_runs(rig, made.id)
            assert run.reason == "missed at 2025-11-18T09:00+00:00; no run since 2025-11-15T09:00+00:00"
            await tick(rig, NINE.plus(4 * DAY))
            assert (await show(rig, made.id)).fired == fired + 1

    asyncio.run(scene())
    assert verify(tmp_path / "scout.db").clean


def test_nothing_runs_during_a_pause(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="echo")
        made, hourly = await add_schedule(rig), await add_schedule(rig, "@hourly", missed=Missed.SKIP)
        await rig.operator(PauseScout())
        await tick(rig, NINE.plus(HOUR / 2))
        assert (await show(rig, made.id)).fired == 0
        await rig.operator(ResumeScout())

        async def fired() -> bool:
            return (await show(rig, made.id)).fired == 1

        await wait_until(fired)
        assert (await show(rig, hourly.id)).skipped == 1

    play(scene, tmp_path)


# -- the clock -------------------------------------------------------------------------------------------


def test_a_clock_that_was_ahead_neither_silences_nor_repeats(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="echo")
        made = await add_schedule(rig)
        await tick(rig, NINE)
        await wait_for_run(rig, made.id)
        await tick(rig, NINE.plus(30 * DAY))
        await wait_for_run(rig, made.id)
        assert (await show(rig, made.id)).slot == NINE.plus(31 * DAY)

        clock = rig.clock
        assert isinstance(clock, StillClock)
        clock.at = NINE.plus(HOUR)
        await rig.broker.schedules.plan_ahead_again()
        assert (await show(rig, made.id)).slot == NINE.plus(DAY)
        for day in range(1, 32):
            await tick(rig, NINE.plus(day * DAY))
            await wait_for_run(rig, made.id)
        slots = list_fired(await list_events(rig), made.id)
        assert sorted(slots) == [NINE.plus(day * DAY) for day in range(32)]
        assert len(set(slots)) == len(slots)

    play(scene, tmp_path)


def test_a_small_step_back_repeats_nothing(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="echo")
        made = await add_schedule(rig, "* * * * *")
        await tick(rig, NINE)
        await wait_for_run(rig, made.id)
        for back in (5, 30, 59):
            await tick(rig, NINE.plus(-back))
            await rig.broker.schedules.plan_ahead_again()
            await tick(rig, NINE)
        await tick(rig, NINE.plus(60))
        await wait_for_run(rig, made.id)
        slots = list_fired(await list_events(rig), made.id)
        assert slots == sorted(set(slots))
        assert NINE in slots

    play(scene, tmp_path)


# -- overlap ---------------------------------------------------------------------------------------------


def test_a_job_that_never_ends_is_shown_to_its_owner(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="acp")
        made = await add_schedule(rig, body="wait")
        await tick(rig, NINE)
        (first,) = (await rig.operator(ListFlights(open=True))).items
        for day in range(1, 3):
            await tick(rig, NINE.plus(day * DAY))
        assert (await rig.operator(ListAttention())).items == ()
        await tick(rig, NINE.plus(3 * DAY))
        assert [one.outcome for one in await list_runs(rig, made.id)] == ["fired"] + ["skipped"] * 3
        (item,) = (await rig.operator(ListAttention())).items
        assert (item.kind, item.user) == (AttentionKind.FAILURE, "ada")
        assert f"try: scout flight cancel {first.id}" in item.body
        await tick(rig, NINE.plus(4 * DAY))
        assert len((await rig.operator(ListAttention())).items) == 1

        await rig.operator(CancelFlight(flight_id=first.id))
        await tick(rig, NINE.plus(5 * DAY))
        assert (await show(rig, made.id)).fired == 2
        assert (await rig.operator(ListAttention())).items == ()
        assert len((await rig.operator(ListFlights(open=True))).items) == 1

    play_slow(scene, tmp_path)


def test_a_run_waits_for_the_previous_one(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="acp")
        made = await add_schedule(rig, body="wait", overlap=Overlap.QUEUE)
        for day in range(4):
            await tick(rig, NINE.plus(day * DAY))
        outcomes = [one.outcome for one in await list_runs(rig, made.id)]
        assert outcomes == ["fired", "held", "skipped", "skipped"]
        last = (await show(rig, made.id)).last
        assert last is not None
        await rig.operator(CancelFlight(flight_id=last.flight_id))

        async def follows() -> bool:
            return (await show(rig, made.id)).fired == 2

        await wait_until(follows)  # without another look: the end of the run is enough
        after = await show(rig, made.id)
        assert (after.last_slot, after.waiting_slot) == (NINE.plus(DAY), None)
        assert after.slot == NINE.plus(4 * DAY)

    play_slow(scene, tmp_path)


def test_a_run_cancels_the_previous_one(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="acp")
        made = await add_schedule(rig, body="wait", overlap=Overlap.CANCEL)
        for day in range(3):
            await tick(rig, NINE.plus(day * DAY))
        runs = await list_runs(rig, made.id)
        assert [one.outcome for one in runs] == ["fired"] * 3
        states = [(await rig.operator(GetFlight(flight_id=one.flight_id or ""))).state for one in runs]
        assert states[:2] == [FlightState.CANCELLED] * 2
        assert states[2] in (FlightState.QUEUED, FlightState.RUNNING)
        assert await inbox_items(rig) == []

    play_slow(scene, tmp_path)


# -- the target ------------------------------------------------------------------------------------------


def test_a_run_without_a_target_fails_where_its_owner_sees_it(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="echo")
        made = await add_schedule(rig)
        await rig.operator(RetireAgent(address="@arc"))
        await tick(rig, NINE)
        await tick(rig, NINE.plus(DAY))
        assert [one.outcome for one in await list_runs(rig, made.id)] == ["failed", "failed"]
        (item,) = (await rig.operator(ListAttention())).items
        assert "was retired" in item.title
        assert "try: scout agent revive /ada/agent/arc" in item.body
        assert f"try: scout cron show {made.id}" in item.body

        await rig.register("hudson", harness="echo")
        moved = await rig.operator(UpdateSchedule(schedule_id=made.id, to="@hudson"))
        assert (moved.target_address, moved.slot) == ("@hudson", NINE.plus(2 * DAY))
        await tick(rig, NINE.plus(2 * DAY))
        assert (await show(rig, made.id)).fired == 1
        assert (await rig.operator(ListAttention())).items == ()

    play(scene, tmp_path)


def test_a_fault_of_one_schedule_does_not_stop_the_others(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="echo")
        await rig.register("gone", harness="echo")
        bad, good = await add_schedule(rig, to="@gone"), await add_schedule(rig)
        await rig.operator(RetireAgent(address="@gone"))
        await tick(rig, NINE)
        assert ((await show(rig, bad.id)).failed, (await show(rig, good.id)).fired) == (1, 1)

    play(scene, tmp_path)


# -- answers ---------------------------------------------------------------------------------------------


def test_the_answer_goes_to_the_owner(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="echo")
        made = await add_schedule(rig, body="It is nine.")
        await tick(rig, NINE)
        await wait_for_run(rig, made.id)
        (item,) = await inbox_items(rig)
        assert item.message is not None
        assert (item.sender, item.message.body) == ("@arc", "It is nine.")
        (flight,) = (await rig.operator(ListFlights())).items
        assert flight.requester_address == made.address

    play(scene, tmp_path)


def test_the_answer_goes_to_a_channel(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="echo")
        await rig.operator(CreateChannel(name="dev"))
        made = await add_schedule(rig, body="It is nine.", channel="dev")
        assert made.channel == "dev"
        await tick(rig, NINE)
        await wait_for_run(rig, made.id)
        said = (await rig.operator(ListMessages(channel="dev"))).items
        assert [(one.sender_address, one.body) for one in said] == [
            (made.address, "It is nine."),
            ("@arc", "It is nine."),
        ]
        rest = await rig.operator(UpdateSchedule(schedule_id=made.id, channel="none"))
        assert rest.channel is None

    play(scene, tmp_path)


# -- moves -----------------------------------------------------------------------------------------------


def test_a_paused_schedule_does_not_run(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="echo")
        made = await add_schedule(rig)
        paused = await rig.operator(PauseSchedule(schedule_id=made.id, reason="holidays"))
        assert (paused.state, paused.next_at, paused.reason) == (ScheduleState.PAUSED, None, "holidays")
        await tick(rig, NINE.plus(2 * DAY))
        assert (await show(rig, made.id)).fired == 0
        resumed = await rig.operator(ResumeSchedule(schedule_id=made.id))
        assert resumed.slot == NINE.plus(3 * DAY)
        await tick(rig, NINE.plus(3 * DAY))
        assert (await show(rig, made.id)).fired == 1

    play(scene, tmp_path)


def test_a_removed_schedule_ends_with_its_agent(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="echo")
        first, second = await add_schedule(rig, name="nightly"), await add_schedule(rig)
        assert first.address == "/ada/cron/nightly"
        await rig.operator(RemoveSchedule(schedule_id=first.id))
        await rig.operator(RetireAgent(address=second.address))
        for one in (first, second):
            assert (await show(rig, one.id)).state is ScheduleState.ENDED
            assert (await rig.operator(ShowAgent(address=one.address))).lifecycle == "retired"
        assert (await rig.operator(ListSchedules())).items == ()
        assert len((await rig.operator(ListSchedules(all=True))).items) == 2
        await tick(rig, NINE.plus(DAY))
        assert [one.payload.move for one in await list_events(rig)].count("fire") == 0
        taken = await expect_refusal(add_schedule(rig, name="nightly"))
        assert taken.code == "name_taken"

    play(scene, tmp_path)


def test_a_run_by_hand_leaves_the_next_time_as_it_is(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="acp")
        made = await add_schedule(rig, body="wait")
        ran = await rig.operator(RunSchedule(schedule_id=made.id))
        assert (ran.fired, ran.slot) == (1, NINE)
        refused = await expect_refusal(rig.operator(RunSchedule(schedule_id=made.id)))
        assert refused.code == "wrong_state"
        await rig.operator(UpdateSchedule(schedule_id=made.id, overlap=Overlap.CANCEL))
        again = await rig.operator(RunSchedule(schedule_id=made.id, idempotency_key="k"))
        same = await rig.operator(RunSchedule(schedule_id=made.id, idempotency_key="k"))
        assert (again.fired, same.fired) == (2, 2)
        assert [one.slot for one in await list_runs(rig, made.id)] == [None, None]
        await rig.operator(PauseSchedule(schedule_id=made.id))
        assert (await rig.operator(RunSchedule(schedule_id=made.id))).state is ScheduleState.PAUSED
        await rig.operator(RemoveSchedule(schedule_id=made.id))
        over = await expect_refusal(rig.operator(RunSchedule(schedule_id=made.id)))
        assert over.code == "wrong_state"

    play_slow(scene, tmp_path)


def test_another_time_counts_from_now(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="echo")
        made = await add_schedule(rig)
        moved = await rig.operator(UpdateSchedule(schedule_id=made.id, cron="0 12 * * *", jitter=60))
        assert moved.slot == NINE.plus(3 * HOUR)
        assert moved.next_at is not None
        assert 0 <= moved.next_at.since(NINE.plus(3 * HOUR)) <= 60
        east = await rig.operator(UpdateSchedule(schedule_id=made.id, time_zone="Asia/Kathmandu"))
        assert east.next_in_zone == "2025-11-15T12:00+05:45"
        stale = await expect_refusal(
            rig.operator(UpdateSchedule(schedule_id=made.id, body="Tell me.", revision=made.revision))
        )
        assert stale.code == "wrong_revision"

    play(scene, tmp_path)


def test_only_the_user_in_person_has_schedules(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        arc = await rig.agent("arc")
        made = await add_schedule(rig)
        from scout.protocol.people.schedules import AddSchedule, GetSchedule

        wish = AddSchedule(cron="@daily", body="Again.", to="@arc", time_zone="UTC")
        assert (await expect_refusal(arc.call(wish))).code == "forbidden"
        assert (await expect_refusal(arc.call(GetSchedule(schedule_id=made.id)))).code == "not_found"
        assert (await expect_refusal(arc.call(PauseSchedule(schedule_id=made.id)))).code == "not_found"
        assert (await arc.call(ListSchedules())).items == ()

    play(scene, tmp_path)


def test_the_log_of_a_schedule_is_read_in_pages(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        from scout.protocol.people.schedules import ReadScheduleLog

        await rig.register("arc", harness="echo")
        made = await add_schedule(rig)
        for day in range(5):
            await tick(rig, NINE.plus(day * DAY))
            await wait_for_run(rig, made.id)
        seen, cursor = list[Time | None](), None
        while True:
            page = await rig.operator(ReadScheduleLog(schedule_id=made.id, limit=2, cursor=cursor))
            seen += [one.slot for one in page.items]
            cursor = page.next
            if cursor is None:
                break
        assert seen == [NINE.plus(day * DAY) for day in (4, 3, 2, 1, 0)]

    play(scene, tmp_path)
