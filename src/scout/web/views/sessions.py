"""Sessions: everything that harnesses run on this machine, also what Scout does not know."""

from collections.abc import Iterable, Mapping

from scout.base.refusal import Refused, Remedy
from scout.model.session import ProcessLoad, SessionState
from scout.protocol.observation import HarnessObservation, ShowTopology, Sighting, TailSession
from scout.protocol.operations import build_command_line
from scout.protocol.scout import Scout
from scout.protocol.sessions import GetSession, ListedSession, ListSessions
from scout.web.drawing import show_amount
from scout.web.html import EMPTY, Child, Html, join, tag
from scout.web.layout import PageBody
from scout.web.parts import (
    Column,
    build_button,
    build_copy,
    build_list,
    build_pager,
    build_panel,
    cut,
    show_address,
    show_command,
    show_empty,
    show_state,
    show_time,
)
from scout.web.views.request import PageRequest

_FAMILIES = ("collab.session", "collab.endpoint")
_SHOWN = 100
_TOLD = 20  # sessions whose tokens and context are read
_COLUMNS = (
    Column("State", "c-state"),
    Column("Agent", "c-agent"),
    Column("Harness", "c-wide"),
    Column("Model", "c-wide"),
    Column("Folder", "c-wide"),
    Column("CPU", "c-number c-wide"),
    Column("Memory", "c-number"),
    Column("Tokens", "c-number c-wide"),
    Column("Idle", "c-when"),
    Column("Actions", "c-act"),
)
_UNKNOWN = (
    Column("State", "c-state"),
    Column("Harness", "c-agent"),
    Column("What", "c-what"),
    Column("Folder", "c-wide"),
    Column("CPU", "c-number c-wide"),
    Column("Memory", "c-number"),
    Column("Changed", "c-when"),
    Column("Actions", "c-act"),
)


async def show_sessions(request: PageRequest) -> PageBody:
    """Return the sessions that have not ended (`all`: also the ended ones), and those Scout does not know."""
    every = request.get_flag("all")
    found = await request.scout.call(
        ListSessions(live=not every, limit=_SHOWN, cursor=request.query.get("cursor") or None, at=request.at)
    )
    kept = {**({"all": "1"} if every else {}), **({"at": request.at} if request.at else {})}
    pager = build_pager("/sessions", kept, found.next)
    used = {} if request.at else await _read_use(request.scout, found.items)
    main = join(
        build_panel("Sessions of agents", _list_known(found.items, used), pager, ident="known", cls="wide"),
        build_panel("Not known to Scout", await _show_unknown(request, every), ident="unknown", cls="wide"),
    )
    switch = tag(
        "a",
        "Only running" if every else "Ended too",
        cls="button",
        href="/sessions" + ("" if every else "?all=1"),
    )
    return PageBody(
        "Sessions",
        tag("div", main, cls="columns"),
        _FAMILIES,
        actions=switch,
        moment=found.moment or None,
    )


async def _show_unknown(request: PageRequest, every: bool) -> Html:
    """Return what harnesses run that Scout does not know. That is seen, not stored: it has no past."""
    if request.at is not None:
        return show_empty(
            "Not known for the past.", "Programs outside Scout, and processor and memory, are seen only now."
        )
    seen = await request.scout.call(ShowTopology(live=not every, limit=20))
    return _list_unknown([one for one in seen.items if one.session_id is None], seen.harnesses)


async def _read_use(scout: Scout, sessions: Iterable[ListedSession]) -> dict[str, Html]:
    """Return the tokens of the newest live sessions, and how full their contexts are, where that is told."""
    live = [one for one in sessions if one.state is not SessionState.ENDED]
    return {one.id: await _read_tokens(scout, one.id) for one in live[:_TOLD]}


async def _read_tokens(scout: Scout, ident: str) -> Html:
    try:
        total = (await scout.call(GetSession(session_id=ident))).tokens.total_tokens
    except Refused:  # it has ended and is gone
        return EMPTY
    try:
        tail = await scout.call(TailSession(session_id=ident, limit=1))
    except Refused:  # its harness has no transcript, or the reader may not see it
        return show_tokens(total, None, None)
    return show_tokens(total, tail.context_tokens, tail.context_window)


def show_tokens(total: int, context: int | None, window: int | None) -> Html:
    """Return the tokens that a session used, and the share of its context that is full."""
    share = f"{100 * context / window:.0f} %" if context and window else ""
    words = " · ".join(part for part in (show_amount(total) if total else "", share) if part)
    if not words:
        return tag("span", "–", cls="quiet", title="the harness tells none")
    full = f", {context:,} of {window:,} in its context" if share else ""
    return tag("span", words, title=f"{total:,} tokens used{full}")


def _list_known(sessions: Iterable[ListedSession], used: Mapping[str, Html]) -> Html:
    rows = [(one.id, f"/sessions/{one.id}", _list_cells(one, used.get(one.id, EMPTY))) for one in sessions]
    empty = show_empty(
        "No session is running.",
        "A session starts when an agent is asked. You can also start one:",
        "scout session start --agent @NAME",
    )
    return build_list("sessions", "Sessions of agents", _COLUMNS, rows, empty=empty)


def _list_cells(one: ListedSession, tokens: Html) -> tuple[Child, ...]:
    shown = show_state(one.state, one.program_state or one.state)
    state = tag("a", shown, href=f"/sessions/{one.id}", cls="plain")
    ended = one.state is SessionState.ENDED
    stop = None if ended else build_stop(one.id, one.address)
    return (
        state,
        show_address(one.address),
        one.harness,
        one.model_observed or one.model_resolved or one.model_requested or "",
        tag("span", one.cwd or "", title=one.cwd),
        show_processor(one.load),
        show_memory(one.load),
        tokens,
        show_time(one.last_event_at or one.created_at),
        [None if ended else build_copy(f"scout open {one.id}"), stop],
    )


def build_stop(ident: str, address: str) -> Html:
    """Return the button that stops a session."""
    return build_button(
        "Stop",
        "session.stop",
        {"sessionId": ident},
        icon="stop",
        key="x",
        confirm=f"Stop the session of {address} and its processes? A flight running in it fails.",
        done="Stopped.",
        name=f"Stop the session of {address}",
    )


def show_processor(load: ProcessLoad | None) -> Html:
    """Return how much processor a session uses; the title says by how many processes."""
    if load is None:
        return tag("span", "–", cls="quiet", title="no process")
    words = "1 process" if load.processes == 1 else f"{load.processes} processes"
    return tag("span", f"{load.cpu_percent:.0f} %", title=f"{load.cpu_percent} % of one processor, {words}")


def show_memory(load: ProcessLoad | None) -> Html:
    if load is None:
        return tag("span", "–", cls="quiet", title="no process")
    return tag("span", f"{show_amount(load.memory_bytes)}B", title=f"{load.memory_bytes} bytes")


# -- what nobody remembers -----------------------------------------------------------------------------


def _list_unknown(seen: Iterable[Sighting], harnesses: Iterable[HarnessObservation]) -> Html:
    rows = [(f"seen {one.harness} {one.native_id}", None, _list_seen_cells(one)) for one in seen]
    empty = show_empty(
        "Every running session is known.",
        "Sessions that you started yourself, outside Scout, appear here. In a terminal:",
        "scout topology",
    )
    listed = build_list("unknown", "Sessions that Scout does not know", _UNKNOWN, rows, empty=empty)
    return join(listed, _list_problems(harnesses))


def _list_seen_cells(one: Sighting) -> tuple[Child, ...]:
    title = cut(one.title, 120) or one.native_id
    limits = f". {one.limits}" if one.limits else ""
    return (
        show_state("live" if one.live else "ended", one.state or ("running" if one.live else "ended")),
        one.harness if one.kind == "session" else f"{one.harness} {one.kind}",
        tag("span", title, title=f"{one.native_id} from {one.source}{limits}"),
        tag("span", one.cwd or "", title=one.cwd),
        show_processor(one.load),
        show_memory(one.load),
        show_time(one.updated_at),
        _build_attach(one.attach, title) if one.attach else EMPTY,
    )


def _build_attach(attach: Remedy, title: str) -> Html:
    command = build_command_line(attach)
    return build_button(
        "Attach",
        attach.operation,
        dict(attach.parameters),
        confirm=f"Make it a session of an agent? The same as: {command}",
        done="Attached.",
        name=f"Attach {title}",
    )


def _list_problems(harnesses: Iterable[HarnessObservation]) -> Html:
    """Return what could not be seen, and how many more there are."""
    lines = list[Html]()
    for one in harnesses:
        if one.problem:
            lines.append(tag("p", f"{one.harness}: {cut(one.problem, 300)}", cls="warning"))
        if one.found > one.shown:
            words = f"{one.found - one.shown} more of {one.harness}: "
            lines.append(tag("p", words, show_command(f"scout topology --harness {one.harness} --limit 200")))
    return tag("div", lines, cls="notes") if lines else EMPTY
