"""The report of an import."""

from __future__ import annotations

from collections import Counter
from typing import Any

from scout.cli.connection.text import format_table, note, paint, print_out

_SHOWN = 20  # things of one kind and reason
_ORDER = ("agent", "alias", "conversation", "message", "work", "question")


def show_report(report: dict[str, Any]) -> None:
    """Show what was taken, what has another name, and what was left behind with the reasons."""
    verb = "would be imported" if report["dryRun"] else "imported"
    rows = [
        (kind, report["taken"].get(kind, 0), report["present"].get(kind, 0), _count(report, kind))
        for kind in _ORDER
    ]
    shown = [row for row in rows if any(row[1:])]
    if shown:
        print_out(format_table(("", verb, "there already", "skipped"), shown))
    else:
        print_out("nothing to import was found")
    for one in report["changed"]:
        name = f" is {one['name']}" if one["name"] else ""
        print_out(f"{one['type']} {one['id']}{name}: {one['reason']}")
    _show_skipped(report["skipped"])
    for one in report["leftOut"]:
        print_out(f"left out: {one['count']} × {one['type']}: {one['reason']}")
    if report["dryRun"]:
        note("nothing was changed; run it again without --dry-run to import")


def _count(report: dict[str, Any], kind: str) -> int:
    return sum(1 for one in report["skipped"] if one["type"] == kind)


def _show_skipped(skipped: list[dict[str, Any]]) -> None:
    told: Counter[tuple[str, str]] = Counter()
    for one in skipped:
        key = (one["type"], one["reason"])
        told[key] += 1
        if told[key] <= _SHOWN:
            print_out(f"{paint('skipped', 'yellow')}: {one['type']} {one['id']}: {one['reason']}")
    for (kind, reason), count in told.items():
        if count > _SHOWN:
            print_out(f"and {count - _SHOWN} more × {kind}: {reason} (--json lists all)")
