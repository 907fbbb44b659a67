"""A clock that stands still until a test sets it, and schedules that run by it."""

import time
from collections.abc import Sequence
from typing import Any

from scout.base.time import Time
from scout.model.events.directory import ScheduleEvent
from scout.protocol.asks import GetFlight
from scout.protocol.people.schedules import AddSchedule, GetSchedule, ReadScheduleLog, RunView, ScheduleView
from tests.broker.rig import MovedClock, Rig, read_log

__all__ = [
    "StillClock",
    "add_schedule",
    "list_events",
    "list_fired",
    "list_runs",
    "show",
    "tick",
    "wait_for_run",
]


class StillClock(MovedClock):
    """Its time is what a test says; `monotonic` is the machine's."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self.at = Time.parse(at)

    def now(self) -> Time:
        return self.at

    def monotonic(self) -> float:
        return time.monotonic()


async def add_schedule(rig: Rig, cron: str = "0 9 * * *", **more: Any) -> ScheduleView:
    """A schedule of the operator's; by default it asks @arc, in UTC."""
    wish: dict[str, Any] = {"to": "@arc", "body": "Summarise what changed.", "time_zone": "UTC", **more}
    return await rig.operator(AddSchedule(cron=cron, **wish))


async def tick(rig: Rig, at: Time) -> None:
    """Set the clock and do what is due by then."""
    clock = rig.clock
    assert isinstance(clock, StillClock)
    clock.at = at
    await rig.broker.schedules.run_due()


async def show(rig: Rig, schedule_id: str) -> ScheduleView:
    return await rig.operator(GetSchedule(schedule_id=schedule_id))


async def list_runs(rig: Rig, schedule_id: str) -> list[RunView]:
    """The runs of a schedule, oldest first."""
    return list(reversed((await rig.operator(ReadScheduleLog(schedule_id=schedule_id))).items))


async def wait_for_run(rig: Rig, schedule_id: str) -> None:
    """Wait until the last run has ended."""
    last = (await show(rig, schedule_id)).last
    if last is not None:
        view = await rig.operator(GetFlight(flight_id=last.flight_id, wait=20))
        assert view.finished_at is not None, view


async def list_events(rig: Rig) -> list[ScheduleEvent]:
    return [one for one in await read_log(rig, "collab.schedule") if isinstance(one, ScheduleEvent)]


def list_fired(events: Sequence[ScheduleEvent], schedule_id: str) -> list[Time]:
    """The times that a schedule ran for, in the order of the log."""
    own = [one for one in events if one.target.id == schedule_id and one.payload.move == "fire"]
    return [one.payload.record.last_slot or Time(0) for one in own]
