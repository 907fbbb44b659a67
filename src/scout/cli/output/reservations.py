"""Output of reservations: who edits what, and until when."""

from __future__ import annotations

from scout.cli.connection.text import (
    format_local_time,
    format_table,
    note,
    paint,
    print_out,
    shorten_id,
    shorten_ids,
)
from scout.cli.output.fields import shorten_home, show_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from scout.cli.output.fields import Field


def format_reservation(one: dict[str, Any], short: str) -> str:
    """Return one reservation as a line: id, globs, and until when."""
    shared = "" if one["exclusive"] else ", shared"
    return f"{short}  {_join_globs(one)}, until {format_local_time(one['expiresAt'])}{shared}"


def format_holder(one: dict[str, Any]) -> str:
    """Return one reservation as a line for others: the holder, the files, until when, and why."""
    shared = " (shared)" if not one["exclusive"] else ""
    why = f": {one['why']}" if one["why"] else ""
    return f"{one['address']}  {_join_globs(one)}{shared}, until {format_local_time(one['expiresAt'])}{why}"


def _join_globs(one: dict[str, Any]) -> str:
    return " ".join(one["globs"])


def _format_place(one: dict[str, Any]) -> str:
    root = shorten_home(str(one["root"]).removesuffix("/.git"))
    return f"{root} (all work trees)" if one["scope"] == "repository" else root


def _show_added(one: dict[str, Any]) -> None:
    until = format_local_time(one["expiresAt"])
    shared = "" if one["exclusive"] else " (shared)"
    print_out(f"{paint('reserved', 'green')} {_join_globs(one)} until {until}{shared}")
    print_out(f"  in {_format_place(one)}")
    for text in one.get("notes") or ():
        note(f"note: {text}")
    note(f"when you are done: scout reserve release {shorten_id(one['id'])}")


def _show_released(one: dict[str, Any]) -> None:
    word = str(one["state"])
    print_out(f"{paint(word, 'green')} {shorten_id(one['id'])} of {one['address']}: {_join_globs(one)}")


def _show_list(page: dict[str, Any]) -> None:
    items: list[dict[str, Any]] = page["items"]
    if not items:
        print_out("No files are reserved. Try: scout reserve add 'src/**'")
    else:
        short = shorten_ids(str(one["id"]) for one in items)
        heads = ("reservation", "holder", "until", "in", "files")
        print_out(format_table(heads, [_build_row(one, short[one["id"]]) for one in items]))
    if page.get("next"):
        note(f"more: --cursor {page['next']}")


def _build_row(one: dict[str, Any], short: str) -> list[str]:
    until = format_local_time(one["expiresAt"]) if one["state"] == "active" else str(one["state"])
    mark = "" if one["exclusive"] else " (shared)"
    why = f": {one['why']}" if one["why"] else ""
    return [short, str(one["address"]), until, _format_place(one), f"{_join_globs(one)}{mark}{why}"]


def _name_kind(one: dict[str, Any]) -> str:
    return "exclusive" if one["exclusive"] else "shared"


def _show_one(one: dict[str, Any]) -> None:
    show_fields(one["id"], one, _RESERVATION)


_RESERVATION: tuple[Field, ...] = (
    ("state", "state"),
    ("holder", "address"),
    ("files", _join_globs),
    ("in", _format_place),
    ("kind", _name_kind),
    ("why", "why"),
    ("since", "age:createdAt"),
    ("until", "time:expiresAt"),
    ("session", "sessionId"),
    ("flight", "flightId"),
    ("reason", "reason"),
)

PRINTERS: dict[str, Callable[[Any], None]] = {
    "reserve.add": _show_added,
    "reserve.release": _show_released,
    "reserve.list": _show_list,
    "reserve.show": _show_one,
}
