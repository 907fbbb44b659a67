"""Inbox: everything that needs a person, grouped by agent, highest risk first."""

from itertools import groupby
from urllib.parse import urlencode

from scout.protocol.attention import AttentionView, ListAttention
from scout.web.html import Html, join, tag
from scout.web.layout import PageBody
from scout.web.parts import build_pager, show_empty
from scout.web.views.items import show_item
from scout.web.views.request import PageRequest

_FAMILIES = ("collab.attention",)


async def show_inbox(request: PageRequest) -> PageBody:
    """Return the open items, or with `all` also the decided ones."""
    closed = request.get_flag("all")
    found = await request.scout.call(
        ListAttention(all=closed, limit=50, cursor=request.query.get("cursor") or None, at=request.at)
    )
    other = tag(
        "a",
        "Open items" if closed else "Decided too",
        cls="button",
        href=_write_link({} if closed else {"all": "1"}, request.at),
    )
    kept = {"all": "1"} if closed else {}
    pager = build_pager("/inbox", {**kept, **({"at": request.at} if request.at else {})}, found.next)
    if not found.items:
        main = show_empty("Your inbox is empty.", "Approvals and questions of agents appear here.")
    else:
        main = join(build_bulk(), *_group(found.items, past=bool(found.moment)), pager)
    return PageBody(
        "Inbox",
        tag("div", main, data_list="inbox", data_keep=True),
        _FAMILIES,
        actions=other,
        moment=found.moment or None,
    )


def _write_link(query: dict[str, str], at: str | None) -> str:
    kept = {**query, **({"at": at} if at else {})}
    return f"/inbox?{urlencode(kept)}" if kept else "/inbox"


def _group(items: tuple[AttentionView, ...], *, past: bool) -> list[Html]:
    """Return the items by agent. Agents keep the order of their first item: the highest risk is on top."""
    order = {item.agent_address: number for number, item in reversed([*enumerate(items)])}
    ordered = sorted(items, key=lambda item: order[item.agent_address])
    return [
        tag(
            "section",
            tag("h2", address or "Scout", cls="group-title"),
            [show_item(item, selectable=True, past=past) for item in group],
            cls="group",
            data_key=f"group {address}",
            data_list=f"group {address}",
            data_keep=True,
            aria_label=f"Items of {address or 'Scout'}",
        )
        for address, group in groupby(ordered, key=lambda item: item.agent_address)
    ]


def build_bulk(*, shown: bool = False) -> Html:
    """Return the bar that decides several items at once. The page shows it while some are selected."""
    buttons = [
        tag("button", label, type="button", cls=f"button {cls}", data_bulk=move)
        for label, move, cls in (
            ("Approve", "approve", "primary"),
            ("Deny", "deny", ""),
            ("Dismiss", "dismiss", ""),
        )
    ]
    count = tag("span", "", data_bulk_count=True)
    return tag(
        "div",
        count,
        buttons,
        cls="bulk",
        hidden=not shown,
        data_own=True,
        data_key="bulk",
        role="toolbar",
        aria_label="Selected items",
    )
