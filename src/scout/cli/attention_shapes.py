"""How what needs a person is shown: with the commands that decide it."""

import shlex
from collections.abc import Callable
from typing import Any

from scout.cli.text import age, fields, indent, note, out, paint

__all__ = ["ATTENTION", "OPEN_STATES", "commands"]

OPEN_STATES = ("open", "notified")
_RISKY = {"medium": "yellow", "high": "red"}


def commands(item: dict[str, Any]) -> list[str]:
    """What can be typed about an item; nothing about one that is decided."""
    if item["state"] not in OPEN_STATES:
        return []
    found: list[str] = []
    for action in item.get("actions") or ():
        words = ["scout", "attention", str(action["move"]), str(item["id"])]
        text = action.get("value") or ("…" if action["move"] == "answer" else None)
        found.append(shlex.join([*words, *([str(text)] if text else [])]))
    return found


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
        "flight": path.get("flightId"),
        "work": path.get("workItemId"),
    }
    out(paint(str(item["title"]), "bold"))
    if item.get("body"):
        out(indent(str(item["body"])))
    out(fields(str(item["id"]), {name: value for name, value in shown.items() if value}))
    for line in commands(item):
        note(f"try: {line}")


def _show_raised(item: dict[str, Any]) -> None:
    """What was put before a person, for who put it there."""
    out(f"{paint('raised', 'green')} {item['id']} ({item['kind']}): {item['title']}")
    if item["kind"] != "notify":
        note(f"the answer: scout attention show {item['id']} --wait")


def _show_list(page: dict[str, Any]) -> None:
    """Each in two lines: what it is, and what decides it."""
    for item in page["items"]:
        who = item.get("agentAddress") or "scout"
        risk = f" {paint(str(item['risk']), _RISKY[item['risk']])} risk" if item["risk"] in _RISKY else ""
        state = "" if item["state"] in OPEN_STATES else f", {item['state']}"
        head = f"{item['id']}  {item['kind']}{risk}  {who}, {age(item['createdAt'])}{state}"
        out(head)
        out(f"  {paint(str(item['title']), 'bold')}")
        for line in commands(item):
            out(f"  {paint(line, 'dim')}")
    if not page["items"]:
        out("nothing needs you")
    if page.get("next"):
        note(f"more: --cursor {page['next']}")


ATTENTION: dict[str, Callable[[Any], None]] = {
    "attention": _show_list,
    **dict.fromkeys(("need", "consult", "notify", "attention.raise"), _show_raised),
    **{f"attention.{move}": _show_item for move in ("show", "answer", "approve", "deny", "dismiss")},
}
