"""Agents: the list, by path, branch or project; and one agent."""

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby

from scout.model.agent import Lifecycle, WakePolicy
from scout.policy.sentences import add_node, describe_presence
from scout.protocol.agents import AgentDetail, AgentView, ShowAgent, Who
from scout.protocol.asks import ListFlights
from scout.protocol.log import ReadLog
from scout.protocol.work import ListWork, WorkView
from scout.web.html import Child, Html, join, tag
from scout.web.layout import PageBody
from scout.web.names import find_names
from scout.web.parts import (
    Column,
    build_button,
    build_list,
    build_pager,
    build_panel,
    shorten,
    show_address,
    show_command,
    show_empty,
    show_facts,
    show_state,
    show_time,
)
from scout.web.views.flights import list_flights
from scout.web.views.log import list_events
from scout.web.views.request import PageRequest
from scout.web.views.talk import build_ask_box

_COLUMNS = (
    Column("State", "c-state"),
    Column("Agent", "c-agent"),
    Column("Path", "c-what"),
    Column("Runs", "c-why"),
    Column("Active", "c-when"),
)
_ORDERS: dict[str, Callable[[AgentView], str]] = {
    "path": lambda one: "",
    "branch": lambda one: one.birth_branch or "no branch",
    "project": lambda one: one.project_root or ("on another node" if one.is_remote else "no project"),
    "node": lambda one: one.node,
}
_SHOWN = 50  # agents of one page
_FAMILIES = ("collab.agent", "collab.endpoint", "collab.flight", "collab.node", "collab.session")


async def show_agents(request: PageRequest) -> PageBody:
    """Return the agents, ordered by path, branch or project."""
    by = request.query.get("by", "path")
    by = by if by in _ORDERS else "path"
    words = request.query.get("q", "")
    found = await request.scout.call(
        Who(
            query=words or None,
            retired=request.get_flag("retired"),
            all_nodes=True,
            limit=_SHOWN,
            cursor=request.query.get("cursor") or None,
            at=request.at,
        )
    )
    query = {"by": by, **({"q": words} if words else {}), **({"at": request.at} if request.at else {})}
    main = join(
        _build_filters(by, words), _list_groups(found.items, by), build_pager("/agents", query, found.next)
    )
    return PageBody("Agents", main, _FAMILIES, moment=found.moment or None)


def _build_filters(by: str, words: str) -> Html:
    tabs = [
        tag("a", f"By {name}", href=f"/agents?by={name}", aria_current="page" if name == by else None)
        for name in _ORDERS
    ]
    search = tag(
        "input",
        type="search",
        name="q",
        value=words,
        cls="input",
        placeholder="Filter by name",
        aria_label="Filter by name",
    )
    hidden = tag("input", type="hidden", name="by", value=by)
    form = tag("form", hidden, search, action="/agents", method="get", role="search")
    return tag("div", tag("nav", tabs, cls="tabs", aria_label="Order"), form, cls="filters")


def _list_groups(agents: Iterable[AgentView], by: str) -> Html:
    order = _ORDERS[by]
    ordered = sorted(agents, key=lambda one: (order(one), str(one.path)))
    if not ordered:
        return show_empty(
            "No agents here.", "Register one in its project:", "scout agent register NAME --project ."
        )
    groups = [(name, list(group)) for name, group in groupby(ordered, key=order)]
    return join(*(_show_group(name, group) for name, group in groups))


def _show_group(name: str, agents: list[AgentView]) -> Html:
    rows = [(one.id, f"/agents/{one.id}", _list_cells(one)) for one in agents]
    body = build_list("agents", f"Agents of {name}" if name else "Agents", _COLUMNS, rows)
    title = tag("h2", name, cls="group-title") if name else None
    return tag("section", title, body, cls="sheet group", data_key=f"group {name}")


def _list_cells(one: AgentView) -> tuple[Html, Html, Html, str, Html]:
    harness = " ".join(filter(None, (one.config.harness, one.config.model)))
    shown = tag("span", str(one.path), cls="path")
    state = "retired" if one.lifecycle is Lifecycle.RETIRED else one.status
    presence = show_state(state, describe_presence(state, one.program_state))
    name = show_address(one.address, _find_node(one))
    return presence, name, shown, harness, show_time(one.last_active_at)


def _find_node(agent: AgentView) -> str | None:
    """Return the node of an agent of another node."""
    return agent.node if agent.is_remote else None


# -- one agent -----------------------------------------------------------------------------------------


async def show_agent(request: PageRequest) -> PageBody:
    """Return one agent: what it does, what it owes, its settings and its history."""
    scout = request.scout
    agent = await scout.call(ShowAgent(address=request.segments[0], at=request.at))
    moment = agent.moment or None
    flights = await scout.call(ListFlights(agent=agent.id, limit=15, at=request.at))
    work = await scout.call(ListWork(owner_id=agent.id, limit=20, at=request.at))
    until = moment.seq + 1 if moment is not None else None
    events = await scout.call(ReadLog(agent=agent.id, newest=until is None, before=until, limit=25))
    names = await find_names(scout, events.items)
    empty = show_empty("No flights yet.", "Ask it something above.")
    main = join(
        build_panel("Ask", build_ask_box(agent.address), cls="wide"),
        _show_facts(agent),
        _show_elsewhere(agent) if agent.is_remote else _show_settings(agent),
        build_panel(
            "Flights",
            list_flights("flights", "Flights", flights.items, empty=empty),
            note=tag("a", "All", href=f"/flights?agent={agent.id}"),
            cls="wide",
        ),
        _show_work(work.items),
        build_panel(
            "Feed",
            list_events("feed", events.items, names),
            note=tag("a", "In the log", href=f"/log?agent={agent.id}"),
            cls="wide",
        ),
    )
    body = tag("div", main, cls="columns", data_ask_to=agent.address)
    actions = None if moment or agent.is_remote else _list_actions(agent)
    heading = tag("span", add_node(agent.address, _find_node(agent)), cls="mono")
    return PageBody(agent.address, body, ("collab",), heading, actions, moment=moment)


def _list_actions(agent: AgentDetail) -> Child:
    ident: dict[str, object] = {"address": agent.id}
    if agent.lifecycle is Lifecycle.RETIRED:
        return build_button("Revive", "agent.revive", ident, done="Revived.")
    return [
        build_button("Wake", "wake", ident, done="Woken."),
        build_button("Interrupt", "interrupt", ident, icon="stop", done="Interrupted."),
        build_button(
            "Retire",
            "agent.retire",
            ident,
            cls="danger",
            confirm=f"Retire {agent.address}? Its sessions and open flights end. Its name stays reserved.",
            done="Retired.",
        ),
    ]


def _show_facts(agent: AgentDetail) -> Html:
    state = "retired" if agent.lifecycle is Lifecycle.RETIRED else agent.status
    sessions = [
        tag("div", show_state(one.state, one.state), f" {one.harness} {shorten(one.id)}")
        for one in agent.sessions[:5]
    ]
    facts = (
        ("State", show_state(state, describe_presence(state, agent.program_state))),
        ("Node", _find_node(agent)),
        ("Path", tag("code", str(agent.path))),
        ("Canonical", tag("code", agent.canonical)),
        ("Aliases", ", ".join(agent.aliases)),
        ("Branch", agent.birth_branch),
        ("Project", agent.project_root),
        ("Folder", agent.working_dir if agent.working_dir != agent.project_root else None),
        ("Role", agent.tool_role),
        ("Open flights", agent.open_flights),
        ("Unread", agent.unread),
        ("Sessions", None if agent.is_remote else join(*sessions) if sessions else "none"),
        ("Notes", join(*(tag("div", one) for one in agent.notes)) if agent.notes else None),
        ("In the terminal", None if agent.is_remote else show_command(f"scout open {agent.address}")),
    )
    return build_panel("About", show_facts(facts))


def _show_elsewhere(agent: AgentDetail) -> Html:
    """Return what can be done only on the agent's own node."""
    commands = [
        tag("p", show_command(f"scout {words} {agent.canonical}"))
        for words in ("open", "session tail", "interrupt", "agent config", "agent retire")
    ]
    words = f"Its sessions, settings and programs are on {agent.node}. Run these there:"
    return build_panel(f"On {agent.node}", tag("p", words), commands, ident="elsewhere")


def _show_settings(agent: AgentDetail) -> Html:
    config = agent.config
    values = {"description": config.description, "harness": config.harness, "model": config.model}
    form = show_settings_form(agent.id, values, config.wake_policy, str(config.permission_profile))
    return build_panel("Settings", form)


def show_settings_form(
    agent_id: str,
    values: Mapping[str, str | None],
    policy: WakePolicy = WakePolicy.ON_DEMAND,
    profile: str = "",
) -> Html:
    """Return the form of an agent's settings."""
    policies = [tag("option", one.replace("_", " "), value=one, selected=one == policy) for one in WakePolicy]
    fields = [
        _build_field(name.capitalize(), f"config.{name}", values.get(name))
        for name in ("description", "harness", "model")
    ]
    foot = tag(
        "div",
        tag("button", "Save", type="submit", cls="button"),
        tag("span", profile, cls="quiet"),
        cls="box-foot",
    )
    return tag(
        "form",
        fields,
        tag("label", "Wake policy", tag("select", policies, name="config.wakePolicy")),
        foot,
        cls="settings-form",
        data_form="agent.config",
        data_parameters=json.dumps({"address": agent_id}),
        data_done="Saved.",
    )


def _build_field(label: str, name: str, value: str | None) -> Html:
    return tag("label", label, tag("input", name=name, value=value or "", cls="input", autocomplete="off"))


def _show_work(items: tuple[WorkView, ...]) -> Html | None:
    if not items:
        return None
    columns = (Column("State", "c-state"), Column("Next move", "c-agent"), Column("Work", "c-what"))
    rows = [
        (
            one.id,
            f"/work/{one.id}",
            (
                show_state(one.state),
                show_address(one.next_move_address) if one.next_move_address else "",
                one.title,
            ),
        )
        for one in items
    ]
    return build_panel("Open work", build_list("online", "Open work", columns, rows), cls="wide")
