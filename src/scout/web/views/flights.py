"""Flights: every ask and its state, newest first."""

from urllib.parse import urlencode

from scout.model.flight import FlightState
from scout.protocol.asks import FlightView, ListFlights
from scout.web.html import Html, join, tag
from scout.web.layout import PageBody
from scout.web.parts import (
    Column,
    build_list,
    build_pager,
    cut,
    show_address,
    show_empty,
    show_state,
    show_time,
)
from scout.web.views.request import PageRequest

FLIGHT_COLUMNS = (
    Column("State", "c-state"),
    Column("Agent", "c-agent"),
    Column("What", "c-what"),
    Column("Why", "c-why"),
    Column("When", "c-when"),
)
_FILTERS: tuple[tuple[str, dict[str, str]], ...] = (
    ("All", {}),
    ("Open", {"open": "1"}),
    ("Mine", {"mine": "1"}),
    *(
        (state.value.capitalize(), {"state": state.value})
        for state in (FlightState.FAILED, FlightState.COMPLETED)
    ),
)


async def show_flights(request: PageRequest) -> PageBody:
    """Return one page of flights."""
    query = {
        name: value
        for name, value in request.query.items()
        if name in ("open", "mine", "state", "agent", "at")
    }
    state = query.get("state", "")
    found = await request.scout.call(
        ListFlights(
            open="open" in query,
            mine="mine" in query,
            state=FlightState(state) if state in set(FlightState) else None,
            agent=query.get("agent") or None,
            cursor=request.query.get("cursor") or None,
            limit=50,
            at=request.at,
        )
    )
    empty = show_empty(
        "No flights here.", "An ask begins a flight. Press c, or type:", "scout ask @NAME 'Review this.'"
    )
    body = tag("div", list_flights("flights", "Flights", found.items, empty=empty), cls="sheet")
    main = join(_build_tabs(query), body, build_pager("/flights", query, found.next))
    return PageBody("Flights", main, ("collab.flight",), moment=found.moment or None)


def _build_tabs(query: dict[str, str]) -> Html:
    past = {"at": query["at"]} if "at" in query else {}
    chosen = {name: value for name, value in query.items() if name != "at"}
    tabs = [
        tag(
            "a",
            label,
            href="/flights" + (f"?{urlencode({**wanted, **past})}" if wanted or past else ""),
            aria_current="page" if wanted == chosen else None,
        )
        for label, wanted in _FILTERS
    ]
    return tag("nav", tabs, cls="tabs filters", aria_label="Filter")


def list_flights(name: str, label: str, flights: tuple[FlightView, ...], *, empty: Html) -> Html:
    """Return flights as a list, one line each."""
    rows = [(one.id, None, _list_cells(one)) for one in flights]
    return build_list(name, label, FLIGHT_COLUMNS, rows, empty=empty)


def _list_cells(flight: FlightView) -> tuple[Html, Html, Html, Html, Html]:
    what = tag("a", cut(flight.body) or "(no text)", cls="main-link", href=f"/flights/{flight.id}")
    said = flight.error.message if flight.error else flight.output or flight.reason
    why = tag("span", cut(said, 120), data_field="reason", cls="quiet")
    at = flight.finished_at or flight.started_at or flight.created_at
    name = show_address(flight.target_address, flight.target_node)
    return show_state(flight.state), name, what, why, show_time(at)
