"""`verify`, `backup` and `restore` open the store's file. `archive create` and `purge` ask the daemon.

An archive may take long, and a purge asks before it deletes.
"""

import itertools
import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from scout.base.codec import to_plain
from scout.base.refusal import Refused, Remedy
from scout.cli.connection.call import CliIdentity
from scout.cli.connection.refusal import RefusalError, build_remedy, render_refusal
from scout.cli.connection.text import confirm, is_interactive, note, paint, print_out
from scout.cli.operations.build import (
    build_common_options,
    build_epilog,
    build_parameters,
    run_guarded,
    tidy_parameters,
)
from scout.cli.operations.moments import read_moment
from scout.cli.operations.table import find_operation
from scout.cli.operations.verbs import Options
from scout.cli.output.archives import describe_purge
from scout.cli.output.results import show
from scout.daemon.start import find_running
from scout.protocol.operations import build_command_line
from scout.protocol.overview import CreateArchive, PurgeArchives
from scout.store.integrity.backup import Restored, backup, check_file, choose_free_name, restore
from scout.store.integrity.damage import examine
from scout.store.integrity.redactions import read_redactions, redact_backup
from scout.store.integrity.review import Review, review
from scout.store.integrity.verify import Report, verify

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_SHOWN = 10
_DAMAGED = 9
_PATIENCE = 7200.0  # seconds: years of history are written into files
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
        print_out(f"{report.events} events replayed{_describe_start(report)}, {report.rows} rows compared")
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


def _describe_start(report: Report) -> str:
    if not report.archives and not report.snapshot:
        return ""
    files = f"{report.archives} archive {'file' if report.archives == 1 else 'files'} checked"
    return f" after the snapshot at event {report.snapshot}, {files}" if report.snapshot else f", {files}"


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
@click.option("--redact", is_flag=True, help="Remove from an existing backup what was redacted since.")
@_JSON
def backup_command(file: Path, redact: bool, as_json: bool) -> None:
    """Copy the store to FILE while it is in use. An existing file is never replaced.

    With --redact: FILE is a backup from before, and the messages that `scout redact` removed from the
    store since then are removed from it too.
    """

    def work() -> int:
        store = _find_store()
        if redact:
            return _redact_backup(store, file, as_json)
        if file.exists():
            raise _refuse_existing(file)
        try:
            size = backup(store, file)
        except OSError as error:
            raise RefusalError.of("bad_request", f"{file} cannot be written: {error.strerror}") from None
        print_out(json.dumps({"file": str(file), "bytes": size}) if as_json else f"{file}: {size} bytes")
        return 0

    _run_with_refusals(work, as_json)


def _refuse_existing(file: Path) -> RefusalError:
    """Return the refusal of a file that exists, with the same command and a free name."""
    names = (file.with_name(f"{file.stem}-{number}{file.suffix}") for number in itertools.count(2))
    again = build_remedy(
        "backup", shlex.join(["scout", "backup", str(next(n for n in names if not n.exists()))])
    )
    return RefusalError.of("bad_request", f"{file} already exists", field="file", remedies=[again])


def _redact_backup(store: Path, file: Path, as_json: bool) -> int:
    check_file(file)
    count = redact_backup(read_redactions(store), file)
    told = f"{file}: removed {count} redacted {'message' if count == 1 else 'messages'}"
    print_out(json.dumps({"file": str(file), "redacted": count}) if as_json else told)
    return 0


@click.command("restore", epilog=build_epilog("restore"))
@click.argument("file", type=click.Path(path_type=Path))
@_JSON
def restore_command(file: Path, as_json: bool) -> None:
    """Replace the store with FILE, after checking it. The old store is kept beside it.

    What was redacted since the backup is removed from the restored store too. The daemon must not run:
    `scout down` first.
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
        done = restore(file, store, choose_free_name(store))
        _show_restored(store, file, done, as_json)
        return 0

    _run_with_refusals(work, as_json)


def _show_restored(store: Path, file: Path, done: Restored, as_json: bool) -> None:
    kept = str(done.aside) if done.aside else None
    if as_json:
        print_out(json.dumps({"store": str(store), "kept": kept, "redacted": done.redacted}))
        return
    print_out(f"{store} is now {file}" + (f"; the old one is {kept}" if kept else ""))
    if done.redacted:
        print_out(f"removed from it what was redacted since: {done.redacted}")
    for name in done.missing:
        note(f"the copy has no archive file {name}: its part of the log cannot be read")
    if done.redacted is None:
        note("the old store cannot be read, so messages redacted since the backup are in the store again")


# -- archives, in the daemon ---------------------------------------------------------------------------


def _run_create(**given: Any) -> None:
    manner = _take_manner(given)
    run_guarded(lambda: _call(CreateArchive, given, manner), manner.as_json)


def _run_purge(yes: bool, **given: Any) -> None:
    manner = _take_manner(given)
    run_guarded(lambda: _purge(given, manner, yes), manner.as_json)


def _take_manner(given: dict[str, Any]) -> Options:
    return Options(as_json=given.pop("as_json"), act_as=given.pop("act_as"), key=given.pop("key", None))


def _tidy(kind: type[CreateArchive] | type[PurgeArchives], given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters; a local date becomes a time with offset."""
    parameters = tidy_parameters(find_operation(kind.operation), given)
    before = parameters.get("before")
    if not isinstance(before, str):
        return parameters
    return {**parameters, "before": read_moment(before, "before", kind.operation)}


def _call(kind: type[CreateArchive] | type[PurgeArchives], given: dict[str, Any], manner: Options) -> int:
    line = manner.line()
    answer = line.call(kind.route, _tidy(kind, given), manner.key, patience=_PATIENCE)
    show(kind.operation, answer, manner.as_json, line)
    return 0


def _purge(given: dict[str, Any], manner: Options, yes: bool) -> int:
    """Show what would be deleted and ask. Without a terminal, only `--yes` deletes."""
    parameters = _tidy(PurgeArchives, given)
    if not yes and not parameters.get("dryRun"):
        plan = manner.line().call(PurgeArchives.route, {**parameters, "dryRun": True})
        if plan["files"] and not is_interactive():
            raise _build_refusal(plan, parameters)
        if plan["files"] and not confirm(f"{describe_purge(plan)} Delete them for good?"):
            note("nothing was deleted")
            return 1
    return _call(PurgeArchives, given, manner)


def _build_refusal(plan: dict[str, Any], parameters: dict[str, Any]) -> RefusalError:
    what = "--everything" if parameters.get("everything") else f"--before '{parameters['before']}'"
    again = build_remedy("purge", f"scout purge {what} --yes", "delete them for good")
    message = f"{describe_purge(plan)} Nothing was deleted"
    return RefusalError.of("bad_request", message, field="yes", remedies=[again])


create_archive = click.Command(
    "create",
    params=[
        *build_parameters(find_operation("archive.create")),
        *build_common_options(find_operation("archive.create")),
    ],
    callback=_run_create,
    help=CreateArchive.__doc__,
    short_help=find_operation("archive.create").says,
    epilog=build_epilog("archive.create"),
)

purge = click.Command(
    "purge",
    params=[
        *build_parameters(find_operation("purge")),
        click.Option(["--yes", "-y"], is_flag=True, help="Do not ask. Scripts need it."),
        *build_common_options(find_operation("purge")),
    ],
    callback=_run_purge,
    help=PurgeArchives.__doc__,
    short_help=find_operation("purge").says,
    epilog=build_epilog("purge"),
)
