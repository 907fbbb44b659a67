"""Requests about the whole: status, overview, pause, settings, nodes and the log."""

from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.base.time import Time
from scout.model.events.event_types import AnyEvent
from scout.model.node import Node, Pause
from scout.protocol.agents import AgentView
from scout.protocol.asks import FlightView
from scout.protocol.attention import AgentNeeds, AttentionView
from scout.protocol.parameters import Cursor, Limit, Words, describe
from scout.protocol.request import Page, Request, Write
from scout.protocol.reservations import ReservationView


class Status(Record, omit_defaults=True):
    """The daemon's address and state, and the state of each connector."""

    url: str
    socket: str
    pid: int
    version: str
    node: str
    home: str
    paused: Pause | None = None
    connectors: dict[str, str] = {}


class ShowStatus(Request[Status]):
    """Show whether the daemon runs, and its address."""

    operation: ClassVar[str] = "status"
    route: ClassVar[str] = "GET /v1/status"


class Now(Record):
    """Summary: needs you, running, finished since the last check. `at` is when it was read.

    `reservations`: your own active ones, and those of others where you are.
    """

    at: Time
    since: Time | None
    needs_me: tuple[AttentionView, ...]
    needs_by_agent: tuple[AgentNeeds, ...]
    unread: int
    open: tuple[FlightView, ...]
    finished: tuple[FlightView, ...]
    finished_count: int
    online: tuple[AgentView, ...]
    agents: int
    paused: Pause | None = None
    reservations: tuple[ReservationView, ...] = ()


class ShowNow(Request[Now]):
    """Summary: needs you, running, finished since last check."""

    operation: ClassVar[str] = "now"
    route: ClassVar[str] = "GET /v1/now"

    since: Annotated[
        Time | None, describe("show what finished since this time; default: your last check")
    ] = None


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


class ReadLog(Request[Page[AnyEvent]]):
    """Read the log, oldest first."""

    operation: ClassVar[str] = "log"
    route: ClassVar[str] = "GET /v1/log"
    permission: ClassVar[str] = "only what you may read"

    after: Annotated[int, describe("only events after this sequence number")] = 0
    newest: Annotated[bool, describe("start with the newest page")] = False
    agent: Annotated[Words | None, describe("only events about this agent")] = None
    conversation: Annotated[Words | None, describe("only this conversation")] = None
    work: Annotated[Words | None, describe("only this work item")] = None
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
    family: Annotated[Words | None, describe("only event types with this prefix, such as collab.flight")] = (
        None
    )
    subtree: Annotated[Words | None, describe("only agents at or below this path")] = None
