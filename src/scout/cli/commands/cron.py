"""`scout cron add` and `scout cron update`: repeat an ask at set times."""

from __future__ import annotations

from typing import Any

import click

from scout.cli.connection.refusal import RefusalError
from scout.cli.operations.build import (
    build_common_options,
    build_epilog,
    build_parameters,
    perform_operation,
    run_guarded,
    tidy_parameters,
)
from scout.cli.operations.durations import Duration
from scout.cli.operations.table import find_operation
from scout.cli.operations.verbs import Options, read_body

_OWN = frozenset({"body", "jitter"})
_FILE = click.Option(["--file"], metavar="FILE", help="Read the text from a file.")
_JITTER = click.Option(
    ["--jitter", "jitter"],
    type=Duration(most="1h"),
    metavar="DURATION",
    help="Start each run up to this much later, to spread load: 30s, 5m, at most 1h.",
)
_ADD_HELP = """Repeat an ask at set times.

CRON: five fields, quoted: minute, hour, day of the month, month, day of the week; or @hourly, @daily,
@weekly, @monthly or @yearly.

TEXT: what to ask for, - for standard input, or --file FILE. Without any, a terminal opens $EDITOR.

The answer goes to your inbox, and to the agent that you talked with last; or to a channel."""


def _build(word: str, text: str, help_text: str) -> click.Command:
    row = find_operation(f"cron.{word}")

    def callback(words: tuple[str, ...], file: str | None, jitter: float | None, **given: Any) -> None:
        manner = Options(
            as_json=given.pop("as_json"), act_as=given.pop("act_as"), key=given.pop("key"), file=file
        )

        def work() -> int:
            parameters = tidy_parameters(row, given)
            if word == "add":
                _check_words(parameters, words)
            if words or file is not None or word == "add":
                parameters["body"] = read_body([*words], manner)
            if jitter is not None:
                parameters["jitter"] = round(jitter)
            return perform_operation(row, parameters, manner)

        run_guarded(work, manner.as_json)

    return click.Command(
        word,
        params=[
            *build_parameters(row, _OWN),
            click.Argument(["words"], nargs=-1, metavar=text),
            _JITTER,
            _FILE,
            *build_common_options(row),
        ],
        callback=callback,
        help=help_text,
        short_help=row.says,
        epilog=build_epilog("cron", word),
    )


def _check_words(parameters: dict[str, Any], words: tuple[str, ...]) -> None:
    """Refuse fields without quotes, which the shell has torn apart, and a schedule that asks nobody."""
    cron = str(parameters["cron"])
    if words and cron[:1] != "@" and len(cron.split()) == 1:
        problem = f"quote the five fields, as in '0 9 * * *': '{cron}' is only the first"
        raise RefusalError.of("bad_request", problem, problem=problem, field="cron")
    if not parameters.get("to") and not parameters.get("projectPath"):
        problem = "name the agent to ask with --to, or a project with --project"
        raise RefusalError.of("bad_request", problem, problem=problem, field="to")


add = _build("add", "[TEXT]", _ADD_HELP)
update = _build("update", "[TEXT]", f"{find_operation('cron.update').says}\n\nTEXT: the new text of the ask.")
