"""Now: what needs you, what runs, what finished since you looked, and problems of this machine."""

from collections.abc import Sequence

from scout.policy.machine import MachineProblem
from scout.protocol.agents import AgentView
from scout.protocol.overview import Now, ShowNow
from scout.web.html import Html, join, tag
from scout.web.layout import PageBody
from scout.web.parts import (
    Column,
    build_button,
    build_list,
    build_panel,
    show_address,
    show_command,
    show_empty,
    show_problem,
    show_state,
)
from scout.web.views.flights import list_flights
from scout.web.views.items import show_item
from scout.web.views.request import PageRequest

_FAMILIES = ("collab.attention", "collab.flight", "collab.agent", "collab.node", "collab.session")


async def show_now(request: PageRequest) -> PageBody:
    """Return the summary of this moment."""
    now = await request.scout.call(ShowNow(at=request.at))
    seen = build_button("Mark as seen", "now.seen", {"at": str(now.at)}, done="Marked as seen.")
    main = join(_show_needs(now), _show_running(now), _show_finished(now, seen), _show_online(now))
    body = join(_show_problems(now.problems), tag("div", main, cls="columns now"))
    return PageBody("Now", body, _FAMILIES, moment=now.moment or None)


def _show_problems(problems: Sequence[MachineProblem]) -> Html | None:
    """Return what is wrong with this machine, and hints behind a fold; nothing on a sound machine."""
    wrong = [show_problem(one) for one in problems if not one.hint]
    hints = [show_problem(one) for one in problems if one.hint]
    if not problems:
        return None
    words = f"{len(hints)} hint{'' if len(hints) == 1 else 's'} about this machine"
    fold = tag("details", tag("summary", words), hints, cls="hints", data_key="hints") if hints else None
    note = show_command("scout doctor")
    shown = build_panel("This machine", *wrong, note=note, ident="machine", cls="problems") if wrong else None
    return join(shown, fold)


def _show_needs(now: Now) -> Html:
    if not now.needs_me:
        body = show_empty("Nothing needs you.", "Approvals and questions of agents appear here.")
    else:
        body = tag(
            "div",
            [show_item(item, past=bool(now.moment)) for item in now.needs_me[:5]],
            data_list="needs",
            data_keep=True,
        )
    total = sum(one.open for one in now.needs_by_agent)
    note = tag("a", f"All {total}", href="/inbox") if total else None
    return build_panel("Needs you", body, note=note, cls="wide")


def _show_running(now: Now) -> Html:
    empty = show_empty(
        "Nothing is running.", "Ask an agent, here with c or in a terminal:", "scout ask @NAME 'Review this.'"
    )
    body = list_flights("running", "Open flights", now.open, empty=empty)
    return build_panel("Working", body, note=tag("a", "All flights", href="/flights"), cls="wide")


def _show_finished(now: Now, seen: Html) -> Html:
    empty = show_empty("Nothing has finished since you looked.", "Results of your asks appear here.")
    more = f"{now.finished_count} since you looked" if now.finished_count else None
    note = join(tag("span", more, cls="quiet") if more else None, seen if now.finished else None)
    body = list_flights("finished", "Finished flights", now.finished, empty=empty)
    return build_panel("Finished", body, note=note, cls="wide")


def _show_online(now: Now) -> Html:
    columns = (Column("State", "c-state"), Column("Agent", "c-agent"), Column("Project", "c-what"))
    rows = [(one.id, f"/agents/{one.id}", _list_cells(one)) for one in now.online]
    empty = show_empty(
        "No agent is online.", "Register one in its project:", "scout agent register NAME --project ."
    )
    body = build_list("online", "Agents online", columns, rows, empty=empty)
    return build_panel("Online", body, note=tag("a", f"All {now.agents} agents", href="/agents"), cls="wide")


def _list_cells(agent: AgentView) -> tuple[Html, Html, str]:
    return show_state(agent.status, agent.status), show_address(agent.address), agent.project_root or ""
