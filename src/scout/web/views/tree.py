"""Tree: the agents that share a repository, drawn by birth branch, with their work trees and reservations."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from scout.protocol.reservations import ListReservations, ReservationView
from scout.protocol.tree.view import AgentTree, ShowTree, TreeAgent, TreeFacts
from scout.web.html import Child, Html, join, tag
from scout.web.layout import PageBody
from scout.web.parts import (
    Column,
    build_list,
    build_panel,
    cut,
    link_flight,
    show_address,
    show_command,
    show_empty,
    show_state,
    show_time,
)
from scout.web.tree_picture import draw_tree
from scout.web.views.request import PageRequest

_FAMILIES = ("collab.agent", "collab.reservation", "collab.flight", "collab.work_item", "collab.session")
_DRAWN = 150
_LISTED = 500
_COLUMNS = (
    Column("State", "c-state"),
    Column("Agent", "c-agent"),
    Column("Branch", "c-wide"),
    Column("Work tree", "c-what"),
    Column("Works on", "c-wide"),
    Column("Actions", "c-act"),
)
_HELD = (
    Column("Agent", "c-agent"),
    Column("Files", "c-what"),
    Column("Why", "c-why"),
    Column("Until", "c-when"),
)


async def show_tree(request: PageRequest) -> PageBody:
    """Return the trees of all projects, or of the one that is asked for."""
    project = request.query.get("project") or None
    retired = request.get_flag("retired")
    found = await request.scout.call(
        ShowTree(all=project is None, project_root=project, retired=retired, related=True, at=request.at)
    )
    moment = found.moment or None
    switch = tag(
        "a",
        "Without retired" if retired else "Retired too",
        cls="button",
        href="/tree" + ("" if retired else "?retired=1"),
    )
    if not found.agents:
        return PageBody("Tree", _show_nothing(), _FAMILIES, actions=switch, moment=moment)
    held = () if moment else (await request.scout.call(ListReservations(limit=100))).items
    reserved = _show_unknown_past() if moment else _list_held(held)
    panels = (
        build_panel("Agents", _draw(found), cls="wide"),
        build_panel("Work trees", _list_agents(found, _count_held(held)), ident="trees", cls="wide"),
        build_panel("Reserved files", reserved, ident="held", cls="wide"),
    )
    main = join(
        _build_projects(found.projects, project), tag("div", *panels, _show_orphans(found), cls="columns")
    )
    return PageBody("Tree", main, _FAMILIES, actions=switch, moment=moment)


def _show_unknown_past() -> Html:
    return show_empty(
        "Not known for the past.", "What work trees held, and which files were reserved, is not kept."
    )


def _show_nothing() -> Html:
    return show_empty(
        "No agent has a work tree yet.",
        "Spawn agents in a git repository: each gets a branch and a work tree, and appears here.",
        "scout spawn NAME --task 'Fix the flaky test.'",
    )


def _build_projects(projects: Sequence[str], chosen: str | None) -> Html | None:
    if len(projects) < 2 and chosen is None:
        return None
    links = [
        tag(
            "a",
            one.rsplit("/", 1)[-1] or one,
            title=one,
            href=f"/tree?project={quote(one, safe='')}",
            aria_current="true" if one == chosen else None,
        )
        for one in projects[:30]
    ]
    every = tag("a", "All projects", href="/tree", aria_current="true" if chosen is None else None)
    return tag("nav", every, links, cls="tabs", aria_label="Projects")


def _draw(found: AgentTree) -> Html:
    more = len(found.agents) - _DRAWN
    words = f"{more} more agents are listed below." if more > 0 else ""
    unread = f"{found.unread} work trees could not be read in time." if found.unread else ""
    said = " ".join(part for part in (words, unread, *found.notes) if part)
    picture = tag(
        "div",
        draw_tree(found.agents[:_DRAWN]),
        cls="tree-box",
        tabindex=0,
        role="region",
        aria_label="Agent tree",
    )
    return join(picture, tag("p", said, cls="quiet") if said else None)


# -- the same as a list --------------------------------------------------------------------------------


def _list_agents(found: AgentTree, held: Mapping[str, int]) -> Html:
    past = bool(found.moment)
    rows = [
        (one.id, f"/tree/{_quote(one)}", _list_cells(one, held.get(one.id, 0), past=past))
        for one in found.agents[:_LISTED]
    ]
    return build_list("tree", "Agents and their work trees", _COLUMNS, rows)


def _quote(agent: TreeAgent) -> str:
    return quote(agent.address, safe="@")


def _list_cells(agent: TreeAgent, held: int, *, past: bool) -> tuple[Child, ...]:
    name = tag(
        "span", show_address(agent.address), cls=f"indent-{min(agent.depth, 5)}" if agent.depth else None
    )
    facts = "not known" if past and agent.birth_branch else describe_facts(agent.facts)
    reserved = f"{facts}, {held} reserved" if held else facts
    finish = tag(
        "a", "Finish…", cls="button", href=f"/tree/{_quote(agent)}", aria_label=f"Finish {agent.address}"
    )
    spawned = agent.parent_id is not None and agent.birth_branch is not None
    return (
        _show_status(agent),
        name,
        tag("span", agent.birth_branch or "", title=agent.birth_branch),
        tag("span", reserved, title=agent.working_dir),
        show_current(agent),
        finish if spawned and agent.lifecycle != "retired" and not past else None,
    )


def _show_status(agent: TreeAgent) -> Html:
    word = "retired" if agent.lifecycle == "retired" else agent.status
    return show_state(word, word)


def show_current(agent: TreeAgent) -> Html | None:
    """Return the work of an agent, with a link to it."""
    work = agent.work
    if work is None:
        return None
    title = f"{cut(work.title, 100)} ({work.state})"
    if agent.more_work:
        title = f"{title}, {agent.more_work} more"
    if work.id.startswith("flt_"):
        return link_flight(work.id, title)
    return tag("a", title, href=f"/work/{quote(work.id)}")


def describe_facts(facts: TreeFacts | None) -> str:
    """Return the state of a work tree in words."""
    if facts is None:
        return "none of its own"
    if facts.problem:
        return cut(facts.problem, 100)
    words = [
        f"{facts.ahead} ahead" if facts.ahead else "",
        f"{facts.behind} behind" if facts.behind else "",
        f"{facts.uncommitted} uncommitted" if facts.uncommitted else "",
        f"{facts.operation} in progress" if facts.operation else "",
    ]
    return ", ".join(word for word in words if word) or "clean"


# -- reservations and folders --------------------------------------------------------------------------


def _count_held(held: Sequence[ReservationView]) -> dict[str, int]:
    counts = dict[str, int]()
    for one in held:
        counts[one.agent_id] = counts.get(one.agent_id, 0) + len(one.globs)
    return counts


def _list_held(held: Sequence[ReservationView]) -> Html:
    rows = [
        (
            one.id,
            None,
            (
                show_address(one.address),
                tag("span", ", ".join(one.globs), title=f"in {one.root}"),
                one.why if one.exclusive else f"shared. {one.why}",
                show_time(one.expires_at),
            ),
        )
        for one in held
    ]
    empty = show_empty(
        "No files are reserved.",
        "An agent reserves what it is about to edit, so that others leave it alone:",
        "scout reserve add 'src/**' --why 'moving the parser'",
    )
    return build_list("held", "Reserved files", _HELD, rows, empty=empty)


def _show_orphans(found: AgentTree) -> Html | None:
    if not found.orphans:
        return None
    lines = [
        tag("li", f"{one.folder}: {cut(one.reason, 200)} ", show_command("scout tree --scan"))
        for one in found.orphans
    ]
    return build_panel(
        "Folders that are not trusted", tag("ul", lines, cls="card-facts"), ident="orphans", cls="wide"
    )
