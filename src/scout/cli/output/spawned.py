"""Output of spawned agents and of the settings of projects."""

from __future__ import annotations

from scout.cli.connection.refusal import list_tries, render_command
from scout.cli.connection.text import format_table, note, paint, print_note_text, print_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_TAIL = 5  # lines of the output of a setup command


def show_spawned(told: dict[str, Any]) -> None:
    """Show the agents that were spawned, then why others were not."""
    agents: list[dict[str, Any]] = told["agents"]
    print_out(format_table(("agent", "", "branch", "directory"), [_build_row(one) for one in agents]))
    for text in told.get("notes") or ():
        note(f"note: {text}")
    for one in agents:
        _note_details(one)
    for one in told.get("failed") or ():
        _note_failure(one)


def _build_row(one: dict[str, Any]) -> list[str]:
    made = paint("new", "green") if one["created"] else "exists"
    return [one["address"], made, one.get("birthBranch") or "-", one.get("workingDir") or "-"]


def _note_details(one: dict[str, Any]) -> None:
    for text in one.get("notes") or ():
        note(f"{one['address']}: {text}")
    if one.get("copied"):
        note(f"{one['address']}: copied {', '.join(one['copied'])}")
    setup = one.get("setup")
    if setup:
        note(f"{one['address']}: `{setup['command']}` finished in {setup['seconds']:.0f} s")
        _note_output(setup.get("output"))


def _note_failure(one: dict[str, Any]) -> None:
    error: dict[str, Any] = {
        **one["error"],
        "remedies": [_add_command(remedy) for remedy in one["error"]["remedies"]],
    }
    note(f"{one['slug']} was not spawned: {error['message']}")
    _note_output(error.get("output"))
    for line in list_tries(error):
        note(line)


def _add_command(remedy: dict[str, Any]) -> dict[str, Any]:
    return {**remedy, "command": remedy.get("command") or render_command(remedy)}


def _note_output(text: str | None) -> None:
    lines = (text or "").rstrip().splitlines()[-_TAIL:]
    if lines:
        print_note_text("\n".join(f"  | {line}" for line in lines))


def _show_projects(page: dict[str, Any]) -> None:
    for one in page["items"]:
        _show_project(one)
    if not page["items"]:
        print_out("No projects yet. A spawn adds its project.")


def _show_project(one: dict[str, Any]) -> None:
    missing = paint("  (the directory does not exist)", "yellow") if one.get("missing") else ""
    print_out(f"{paint(one['root'], 'bold')}{missing}")
    for section, values in one["settings"].items():
        for key, value in values.items():
            if value not in (None, []):
                print_out(f"  {section}.{key} = {_format_value(value)}")


def _format_value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return " ".join(str(one) for one in value) if type(value) is list else str(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] (JSON)


PRINTERS: dict[str, Callable[[Any], None]] = {
    "spawn": show_spawned,
    "project.list": _show_projects,
    "project.set": _show_project,
}
