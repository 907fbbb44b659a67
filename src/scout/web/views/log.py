"""Log: what happened, as sentences, with the reason of each."""

from collections.abc import Sequence

from scout.base.codec import to_plain
from scout.model.events.envelope import Event
from scout.model.events.event_types import get_event_type
from scout.policy.sentences import find_subject
from scout.protocol.overview import ReadLog
from scout.web.html import Html, join, tag
from scout.web.layout import PageBody
from scout.web.names import EventNames, find_names
from scout.web.parts import Column, build_list, show_empty, show_time
from scout.web.sentences import write_sentence
from scout.web.slider import PastPlace, build_slider, read_activity
from scout.web.views.request import PageRequest

_COLUMNS = (
    Column("When", "c-state"),
    Column("What", "c-what"),
    Column("Type", "c-why"),
    Column("Why", "c-when"),
)
_NOUNS = (
    "",
    "flight",
    "message",
    "attention",
    "agent",
    "session",
    "delivery",
    "work_item",
    "schedule",
    "usage",
    "token",
)


async def show_log(request: PageRequest) -> PageBody:
    """Return the newest events that match, newest first."""
    agent, noun = request.query.get("agent", ""), request.query.get("noun", "")
    found = await request.scout.call(
        ReadLog(
            newest=True,
            agent=agent or None,
            conversation=request.query.get("conversation") or None,
            work=request.query.get("work") or None,
            family=f"collab.{noun}" if noun in _NOUNS and noun else None,
            limit=50,
        )
    )
    names = await find_names(request.scout, found.items)
    body = list_events("log", found.items, names)
    slider = build_slider(await read_activity(request.scout), PastPlace("/", {}), None)
    main = join(slider, _build_filters(agent, noun), tag("div", body, cls="card"))
    return PageBody("Log", main, ("collab",))


def _build_filters(agent: str, noun: str) -> Html:
    options = [
        tag("option", one.replace("_", " ") or "everything", value=one, selected=one == noun)
        for one in _NOUNS
    ]
    return tag(
        "form",
        tag("label", "About", tag("select", options, name="noun")),
        tag(
            "label",
            "Agent",
            tag("input", type="search", name="agent", value=agent, cls="input", placeholder="@name"),
        ),
        tag("button", "Filter", type="submit", cls="button"),
        cls="filters",
        action="/log",
        method="get",
        role="search",
    )


def list_events(name: str, events: Sequence[Event], names: EventNames) -> Html:
    """Return events as a list of sentences, newest first."""
    rows = [(f"event {one.seq}", None, _list_cells(one, names)) for one in reversed(events)]
    return build_list(
        name, "Events", _COLUMNS, rows, empty=show_empty("No events here.", "Change the filter above.")
    )


def _list_cells(event: Event, names: EventNames) -> tuple[Html, Html, Html, Html]:
    kind = get_event_type(type(event)).removeprefix("collab.")
    href = f"/why/{find_subject(to_plain(event))}"
    why = tag("a", "why", href=href, data_why=True, aria_label=f"Why: {kind} {event.seq}")
    return show_time(event.time), write_sentence(event, names), tag("span", kind, cls="quiet"), why
