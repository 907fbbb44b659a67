"""Requests about the whole: status, overview, pause, settings, nodes, the log and its archives."""

from typing import Annotated, ClassVar

import msgspec
from msgspec import UNSET

from scout.base.record import Record
from scout.base.time import Time
from scout.model.moment import Moment
from scout.model.node import Node, Pause
from scout.model.retention.archive import Archive
from scout.model.trace import TelemetryStatus
from scout.policy.machine import MachineProblem
from scout.protocol.agents import AgentView
from scout.protocol.asks import FlightView
from scout.protocol.attention import AgentNeeds, AttentionView
from scout.protocol.parameters import At, Cursor, Limit, Words, describe
from scout.protocol.request import Page, PastMoment, Request, Write
from scout.protocol.reservations import ReservationView


class HistoryProgress(Record):
    """How many events of the log the history has read, while it is being built."""

    indexed: int
    events: int


MOST_BUCKETS = 500


class Status(Record, omit_defaults=True):
    """The daemon's address and state, the state of each connector, and a history that is being built.

    `meshed`: this machine belongs to a mesh. `telemetry`: traces and metrics are sent to an endpoint.
    """

    url: str
    socket: str
    pid: int
    version: str
    node: str
    home: str
    paused: Pause | None = None
    connectors: dict[str, str] = {}
    history: HistoryProgress | None = None
    meshed: bool = False
    telemetry: TelemetryStatus | None = None


class ShowStatus(Request[Status]):
    """Show whether the daemon runs, and its address."""

    operation: ClassVar[str] = "status"
    route: ClassVar[str] = "GET /v1/status"


class Now(Record):
    """Summary: needs you, running, finished since the last check. `at` is when it was read.

    `reservations`: your own active ones, and those of others where you are. `problems`: what is wrong with
    this machine, for its operator. In the past `at` is the moment, and neither unread messages, nor
    reservations, nor problems are known.
    """

    at: Time
    since: Time | None
    needs_me: tuple[AttentionView, ...]
    needs_by_agent: tuple[AgentNeeds, ...]
    unread: int | None
    open: tuple[FlightView, ...]
    finished: tuple[FlightView, ...]
    finished_count: int
    online: tuple[AgentView, ...]
    agents: int
    paused: Pause | None = None
    reservations: tuple[ReservationView, ...] = ()
    problems: tuple[MachineProblem, ...] = ()
    moment: PastMoment = UNSET


class ShowNow(Request[Now]):
    """Summary: needs you, running, finished since last check."""

    operation: ClassVar[str] = "now"
    route: ClassVar[str] = "GET /v1/now"

    since: Annotated[
        Time | None,
        describe("show what finished since this time; default: your last check; with `at`, an hour before"),
    ] = None
    at: At = None


class SeenMark(Record):
    """The time up to which you have seen everything."""

    at: Time


class MarkLooked(Write[SeenMark]):
    """Mark everything up to a time as seen."""

    operation: ClassVar[str] = "now.seen"
    route: ClassVar[str] = "POST /v1/now/seen"

    at: Annotated[Time, describe("the `at` value of the summary you read")]


class PauseView(Record):
    """Pause state, running and waiting turns, and interrupted flights."""

    paused: Pause | None
    running: int
    waiting: int
    interrupted: tuple[str, ...] = ()


class PauseScout(Write[PauseView]):
    """Pause this machine: start no turns and wake no agents until it is resumed."""

    operation: ClassVar[str] = "pause"
    route: ClassVar[str] = "POST /v1/pause"
    permission: ClassVar[str] = "the operator"

    now: Annotated[bool, describe("interrupt running turns")] = False
    until_restart: Annotated[bool, describe("end the pause when the daemon starts again")] = False
    reason: Annotated[Words, describe("the reason; shown to waiting callers")] = ""


class ResumeScout(Write[PauseView]):
    """Resume this machine. Waiting turns start in order."""

    operation: ClassVar[str] = "resume"
    route: ClassVar[str] = "POST /v1/resume"
    permission: ClassVar[str] = "the operator"


class SettingsReloaded(Record):
    """The settings that took effect, and those that need a restart."""

    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


class ReloadSettings(Write[SettingsReloaded]):
    """Reload the settings file and apply every setting that needs no restart."""

    operation: ClassVar[str] = "settings.reload"
    route: ClassVar[str] = "POST /v1/settings/reload"
    permission: ClassVar[str] = "the operator"


class ListNodes(Request[Page[Node]]):
    """List the nodes this machine knows."""

    operation: ClassVar[str] = "node.list"
    route: ClassVar[str] = "GET /v1/nodes"

    cursor: Cursor = None
    limit: Limit = None


class Activity(Record):
    """The first and the last moment that can be shown, and the events of each part between two times.

    `counts`: the parts are equally long. `events`: all events of the log; more than `last` has while the
    history is being built.
    """

    first: Moment
    last: Moment
    events: int
    from_: Time = msgspec.field(name="from")
    to: Time
    counts: tuple[int, ...]


class ShowActivity(Request[Activity]):
    """Show how far the history reaches, and how much happened when."""

    operation: ClassVar[str] = "activity"
    route: ClassVar[str] = "GET /v1/activity"
    permission: ClassVar[str] = "the operator"

    from_: Annotated[Words | None, describe("begin at this moment; default: the first event")] = (
        msgspec.field(name="from", default=None)
    )
    to: Annotated[Words | None, describe("end at this moment; default: the last event")] = None
    buckets: Annotated[
        int, msgspec.Meta(ge=1, le=MOST_BUCKETS), describe(f"number of parts, maximum {MOST_BUCKETS}")
    ] = 24


# -- archives ------------------------------------------------------------------------------------------


class ArchiveReport(Record):
    """What was archived, or would be: the events from `first` to `last`, in `files` of `size` bytes.

    `size`: the bytes on disk; with `dryRun`, those before compression. Without `events`, nothing is that old.
    """

    before: Time
    dry_run: bool
    events: int
    first: int
    last: int
    files: int
    size: int


class CreateArchive(Write[ArchiveReport]):
    """Move the log before a moment into compressed files. Ids, `log`, `why` and `search` still work.

    Only the log is moved. Messages, flights, work and all lists stay as they are. The last two days always
    stay in the log.
    """

    operation: ClassVar[str] = "archive.create"
    route: ClassVar[str] = "POST /v1/archives"
    permission: ClassVar[str] = "the operator"

    before: Annotated[
        Words | None,
        describe(
            "a time, a while such as '90 days ago', or a sequence number of the log; default: the setting "
            "retention.archiveAfter"
        ),
    ] = None
    dry_run: Annotated[bool, describe("show what would be archived, and change nothing")] = False


class ListArchives(Request[Page[Archive]]):
    """List archive files, newest first, also those that were purged."""

    operation: ClassVar[str] = "archive.list"
    route: ClassVar[str] = "GET /v1/archives"
    permission: ClassVar[str] = "the operator"

    cursor: Cursor = None
    limit: Limit = None


class PurgeReport(Record):
    """What was purged, or would be. `first_left`: the first event that is left in the log or an archive."""

    dry_run: bool
    events: int
    files: int
    size: int
    since: Time | None
    until: Time | None
    first_left: int


class PurgeArchives(Write[PurgeReport]):
    """Delete archive files for good. Their events cannot be read any more.

    `log`, `why` and past moments before the first event that is left are refused. Messages, flights, work and
    all lists stay.
    """

    operation: ClassVar[str] = "purge"
    route: ClassVar[str] = "POST /v1/purge"
    permission: ClassVar[str] = "the operator"

    before: Annotated[
        Words | None,
        describe("delete files whose events are all older: a time, or a while such as '52 weeks ago'"),
    ] = None
    everything: Annotated[bool, describe("delete every archive file")] = False
    dry_run: Annotated[bool, describe("show what would be deleted, and change nothing")] = False
