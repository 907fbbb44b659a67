"""How the inbox is shown: who says what, and the beginning of each message."""

from __future__ import annotations

from scout.cli.connection.text import age, first_line, indent, join_lines, out, paint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PREVIEW = 12  # lines of a message in the inbox


def show_items(items: list[dict[str, Any]]) -> None:
    """Things for you, with the beginning of what each says."""
    for item in items:
        out(_item(item))
    if not items:
        out("Your inbox is empty.")


def _item(item: dict[str, Any]) -> str:
    delivery: dict[str, Any] = item.get("delivery") or {}
    message: dict[str, Any] = item.get("message") or {}
    lines = str(message.get("body") or item.get("prompt") or "").splitlines()
    shown = lines if len(lines) <= _PREVIEW else [*lines[:_PREVIEW], f"… {len(lines) - _PREVIEW} more lines"]
    kind = message.get("kind")
    what = "answers" if kind in ("final", "answer") else ("asks" if delivery.get("flightId") else "says")
    what = "adds, after the end of the ask," if delivery.get("rule") == "note" else what
    place = " to everybody" if item.get("broadcast") else ""
    place = f" in {item['channel']}" if item.get("channel") else place
    about = f" “{first_line(str(item['about']), 48)}”" if what != "says" and item.get("about") else ""
    when = age(message.get("createdAt") or delivery.get("createdAt"))
    head = f"{paint(str(item.get('sender')), 'bold')} {what}{about}{place}, {when}"
    ids = (message.get("id"), delivery.get("id"), delivery.get("flightId"))
    refs = " ".join(str(one) for one in ids if one)
    return join_lines([f"{head}  {paint(refs, 'dim')}", indent("\n".join(shown))])
