"""`scout import`: take agents, names, conversations and open work over from another system."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from scout.cli.connection.call import DaemonCall
from scout.cli.connection.refusal import RefusalError
from scout.cli.connection.text import erase_status, is_interactive, print_json, show_status
from scout.cli.imports.daycare import read_daycare
from scout.cli.imports.exomonad import read_exomonad
from scout.cli.imports.openscout import read_openscout
from scout.cli.imports.sender import Importer
from scout.cli.imports.source import Source
from scout.cli.operations.build import build_epilog, run_guarded
from scout.cli.output.imports import show_report
from scout.protocol.imports.records import ImportSystem
from scout.protocol.imports.requests import ImportRecords

_READERS: dict[str, Callable[[Path], Source]] = {
    ImportSystem.OPENSCOUT: read_openscout,
    ImportSystem.DAYCARE: read_daycare,
    ImportSystem.EXOMONAD: read_exomonad,
}
_HELP = """Import agents, names, conversations and open work from another system.

PATH: for openscout, the folder of its journal (broker-journal.jsonl); for daycare, a JSON export of its
tables or the text of `pg_dump --data-only`; for exomonad, the folder of the project.

The other system's files are only read. Run it with --dry-run first. Importing again adds what is new and
nothing else. A name that is taken is kept with the system's name behind it, as in @arc-openscout. Nothing is
delivered and no agent is woken. Credentials and transcripts are never imported."""


@click.command("import", help=_HELP, short_help="Import from another system.", epilog=build_epilog("import"))
@click.argument("system", type=click.Choice([str(one.value) for one in ImportSystem]))
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Change nothing, and show what would be imported.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(system: str, path: Path, dry_run: bool, as_json: bool) -> None:
    """Read the other system here, and send what was found to the daemon."""
    run_guarded(lambda: _run(system, path, dry_run=dry_run, as_json=as_json), as_json)


def _run(system: str, path: Path, *, dry_run: bool, as_json: bool) -> int:
    source = _read(system, path)
    line = DaemonCall()

    def send(records: list[Any]) -> list[dict[str, Any]]:
        given = {"system": system, "records": records, "dryRun": dry_run}
        return list(line.call(ImportRecords.route, given)["outcomes"])

    importer = Importer(source, send, _show_progress if is_interactive() else lambda kind, count: None)
    try:
        importer.run()
    finally:
        erase_status()
    report = _build_report(system, path, dry_run, importer, source)
    if as_json:
        print_json(report)
    else:
        show_report(report)
    return 0


def _read(system: str, path: Path) -> Source:
    try:
        return _READERS[system](path)
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise RefusalError.of("bad_request", message, field="path") from None


def _show_progress(kind: str, count: int) -> None:
    show_status(f"importing: {count} × {kind}")


def _build_report(
    system: str, path: Path, dry_run: bool, importer: Importer, source: Source
) -> dict[str, Any]:
    left = [
        {"type": kind, "reason": reason, "count": count} for (kind, reason), count in source.left_out.items()
    ]
    return {
        "system": system,
        "path": str(path),
        "dryRun": dry_run,
        "taken": dict(importer.taken),
        "present": dict(importer.present),
        "changed": [one._asdict() for one in importer.changed],
        "skipped": [one._asdict() for one in importer.skipped],
        "leftOut": left,
    }
