"""The components of the page. `/design` shows each of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from scout.base.refusal import PLACEHOLDER, Refused, Remedy
from scout.base.time import Time
from scout.policy.machine import MachineProblem
from scout.policy.sentences import add_node
from scout.protocol.operations import REQUESTS, build_command_line
from scout.web.html import EMPTY, Child, Element, Html, extend, join, lines, tag
from scout.web.icons import draw_icon

# Operations that change something: a button can call them.
_CHANGING = {one.operation: bool(one.route) and not one.route.startswith("GET ") for one in REQUESTS}


class Column(NamedTuple):
    """One column of a list: its heading and its class, which sets the width."""

    heading: str
    cls: str = ""


# -- words ---------------------------------------------------------------------------------------------


def show_state(state: str, label: str | None = None) -> Html:
    """Return a state as a dot and a word. An event about the record changes both in place."""
    word = (label or state).replace("_", " ")
    return tag("span", word, cls="state", data_state=state, data_field="state" if label is None else None)


def show_risk(risk: str) -> Html:
    return tag("span", f"{risk} risk", cls="risk", data_risk=risk)


def show_time(at: Time | None, *, ago: bool = True) -> Html:
    """Return a time: UTC in the document; the page turns it into local time, or how long ago it was."""
    if at is None:
        return EMPTY
    word = str(at)
    shown = f"{word[11:16]} UTC" if ago else f"{word[:10]} {word[11:19]} UTC"
    return tag("time", shown, datetime=word, data_ago=ago)


def show_address(address: str, node: str | None = None) -> Html:
    """Return an agent's address as a link to its page; of an agent of another node, with the node."""
    link = tag("a", address, cls="address", href=f"/agents/{quote(address, safe='@')}")
    where = add_node(address, node)[len(address) :]
    return tag("span", link, tag("span", where, cls="quiet"), cls="named") if where else link


def shorten(ident: str) -> str:
    """Return an id with only its distinguishing end, as the command line shows it."""
    prefix, _, rest = ident.partition("_")
    return f"{prefix}_…{rest[-6:]}" if len(rest) > 8 else ident


def link_flight(ident: str, label: Child = None) -> Html:
    return tag("a", label if label is not None else shorten(ident), href=f"/flights/{quote(ident)}")


def link_conversation(ident: str, label: str) -> Html:
    return tag("a", label, href=f"/conversations/{quote(ident)}")


def quote_text(words: str, cls: str = "") -> Html:
    """Return foreign text in its own lines, in a frame."""
    return tag("pre", lines(words), cls=f"quote {cls}".strip(), tabindex=0)


def show_command(command: str) -> Html:
    """Return a command that can be copied."""
    return tag("span", tag("code", command), build_copy(command, "Copy command"), cls="command")


def build_copy(command: str, label: str | None = None) -> Html:
    """Return a button that copies a command."""
    return tag(
        "button",
        draw_icon("copy"),
        type="button",
        cls="icon-button",
        data_copy=command,
        title=None if label else f"Copy: {command}",
        aria_label=label or f"Copy: {command}",
    )


def cut(words: str, length: int = 200) -> str:
    """Return the first line of a text, cut to a length."""
    first = words.strip().partition("\n")[0]
    return first if len(first) <= length else f"{first[: length - 1]}…"


# -- buttons -------------------------------------------------------------------------------------------


def build_button(
    label: str,
    operation: str,
    parameters: Mapping[str, object],
    *,
    icon: str = "",
    cls: str = "",
    confirm: str | None = None,
    key: str | None = None,
    done: str | None = None,
    name: str | None = None,
) -> Html:
    """Return a button that calls an operation. `key`: its keyboard shortcut while its row has the focus.

    `confirm`: the question asked first. `done`: the message once it worked.
    """
    return tag(
        "button",
        draw_icon(icon) if icon else None,
        tag("span", label),
        type="button",
        cls=f"button {cls}".strip(),
        data_operation=operation,
        data_parameters=json.dumps(parameters, separators=(",", ":")),
        data_confirm=confirm,
        data_key_press=key,
        data_done=done,
        aria_label=name,
        aria_keyshortcuts=key,
    )


# -- containers ----------------------------------------------------------------------------------------


def build_panel(
    title: str, *body: Child, note: Child = None, ident: str | None = None, cls: str = ""
) -> Html:
    """Return a titled section."""
    ident = ident or title.lower().replace(" ", "-")
    heading = tag("header", tag("h2", title, id=f"{ident}-title"), note, cls="panel-head")
    return tag(
        "section", heading, *body, cls=f"panel {cls}".strip(), id=ident, aria_labelledby=f"{ident}-title"
    )


def build_list(
    name: str,
    label: str,
    columns: Sequence[Column],
    rows: Iterable[tuple[str, str | None, Sequence[Child]]],
    *,
    empty: Html = EMPTY,
    keep: bool = False,
) -> Html:
    """Return a list as a grid. Each row has a key, an address to open, and one child for each column.

    A row with a link of the class `main-link` opens that, and needs no address.
    `keep`: a row that is no longer in the list stays, marked, until the reader moves on.
    """
    written = [_build_row(columns, key, href, cells) for key, href, cells in rows]
    if not written and empty:
        return tag("div", empty, data_list=name, cls="list-empty")
    head = tag(
        "div",
        [tag("span", column.heading, role="columnheader", cls=column.cls) for column in columns],
        role="row",
        cls="row row-head",
    )
    return tag(
        "div",
        head,
        written,
        role="table",
        aria_label=label,
        cls=f"list list-{name}",
        data_list=name,
        data_keep=keep,
    )


def _build_row(columns: Sequence[Column], key: str, href: str | None, cells: Sequence[Child]) -> Html:
    shown = [_build_cell(column, cell) for column, cell in zip(columns, cells, strict=True)]
    return tag("div", shown, role="row", cls="row", data_key=key, data_href=href, tabindex=-1)


def _build_cell(column: Column, cell: Child) -> Html:
    """Return a cell. A word or a time is the cell itself: half as many elements make a list paint sooner."""
    if isinstance(cell, Element) and cell.startswith(("<span", "<time")):
        return extend(cell, column.cls, role="cell")
    return tag("span", cell, role="cell", cls=column.cls)


def show_empty(title: str, words: Child, command: str | None = None) -> Html:
    """Return an empty state: what belongs here, and what to do first."""
    return tag(
        "div",
        tag("p", title, cls="empty-title"),
        tag("p", words),
        show_command(command) if command else None,
        cls="empty",
    )


def show_problem(problem: MachineProblem) -> Html:
    """Return a problem of this machine with the commands that help."""
    commands = [tag("p", show_remedy(one)) for one in problem.remedies]
    says = tag("p", draw_icon("warning"), tag("span", problem.says), cls="problem-says")
    kind = "hint" if problem.hint else "problem"
    return tag(
        "div", says, commands, cls="problem", data_kind=kind, data_key=f"{problem.part} {problem.says}"
    )


def show_remedy(remedy: Remedy) -> Html | None:
    """Return a remedy as a command to copy, and why it helps; None if there is no such command."""
    try:
        command = build_command_line(remedy)
    except Refused:
        return None
    return join(show_command(command), tag("span", remedy.why, cls="quiet"))


def build_remedy(remedy: Remedy) -> Html | None:
    """Return a remedy as a button that does it, where the page can; else as a command to copy."""
    given = json.dumps(remedy.parameters)
    if not _CHANGING.get(remedy.operation) or json.dumps(PLACEHOLDER)[1:-1] in given:
        return show_remedy(remedy)
    button = build_button(build_command_line(remedy), remedy.operation, remedy.parameters, done="Done.")
    return join(button, " ", tag("span", remedy.why, cls="quiet"))


def show_facts(facts: Iterable[tuple[str, Child]]) -> Html:
    """Return names and values, one pair a line. A value of None is left out."""
    pairs = [
        join(tag("dt", name), tag("dd", value)) for name, value in facts if value is not None and value != ""
    ]
    return tag("dl", pairs, cls="facts")


def build_pager(path: str, query: Mapping[str, str], following: str | None) -> Html:
    """Return the link to the next page of a list; nothing on the last page."""
    if following is None:
        return EMPTY
    words = "&".join(
        f"{quote(name)}={quote(value)}" for name, value in {**query, "cursor": following}.items()
    )
    link = tag("a", "Older", cls="button", href=f"{path}?{words}", rel="next")
    return tag("nav", link, cls="pager", aria_label="Pages")
