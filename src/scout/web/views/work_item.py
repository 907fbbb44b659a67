"""One work item: what it is, whose move it is, the moves, its relations, and its history from the log."""

from scout.protocol.work import GetWork, WorkView
from scout.web.html import Html, join, tag
from scout.web.layout import PageBody
from scout.web.parts import (
    Column,
    build_list,
    build_panel,
    cut,
    link_conversation,
    quote_text,
    shorten,
    show_address,
    show_command,
    show_facts,
    show_state,
    show_time,
)
from scout.web.views.moves import build_more_moves, build_moves
from scout.web.views.request import PageRequest
from scout.web.views.work import describe_wait

_FAMILIES = ("collab.work_item",)
_STEPS = (
    Column("When", "c-state"),
    Column("Move", "c-agent"),
    Column("By", "c-agent"),
    Column("State", "c-state"),
    Column("Why", "c-why"),
)


async def show_work_item(request: PageRequest) -> PageBody:
    """Return one item."""
    item = await request.scout.call(GetWork(work_item_id=request.segments[0], at=request.at))
    moves = tag(
        "div",
        build_moves(item),
        build_more_moves(item),
        cls="card-foot card item-moves",
        data_key=item.id,
        data_page_keys=True,
        tabindex=-1,
        role="group",
        aria_label="Moves",
    )
    main = join(
        build_panel("What", _show_what(item), cls="two-thirds"),
        build_panel("Facts", _show_facts(item), cls="third"),
        build_panel("History", _show_history(item), cls="wide"),
    )
    heading = tag("span", cut(item.title, 200))
    shown = join(None if item.moment else moves, tag("div", main, cls="columns"))
    return PageBody(f"Work: {cut(item.title, 60)}", shown, _FAMILIES, heading, moment=item.moment or None)


def _show_what(item: WorkView) -> Html:
    said = item.progress.summary
    return tag(
        "div",
        quote_text(item.title) if len(item.title) > 200 else None,
        quote_text(item.description) if item.description else tag("p", "No description.", cls="quiet"),
        join(tag("h3", "Progress"), quote_text(said, "said")) if said else None,
        join(tag("h3", "Reason"), quote_text(item.reason, "said")) if item.reason else None,
        [tag("p", note, cls="warning") for note in item.notes],
    )


def _show_facts(item: WorkView) -> Html:
    percent = f"{item.progress.percent:.0f} %" if item.progress.percent is not None else None
    facts = (
        ("State", show_state(item.state)),
        ("Owner", show_address(item.owner_address)),
        ("Next move", show_address(item.next_move_address) if item.next_move_address else None),
        ("Asked for by", show_address(item.requester_address)),
        ("Waiting", describe_wait(item) or None),
        ("Acceptance", item.acceptance),
        ("Priority", item.priority),
        ("Progress", percent),
        ("Labels", ", ".join(item.labels) or None),
        ("Due", show_time(item.due_at, ago=False) if item.due_at else None),
        ("Created", show_time(item.created_at, ago=False)),
        ("Conversation", link_conversation(item.conversation_id, "Open") if item.conversation_id else None),
        ("Related", _list_relations(item)),
        ("Terminal", show_command(f"scout work show {item.id}")),
    )
    return tag("div", show_facts(facts), data_key=item.id)


def _list_relations(item: WorkView) -> Html | None:
    words = [("", one) for one in item.relations] + [("is related by: ", one) for one in item.related_by]
    if not words:
        return None
    return tag(
        "ul",
        [
            tag(
                "li",
                f"{before}{one.kind} ",
                tag("a", shorten(one.work_item_id), href=f"/work/{one.work_item_id}"),
            )
            for before, one in words
        ],
        cls="card-facts",
    )


def _show_history(item: WorkView) -> Html:
    rows = [
        (
            f"step {step.seq}",
            None,
            (
                show_time(step.at, ago=False),
                step.move.replace("_", " "),
                show_address(step.by),
                show_state(step.state, step.state),
                tag("span", cut(step.reason, 200), title=cut(step.reason, 500) or None),
            ),
        )
        for step in reversed(item.steps)
    ]
    return build_list("history", "History, newest first", _STEPS, rows)
