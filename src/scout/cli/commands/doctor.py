"""`scout doctor`: is this installation well, and what mends it?"""

import json
from pathlib import Path
from typing import Any

import click

from scout.cli.commands.bundle import write_bundle
from scout.cli.commands.checks import CHECKS, Result
from scout.cli.connection.call import CliIdentity
from scout.cli.connection.refusal import RefusalError
from scout.cli.connection.text import note, out, paint
from scout.cli.operations.build import epilog, run_guarded

_UNWELL = 9


@click.command("doctor", epilog=epilog("doctor"))
@click.option("--fix", is_flag=True, help="Mend what can be mended without a decision of yours.")
@click.option(
    "--bundle", type=click.Path(path_type=Path), metavar="FILE", help="Write a report without secrets."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(fix: bool, bundle: Path | None, as_json: bool) -> None:
    """Check this installation, and say what to mend.

    --bundle writes a .tar.gz to show to others: versions, settings, results, counts and the end of the
    log, with credentials masked; no message bodies and no tokens.
    """

    def work() -> int:
        results = examine(fix)
        if bundle is not None:
            _bundle(bundle, results)
        if as_json:
            out(json.dumps({"well": _is_well(results), "checks": [one.told() for one in results]}))
        else:
            _show(results)
            if bundle is not None:
                out(f"written: {bundle}")
        return 0 if _is_well(results) else _UNWELL

    run_guarded(work, as_json)


def examine(fix: bool = False) -> list[Result]:
    """Every check, in the order in which they rest on each other."""
    caller = CliIdentity()
    return [result for check in CHECKS for result in check(caller, fix)]


def _is_well(results: list[Result]) -> bool:
    return all(one.well for one in results)


def _show(results: list[Result]) -> None:
    width = max(len(one.name) for one in results)
    for one in results:
        mark, colour = (
            ("problem", "red") if not one.well else (("hint", "yellow") if one.hint else ("ok", "green"))
        )
        out(f"{paint(f'{mark:<7}', colour)}  {one.name:<{width}}  {one.says}")
    remedies = list(dict.fromkeys(one.remedy for one in results if not one.well and one.remedy))
    for remedy in remedies:
        note(f"try: {remedy}")
    if not _is_well(results) and not remedies:
        note("try: scout doctor --fix")


def _bundle(file: Path, results: list[Result]) -> None:
    told: list[dict[str, Any]] = [one.told() for one in results]
    try:
        write_bundle(file, told, CliIdentity())
    except OSError as error:
        raise RefusalError.of("bad_request", f"{file} cannot be written: {error.strerror}") from None
