"""`scout setup`: Scout in the programs that people work in, shown first, asked for, and undone on demand."""

import json
import os
from pathlib import Path
from typing import Any

import click

from scout.cli.build import epilog, run_guarded
from scout.cli.caller import Caller
from scout.cli.host import TOKEN_FILE
from scout.cli.hosts import HOSTS, Host, program_here
from scout.cli.line import Line, on_terminal
from scout.cli.placing import Change, Records, planned, undone, write
from scout.cli.problem import Problem
from scout.cli.text import note, out, paint
from scout.daemon.start import running

__all__ = ["command"]

_LABEL = "scout setup"
_ASK = "scout ask --project . 'Who are you, and what is this project about?'"


@click.command("setup", epilog=epilog("setup"))
@click.argument("host", required=False, type=click.Choice(list(HOSTS)))
@click.option("--undo", is_flag=True, help="Take it back: the files become what they were.")
@click.option("--dry-run", is_flag=True, help="Show the change and write nothing.")
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; writes only with --yes.")
def command(host: str | None, undo: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Connect Scout to a program you work in: the MCP server, and hooks where it has them.

    Without HOST, every one that is found on this machine. The exact change is shown and asked for.
    """
    run_guarded(lambda: _setup(host, undo=undo, dry_run=dry_run, yes=yes, as_json=as_json), as_json)


def _setup(name: str | None, *, undo: bool, dry_run: bool, yes: bool, as_json: bool) -> int:
    caller = Caller()
    _check_person(caller)
    records, program = Records(caller.where.home), program_here(caller.environ)
    hosts = _hosts(name, caller, records, undo=undo)
    plans = {
        one: undone(one, caller.environ, program, records) if undo else planned(one, caller.environ, program)
        for one in hosts
    }
    wanted = any(plans.values())
    if not as_json:
        _show(plans)
    written = bool(not dry_run and (_confirmed(yes, as_json) if wanted else True))
    if written:
        _write(caller, records, plans, undo=undo)
    if as_json:
        out(json.dumps(_told(plans, written=written and wanted)))
    else:
        _conclude(hosts, wanted=wanted, written=written, undo=undo, dry_run=dry_run)
    return 0 if written or dry_run or as_json else 1


def _check_person(caller: Caller) -> None:
    """Whoever runs inside a session does not set up what starts the next one."""
    if caller.session:
        message = (
            f"scout setup is for a person: {caller.session} says that this runs inside a harness session"
        )
        raise Problem.of("forbidden", message, action="setup", subject="this machine", needs=["a person"])


def _hosts(name: str | None, caller: Caller, records: Records, *, undo: bool) -> list[Host]:
    if name is not None:
        return [HOSTS[name]]
    if undo:
        return [HOSTS[one] for one in records.hosts() if one in HOSTS]
    found = [host for host in HOSTS.values() if host.is_here(caller.environ)]
    if not found:
        names = ", ".join(HOSTS)
        raise Problem.of(
            "not_found", f"none of {names} was found; name one: scout setup claude", noun="host", id="any"
        )
    return found


# -- what a person sees ------------------------------------------------------------------------------


def _show(plans: dict[Host, list[Change]]) -> None:
    for host, changes in plans.items():
        if not changes:
            out(f"{host.title}: nothing to change")
        for change in changes:
            for line in change.diff().splitlines():
                out(_painted(line))


def _painted(line: str) -> str:
    style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return paint(line, style) if style else line


def _confirmed(yes: bool, as_json: bool) -> bool:
    if yes or as_json:
        return yes
    if not on_terminal():
        note("nothing was written; to write it: add --yes")
        return False
    return click.confirm("Write this?", default=False)


def _conclude(hosts: list[Host], *, wanted: bool, written: bool, undo: bool, dry_run: bool) -> None:
    if undo:
        if written and wanted:
            out(f"{paint('taken back', 'green')}: {', '.join(host.title for host in hosts)}")
        return
    for host in hosts:
        if host.note and written and wanted:
            note(f"note: {host.note}")
    if written and wanted:
        names = " and ".join(host.title for host in hosts)
        out(f"{paint('set up', 'green')}: {names}; restart what is open. Undo: scout setup --undo")
    if written:
        out(f"now try, in a project: {_ASK}")
    elif dry_run:
        note("nothing was written (--dry-run)")


def _told(plans: dict[Host, list[Change]], *, written: bool) -> dict[str, Any]:
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
    return {"hosts": hosts, "written": written, "next": _ASK}


# -- what is done ------------------------------------------------------------------------------------


def _write(caller: Caller, records: Records, plans: dict[Host, list[Change]], *, undo: bool) -> None:
    if not undo:
        _make_token(caller)
    for host, changes in plans.items():
        _check_idle(caller, host)
        if not undo and changes:
            records.add(host.name, changes)
        for change in changes:
            write(change)
        if undo:
            records.forget(host.name)
    if undo and not records.hosts():
        _end_token(caller)


def _check_idle(caller: Caller, host: Host) -> None:
    """Not while Scout itself drives a session of this host: it would read half of a change."""
    if running(caller.where.home) is None:
        return
    sessions = Line(caller, start=False).call("GET /v1/sessions", {"limit": 200})["items"]
    busy = [one["id"] for one in sessions if _is_driven(one, host.name)]
    if busy:
        message = f"Scout runs {host.title} now ({busy[0]}): try again when it has ended"
        raise Problem.of("busy", message, reason="a session is under way", retryAfter=60)


def _is_driven(session: dict[str, Any], harness: str) -> bool:
    return (
        session["harness"] == harness
        and session["state"] in ("starting", "live")
        and session["origin"] != "enrolled"
    )


def _make_token(caller: Caller) -> None:
    """The host's credential: made once, readable by this user alone, and good for enrolling only."""
    file = Path(caller.where.home) / TOKEN_FILE
    line = Line(caller)
    known = _tokens(line)
    if file.exists() and known:
        return
    for old in known:
        line.call("POST /v1/tokens/{tokenId}/revoke", {"tokenId": old, "reason": "its file is gone"})
    made = line.call("POST /v1/tokens", {"kind": "host", "label": _LABEL})
    fresh = file.with_name(f".{TOKEN_FILE}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as writing:
        writing.write(f"{made['secret']}\n")
    fresh.replace(file)


def _tokens(line: Line) -> list[str]:
    found = line.call("GET /v1/tokens", {"limit": 200})["items"]
    return [
        one["id"] for one in found if (one["kind"], one["label"], one["state"]) == ("host", _LABEL, "active")
    ]


def _end_token(caller: Caller) -> None:
    """The last host is gone: nobody needs the credential any more."""
    (Path(caller.where.home) / TOKEN_FILE).unlink(missing_ok=True)
    if running(caller.where.home) is None:
        note("the host token is still in the list: scout token list")
        return
    line = Line(caller, start=False)
    for ident in _tokens(line):
        line.call("POST /v1/tokens/{tokenId}/revoke", {"tokenId": ident, "reason": "no host is set up"})
