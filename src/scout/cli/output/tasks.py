"""Output of tasks: how they went, and their results."""

from __future__ import annotations

from scout.cli.connection.text import (
    format_age,
    format_table,
    get_first_line,
    note,
    paint,
    print_out,
    print_text,
)
from scout.cli.output.fields import show_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from scout.cli.output.fields import Field

_LEAST = 10  # characters of an id


def _show_list(page: dict[str, Any]) -> None:
    items: list[dict[str, Any]] = page["items"]
    if not items:
        print_out("No tasks. Try: scout task 'Do this.'")
    else:
        short = _shorten([str(one["id"]) for one in items])
        heads = ("task", "state", "since", "task text", "result")
        print_out(format_table(heads, [_row(one, short[one["id"]]) for one in items]))
    if page.get("next"):
        note(f"more: --cursor {page['next']}")


def _shorten(idents: list[str]) -> dict[str, str]:
    """Return the shortest beginnings that tell the ids apart."""
    length = _LEAST
    while len({ident[:length] for ident in idents}) < len(set(idents)):
        length += 1
    return {ident: ident[:length] for ident in idents}


def _row(one: dict[str, Any], short: str) -> list[str]:
    result = one.get("output") or (one["reason"] if one["state"] in ("failed", "cancelled") else "")
    since = format_age(one.get("finishedAt") or one["createdAt"])
    return [short, str(one["state"]), since, get_first_line(str(one["body"])), get_first_line(str(result))]


def _show_one(one: dict[str, Any]) -> None:
    show_fields(one["address"], one, _TASK)
    print_out("")
    if one.get("output") is not None:
        print_text(str(one["output"]))
    elif error := one.get("error"):
        print_out(f"{paint(str(error['code']), 'red')}: {error['message']}")


_TASK: tuple[Field, ...] = (
    ("state", "state"),
    ("text", "body"),
    ("agent", "lifecycle"),
    ("harness", "harness"),
    ("model", "model"),
    ("effort", "effort"),
    ("folder", "folder"),
    ("flight", "flightId"),
    ("began", "age:createdAt"),
    ("ended", "age:finishedAt"),
)

PRINTERS: dict[str, Callable[[Any], None]] = {"task.list": _show_list, "task.show": _show_one}
