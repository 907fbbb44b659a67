"""Schedules: asks that are repeated at set times; when each runs next, and how the last run ended."""

from collections.abc import Iterable

from scout.model.people.schedule import ScheduleState
from scout.protocol.people.schedules import (
    GetSchedule,
    LastRun,
    ListSchedules,
    ReadScheduleLog,
    RunView,
    ScheduleView,
)
from scout.web.html import Child, Html, join, tag
from scout.web.layout import PageBody
from scout.web.parts import (
    Column,
    build_button,
    build_list,
    build_pager,
    build_panel,
    cut,
    link_flight,
    quote_text,
    show_address,
    show_command,
    show_empty,
    show_facts,
    show_state,
    show_time,
)
from scout.web.views.request import PageRequest

_FAMILIES = ("collab.schedule", "collab.flight")
_COLUMNS = (
    Column("State", "c-state"),
    Column("When", "c-what"),
    Column("Asks", "c-wide"),
    Column("What", "c-wide"),
    Column("Next run", "c-when"),
    Column("Last run", "c-wide"),
    Column("Actions", "c-act"),
)
_RUNS = (
    Column("Outcome", "c-state"),
    Column("For", "c-wide"),
    Column("Result", "c-what"),
    Column("When", "c-when"),
)


async def show_schedules(request: PageRequest) -> PageBody:
    """Return the schedules, with `all` also the removed ones."""
    every = request.get_flag("all")
    found = await request.scout.call(
        ListSchedules(all=every, limit=100, cursor=request.query.get("cursor") or None)
    )
    rows = [(one.id, None, _list_cells(one)) for one in found.items]
    empty = show_empty(
        "Nothing is scheduled.",
        "Repeat an ask at set times, with the form above or in a terminal:",
        "scout cron add '0 9 * * 1-5' 'Summarise what changed since yesterday.' --to @NAME",
    )
    listed = build_list("schedules", "Schedules", _COLUMNS, rows, empty=empty)
    pager = build_pager("/schedules", {"all": "1"} if every else {}, found.next)
    switch = tag(
        "a",
        "Without removed" if every else "Removed too",
        cls="button",
        href="/schedules" + ("" if every else "?all=1"),
    )
    main = join(_build_new(), build_panel("Schedules", listed, pager, ident="list", cls="wide"))
    return PageBody("Schedules", main, _FAMILIES, actions=switch)


def _build_new() -> Html:
    fields = (
        ("What to ask", "body", "Summarise what changed since yesterday."),
        ("When", "cron", "0 9 * * 1-5"),
        ("Agent", "to", "@NAME"),
        ("Time zone", "timeZone", "this machine's"),
    )
    inputs = [
        tag(
            "label",
            words,
            tag(
                "input",
                name=name,
                cls="input",
                placeholder=sample,
                required=name != "timeZone",
                autocomplete="off",
                data_draft=f"schedule {name}",
            ),
        )
        for words, name, sample in fields
    ]
    button = tag("button", "Create", type="submit", cls="button primary")
    form = tag("form", inputs, button, cls="filters", data_form="cron.add", data_done="Scheduled.")
    summary = tag("summary", "New schedule", cls="button", data_key_press="+", aria_keyshortcuts="+")
    new = tag(
        "details", summary, form, cls="new-record", data_focus=True, data_page_keys=True, data_key="new"
    )
    return tag("div", new, cls="toolbar")


def _list_cells(one: ScheduleView) -> tuple[Child, ...]:
    when = tag(
        "a", one.words, cls="main-link", href=f"/schedules/{one.id}", title=f"{one.cron} {one.time_zone}"
    )
    return (
        show_state(one.state),
        when,
        show_address(one.target_address),
        cut(one.body, 120),
        show_time(one.next_at) if one.state is ScheduleState.ACTIVE else "",
        _show_last(one.last),
        build_schedule_moves(one),
    )


def _show_last(last: LastRun | None) -> Child:
    if last is None:
        return tag("span", "not run yet", cls="quiet")
    return link_flight(last.flight_id, show_state(last.state, last.state))


def build_schedule_moves(one: ScheduleView) -> list[Html]:
    """Return the buttons of a schedule: run it now, pause or resume it."""
    if one.state is ScheduleState.ENDED:
        return []
    given = {"scheduleId": one.id}
    run = build_button("Run now", "cron.run", given, key="s", done="Started.", name=f"Run now: {one.words}")
    if one.state is ScheduleState.ACTIVE:
        other = build_button(
            "Pause", "cron.pause", given, key="p", done="Paused.", name=f"Pause: {one.words}"
        )
    else:
        other = build_button(
            "Resume", "cron.resume", given, key="p", done="Resumed.", name=f"Resume: {one.words}"
        )
    return [run, other]


# -- one schedule --------------------------------------------------------------------------------------


async def show_schedule(request: PageRequest) -> PageBody:
    """Return one schedule: its next five times, and its runs."""
    one = await request.scout.call(GetSchedule(schedule_id=request.segments[0]))
    runs = await request.scout.call(
        ReadScheduleLog(schedule_id=one.id, limit=50, cursor=request.query.get("cursor") or None)
    )
    end = build_button(
        "Remove",
        "cron.remove",
        {"scheduleId": one.id},
        cls="danger",
        confirm=f"End this schedule for good? {one.words}",
        done="Removed.",
    )
    moves = build_schedule_moves(one)
    actions = tag("div", moves, end if moves else None, cls="actions", data_page_keys=True)
    times = [
        tag("li", f"{_show_clock(run.in_zone)} {one.time_zone}, ", show_time(run.at)) for run in one.upcoming
    ]
    coming = tag("ol", times, cls="times") if times else tag("p", "No run is planned.", cls="quiet")
    log = build_list("runs", "Runs, newest first", _RUNS, _list_runs(runs.items), empty=_show_no_runs(one))
    main = tag(
        "div",
        build_panel(
            "What", quote_text(one.body), [tag("p", note, cls="warning") for note in one.notes], cls="wide"
        ),
        build_panel("Facts", _show_facts(one)),
        build_panel("Next runs", coming),
        build_panel("Runs", log, build_pager(f"/schedules/{one.id}", {}, runs.next), cls="wide"),
        cls="columns",
    )
    return PageBody(f"Schedule: {cut(one.words, 60)}", main, _FAMILIES, tag("span", one.words), actions)


def _show_clock(in_zone: str) -> str:
    """Return a time as clocks in its zone show it, to the minute."""
    return in_zone[:16].replace("T", " ")


def _show_facts(one: ScheduleView) -> Html:
    facts = (
        ("State", show_state(one.state)),
        ("Asks", show_address(one.target_address)),
        ("Through", show_address(one.address)),
        ("Cron", f"{one.cron} ({one.time_zone})"),
        ("Missed runs", one.missed),
        ("Overlapping runs", one.overlap),
        ("Answers go to", one.channel),
        ("Last run", _show_last(one.last)),
        ("Runs", f"{one.fired} started, {one.skipped} skipped, {one.failed} failed"),
        ("Reason", one.reason),
    )
    return tag("div", show_facts(facts), data_key=one.id)


def _show_no_runs(one: ScheduleView) -> Html:
    return show_empty("It has not run yet.", join("Run it now: ", show_command(f"scout cron run {one.id}")))


def _list_runs(runs: Iterable[RunView]) -> list[tuple[str, str | None, tuple[Child, ...]]]:
    return [
        (
            f"run {run.seq}",
            f"/flights/{run.flight_id}" if run.flight_id else None,
            (
                show_state(run.state or run.outcome, run.state or run.outcome),
                _show_clock(run.in_zone) if run.in_zone else "by hand",
                link_flight(run.flight_id, cut(run.output or run.reason, 160) or None)
                if run.flight_id
                else cut(run.reason, 160),
                show_time(run.at),
            ),
        )
        for run in runs
    ]
