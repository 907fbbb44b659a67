"""`verify`, `backup` and `restore`: they open the store's file directly, so they work without a daemon."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from scout.base.codec import to_plain
from scout.base.refusal import Refused, Remedy
from scout.cli.connection.call import CliIdentity
from scout.cli.connection.refusal import RefusalError, build_remedy, render_refusal
from scout.cli.connection.text import note, paint, print_out
from scout.cli.operations.build import build_epilog, run_guarded
from scout.daemon.start import find_running
from scout.protocol.operations import build_command_line
from scout.store.integrity.backup import backup, choose_free_name, restore
from scout.store.integrity.damage import examine
from scout.store.integrity.review import Review, review
from scout.store.integrity.verify import verify

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_SHOWN = 10
_DAMAGED = 9
_RESTORE = Remedy(operation="restore", parameters={"file": "FILE"}, why="a backup from before")


def _find_store(there: bool = True) -> Path:
    home = Path(CliIdentity().where.home)
    file = home / "scout.db"
    if there and not file.is_file():
        message = f"there is no store in {home} yet"
        raise RefusalError.of("not_found", message, noun="store", id=str(file), remedies=[build_remedy("up")])
    return file


def _run_with_refusals(work: Callable[[], int], as_json: bool) -> None:
    """Run a command, and show a refusal of the store like any other refusal."""

    def guarded() -> int:
        try:
            return work()
        except Refused as refusal:
            raise RefusalError(render_refusal(refusal.diagnostic)) from None

    run_guarded(guarded, as_json)


@click.command("verify", epilog=build_epilog("verify"))
@click.option("--policy", is_flag=True, help="Make each stored wake decision again, by today's rules.")
@_JSON
def verify_command(policy: bool, as_json: bool) -> None:
    """Replay the log into a copy and compare it with the tables, row for row. Nothing is changed.

    With --policy: make every wake decision of the log again from the facts that are stored with it,
    and show where today's rules would decide otherwise.
    """

    def work() -> int:
        if policy:
            return _show_review(review(_find_store()), as_json)
        store = _find_store()
        try:
            report = verify(store)
        except Refused:
            return _show_damage(store, as_json)
        if as_json:
            print_out(json.dumps({"clean": report.clean, **to_plain(report)}))
            return 0 if report.clean else _DAMAGED
        print_out(f"{report.events} events replayed, {report.rows} rows compared")
        for text in report.damage:
            print_out(f"{paint('damage', 'red')}: {text}")
        for number in report.gaps:
            print_out(f"{paint('gap', 'red')}: an event is missing after number {number}")
        for one in report.differences[:_SHOWN]:
            print_out(f"{paint('differs', 'red')}: {one.table} {one.id}")
            print_out(f"  stored    {json.dumps(one.stored)}")
            print_out(f"  replayed  {json.dumps(one.replayed)}")
        if report.clean:
            print_out(f"{paint('clean', 'green')}: the tables match the log")
            return 0
        _show_remedies(examine(store).remedies or (_RESTORE,))
        return _DAMAGED

    _run_with_refusals(work, as_json)


def _show_damage(store: Path, as_json: bool) -> int:
    """Show what is left of a damaged store, and how to restore it."""
    report = examine(store)
    if as_json:
        print_out(json.dumps({"clean": False, **to_plain(report), "lost": report.lost}))
        return _DAMAGED
    for line in report.lines:
        print_out(f"{paint('damage', 'red')}: {line}")
    _show_remedies(report.remedies or (_RESTORE,))
    return _DAMAGED


def _show_remedies(remedies: Sequence[Remedy]) -> None:
    for one in remedies:
        note(f"try: {build_command_line(one)}   # {one.why}")


def _show_review(report: Review, as_json: bool) -> int:
    if as_json:
        print_out(json.dumps({"clean": report.clean, **to_plain(report)}))
        return 0 if report.clean else _DAMAGED
    print_out(f"{report.events} events read, {report.decisions} wake decisions made again")
    for one in report.differences[:_SHOWN]:
        print_out(f"{paint('differs', 'red')}: event {one.seq} ({one.event_id})")
        print_out(f"  stored  {one.stored}")
        print_out(f"  today   {one.today}")
    if report.clean:
        print_out(f"{paint('clean', 'green')}: today's rules make the same decisions")
        return 0
    print_out(f"{report.differing} decisions would differ today")
    note(f"try: scout why {report.differences[0].event_id}")
    return _DAMAGED


@click.command("backup", epilog=build_epilog("backup"))
@click.argument("file", type=click.Path(path_type=Path))
@_JSON
def backup_command(file: Path, as_json: bool) -> None:
    """Copy the store to FILE while it is in use. An existing file is never replaced."""

    def work() -> int:
        store = _find_store()
        try:
            size = backup(store, file)
        except OSError as error:
            raise RefusalError.of("bad_request", f"{file} cannot be written: {error.strerror}") from None
        print_out(json.dumps({"file": str(file), "bytes": size}) if as_json else f"{file}: {size} bytes")
        return 0

    _run_with_refusals(work, as_json)


@click.command("restore", epilog=build_epilog("restore"))
@click.argument("file", type=click.Path(path_type=Path))
@_JSON
def restore_command(file: Path, as_json: bool) -> None:
    """Replace the store with FILE, after checking it. The old store is kept beside it.

    The daemon must not run: `scout down` first.
    """

    def work() -> int:
        store = _find_store(there=False)
        found = find_running(str(store.parent))
        if found is not None:
            message = f"the daemon (pid {found.pid}) has the store open"
            raise RefusalError.of(
                "wrong_state", message, noun="daemon", state="running", remedies=[build_remedy("down")]
            )
        store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = restore(file, store, choose_free_name(store))
        told = {"store": str(store), "kept": str(kept) if kept else None}
        print_out(
            json.dumps(told)
            if as_json
            else f"{store} is now {file}" + (f"; the old one is {kept}" if kept else "")
        )
        return 0

    _run_with_refusals(work, as_json)
