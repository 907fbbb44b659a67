"""Output of a finish: what an agent has, what was done, and how to take it back."""

from __future__ import annotations

from scout.cli.connection.refusal import list_tries, render_command
from scout.cli.connection.text import note, paint, print_fields, print_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SHOWN = 10


def show_finish(report: dict[str, Any]) -> None:
    """Show a preview, a conflict or a finished agent."""
    if report["state"] == "finished":
        _show_done(report)
    elif report["state"] == "conflict":
        _show_conflict(report)
    else:
        _show_preview(report)
    for text in report.get("notes") or ():
        note(f"note: {text}")


def show_finished_trees(told: dict[str, Any]) -> None:
    """Show the agents of a subtree that were finished, and why others were left."""
    for report in told["items"]:
        show_finish(report)
    for one in told["left"]:
        print_out(f"{paint('left', 'yellow')} {one['address']}: {one['reason']}")
        remedies = [
            {**each, "command": each.get("command") or render_command(each)} for each in one["remedies"]
        ]
        for text in list_tries({"remedies": remedies}, fall_back=False):
            note(f"  {text}")
    if not told["items"] and not told["left"]:
        print_out("No agents to finish.")


def _show_done(report: dict[str, Any]) -> None:
    print_out(f"{paint('finished', 'green')} {report['address']}: {_format_outcome(report)}")
    for number, command in enumerate(report["undo"]):
        note(f"{'undo:' if not number else '     '} {command}")


def _format_outcome(report: dict[str, Any]) -> str:
    if report["choice"] == "merge" and report.get("merged"):
        return f"merged {report['branch']} into {report['into']} as {report['merged'][:12]}"
    if report["choice"] == "merge":
        return "it had nothing to merge"
    if report["choice"] == "keep":
        return f"its work tree {report['folder']} and its branch stay"
    saved = f"; its uncommitted files are in {report['saved'][:12]}" if report.get("saved") else ""
    return f"its work was discarded{saved}"


def _show_conflict(report: dict[str, Any]) -> None:
    print_out(f"{paint('conflict', 'red')} {report['branch']} and {report['into']} both changed:")
    _show_list(report["conflicts"])
    print_out(f"asked {report['resolver']} to resolve this: {report['flightId']}")
    note(f"next: scout wait {report['flightId']}, then scout finish {report['address']} --merge")


def _show_preview(report: dict[str, Any]) -> None:
    files = len(report["uncommitted"]) + report["moreUncommitted"]
    facts: dict[str, object] = {
        "branch": report.get("branch") or "none",
        "into": report.get("into") or "",
        "folder": report.get("folder") or "",
        "uncommitted": count(files, "file") or "nothing",
        "unmerged": count(len(report["unmerged"]), "commit") or "nothing",
        "unpushed": count(report["unpushed"], "commit") or "nothing",
        "behind": count(report["behind"], "commit"),
        "in progress": report.get("operation") or "",
        "conflicts": ", ".join(report["conflicts"]),
        "open flights": ", ".join(report["flights"]),
        "open work": ", ".join(report["work"]),
        "children": ", ".join(report["children"]),
        "running": report["reason"],
    }
    print_fields(report["address"], {name: value for name, value in facts.items() if value})
    if report["uncommitted"]:
        print_out("uncommitted:")
        _show_list(report["uncommitted"], report["moreUncommitted"])
    if report["unmerged"]:
        print_out("unmerged:")
        _show_list(report["unmerged"])
    for option in report["options"]:
        _show_option(option)


def _show_option(option: dict[str, Any]) -> None:
    print_out("")
    print_out(paint(option["command"], "bold"))
    print_out(f"  {option['does'][:1].upper()}{option['does'][1:]}.")
    if option.get("problem"):
        print_out(f"  {paint('Not now:', 'yellow')} {option['problem']}.")


def _show_list(names: list[str], more: int = 0) -> None:
    for name in names[:_SHOWN]:
        print_out(f"  {name}")
    left = len(names) - len(names[:_SHOWN]) + more
    if left:
        print_out(f"  and {left} more")


def count(number: int, noun: str) -> str:
    """Return a number with its noun; empty for none."""
    return "" if not number else f"1 {noun}" if number == 1 else f"{number} {noun}s"
