"""Output about archives: what was moved into files, which files there are, and what a purge deletes."""

from __future__ import annotations

from scout.cli.connection.text import format_local_time, format_table, note, paint, print_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _format_size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"


def _show_created(told: dict[str, Any]) -> None:
    before = format_local_time(told["before"])
    if not told["events"]:
        print_out(f"There is nothing to archive before {before}.")
        return
    span = f"{_count(told['events'], 'event')}, {told['first']} to {told['last']}"
    if told["dryRun"]:
        print_out(f"would archive {span}: {_format_size(told['size'])} before compression")
        return
    files = f"{_count(told['files'], 'file')}, {_format_size(told['size'])}"
    print_out(f"{paint('archived', 'green')} {span}, in {files}")


def _show_list(page: dict[str, Any]) -> None:
    if not page["items"]:
        print_out("Nothing is archived.")
        return
    print_out(
        format_table(["kind", "state", "events", "until", "size", "file"], map(_build_row, page["items"]))
    )
    if page.get("next"):
        note(f"more: --cursor {page['next']}")


def _build_row(one: dict[str, Any]) -> list[str]:
    until, size = format_local_time(one["until"]), _format_size(one["size"])
    return [one["kind"], one["state"], f"{one['first']}-{one['last']}", until, size, one["file"]]


def describe_purge(told: dict[str, Any]) -> str:
    """Return what a purge deletes, as a sentence."""
    if not told["files"]:
        return "There is nothing to purge."
    span = f"from {format_local_time(told['since'])} to {format_local_time(told['until'])}"
    files = f"{_count(told['files'], 'file')}, {_format_size(told['size'])}"
    return f"{_count(told['events'], 'event')} {span} ({files})."


def _show_purged(told: dict[str, Any]) -> None:
    if not told["files"]:
        print_out(describe_purge(told))
        return
    print_out(f"{'would purge' if told['dryRun'] else paint('purged', 'green')} {describe_purge(told)}")
    print_out(f"The first event that is left is {told['firstLeft']}. Messages, flights and work stay.")


PRINTERS: dict[str, Callable[[Any], None]] = {
    "archive.create": _show_created,
    "archive.list": _show_list,
    "purge": _show_purged,
}
