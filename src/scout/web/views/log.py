"""Log: what happened, as sentences, with the reason of each; page by page, also up to a moment."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from scout.base.codec import to_plain
from scout.model.events.envelope import Event
from scout.model.events.event_types import AnyEvent, get_event_type
from scout.model.moment import Moment
from scout.policy.sentences import find_subject
from scout.protocol.agents import Who
from scout.protocol.log import ReadLog
from scout.protocol.request import Page
from scout.web.html import EMPTY, Html, join, tag
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


_SHOWN = 50
_DIGITS = 19  # of a number of the log
_NAMED = ("conversation", "flight", "work")
_RECORDS = {"flt": "flight", "wrk": "work"}


async def show_log(request: PageRequest) -> PageBody:
    """Return one page of the events that match, newest first: the newest, or those beside a number."""
    filters = _read_filters(request)
    moment = await _find_moment(request)
    found = await request.scout.call(_build_request(request, filters, moment))
    names = await find_names(request.scout, found.items)
    activity = await read_activity(request.scout) if request.at is None else None
    pager = _build_pager(request, filters, found, moment)
    body = list_events("log", found.items, names, empty=_show_nothing(found))
    slider = build_slider(activity, PastPlace("/", {}), None) if request.at is None else None
    main = join(slider, _build_filters(request, filters), tag("div", body, cls="sheet"), pager)
    paged = "before" in request.query or "after" in request.query
    return PageBody("Log", main, () if paged else ("collab",), moment=moment, read_only=True)


def _read_filters(request: PageRequest) -> dict[str, str]:
    """Return the filters that are set. A record's id says what it is; anything else is a channel."""
    query = request.query
    noun = query.get("noun", "")
    found = {"agent": query.get("agent", ""), "noun": noun if noun in _NOUNS else ""}
    given = query.get("about") or next((query[name] for name in _NAMED if query.get(name)), "")
    return {name: value for name, value in {**found, "about": given.strip()}.items() if value}


async def _find_moment(request: PageRequest) -> Moment | None:
    """Return the moment that is asked for: its number is where the log ended."""
    if request.at is None:
        return None
    return (await request.scout.call(Who(limit=1, at=request.at))).moment or None


def _build_request(request: PageRequest, filters: Mapping[str, str], moment: Moment | None) -> ReadLog:
    before, after = (_read_number(request.query.get(name, "")) for name in ("before", "after"))
    if before is None and after is None and moment is not None:
        before = moment.seq + 1
    about = filters.get("about", "")
    kind = _RECORDS.get(about.partition("_")[0], "conversation")
    return ReadLog(
        newest=before is None and after is None,
        before=before,
        after=after or 0,
        agent=filters.get("agent"),
        conversation=about if about and kind == "conversation" else None,
        work=about if kind == "work" else None,
        flight=about if kind == "flight" else None,
        family=f"collab.{filters['noun']}" if "noun" in filters else None,
        limit=_SHOWN,
    )


def _read_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _DIGITS else None


def _build_pager(
    request: PageRequest, filters: Mapping[str, str], found: Page[AnyEvent], moment: Moment | None
) -> Html:
    """Return the ways to newer and older events."""
    kept = {**filters, **({"at": request.at} if request.at else {})}
    forward = "after" in request.query
    first = found.items[0].seq if found.items else None
    last = found.items[-1].seq if found.items else None
    older = (str(first) if first is not None else None) if forward else found.next
    newer = found.next if forward else str(last) if "before" in request.query and last is not None else None
    past_end = moment is not None and newer is not None and int(newer) >= moment.seq
    links = (
        ("Newest", kept, "before" in request.query or forward),
        ("Newer", {**kept, "after": newer or ""}, newer is not None and not past_end),
        ("Older", {**kept, "before": older or ""}, older is not None and older != "1"),
    )
    shown = [
        tag("a", label, cls="button", href=f"/log?{urlencode(query)}" if query else "/log", data_page=label)
        for label, query, there in links
        if there
    ]
    return tag("nav", shown, cls="pager", aria_label="Pages") if shown else EMPTY


def _show_nothing(found: Page[AnyEvent]) -> Html:
    if found.next is not None:
        return show_empty(
            "Nothing matches in this part of the log.", "Look at another part, or change the filter."
        )
    return show_empty("No events here.", "Change the filter above.")


def _build_filters(request: PageRequest, filters: Mapping[str, str]) -> Html:
    options = [
        tag(
            "option",
            one.replace("_", " ") or "everything",
            value=one,
            selected=one == filters.get("noun", ""),
        )
        for one in _NOUNS
    ]
    fields = [
        tag(
            "label",
            label,
            tag(
                "input",
                type="search",
                name=name,
                value=filters.get(name, ""),
                cls="input",
                placeholder=sample,
            ),
        )
        for label, name, sample in (
            ("Agent", "agent", "@name"),
            ("Conversation, flight or work item", "about", "its id, or a channel"),
        )
    ]
    clear = tag(
        "a", "Clear", cls="button", href=f"/log?{urlencode({'at': request.at})}" if request.at else "/log"
    )
    return tag(
        "form",
        tag("label", "Kind", tag("select", options, name="noun")),
        fields,
        tag("input", type="hidden", name="at", value=request.at) if request.at else None,
        tag("button", "Filter", type="submit", cls="button"),
        clear if filters else None,
        cls="filters",
        action="/log",
        method="get",
        role="search",
    )


def list_events(name: str, events: Sequence[Event], names: EventNames, *, empty: Html = EMPTY) -> Html:
    """Return events as a list of sentences, newest first."""
    rows = [(f"event {one.seq}", None, _list_cells(one, names)) for one in reversed(events)]
    return build_list(name, "Events", _COLUMNS, rows, empty=empty)


def _list_cells(event: Event, names: EventNames) -> tuple[Html, Html, Html, Html]:
    kind = get_event_type(type(event)).removeprefix("collab.")
    subject = find_subject(to_plain(event))
    asked = "Why was this woken?" if subject != event.id else "Why?"
    why = tag(
        "a",
        "why",
        href=f"/why/{subject}",
        title=asked,
        data_why=True,
        aria_label=f"{asked} {kind} {event.seq}",
    )
    return show_time(event.time), write_sentence(event, names), tag("span", kind, cls="quiet"), why
