"""One agent of the tree: its work tree, and what merging, keeping or discarding its work would do."""

import json
from http import HTTPStatus

from scout.base.refusal import Refused, get_status
from scout.policy.tree.finish import FinishChoice
from scout.protocol.tree.finish import FinishAgent, FinishOption, FinishReport
from scout.protocol.tree.view import ShowTree, TreeAgent
from scout.web.html import Child, Html, join, tag
from scout.web.layout import PageBody
from scout.web.parts import (
    build_button,
    build_panel,
    cut,
    quote_text,
    show_address,
    show_command,
    show_empty,
    show_facts,
    show_state,
)
from scout.web.views.request import PageRequest
from scout.web.views.tree import describe_facts, show_current

_FAMILIES = ("collab.agent", "collab.flight", "collab.work_item", "collab.reservation")
_LABELS = {FinishChoice.MERGE: "Merge", FinishChoice.KEEP: "Keep", FinishChoice.DISCARD: "Discard"}


async def show_finish(request: PageRequest) -> PageBody:
    """Return an agent's work tree and, if it was spawned, the preview of a finish. Nothing is changed."""
    address = request.segments[0]
    try:
        found = await request.scout.call(ShowTree(address=address, retired=True))
    except Refused as refused:
        if get_status(type(refused.diagnostic)) != HTTPStatus.GONE:
            raise
        return _show_gone(address)
    agent = found.agents[0]
    children = [tag("li", show_address(one.address)) for one in found.agents[1:20]]
    panels: list[Child] = [build_panel("Work tree", _show_agent(agent), cls="wide")]
    try:
        report = await request.scout.call(FinishAgent(address=address))
        panels.append(build_panel("Finish", _show_report(report), cls="wide"))
    except Refused as refused:  # it was not spawned, or is retired: the work tree is still worth showing
        panels.append(build_panel("Finish", tag("p", refused.diagnostic.message, cls="quiet"), cls="wide"))
    below = build_panel("Below it", tag("ul", children, cls="card-facts"), cls="wide") if children else None
    main = tag("div", *panels, below, cls="columns")
    return PageBody(f"Tree: {agent.address}", main, _FAMILIES, tag("span", agent.address))


def _show_gone(address: str) -> PageBody:
    """Return what is left to say about an agent that was finished while the page was open."""
    body = show_empty(f"{cut(address, 100)} is retired.", tag("a", "Show the tree", href="/tree"))
    return PageBody("Tree: retired", body, _FAMILIES, tag("span", cut(address, 100)))


def _show_agent(agent: TreeAgent) -> Html:
    facts = agent.facts
    return show_facts(
        (
            ("State", show_state(agent.status, agent.status)),
            ("Agent", show_address(agent.address)),
            ("Branch", agent.birth_branch),
            ("Checked out", facts.branch if facts else None),
            ("Changes", describe_facts(facts)),
            ("Folder", agent.working_dir),
            ("Works on", show_current(agent)),
        )
    )


def _show_report(report: FinishReport) -> Html:
    lists = (
        ("Commits that are not merged", report.unmerged),
        ("Uncommitted files", report.uncommitted),
        ("Files in conflict", report.conflicts),
        ("Open flights", report.flights),
        ("Open work items", report.work),
        ("Agents below it", report.children),
    )
    shown = [
        join(tag("h3", f"{title}: {len(items)}"), quote_text("\n".join(items[:50])))
        for title, items in lists
        if items
    ]
    into = f"Into {report.into}. " if report.into else ""
    more = f"{report.more_uncommitted} more uncommitted files. " if report.more_uncommitted else ""
    said = f"{into}{more}{' '.join(report.notes)}".strip()
    options = [_show_option(report, one) for one in report.options]
    return tag("div", tag("p", said) if said else None, options, shown)


def _show_option(report: FinishReport, option: FinishOption) -> Html:
    """Return one choice: a button if it is possible now, or else why it is not."""
    body: Child
    if option.problem:
        body = tag("p", cut(option.problem, 400), cls="warning")
    elif option.choice is FinishChoice.DISCARD:
        body = _build_discard(report)
    else:
        body = build_button(
            _LABELS[option.choice],
            "finish",
            {"address": report.agent_id, str(option.choice): True},
            cls="primary" if option.choice is FinishChoice.MERGE else "",
            confirm=f"{_LABELS[option.choice]} the work of {report.address}? {option.does}",
            done="Finished.",
            name=f"{_LABELS[option.choice]} the work of {report.address}",
        )
    words = tag("p", tag("strong", f"{_LABELS[option.choice]}: "), option.does)
    return tag(
        "div", words, body, show_command(option.command), cls="option", data_key=f"option {option.choice}"
    )


def _build_discard(report: FinishReport) -> Html:
    given = json.dumps({"address": report.agent_id, "discard": True}, separators=(",", ":"))
    reason = tag(
        "input",
        name="reason",
        cls="input",
        required=True,
        autocomplete="off",
        placeholder="Why is it not needed?",
        aria_label="Why the work is discarded",
    )
    button = tag("button", "Discard", type="submit", cls="button danger")
    return tag(
        "form",
        reason,
        button,
        cls="inline-form",
        data_form="finish",
        data_parameters=given,
        data_done="Discarded.",
    )
