"""Output of schedules: when they run, whom they ask, and how their runs went."""

from __future__ import annotations

from scout.cli.connection.text import (
    format_age,
    format_local_time,
    format_table,
    get_first_line,
    note,
    paint,
    print_out,
    shorten_id,
    shorten_ids,
)
from scout.cli.output.fields import show_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from scout.cli.output.fields import Field

_TITLE = 60


def _show_added(one: dict[str, Any]) -> None:
    print_out(f"{paint('added', 'green')} {one['id']}: {_describe_times(one)}")
    _note_next(one)
    note(f"try it now: scout cron run {shorten_id(one['id'])}")


def _show_changed(one: dict[str, Any]) -> None:
    print_out(f"{paint('changed', 'green')} {shorten_id(one['id'])}: {_describe_times(one)}")
    _note_next(one)


def _describe_times(one: dict[str, Any]) -> str:
    return f"{one['words']} ({one['timeZone']}), asks {one['targetAddress']}"


def _note_next(one: dict[str, Any]) -> None:
    if one.get("slot"):
        print_out(f"  next {_format_time(one['slot'], one.get('nextInZone'))}")
    for text in one.get("notes") or ():
        note(f"note: {text}")


def _format_time(at: object, in_zone: object) -> str:
    """Return a time in the zone of a schedule, and in local time if that differs."""
    local = format_local_time(at)
    if not isinstance(in_zone, str):
        return local
    day, _, clock = in_zone.partition("T")
    there = f"{day} {clock[:5]}"
    return (
        there if local.endswith(clock[:5]) and local[-8:-6] in ("", day[-2:]) else f"{there} (here {local})"
    )


def _show_ran(one: dict[str, Any]) -> None:
    last: dict[str, Any] = one["last"]
    print_out(f"{paint('started', 'green')} {last['flightId']}: asks {one['targetAddress']}")
    note(f"the answer: scout wait {last['flightId']}")


def _show_moved(word: str) -> Callable[[dict[str, Any]], None]:
    def show(one: dict[str, Any]) -> None:
        print_out(
            f"{paint(word, 'green')} {shorten_id(one['id'])}: {get_first_line(str(one['body']), _TITLE)}"
        )
        _note_next(one)

    return show


def _show_list(page: dict[str, Any]) -> None:
    items: list[dict[str, Any]] = page["items"]
    if not items:
        print_out("No schedules. Try: scout cron add '0 9 * * 1-5' --to ADDRESS TEXT")
    else:
        short = shorten_ids(str(one["id"]) for one in items)
        heads = ("schedule", "when", "asks", "next", "last run", "text")
        print_out(format_table(heads, [_row(one, short[one["id"]]) for one in items]))
    if page.get("next"):
        note(f"more: --cursor {page['next']}")


def _row(one: dict[str, Any], short: str) -> list[str]:
    state = format_local_time(one["slot"]) if one.get("slot") else str(one["state"])
    when = f"{one['cron']} {one['timeZone']}"
    return [
        short,
        when,
        str(one["targetAddress"]),
        state,
        _describe_last(one),
        get_first_line(str(one["body"])),
    ]


def _describe_last(one: dict[str, Any]) -> str:
    """Return how the last run went; a run that did not start comes first."""
    last: dict[str, Any] = one.get("last") or {}
    if one.get("notStarted"):
        return f"{one['notStarted']} not started"
    return f"{last['state']} {format_age(last['startedAt'])}" if last else "-"


def _show_one(one: dict[str, Any]) -> None:
    show_fields(one["id"], one, _SCHEDULE)
    times: list[dict[str, Any]] = one.get("upcoming") or []
    if times:
        print_out("")
        rows = [[_split_zone(item), format_local_time(item["at"])] for item in times]
        print_out(format_table((f"next, {one['timeZone']}", "here"), rows))
    for text in one.get("notes") or ():
        note(f"note: {text}")


def _split_zone(item: dict[str, Any]) -> str:
    day, _, clock = str(item["inZone"]).partition("T")
    return f"{day} {clock[:5]} {clock[5:]}"


def _counts(one: dict[str, Any]) -> str:
    counts = {"started": one["fired"], "skipped": one["skipped"], "failed": one["failed"]}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "none yet"


def _answers(one: dict[str, Any]) -> str:
    return f"channel {one['channel']}" if one.get("channel") else "its owner"


def _last(one: dict[str, Any]) -> str:
    last: dict[str, Any] = one.get("last") or {}
    return f"{last['state']} {format_age(last['startedAt'])}, {last['flightId']}" if last else ""


def _jitter(one: dict[str, Any]) -> str:
    return f"up to {one['jitter']} s" if one["jitter"] else ""


_SCHEDULE: tuple[Field, ...] = (
    ("runs", "words"),
    ("cron", "cron"),
    ("time zone", "timeZone"),
    ("state", "state"),
    ("asks", "targetAddress"),
    ("text", "body"),
    ("answers to", _answers),
    ("agent", "address"),
    ("missed runs", "missed"),
    ("overlap", "overlap"),
    ("jitter", _jitter),
    ("runs so far", _counts),
    ("last run", _last),
    ("reason", "reason"),
)


def _show_log(page: dict[str, Any]) -> None:
    items: list[dict[str, Any]] = page["items"]
    print_out(
        format_table(("at", "for", "outcome", "flight", ""), [_log_row(one) for one in items])
        if items
        else "No runs yet."
    )
    if page.get("next"):
        note(f"more: --cursor {page['next']}")


def _log_row(one: dict[str, Any]) -> list[str]:
    slot = format_local_time(one["slot"]) if one.get("slot") else "by hand"
    state = str(one.get("state") or one["outcome"])
    flight = shorten_id(one["flightId"]) if one.get("flightId") else "-"
    text = one.get("reason") or one.get("output") or ""
    return [format_local_time(one["at"]), slot, state, flight, get_first_line(str(text))]


PRINTERS: dict[str, Callable[[Any], None]] = {
    "cron.add": _show_added,
    "cron.update": _show_changed,
    "cron.run": _show_ran,
    "cron.pause": _show_moved("paused"),
    "cron.resume": _show_moved("resumed"),
    "cron.remove": _show_moved("removed"),
    "cron.list": _show_list,
    "cron.show": _show_one,
    "cron.log": _show_log,
}
