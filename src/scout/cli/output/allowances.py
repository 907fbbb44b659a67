"""How standing decisions are shown: what is let through, for whom, until when."""

from __future__ import annotations

from scout.cli.connection.text import clean, fields, note, out, paint, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _what(one: dict[str, Any]) -> str:
    """What is let through, exactly."""
    if one["kind"] == "command":
        return clean(str(one["command"])) + _with(one)
    tool = str(one.get("tool") or "any tool")
    if one["kind"] == "path":
        return f"{tool} on {one['path']}"
    return f"{tool}{_with(one)}" if one.get("arguments") is not None else f"any use of {tool}"


def _with(one: dict[str, Any]) -> str:
    return f" with {clean(str(one['arguments']))}" if one.get("arguments") else ""


def _whom(one: dict[str, Any]) -> str:
    if one["scope"] == "agent":
        return str(one.get("agentAddress") or one.get("agentId"))
    return str(one.get("projectRoot")) if one["scope"] == "project" else "everywhere"


def _state(one: dict[str, Any]) -> str:
    return "expired" if one.get("expired") and one["state"] == "active" else str(one["state"])


def _show_one(one: dict[str, Any]) -> None:
    shown = {
        "lets through": _what(one),
        "for": _whom(one),
        "state": _state(one),
        "until": one.get("expiresAt") or "revoked",
        "decided with": one.get("attentionId"),
        "because": one.get("reason"),
    }
    out(fields(str(one["id"]), {name: value for name, value in shown.items() if value}))
    for item in one.get("letThrough") or ():
        out(f"  let through {item['id']} of {item['agentAddress']}: {item['title']}")


def _show_added(one: dict[str, Any]) -> None:
    out(f"{paint('allowed', 'green')} {one['id']} for {_whom(one)}: {_what(one)}")
    note(f"take it back: scout allow revoke {one['id']}")


def _show_revoked(one: dict[str, Any]) -> None:
    out(f"{paint('revoked', 'green')} {one['id']} for {_whom(one)}: {_what(one)}")


def _show_list(page: dict[str, Any]) -> None:
    rows = [
        (one["id"], _whom(one), one.get("expiresAt") or "-", _state(one), _what(one)) for one in page["items"]
    ]
    heads = ("allowance", "for", "until", "state", "lets through")
    out(table(heads, rows) if rows else "nothing is let through without asking you")
    if page.get("next"):
        note(f"more: --cursor {page['next']}")


ALLOWANCES: dict[str, Callable[[Any], None]] = {
    "allow.add": _show_added,
    "allow.list": _show_list,
    "allow.show": _show_one,
    "allow.revoke": _show_revoked,
}
