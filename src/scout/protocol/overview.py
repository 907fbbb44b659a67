"""Requests about the whole: how the daemon is, what is going on now, the log."""

from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.base.time import Time
from scout.model.events.event_types import AnyEvent
from scout.model.node import Node, Pause
from scout.protocol.agents import AgentView
from scout.protocol.asks import FlightView
from scout.protocol.attention import AgentNeeds, AttentionView
from scout.protocol.parameters import Cursor, Limit, Words, says
from scout.protocol.request import Page, Request, Write

__all__ = [
    "ListNodes",
    "MarkLooked",
    "Now",
    "PauseScout",
    "PauseView",
    "ReadLog",
    "ReloadSettings",
    "ResumeScout",
    "SeenMark",
    "SettingsReloaded",
    "ShowNow",
    "ShowStatus",
    "Status",
    "Watch",
]


class Status(Record, omit_defaults=True):
    """Where the daemon is, and whether it is paused."""

    url: str
    socket: str
    pid: int
    version: str
    node: str
    home: str
    paused: Pause | None = None


class ShowStatus(Request[Status]):
    """Say whether the daemon runs, and where."""

    operation: ClassVar[str] = "status"
    route: ClassVar[str] = "GET /v1/status"


class Now(Record):
    """What needs you, who works, what finished since you last looked; `at` is when this was read."""

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


class ShowNow(Request[Now]):
    """Show what needs you, who works, and what finished since you last looked."""

    operation: ClassVar[str] = "now"
    route: ClassVar[str] = "GET /v1/now"

    since: Annotated[Time | None, says("look back to here instead of your last look")] = None


class SeenMark(Record):
    """Since when you have seen everything."""

    at: Time


class MarkLooked(Write[SeenMark]):
    """Say that you have seen what happened up to a moment."""

    operation: ClassVar[str] = "now.seen"
    route: ClassVar[str] = "POST /v1/now/seen"

    at: Annotated[Time, says("`at` of what you looked at")]


class PauseView(Record):
    """Whether this machine is paused, how many turns run, how many wait, and what was interrupted."""

    paused: Pause | None
    running: int
    waiting: int
    interrupted: tuple[str, ...] = ()


class PauseScout(Write[PauseView]):
    """Start no turn and wake nobody on this machine until it is resumed."""

    operation: ClassVar[str] = "pause"
    route: ClassVar[str] = "POST /v1/pause"
    permission: ClassVar[str] = "the operator"

    now: Annotated[bool, says("interrupt the turns that run")] = False
    reason: Annotated[Words, says("why, for those who wait")] = ""


class ResumeScout(Write[PauseView]):
    """End the pause of this machine: what waits starts in its order."""

    operation: ClassVar[str] = "resume"
    route: ClassVar[str] = "POST /v1/resume"
    permission: ClassVar[str] = "the operator"


class SettingsReloaded(Record):
    """The keys whose new values are in force now, and those whose new values need a restart."""

    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


class ReloadSettings(Write[SettingsReloaded]):
    """Read the settings file again, and use every value that needs no restart of the daemon."""

    operation: ClassVar[str] = "settings.reload"
    route: ClassVar[str] = "POST /v1/settings/reload"
    permission: ClassVar[str] = "the operator"


class ListNodes(Request[Page[Node]]):
    """List the machines that this one knows."""

    operation: ClassVar[str] = "node.list"
    route: ClassVar[str] = "GET /v1/nodes"

    cursor: Cursor = None
    limit: Limit = None


class ReadLog(Request[Page[AnyEvent]]):
    """Read the log, oldest first."""

    operation: ClassVar[str] = "log"
    route: ClassVar[str] = "GET /v1/log"
    permission: ClassVar[str] = "what you may read"

    after: Annotated[int, says("only events after this number")] = 0
    newest: Annotated[bool, says("the last page instead of the first")] = False
    agent: Annotated[Words | None, says("only what concerns this agent")] = None
    conversation: Annotated[Words | None, says("only this conversation")] = None
    work: Annotated[Words | None, says("only this work item")] = None
    family: Annotated[Words | None, says("only types that begin so, as in collab.flight")] = None
    limit: Limit = None


class Watch(Request[AnyEvent]):
    """Follow the log as it grows: server-sent events, each with its number as id."""

    operation: ClassVar[str] = "watch"
    route: ClassVar[str] = "GET /v1/events"
    permission: ClassVar[str] = "what you may read"

    after: Annotated[int | None, says("from after this number; from now on, unless said")] = None
    agent: Annotated[Words | None, says("only what concerns this agent")] = None
    conversation: Annotated[Words | None, says("only this conversation")] = None
    work: Annotated[Words | None, says("only this work item")] = None
    family: Annotated[Words | None, says("only types that begin so, as in collab.flight")] = None
    subtree: Annotated[Words | None, says("only agents at or below this path")] = None
