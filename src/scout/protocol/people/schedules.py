"""Requests about schedules: asks that are repeated at set times."""

from typing import Annotated, ClassVar

import msgspec

from scout.base.record import Record
from scout.base.time import Time
from scout.model.flight import FlightState
from scout.model.people.schedule import MOST_JITTER, Missed, Overlap, Schedule
from scout.protocol.parameters import Body, Cursor, Limit, Revision, Words, describe
from scout.protocol.request import Page, Request, Write

ScheduleId = Annotated[Words, describe("the schedule's id, or the address of its cron agent")]
_Cron = Annotated[
    Words, describe("when, as five cron fields (minute hour day month weekday) or a name such as @daily")
]
_Zone = Annotated[Words | None, describe("the time zone of the times; default: this machine's")]
_JitterSeconds = Annotated[int, msgspec.Meta(ge=0, le=MOST_JITTER)]
_Jitter = Annotated[
    _JitterSeconds | None, describe("start each run up to this many seconds later, to spread load")
]
_Missed = Annotated[
    Missed | None,
    describe("runs missed while Scout could not run them: once (default) runs the last one late, or skip"),
]
_Overlap = Annotated[
    Overlap | None,
    describe("a run while the previous one has not ended: skip (default), queue, or cancel the previous one"),
]
_Channel = Annotated[
    Words | None, describe("the channel that gets the answers; default: you, where you were last active")
]
_OWNER = "the user whose schedule it is, or callers who control its agents"


class UpcomingRun(Record):
    """One time at which a schedule runs: `at`, and the same time as clocks in its time zone show it."""

    at: Time
    in_zone: str


class LastRun(Record):
    """The last run that started."""

    flight_id: str
    state: FlightState
    started_at: Time
    reason: str = ""


class ScheduleView(Schedule):
    """A schedule in words. `address`: its cron agent; `target_address`: the agent that it asks.

    `upcoming`: its next five times; a list leaves them out.
    """

    address: str
    target_address: str
    words: str
    channel: str | None = None
    next_in_zone: str | None = None
    last: LastRun | None = None
    upcoming: tuple[UpcomingRun, ...] = ()
    notes: tuple[str, ...] = ()


class AddSchedule(Write[ScheduleView]):
    """Repeat an ask at set times."""

    operation: ClassVar[str] = "cron.add"
    route: ClassVar[str] = "POST /v1/schedules"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("cron", "body")
    flags: ClassVar[dict[str, str]] = {"timeZone": "tz", "projectPath": "project"}
    permission: ClassVar[str] = "a person, or callers who control that person's cron agents"
    folder_field: ClassVar[str] = "project_path"

    cron: _Cron
    body: Body
    to: Annotated[Words | None, describe("the agent that is asked: any address")] = None
    project_path: Annotated[
        Words | None, describe("or a project directory; its agent is created if needed")
    ] = None
    time_zone: _Zone = None
    missed: _Missed = None
    overlap: _Overlap = None
    jitter: _Jitter = None
    channel: _Channel = None
    name: Annotated[Words | None, describe("a name for its cron agent, /USER/cron/NAME; default: its id")] = (
        None
    )


class UpdateSchedule(Write[ScheduleView]):
    """Change the times, the target or the text of a schedule."""

    operation: ClassVar[str] = "cron.update"
    route: ClassVar[str] = "PATCH /v1/schedules/{scheduleId}"
    words: ClassVar[tuple[str, ...]] = ("scheduleId",)
    flags: ClassVar[dict[str, str]] = {"timeZone": "tz"}
    permission: ClassVar[str] = _OWNER

    schedule_id: ScheduleId
    cron: _Cron | None = None
    body: Body | None = None
    to: Annotated[Words | None, describe("the agent that is asked: any address")] = None
    time_zone: Annotated[Words | None, describe("the time zone of the times")] = None
    missed: _Missed = None
    overlap: _Overlap = None
    jitter: _Jitter = None
    channel: Annotated[Words | None, describe("the channel that gets the answers; none for you")] = None
    revision: Revision = None


class ListSchedules(Request[Page[ScheduleView]]):
    """List schedules, newest first."""

    operation: ClassVar[str] = "cron.list"
    route: ClassVar[str] = "GET /v1/schedules"
    permission: ClassVar[str] = "only your user's"

    all: Annotated[bool, describe("include removed ones")] = False
    cursor: Cursor = None
    limit: Limit = None


class GetSchedule(Request[ScheduleView]):
    """Show a schedule in words, with its next five times."""

    operation: ClassVar[str] = "cron.show"
    route: ClassVar[str] = "GET /v1/schedules/{scheduleId}"
    words: ClassVar[tuple[str, ...]] = ("scheduleId",)
    permission: ClassVar[str] = "only your user's"

    schedule_id: ScheduleId


class RunSchedule(Write[ScheduleView]):
    """Run a schedule now. Its next run stays as it is."""

    operation: ClassVar[str] = "cron.run"
    route: ClassVar[str] = "POST /v1/schedules/{scheduleId}/run"
    words: ClassVar[tuple[str, ...]] = ("scheduleId",)
    permission: ClassVar[str] = _OWNER

    schedule_id: ScheduleId


class PauseSchedule(Write[ScheduleView]):
    """Pause a schedule until you resume it."""

    operation: ClassVar[str] = "cron.pause"
    route: ClassVar[str] = "POST /v1/schedules/{scheduleId}/pause"
    words: ClassVar[tuple[str, ...]] = ("scheduleId",)
    permission: ClassVar[str] = _OWNER

    schedule_id: ScheduleId
    reason: Annotated[Words, describe("why")] = ""
    revision: Revision = None


class ResumeSchedule(Write[ScheduleView]):
    """Resume a paused schedule. Runs missed during the pause are not made up."""

    operation: ClassVar[str] = "cron.resume"
    route: ClassVar[str] = "POST /v1/schedules/{scheduleId}/resume"
    words: ClassVar[tuple[str, ...]] = ("scheduleId",)
    permission: ClassVar[str] = _OWNER

    schedule_id: ScheduleId
    revision: Revision = None


class RemoveSchedule(Write[ScheduleView]):
    """End a schedule for good. A run in progress finishes."""

    operation: ClassVar[str] = "cron.remove"
    route: ClassVar[str] = "POST /v1/schedules/{scheduleId}/remove"
    words: ClassVar[tuple[str, ...]] = ("scheduleId",)
    permission: ClassVar[str] = _OWNER

    schedule_id: ScheduleId
    reason: Annotated[Words, describe("why")] = ""
    revision: Revision = None


class RunView(Record, omit_defaults=True):
    """One entry in the log of a schedule. `outcome`: fired, held, skipped or failed.

    `slot`: the time that the run was for; a run by hand has none. `state`, `output`: those of its flight.
    """

    seq: int
    at: Time
    outcome: str
    slot: Time | None = None
    in_zone: str | None = None
    reason: str = ""
    ask_id: str | None = None
    flight_id: str | None = None
    state: FlightState | None = None
    output: str | None = None


class ReadScheduleLog(Request[Page[RunView]]):
    """List the runs of a schedule, newest first: started, waiting, skipped and failed ones."""

    operation: ClassVar[str] = "cron.log"
    route: ClassVar[str] = "GET /v1/schedules/{scheduleId}/log"
    words: ClassVar[tuple[str, ...]] = ("scheduleId",)
    permission: ClassVar[str] = "only your user's"

    schedule_id: ScheduleId
    cursor: Cursor = None
    limit: Limit = None
