"""`scout config`: every setting and where it comes from; change one; the allowed roots."""

import os
import sys
from typing import Any, NoReturn

import click

from scout.base.codec import to_plain
from scout.base.refusal import Refused
from scout.cli.connection.call import CliIdentity, DaemonCall
from scout.cli.connection.refusal import RefusalError, render_refusal, write_refusal
from scout.cli.connection.text import format_table, note, paint, print_json, print_out
from scout.client.http import Lost
from scout.daemon.setting_checks import check_value, list_problems
from scout.daemon.start import find_running
from scout.settings.edit import add_root, set_value
from scout.settings.load import Loaded, load, read
from scout.settings.record import PROJECT_SETTINGS, SETTINGS, get_value, list_values

_EXAMPLES = """\b
Examples:
  scout config                              # every setting, its value, the layer that set it
  scout config set limits.openFlights 64
  scout config roots --add ~/code           # programs may be started below it
"""

EFFECTS = {
    "now": "the running daemon uses it from now on",
    "restart": "the running daemon keeps the old value until: scout restart",
}

_json = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


@click.group(epilog=_EXAMPLES, invoke_without_command=True)
@_json
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Show every setting with its value and the layer that set it: file, environment or default."""
    if context.invoked_subcommand is not None:
        return
    loaded = read()
    rows, problems = _list_rows(loaded), [*loaded.problems, *list_problems(loaded)]
    if as_json:
        shown = [render_refusal(problem) for problem in problems]
        print_json({"settings": rows, "projects": to_plain(loaded.settings.projects), "problems": shown})
    else:
        _write_rows(rows)
        _write_projects(loaded)
        for problem in problems:
            write_refusal(render_refusal(problem))
    if problems:
        sys.exit(problems[0].family.exit_code)


@command.command("set", context_settings={"ignore_unknown_options": True})  # a value may be negative
@click.argument("key")
@click.argument("value")
@_json
def set_command(key: str, value: str, as_json: bool) -> None:
    """Write KEY = VALUE into the config file. `none` removes an optional setting."""
    try:
        settings = read().settings
        set_value(settings.config, key, value, check=lambda read: check_value(key, read, settings))
    except Refused as refusal:
        _refuse(refusal, key, as_json)
    row, effect = _list_rows(read())[key], apply_setting(key)
    if as_json:
        print_json({"key": key, **row, **({"takesEffect": effect} if effect else {})})
        return
    _write_rows({key: row})
    if not row["source"].startswith(("file ", "default")):
        note(f"the file has your value, but the {row['source']} takes precedence")
    elif effect:
        note(EFFECTS[effect])


@command.command("roots")
@click.option("--add", metavar="DIR", help="Allow programs below this directory.")
@_json
def roots_command(add: str | None, as_json: bool) -> None:
    """Show the directories below which programs may be started, or add one."""
    try:
        settings = load().settings
        if add is not None:
            settings = add_root(settings, os.path.expanduser(add))  # noqa: PTH111 (text in, text out)
            apply_setting("roots")
    except Refused as refusal:
        _refuse(refusal, add or "roots", as_json)
    if as_json:
        print_json({"roots": list(settings.roots)})
        return
    for root in settings.roots:
        print_out(root)
    if not settings.roots:
        note("none yet; allow one with: scout config roots --add DIR")


def apply_setting(key: str) -> str:
    """Let the running daemon reload its settings; return when the value takes effect, empty if unchanged."""
    if find_running(read().settings.home) is None:
        return ""
    try:
        told = DaemonCall(CliIdentity(), start=False).call("POST /v1/settings/reload", {})
    except (RefusalError, Lost, OSError):
        return "restart"
    return "now" if key in told["changed"] else "restart" if key in told["needsRestart"] else ""


def _list_rows(loaded: Loaded) -> dict[str, dict[str, Any]]:
    """Return each key with its value and source; the folders first."""
    settings, sources = loaded.settings, loaded.sources
    folders = {"home": settings.home, "config": settings.config, "socket": settings.socket}
    values = list_values(settings)
    rows = {
        key: {"value": value, "source": sources.get(key, sources["home"])} for key, value in folders.items()
    }
    for key in SETTINGS:
        rows[key] = {"value": values[key], "source": sources[key]}
    return rows


def _write_rows(rows: dict[str, dict[str, Any]]) -> None:
    shown = [
        (key, _format_value(key, row["value"]), paint(row["source"], "dim")) for key, row in rows.items()
    ]
    print_out(format_table((), shown))


def _write_projects(loaded: Loaded) -> None:
    """Show the settings of each project that differ from the default."""
    for root, rules in loaded.settings.projects.items():
        print_out(f'[projects."{root}"]')
        for key, row in PROJECT_SETTINGS.items():
            value = row.check(get_value(to_plain(rules), key))
            if value != row.default:
                print_out(f"  {key} = {row.format(value)}")


def _format_value(key: str, value: Any) -> str:
    return SETTINGS[key].format(value) or "-" if key in SETTINGS else str(value)


def _refuse(refusal: Refused, given: str, as_json: bool) -> NoReturn:
    told = render_refusal(refusal.diagnostic)
    if as_json:
        print_json({"input": given, "error": told})
    else:
        write_refusal(told)
    sys.exit(refusal.diagnostic.family.exit_code)
