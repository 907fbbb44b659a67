"""Output of observations: sessions on this machine, transcripts, changes of a work tree."""

from __future__ import annotations

import sys

from scout.cli.connection.refusal import render_command
from scout.cli.connection.text import (
    format_age,
    get_first_line,
    indent,
    join_lines,
    note,
    paint,
    print_out,
    print_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_COLOURS = {"user": "cyan", "assistant": "green", "tool": "yellow", "system": "dim"}
_PATCH = {"+": "green", "-": "red", "@": "cyan"}
_TOOL_LINES = 12


# -- topology ----------------------------------------------------------------------------------------


def _show_topology(told: dict[str, Any]) -> None:
    for one in told["items"]:
        print_out(_format_sighting(one))
    for looked in told["harnesses"]:
        if looked.get("problem"):
            note(f"{looked['harness']}: {looked['problem']}")
        elif looked["found"] > looked["shown"]:
            note(f"{looked['harness']}: {looked['shown']} of {looked['found']}; more with --limit")
    if not told["items"]:
        names = ", ".join(looked["harness"] for looked in told["harnesses"])
        print_out(f"no sessions were found: {names}")


def _format_sighting(one: dict[str, Any]) -> str:
    """Format an observed session: what and where it is, its title, and how to attach it."""
    state = " ".join(filter(None, ("live" if one.get("live") else "", one.get("state", ""))))
    life = f"  {paint(state, 'green' if one.get('live') else 'dim')}" if state else ""
    head = f"{paint(one['harness'], 'bold')}  {one['kind']} {one['nativeId']}{life}"
    when = f"  {format_age(one['updatedAt'])}" if one.get("updatedAt") else ""
    lines = [f"{head}{when}"]
    if about := ": ".join(filter(None, (one.get("cwd"), get_first_line(one.get("title", ""))))):
        lines.append(f"  {about}")
    if one.get("sessionId"):
        lines.append(f"  {one['sessionId']} of {one['agent']}")
    elif one.get("attach"):
        lines.append(f"  attach? {render_command(one['attach'])}")
    seen = f"  seen in {one['source']}" + (f"; {one['limits']}" if one.get("limits") else "")
    return join_lines([*lines, paint(seen, "dim")])


# -- a transcript ------------------------------------------------------------------------------------


def write_lines(lines: list[dict[str, Any]]) -> None:
    """Print the lines of a transcript with their speakers; tool output is cut."""
    for line in lines:
        who = line["who"]
        text = line["text"].rstrip()
        if who == "tool":
            text = _cut_lines(text)
        head = paint(f"{who:<9}", _COLOURS.get(who, "dim"))
        print_out(f"{head} {indent(text, ' ' * 10).lstrip()}")
    sys.stdout.flush()


def _cut_lines(text: str) -> str:
    lines = text.splitlines()
    rest = len(lines) - _TOOL_LINES
    return "\n".join([*lines[:_TOOL_LINES], f"… {rest} more lines"]) if rest > 0 else text


def _show_tail(told: dict[str, Any]) -> None:
    write_lines(told["lines"])
    if not told["lines"]:
        print_out("nothing yet")
    note(f"from {told['source']}; more: --after {told['next']}")


# -- a change ----------------------------------------------------------------------------------------


def _show_diff(told: dict[str, Any]) -> None:
    so_far = " so far" if told["running"] else ""
    if not told["stat"]:
        print_out(f"nothing was changed in {told['directory']}{so_far}")
        return
    if not told["patch"]:
        print_text(told["stat"].rstrip("\n"))
    for line in told["patch"].rstrip("\n").split("\n"):
        print_out(_paint_patch_line(line))
    if told["cut"]:
        note("the patch is longer than this; which files changed: --stat")
    if told["running"]:
        note("the work continues: this is the work tree as it is now")


def _paint_patch_line(line: str) -> str:
    bold = line.startswith(("diff ", "+++", "---"))
    colour = "bold" if bold else _PATCH.get(line[:1])
    return paint(line, colour) if colour else line


PRINTERS: dict[str, Callable[[Any], None]] = {
    "topology": _show_topology,
    "session.tail": _show_tail,
    "flight.diff": _show_diff,
}
