"""Output of items that need a person: the request in full, then the commands that decide it."""

from __future__ import annotations

import os
import shlex
import sys

from scout.base.visible import make_visible
from scout.cli.connection.text import (
    format_age,
    format_table,
    measure_width,
    note,
    paint,
    print_out,
    shorten_ids,
)
from scout.cli.output.fields import ATTENTION, read_field, show_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from scout.cli.output.fields import Field

OPEN_STATES = ("open", "notified")
_RISKY = {"medium": "yellow", "high": "red"}
_DONE = {"resolved": "approved", "denied": "denied", "answered": "answered", "dismissed": "dismissed"}
_MANY = 40  # maximum lines of one item in a list; a longer item must be shown alone to be decided
_BAR = "│ "


# -- what to decide ----------------------------------------------------------------------------------


def format_wish(item: dict[str, Any], columns: int | None = None) -> list[str]:
    """Return the request in full: the exact command or tool first, then the program's words.

    Every line of foreign text starts with a bar, so that none looks like a line of Scout.
    """
    wide = columns or _measure_terminal()
    wish: dict[str, Any] | None = item.get("permission")
    if wish is None:
        title, body = str(item["title"]), str(item.get("body") or "")
        shown = [body] if body.startswith(title.removesuffix("…")) else [title, body]
        return [line for text in shown if text for line in _frame(text, wide)]
    return [*_describe_wish(wish, wide), *_list_warnings(wish), *_quote_words(item, wish, wide)]


def _describe_wish(wish: dict[str, Any], wide: int) -> list[str]:
    tool = make_visible(str(wish.get("tool") or "the program"))
    if wish.get("observed"):
        return ["seen on its screen:", *_frame(str(wish.get("arguments") or ""), wide)]
    if wish.get("command") is not None:
        lines = [f"{tool} wants to run:", *_frame(str(wish["command"]), wide)]
    elif wish.get("path"):
        lines = [f"{tool} wants:", *_frame(str(wish["path"]), wide)]
    else:
        lines = [f"{tool} wants to be used"]
    return [*lines, *(["with:", *_frame(str(wish["arguments"]), wide)] if wish.get("arguments") else [])]


def _list_warnings(wish: dict[str, Any]) -> list[str]:
    found: list[str] = []
    if wish.get("hidden"):
        found.append(
            "It contains hidden characters, shown here as \\x1b or \\u202e. You approve exactly that."
        )
    if wish.get("cut"):
        found.append(f"{wish['cut']} more characters are not shown. Look at it in the session itself.")
    return [paint(line, "red", sys.stderr) for line in found]


def _quote_words(item: dict[str, Any], wish: dict[str, Any], wide: int) -> list[str]:
    said = str(wish.get("words") or item.get("body") or "")
    return ["it says:", *_frame(said, wide)] if said else []


def _frame(text: str, wide: int) -> list[str]:
    """Return foreign text behind a bar, wrapped so that none of it starts a line of the terminal."""
    return [f"{_BAR}{piece}" for line in text.split("\n") for piece in _wrap(make_visible(line), wide - 4)]


def _wrap(line: str, wide: int) -> list[str]:
    pieces, piece, used = list[str](), "", 0
    for char in line:
        needs = measure_width(char)
        if used + needs > wide:
            pieces.append(piece)
            piece, used = "", 0
        piece, used = piece + char, used + needs
    return [*pieces, piece]


def _measure_terminal() -> int:
    for stream in (sys.stdout, sys.stderr):
        try:
            return os.get_terminal_size(stream.fileno()).columns or 80
        except (OSError, ValueError):
            continue
    return 10_000  # no terminal wraps it


# -- items -------------------------------------------------------------------------------------------


def list_commands(item: dict[str, Any], name: str | None = None) -> list[str]:
    """Return the commands that decide an item; only `dismiss` if the caller may not decide it."""
    if item["state"] not in OPEN_STATES:
        return []
    mine = bool(item.get("mayDecide"))
    found: list[str] = []
    for action in item.get("actions") or ():
        if not mine and action["move"] != "dismiss":
            continue
        words = ["scout", str(action["move"]), name or str(item["id"])]
        text = action.get("value") or ("TEXT" if action["move"] == "answer" else None)
        found.append(shlex.join([*words, *([str(text)] if text else [])]))
    return list(dict.fromkeys(found))


def format_headline(item: dict[str, Any], name: str | None = None) -> str:
    """Return an item's id or short name, its kind, risk, age and outcome."""
    risk = f" {paint(str(item['risk']), _RISKY[item['risk']])} risk" if item["risk"] in _RISKY else ""
    state = "" if item["state"] in OPEN_STATES else f", {_describe_outcome(item)}"
    return f"{name or item['id']}  {item['kind']}{risk}, {format_age(item['createdAt'])}{state}"


def _describe_outcome(item: dict[str, Any]) -> str:
    done = _DONE.get(str(item["state"]), str(item["state"]))
    by = f" by {item['decidedByAddress']}" if item.get("decidedByAddress") else ""
    allowed = f" ({item['allowanceId']})" if item.get("allowanceId") else ""
    return f"{done}{by}{allowed}"


def _show_item(item: dict[str, Any]) -> None:
    """Show one item in full."""
    for line in format_wish(item):
        print_out(line)
    show_fields(item["id"], item, ATTENTION)
    for line in list_commands(item):
        note(f"try: {line}")


def _show_decided(item: dict[str, Any]) -> None:
    """Show a decision, then exactly what was decided."""
    done = _DONE.get(str(item["state"]), str(item["state"]))
    print_out(
        f"{paint(done, 'green')} {item['id']} of {item.get('agentAddress') or 'scout'}{_quote_answer(item)}"
    )
    for line in format_wish(item):
        print_out(f"  {line}")
    if item.get("allowanceId"):
        note(f"the same is allowed from now on; undo: scout allow revoke {item['allowanceId']}")


def _quote_answer(item: dict[str, Any]) -> str:
    text = item.get("answer") or item.get("reason")
    return f": {text}" if text else ""


def _show_several(decision: dict[str, Any]) -> None:
    """Show the outcome of each item."""
    for one in decision["items"]:
        if one["decided"]:
            _show_decided(one["item"])
        else:
            print_out(f"{paint('not decided', 'red')} {one['attentionId']}: {one['problem']}")
    if not decision["items"]:
        print_out("Nothing is open.")


def _show_raised(item: dict[str, Any]) -> None:
    """Show a new item to the agent that raised it."""
    print_out(f"{paint('raised', 'green')} {item['id']} ({item['kind']}): {item['title']}")
    if item["kind"] != "notify":
        note(f"the answer: scout attention show {item['id']} --wait")


# -- lists -------------------------------------------------------------------------------------------


def _show_list(page: dict[str, Any]) -> None:
    """Show items by agent, so that no agent hides the needs of another: the count, then each item in full."""
    counts = {one.get("agentId"): one for one in page.get("agents") or ()}
    names = shorten_ids(str(item["id"]) for item in page["items"])
    groups: dict[Any, list[dict[str, Any]]] = {}
    for item in page["items"]:
        groups.setdefault(item.get("agentId"), []).append(item)
    for agent_id, items in groups.items():
        print_out(_describe_group(items, counts.get(agent_id)))
        for item in items:
            _show_listed(item, names[str(item["id"])])
    if not page["items"]:
        print_out("Nothing needs you.")
    if page.get("next"):
        note(f"more: --cursor {page['next']}")


def _describe_group(items: list[dict[str, Any]], count: dict[str, Any] | None) -> str:
    who = paint(str(items[0].get("agentAddress") or "scout"), "bold")
    still = [one for one in items if one["state"] in OPEN_STATES]
    total = count["open"] if count and still else len(items)
    risky = f", {count['high']} high risk" if count and count["high"] else ""
    return f"{who}: {total} open{risky}" if still else f"{who}: {total}"


def _show_listed(item: dict[str, Any], name: str) -> None:
    lines = format_wish(item)
    print_out(f"  {format_headline(item, name)}")
    for line in lines[:_MANY]:
        print_out(f"    {line}")
    if len(lines) > _MANY:
        print_out(f"    … {len(lines) - _MANY} more lines: scout attention show {name}")
        return
    for line in list_commands(item, name):
        print_out(f"    {paint(line, 'dim')}")


# -- standing decisions ------------------------------------------------------------------------------


def _describe_allowed(one: dict[str, Any]) -> str:
    """Return exactly what is allowed."""
    if one["kind"] == "command":
        return make_visible(str(one["command"])) + _describe_arguments(one)
    tool = str(one.get("tool") or "any tool")
    if one["kind"] == "path":
        return f"{tool} on {one['path']}"
    return f"{tool}{_describe_arguments(one)}" if one.get("arguments") is not None else f"any use of {tool}"


def _describe_arguments(one: dict[str, Any]) -> str:
    return f" with {make_visible(str(one['arguments']))}" if one.get("arguments") else ""


def _describe_scope(one: dict[str, Any]) -> str:
    agent = str(one.get("agentAddress") or one.get("agentId"))
    if one["scope"] in ("agent", "session"):
        return agent if one["scope"] == "agent" else f"this session of {agent}"
    return str(one.get("projectRoot")) if one["scope"] == "project" else "everywhere"


def _read_state(one: dict[str, Any]) -> str:
    return "expired" if one.get("expired") and one["state"] == "active" else str(one["state"])


_ALLOWANCE: tuple[Field, ...] = (
    ("allows", _describe_allowed),
    ("for", _describe_scope),
    ("state", _read_state),
    ("until", lambda one: one.get("expiresAt") or "revoked"),
    ("decided with", "attentionId"),
    ("reason", "reason"),
)


def _show_allowance(one: dict[str, Any]) -> None:
    show_fields(one["id"], one, _ALLOWANCE)
    for item in one.get("letThrough") or ():
        print_out(f"  allowed {item['id']} of {item['agentAddress']}: {item['title']}")


def _show_allowed(one: dict[str, Any]) -> None:
    print_out(f"{paint('allowed', 'green')} {one['id']} for {_describe_scope(one)}: {_describe_allowed(one)}")
    note(f"undo: scout allow revoke {one['id']}")


def _show_revoked(one: dict[str, Any]) -> None:
    print_out(f"{paint('revoked', 'green')} {one['id']} for {_describe_scope(one)}: {_describe_allowed(one)}")


_ALLOWANCES: tuple[Field, ...] = (
    ("allowance", "id"),
    ("for", _describe_scope),
    ("until", "expiresAt"),
    ("state", _read_state),
    ("allows", _describe_allowed),
)


def _show_allowances(page: dict[str, Any]) -> None:
    rows = [[read_field(one, how) for _, how in _ALLOWANCES] for one in page["items"]]
    heads = [head for head, _ in _ALLOWANCES]
    print_out(format_table(heads, rows) if rows else "Nothing is allowed without asking you.")
    if page.get("next"):
        note(f"more: --cursor {page['next']}")


PRINTERS: dict[str, Callable[[Any], None]] = {
    "allow.add": _show_allowed,
    "allow.list": _show_allowances,
    "allow.show": _show_allowance,
    "allow.revoke": _show_revoked,
    "attention": _show_list,
    "attention.decide": _show_several,
    "attention.show": _show_item,
    **dict.fromkeys(("need", "consult", "notify", "attention.raise"), _show_raised),
    **{f"attention.{move}": _show_decided for move in ("answer", "approve", "deny", "dismiss")},
}
