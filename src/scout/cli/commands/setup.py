"""`scout setup`, and the commands that it configures hosts to call: `mcp`, `hook`, `statusline`."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import click

from scout.cli.commands.config import EFFECTS, apply_setting
from scout.cli.connection.call import CliIdentity, DaemonCall
from scout.cli.connection.refusal import RefusalError, build_remedy
from scout.cli.connection.text import is_interactive, note, paint, print_out
from scout.cli.hosts import hook as hooks
from scout.cli.hosts.edit_files import FileChange, Records, plan_changes, plan_undo, write
from scout.cli.hosts.host_session import TOKEN_FILE
from scout.cli.hosts.hosts import HOSTS, Host, find_scout_program
from scout.cli.hosts.relay import run_relay
from scout.cli.operations.build import build_epilog, run_guarded
from scout.daemon.start import find_running
from scout.settings.edit import set_value
from scout.settings.load import read

_LABEL = "scout setup"
_ASK = "scout ask --project . {harness}'Who are you, and what is this project about?'"


@click.command("setup", epilog=build_epilog("setup"))
@click.argument("host", nargs=-1, type=click.Choice(list(HOSTS)))
@click.option("--undo", is_flag=True, help="Undo: restore the files as they were.")
@click.option("--dry-run", is_flag=True, help="Show the change and write nothing.")
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--harness", metavar="NAME", help="The harness for new sessions where none is named.")
@click.option("--ask-each-time", is_flag=True, help="Let the host ask before each call of Scout's tools.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; writes only with --yes.")
def command(
    *,
    host: tuple[str, ...],
    undo: bool,
    dry_run: bool,
    yes: bool,
    harness: str | None,
    ask_each_time: bool,
    as_json: bool,
) -> None:
    """Connect Scout to the programs you work in: the MCP server, and hooks where they have them.

    Without HOST, sets up every host found on this machine. Shows the exact change and asks before writing.
    """
    run_guarded(
        lambda: _set_up(
            host,
            undo=undo,
            dry_run=dry_run,
            yes=yes,
            harness=harness,
            ask_each_time=ask_each_time,
            as_json=as_json,
        ),
        as_json,
    )


def _set_up(
    names: tuple[str, ...],
    *,
    undo: bool,
    dry_run: bool,
    yes: bool,
    harness: str | None,
    ask_each_time: bool,
    as_json: bool,
) -> int:
    caller = CliIdentity()
    _check_person(caller)
    records = Records(caller.where.home)
    program = find_scout_program(caller.environ)._replace(allows_tools=not ask_each_time)
    hosts = _choose_hosts(names, caller, records, undo=undo, dry_run=dry_run)
    if not dry_run:
        _check_harness(caller, harness)
        for host in hosts:
            _stop_idle_daemon(caller, host)
    plans = {
        one: plan_undo(one, caller.environ, program, records)
        if undo
        else plan_changes(one, caller.environ, program)
        for one in hosts
    }
    wanted = any(plans.values())
    if not as_json:
        _show_changes(plans)
    written = bool(not dry_run and (_confirm(yes, as_json) if wanted else True))
    if written:
        _write_changes(caller, records, plans, undo=undo)
        if not undo:
            _choose_harness(harness, asks=not (yes or as_json))
    if as_json:
        print_out(json.dumps(_build_json(plans, written=written and wanted)))
    else:
        _print_conclusion(hosts, wanted=wanted, written=written, undo=undo, dry_run=dry_run)
        if written and not undo:
            _offer_chat()
    return 0 if written or dry_run or as_json else 1


def _check_person(caller: CliIdentity) -> None:
    """Refuse inside a session: only a person may set up the programs that start sessions."""
    if caller.session:
        message = (
            f"scout setup is for a person: according to {caller.session}, this runs inside a harness session"
        )
        raise RefusalError.of(
            "forbidden", message, action="setup", subject="this machine", needs=["a person"]
        )


def _check_harness(caller: CliIdentity, name: str | None) -> None:
    """Refuse a default harness that Scout does not have, before anything is written."""
    if name is not None:
        DaemonCall(caller).call("GET /v1/runtimes", {"check": name})


def _choose_hosts(
    names: tuple[str, ...], caller: CliIdentity, records: Records, *, undo: bool, dry_run: bool
) -> list[Host]:
    if names:
        return [HOSTS[name] for name in dict.fromkeys(names)]
    if undo:
        return [HOSTS[one] for one in records.hosts() if one in HOSTS]
    found = [host for host in HOSTS.values() if host.is_here(caller.environ)]
    if not found and not dry_run:
        known = ", ".join(HOSTS)
        raise RefusalError.of(
            "not_found",
            f"none of {known} was found; name one: scout setup claude",
            noun="host",
            id="any",
            remedies=[build_remedy("setup", "scout setup claude")],
        )
    return found or [HOSTS["claude"], HOSTS["codex"]]


# -- output ------------------------------------------------------------------------------------------


def _show_changes(plans: dict[Host, list[FileChange]]) -> None:
    for host, changes in plans.items():
        if not changes:
            print_out(f"{host.title}: nothing to change")
        for change in changes:
            for line in change.diff().splitlines():
                print_out(_paint_line(line))


def _paint_line(line: str) -> str:
    style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return paint(line, style) if style else line


def _confirm(yes: bool, as_json: bool) -> bool:
    if yes or as_json:
        return yes
    if not is_interactive():
        note("nothing was written; to write it: add --yes")
        return False
    return click.confirm("Write this?", default=False)


def _print_conclusion(hosts: list[Host], *, wanted: bool, written: bool, undo: bool, dry_run: bool) -> None:
    if undo:
        if written and wanted:
            print_out(f"{paint('taken back', 'green')}: {', '.join(host.title for host in hosts)}")
        return
    for host in hosts:
        if host.note and written and wanted:
            note(f"note: {host.note}")
    if written and wanted:
        names = " and ".join(host.title for host in hosts)
        print_out(f"{paint('set up', 'green')}: {names}; restart open programs. Undo: scout setup --undo")
    if written:
        print_out(f"now try, in a project: {_suggest_first_command(hosts)}")
    elif dry_run:
        note("nothing was written (--dry-run)")


def _build_json(plans: dict[Host, list[FileChange]], *, written: bool) -> dict[str, Any]:
    hosts = [
        {
            "host": host.name,
            "changes": [
                {"file": str(one.file), "created": one.before is None, "diff": one.diff()} for one in changes
            ],
            "note": host.note or None,
        }
        for host, changes in plans.items()
    ]
    return {"hosts": hosts, "written": written, "next": _suggest_first_command(list(plans))}


def _suggest_first_command(hosts: list[Host]) -> str:
    """Return a first ask that works when pasted: it names the harness."""
    runs = [host.name for host in hosts if host.name in ("claude", "codex")]
    named = read().settings.harness or next(iter(runs), None)
    return _ASK.format(harness=f"--harness {named} " if named else "")


# -- changes -----------------------------------------------------------------------------------------


def _write_changes(
    caller: CliIdentity, records: Records, plans: dict[Host, list[FileChange]], *, undo: bool
) -> None:
    if not undo:
        _make_token(caller)
    for host, changes in plans.items():
        if not undo and changes:
            records.add(host.name, changes)
        for change in changes:
            write(change)
        if undo:
            records.forget(host.name)
    if undo and not records.hosts():
        _end_token(caller)


def _stop_idle_daemon(caller: CliIdentity, host: Host) -> None:
    """Stop Scout's own idle sessions of this host; refuse if one is working."""
    if find_running(caller.where.home) is None:
        return
    line = DaemonCall(caller, start=False)
    sessions = line.call("GET /v1/sessions", {"limit": 200, "live": True})["items"]
    for one in sessions:
        if not _is_driven(one, host.name):
            continue
        if line.call("GET /v1/sessions/{sessionId}", {"sessionId": one["id"]}).get("flightId"):
            message = f"{one['address']} works in {host.title} now ({one['id']}); stop it, or wait for it"
            stop = build_remedy("session.stop", f"scout session stop {one['id']}")
            raise RefusalError.of(
                "busy", message, reason="a session is working", retryAfter=60, remedies=[stop]
            )
        line.call("POST /v1/sessions/{sessionId}/stop", {"sessionId": one["id"]})
        note(f"stopped {one['id']}, an idle session of Scout's own; it resumes when it is needed")


def _choose_harness(named: str | None, *, asks: bool) -> None:
    """Store the default harness: the given one, or the person's choice if several are ready."""
    settings = read().settings
    if named is None and settings.harness is None and asks and is_interactive():
        ready = [one for one in ("claude", "codex") if shutil.which(one)]
        if len(ready) > 1:
            choice = click.Choice(ready)
            named = click.prompt("Harness for new sessions", type=choice, default=ready[0])
    if named is not None:
        set_value(settings.config, "harness", named)
        effect = apply_setting("harness")
        note(f"new sessions run in {named} where no harness is named")
        if effect:
            note(EFFECTS[effect])


def _offer_chat() -> None:
    from scout.cli.commands.connector import offer_chat

    offer_chat()


def _is_driven(session: dict[str, Any], harness: str) -> bool:
    return (
        session["harness"] == harness
        and session["state"] in ("starting", "live")
        and session["origin"] != "enrolled"
    )


def _make_token(caller: CliIdentity) -> None:
    """Make the host's credential once. Only this user can read it, and it only allows enrolling."""
    file = Path(caller.where.home) / TOKEN_FILE
    line = DaemonCall(caller)
    known = _list_host_tokens(line)
    if file.exists() and known:
        return
    for old in known:
        line.call("POST /v1/tokens/{tokenId}/revoke", {"tokenId": old, "reason": "its file is gone"})
    made = line.call("POST /v1/tokens", {"kind": "host", "label": _LABEL})
    fresh = file.with_name(f".{TOKEN_FILE}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as writing:
        writing.write(f"{made['secret']}\n")
    fresh.replace(file)


def _list_host_tokens(line: DaemonCall) -> list[str]:
    found = line.call("GET /v1/tokens", {"limit": 200})["items"]
    return [
        one["id"] for one in found if (one["kind"], one["label"], one["state"]) == ("host", _LABEL, "active")
    ]


def _end_token(caller: CliIdentity) -> None:
    """Remove the credential after the last host was removed."""
    (Path(caller.where.home) / TOKEN_FILE).unlink(missing_ok=True)
    if find_running(caller.where.home) is None:
        note("the host token is still in the list: scout token list")
        return
    line = DaemonCall(caller, start=False)
    for ident in _list_host_tokens(line):
        line.call("POST /v1/tokens/{tokenId}/revoke", {"tokenId": ident, "reason": "no host is set up"})


_host_option = click.option("--host", default="claude", show_default=True, help="The host that calls.")


@click.command("hook", epilog=build_epilog("hook"))
@click.argument("event", type=click.Choice(list(hooks.EVENTS)))
@_host_option
@click.option("--wait", type=float, default=30.0, show_default=True, help="Seconds for a permission request.")
def hook(event: str, host: str, wait: float) -> None:
    """Report an EVENT of a session: reads the host's JSON, prints what the host expects.

    It never starts the daemon, and is silent if none is running, so that the host is not disturbed.
    """
    click.get_current_context().exit(hooks.run_hook([event, "--host", host, "--wait", str(wait)]))


@click.command("statusline", epilog=build_epilog("statusline"))
@_host_option
def statusline(host: str) -> None:
    """Print one line for a host's status line: who the session is, what is unread, what needs you."""
    click.get_current_context().exit(hooks.print_statusline(["--host", host]))


@click.command("mcp", epilog=build_epilog("mcp"))
@click.option("--host", default="mcp", show_default=True, help="The host that calls.")
def mcp(host: str) -> None:
    """Run as a stdio MCP server: the host's session gets Scout's tools.

    The session enrols by itself, with the token that `scout setup` made, or uses SCOUT_TOKEN.
    """
    click.get_current_context().exit(run_relay(["--host", host]))
