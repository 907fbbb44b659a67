"""Work: the items on a board by state, each with its owner, its next move and the moves it allows."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from scout.model.work_item import Priority, WorkState
from scout.protocol.work import ListWork, WorkView
from scout.web.drawing import Part, draw_progress, draw_strip
from scout.web.html import Child, Html, join, tag
from scout.web.layout import PageBody
from scout.web.parts import build_pager, cut, shorten, show_address, show_empty, show_time
from scout.web.views.moves import build_moves
from scout.web.views.request import PageRequest

_FAMILIES = ("collab.work_item",)
_SHOWN = 100
_SETTLED = 20
_COLUMNS = {
    WorkState.OPEN: ("Open", "quiet"),
    WorkState.WORKING: ("Working", "accent"),
    WorkState.WAITING: ("Waiting", "warn"),
    WorkState.REVIEW: ("Review", "review"),
    WorkState.DONE: ("Done", "good"),
    WorkState.CANCELLED: ("Cancelled", "rest"),
}
_MARKED = (Priority.HIGH, Priority.URGENT)


async def show_work(request: PageRequest) -> PageBody:
    """Return the board: unsettled items by state, and those that were done last."""
    owner, label = request.query.get("owner") or None, request.query.get("label") or None
    owed = request.get_flag("owed")
    cursor = request.query.get("cursor") or None
    found = await request.scout.call(
        ListWork(owner_id=owner, label=label, owed=owed, limit=_SHOWN, cursor=cursor, at=request.at)
    )
    columns = {state: [one for one in found.items if one.state is state] for state in list(_COLUMNS)[:4]}
    settled = [WorkState.DONE, *([WorkState.CANCELLED] if request.get_flag("all") else [])]
    for state in settled if not owed else ():
        page = await request.scout.call(
            ListWork(owner_id=owner, label=label, state=state, limit=_SETTLED, at=request.at)
        )
        columns[state] = list(page.items)
    kept = {
        name: request.query[name]
        for name in ("owner", "label", "owed", "all", "at")
        if request.query.get(name)
    }
    pager = build_pager("/work", kept, found.next)
    main = join(
        tag("div", _build_filters(request), build_new(), cls="toolbar"),
        show_board(columns, bool(kept)),
        pager,
    )
    return PageBody("Work", main, _FAMILIES, actions=_build_switches(request), moment=found.moment or None)


def _build_switches(request: PageRequest) -> list[Html]:
    owed, closed = request.get_flag("owed"), request.get_flag("all")
    return [
        tag(
            "a",
            "All owners" if owed else "My next moves",
            cls="button",
            href="/work" + ("" if owed else "?owed=1"),
        ),
        tag(
            "a",
            "Without cancelled" if closed else "Cancelled too",
            cls="button",
            href="/work" + ("" if closed else "?all=1"),
        ),
    ]


def _build_filters(request: PageRequest) -> Html:
    """Return the filters. They are a form that asks for the same address, so they work without scripts."""
    fields = [
        tag(
            "label",
            words,
            tag(
                "input",
                name=name,
                type="search",
                cls="input",
                value=request.query.get(name, ""),
                placeholder=sample,
                autocomplete="off",
            ),
        )
        for name, words, sample in (("owner", "Owner", "@NAME"), ("label", "Label", "release"))
    ]
    return tag(
        "form", fields, tag("button", "Filter", type="submit", cls="button"), cls="filters", method="get"
    )


def build_new() -> Html:
    """Return the form of a new work item."""
    options = [
        tag("option", one, value=one, selected=one is Priority.NORMAL) for one in reversed(list(Priority))
    ]
    form = tag(
        "form",
        tag(
            "label",
            "What to do",
            tag("input", name="title", cls="input", required=True, data_draft="work title"),
        ),
        tag(
            "label",
            "Owner",
            tag("input", name="ownerId", cls="input", placeholder="you", data_draft="work owner"),
        ),
        tag("label", "Priority", tag("select", options, name="priority")),
        tag("button", "Create", type="submit", cls="button primary"),
        cls="filters",
        data_form="work.create",
        data_done="Created.",
    )
    summary = tag("summary", "New work item", cls="button", data_key_press="+", aria_keyshortcuts="+")
    return tag(
        "details", summary, form, cls="new-record", data_focus=True, data_page_keys=True, data_key="new-work"
    )


def show_board(columns: Mapping[WorkState, Sequence[WorkView]], filtered: bool) -> Html:
    """Return the lanes with their cards, or what to do first."""
    if not any(columns.values()):
        if filtered:
            return show_empty("No work item matches.", tag("a", "Show all work items", href="/work"))
        return show_empty(
            "There are no work items.",
            "A work item is owned work with one next move. Create the first one:",
            "scout work create 'Write the release notes' --owner @NAME",
        )
    words = {state: f"{_COLUMNS[state][0]}: {len(items)}" for state, items in columns.items()}
    parts = [Part(len(items), _COLUMNS[state][1], words[state]) for state, items in columns.items()]
    strip = draw_strip("Work items by state. " + ", ".join(words.values()), parts)
    board = [_show_column(state, items) for state, items in columns.items()]
    return join(strip, tag("div", board, cls="board"))


def _show_column(state: WorkState, items: Sequence[WorkView]) -> Html:
    title, colour = _COLUMNS[state]
    ident = f"work-{state}"
    dot = tag("span", cls=f"dot dot-{colour}")
    head = tag("h2", dot, title, tag("span", len(items), cls="count"), id=ident)
    cards = [show_card(item) for item in items]
    nothing = None if cards else tag("p", "Nothing here.", cls="quiet nothing")
    return tag(
        "section",
        head,
        tag("div", cards, nothing, data_list=ident, cls="cards"),
        cls="lane",
        data_key=ident,
        aria_labelledby=ident,
    )


def show_card(item: WorkView) -> Html:
    """Return one item as a card with the moves that it allows."""
    title = tag("a", cut(item.title, 160), cls="card-title", href=f"/work/{item.id}")
    moves = build_moves(item)
    return tag(
        "article",
        tag("header", _show_marks(item), cls="card-head"),
        title,
        _show_people(item),
        _show_progress(item),
        tag("p", cut(item.reason, 160), cls="quiet", data_field="reason") if item.reason else None,
        tag("footer", moves, cls="card-foot") if moves else None,
        cls="card",
        data_key=item.id,
        data_href=f"/work/{item.id}",
        data_priority=item.priority,
        tabindex=-1,
        aria_label=item.title[:200],
    )


def _show_marks(item: WorkView) -> list[Child]:
    return [
        tag("span", shorten(item.id), cls="quiet"),
        tag("span", item.priority, cls="mark", data_mark=item.priority) if item.priority in _MARKED else None,
        [tag("a", one, cls="mark", href=f"/work?label={quote(one)}") for one in item.labels[:4]],
        show_time(item.updated_at),
    ]


def _show_people(item: WorkView) -> Html:
    owner = join("Owner ", show_address(item.owner_address))
    following = None
    if item.next_move_address and item.next_move_address != item.owner_address:
        following = join("Next move ", show_address(item.next_move_address))
    due = join("Due ", show_time(item.due_at)) if item.due_at and item.settled_at is None else None
    lines = [owner, following, due, describe_wait(item)]
    return tag("ul", [tag("li", one) for one in lines if one], cls="card-facts")


def describe_wait(item: WorkView) -> str:
    """Return what an item waits for, in words; empty if it does not wait."""
    on = item.waiting_on
    if on is None:
        return ""
    words = f"Waits for {on.kind.replace('_', ' ')} {cut(on.ref or '', 80)}".rstrip()
    return f"{words}, until {str(on.until)[:16].replace('T', ' ')} UTC" if on.until else words


def _show_progress(item: WorkView) -> Html | None:
    progress = item.progress
    if progress.percent is None and not progress.summary:
        return None
    steps = f"{progress.done} of {progress.total} steps" if progress.total else ""
    percent = f"{progress.percent:.0f} %" if progress.percent is not None else ""
    words = ", ".join(part for part in (percent, steps) if part)
    bar = draw_progress(progress.percent, f"Progress: {words}") if progress.percent is not None else None
    said = ": ".join(part for part in (words, cut(progress.summary, 120)) if part)
    return tag("div", bar, tag("p", said, cls="quiet"), cls="progress")
