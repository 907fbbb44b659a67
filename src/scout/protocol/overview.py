"""Requests about the whole: status, overview, pause, settings, nodes and the log."""

from typing import Annotated, ClassVar

import msgspec
from msgspec import UNSET

from scout.base.record import Record
from scout.base.time import Time
from scout.model.events.event_types import AnyEvent
from scout.model.history import Moment
from scout.model.node import Node, Pause
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

    `meshed`: this machine belongs to a mesh.
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


class ReadLog(Request[Page[AnyEvent]]):
    """Read the log, oldest first.

    `next` continues after the page; with `newest` or `before` it is the number to give as `before`.
    """

    operation: ClassVar[str] = "log"
    route: ClassVar[str] = "GET /v1/log"
    permission: ClassVar[str] = "only what you may read"

    after: Annotated[int, describe("only events after this sequence number")] = 0
    before: Annotated[
        int | None, describe("the newest events before this sequence number, instead of the oldest after one")
    ] = None
    newest: Annotated[bool, describe("start with the newest page")] = False
    agent: Annotated[Words | None, describe("only events about this agent")] = None
    conversation: Annotated[Words | None, describe("only this conversation")] = None
    work: Annotated[Words | None, describe("only this work item")] = None
    flight: Annotated[Words | None, describe("only this flight")] = None
    family: Annotated[Words | None, describe("only event types with this prefix, such as collab.flight")] = (
        None
    )
    limit: Limit = None


class Watch(Request[AnyEvent]):
    """Stream the log as server-sent events; each id is the sequence number."""

    operation: ClassVar[str] = "watch"
    route: ClassVar[str] = "GET /v1/events"
    permission: ClassVar[str] = "only what you may read"

    after: Annotated[int | None, describe("start after this sequence number; default: now")] = None
    agent: Annotated[Words | None, describe("only events about this agent")] = None
    conversation: Annotated[Words | None, describe("only this conversation")] = None
    work: Annotated[Words | None, describe("only this work item")] = None
    flight: Annotated[Words | None, describe("only this flight")] = None
    family: Annotated[Words | None, describe("only event types with this prefix, such as collab.flight")] = (
        None
    )
    subtree: Annotated[Words | None, describe("only agents at or below this path")] = None
