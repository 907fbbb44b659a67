"""Resources to read and subscribe to: an agent's brief and inbox, flights, work items."""

from collections.abc import Mapping
from typing import Any

from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from scout.base.codec import encode, render
from scout.base.machine import Mutable
from scout.base.refusal import Refused
from scout.mcp.tools.result import drop_empty
from scout.model.agent import Agent
from scout.model.delivery import Delivery
from scout.model.events.envelope import Event, get_record
from scout.model.events.talk import Posted
from scout.model.flight import Flight
from scout.model.work_item import WorkItem
from scout.protocol.asks import GetFlight, ListFlights
from scout.protocol.inbox import ListInbox
from scout.protocol.insight import ShowBrief
from scout.protocol.request import Request
from scout.protocol.scout import Scout
from scout.protocol.work import GetWork, ListWork

BRIEF, INBOX, FLIGHTS, WORK = "scout://brief", "scout://inbox", "scout://flights/", "scout://work/"
_JSON = "application/json"

TEMPLATES = [
    ResourceTemplate(name="flight", uri_template=f"{FLIGHTS}{{id}}", description="One ask under way."),
    ResourceTemplate(name="work item", uri_template=f"{WORK}{{id}}", description="One work item."),
]
_OWN: Mapping[str, Request[Any]] = {BRIEF: ShowBrief(), INBOX: ListInbox()}


async def list_resources(scout: Scout) -> list[Resource]:
    """Return the caller's brief and inbox, then the newest open flights and work items."""
    flights = await scout.call(ListFlights(open=True))
    work = await scout.call(ListWork())
    return [
        Resource(name="brief", uri=BRIEF, mime_type=_JSON, description="Who you are and what you owe."),
        Resource(name="inbox", uri=INBOX, mime_type=_JSON, description="What waits for you."),
        *(Resource(name=one.id, uri=FLIGHTS + one.id, mime_type=_JSON) for one in flights.items),
        *(Resource(name=one.title, uri=WORK + one.id, mime_type=_JSON) for one in work.items),
    ]


async def read_resource(scout: Scout, uri: str) -> list[TextResourceContents | Any]:
    """Return a resource as JSON; a refusal is an error with the diagnostic as its data."""
    try:
        found = await scout.call(_build_request(uri))
    except Refused as refused:
        problem = refused.diagnostic
        raise MCPError(INVALID_PARAMS, problem.message, {"uri": uri, **render(problem)}) from None
    text = encode(drop_empty(found)).decode()
    return [TextResourceContents(uri=uri, mime_type=_JSON, text=text)]


def list_touched(event: Event, agent_id: str | None) -> list[ServerEvent]:
    """Return the resources and lists that an event changes for the subscribed agent."""
    match get_record(event):
        case Flight(id=ident) as one:
            return [ResourceUpdated(FLIGHTS + ident), ResourceUpdated(BRIEF), *_list_changes(one)]
        case WorkItem(id=ident) as one:
            return [ResourceUpdated(WORK + ident), ResourceUpdated(BRIEF), *_list_changes(one)]
        case Delivery(target=target) if target == agent_id:
            return [ResourceUpdated(INBOX), ResourceUpdated(BRIEF)]
        case Agent(id=ident) if ident == agent_id:  # a new role may change its tools
            return [ToolsListChanged(), ResourceUpdated(BRIEF)]
        case Posted() if agent_id not in (event.source.id, *event.metadata.target_agents):
            return [ResourceUpdated(INBOX), ResourceUpdated(BRIEF)]
        case Mutable():
            return [ResourceUpdated(BRIEF)]
        case _:
            return []


def _list_changes(record: Flight | WorkItem) -> list[ServerEvent]:
    """Return a list change when a record is created or a flight finishes."""
    over = isinstance(record, Flight) and record.finished_at is not None
    return [ResourcesListChanged()] if over or record.revision == 1 else []


def _build_request(uri: str) -> Request[Any]:
    if uri in _OWN:
        return _OWN[uri]
    for start, kind in ((FLIGHTS, GetFlight), (WORK, GetWork)):
        ident = uri.removeprefix(start)
        if ident != uri and ident:
            return GetFlight(flight_id=ident) if kind is GetFlight else GetWork(work_item_id=ident)
    raise MCPError(INVALID_PARAMS, f"no resource {uri[:200]}", {"uri": uri[:200]})
