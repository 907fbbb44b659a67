"""How what needs a person is shown: what is decided, first and whole; then the commands that decide it."""

from __future__ import annotations

import os
import shlex
import sys

from scout.cli.connection.text import age, clean, fields, note, out, paint, short_ids, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

OPEN_STATES = ("open", "notified")
_RISKY = {"medium": "yellow", "high": "red"}
_DONE = {"resolved": "approved", "denied": "denied", "answered": "answered", "dismissed": "dismissed"}
_MANY = 40  # lines of one item in a list; what is longer is decided where it is shown whole
_BAR = "│ "


# -- what is to be decided ---------------------------------------------------------------------------


def wish_lines(item: dict[str, Any], columns: int | None = None) -> list[str]:
    """What a person decides about, whole: the exact command or tool first, then what the program says.

    Every line of foreign text stands behind a bar, so that none looks like a line of Scout.
    """
    wide = columns or _columns()
    wish: dict[str, Any] | None = item.get("permission")
    if wish is None:
        title, body = str(item["title"]), str(item.get("body") or "")
        shown = [body] if body.startswith(title.removesuffix("…")) else [title, body]
        return [line for text in shown if text for line in _framed(text, wide)]
    return [*_exact(wish, wide), *_warnings(wish), *_words(item, wish, wide)]


def _exact(wish: dict[str, Any], wide: int) -> list[str]:
    tool = clean(str(wish.get("tool") or "the program"))
    if wish.get("observed"):
        return ["seen on its screen:", *_framed(str(wish.get("arguments") or ""), wide)]
    if wish.get("command") is not None:
        lines = [f"{tool} wants to run:", *_framed(str(wish["command"]), wide)]
    elif wish.get("path"):
        lines = [f"{tool} wants:", *_framed(str(wish["path"]), wide)]
    else:
        lines = [f"{tool} wants to be used"]
    return [*lines, *(["with:", *_framed(str(wish["arguments"]), wide)] if wish.get("arguments") else [])]


def _warnings(wish: dict[str, Any]) -> list[str]:
    found: list[str] = []
    if wish.get("hidden"):
        found.append(
            "It has hidden characters, shown here as \\x1b or \\u202e; approved is exactly what it is."
        )
    if wish.get("cut"):
        found.append(f"{wish['cut']} more characters are not shown: look at it in the session itself.")
    return [paint(line, "red", sys.stderr) for line in found]


def _words(item: dict[str, Any], wish: dict[str, Any], wide: int) -> list[str]:
    said = str(wish.get("words") or item.get("body") or "")
    return ["it says:", *_framed(said, wide)] if said else []


def _framed(text: str, wide: int) -> list[str]:
    """Foreign text behind a bar, wrapped so that nothing of it begins a line of the terminal."""
    return [f"{_BAR}{piece}" for line in text.split("\n") for piece in _wrapped(clean(line), wide - 4)]


def _wrapped(line: str, wide: int) -> list[str]:
    pieces, piece, used = list[str](), "", 0
    for char in line:
        needs = width(char)
        if used + needs > wide:
            pieces.append(piece)
            piece, used = "", 0
        piece, used = piece + char, used + needs
    return [*pieces, piece]


def _columns() -> int:
    for stream in (sys.stdout, sys.stderr):
        try:
            return os.get_terminal_size(stream.fileno()).columns or 80
        except (OSError, ValueError):
            continue
    return 10_000  # no terminal wraps it


# -- items -------------------------------------------------------------------------------------------


def commands(item: dict[str, Any], name: str | None = None) -> list[str]:
    """What can be typed about an item; nothing about one that is decided, or that is another's to decide."""
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


def headline(item: dict[str, Any], name: str | None = None) -> str:
    """Which it is, by its id or a shorter name, how risky, and since when."""
    risk = f" {paint(str(item['risk']), _RISKY[item['risk']])} risk" if item["risk"] in _RISKY else ""
    state = "" if item["state"] in OPEN_STATES else f", {_outcome(item)}"
    return f"{name or item['id']}  {item['kind']}{risk}, {age(item['createdAt'])}{state}"


def _outcome(item: dict[str, Any]) -> str:
    done = _DONE.get(str(item["state"]), str(item["state"]))
    by = f" by {item['decidedByAddress']}" if item.get("decidedByAddress") else ""
    allowed = f" ({item['allowanceId']})" if item.get("allowanceId") else ""
    return f"{done}{by}{allowed}"


def _show_item(item: dict[str, Any]) -> None:
    """One item, whole."""
    path: dict[str, Any] = item.get("returnPath") or {}
    shown: dict[str, Any] = {
        "kind": item["kind"],
        "state": item["state"],
        "from": item.get("agentAddress"),
        "risk": item["risk"] if item["risk"] != "low" else None,
        "since": age(item["createdAt"]),
        "until": item.get("expiresAt"),
        "without an answer": item.get("defaultAction"),
        "answer": item.get("answer"),
        "because": item.get("reason"),
        "decided by": item.get("decidedByAddress"),
        "let through by": item.get("allowanceId"),
        "flight": path.get("flightId"),
        "work": path.get("workItemId"),
    }
    for line in wish_lines(item):
        out(line)
    out(fields(str(item["id"]), {name: value for name, value in shown.items() if value}))
    for line in commands(item):
        note(f"try: {line}")


def _show_decided(item: dict[str, Any]) -> None:
    """What was decided, first; then what exactly it was about."""
    done = _DONE.get(str(item["state"]), str(item["state"]))
    out(f"{paint(done, 'green')} {item['id']} of {item.get('agentAddress') or 'scout'}{_said(item)}")
    for line in wish_lines(item):
        out(f"  {line}")
    if item.get("allowanceId"):
        note(f"the same is let through from now on; take it back: scout allow revoke {item['allowanceId']}")


def _said(item: dict[str, Any]) -> str:
    text = item.get("answer") or item.get("reason")
    return f": {text}" if text else ""


def _show_several(decision: dict[str, Any]) -> None:
    """Each item as it fared."""
    for one in decision["items"]:
        if one["decided"]:
            _show_decided(one["item"])
        else:
            out(f"{paint('not decided', 'red')} {one['attentionId']}: {one['problem']}")
    if not decision["items"]:
        out("nothing was open")


def _show_raised(item: dict[str, Any]) -> None:
    """What was put before a person, for who put it there."""
    out(f"{paint('raised', 'green')} {item['id']} ({item['kind']}): {item['title']}")
    if item["kind"] != "notify":
        note(f"the answer: scout attention show {item['id']} --wait")


# -- lists -------------------------------------------------------------------------------------------


def _show_list(page: dict[str, Any]) -> None:
    """By agent, so that none buries what another needs: how much there is, then each item whole."""
    counts = {one.get("agentId"): one for one in page.get("agents") or ()}
    names = short_ids(str(item["id"]) for item in page["items"])
    groups: dict[Any, list[dict[str, Any]]] = {}
    for item in page["items"]:
        groups.setdefault(item.get("agentId"), []).append(item)
    for agent_id, items in groups.items():
        out(_group(items, counts.get(agent_id)))
        for item in items:
            _show_listed(item, names[str(item["id"])])
    if not page["items"]:
        out("Nothing needs you.")
    if page.get("next"):
        note(f"more: --cursor {page['next']}")


def _group(items: list[dict[str, Any]], count: dict[str, Any] | None) -> str:
    who = paint(str(items[0].get("agentAddress") or "scout"), "bold")
    still = [one for one in items if one["state"] in OPEN_STATES]
    total = count["open"] if count and still else len(items)
    risky = f", {count['high']} high risk" if count and count["high"] else ""
    return f"{who}: {total} open{risky}" if still else f"{who}: {total}"


def _show_listed(item: dict[str, Any], name: str) -> None:
    lines = wish_lines(item)
    out(f"  {headline(item, name)}")
    for line in lines[:_MANY]:
        out(f"    {line}")
    if len(lines) > _MANY:
        out(f"    … {len(lines) - _MANY} more lines: scout attention show {name}")
        return
    for line in commands(item, name):
        out(f"    {paint(line, 'dim')}")


ATTENTION: dict[str, Callable[[Any], None]] = {
    "attention": _show_list,
    "attention.decide": _show_several,
    "attention.show": _show_item,
    **dict.fromkeys(("need", "consult", "notify", "attention.raise"), _show_raised),
    **{f"attention.{move}": _show_decided for move in ("answer", "approve", "deny", "dismiss")},
}
