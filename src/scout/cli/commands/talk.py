"""`send`, `ask`, `reply`, `wait` and others with a body or a wait: flags from the table, words by hand."""

import base64
import sys
from typing import Any

import click

from scout.cli.operations import verbs
from scout.cli.operations.build import (
    build_common_options,
    build_epilog,
    build_parameters,
    perform_operation,
    run_guarded,
    tidy_parameters,
)
from scout.cli.operations.complete import complete_addresses, get_completion
from scout.cli.operations.table import find_operation
from scout.cli.operations.verbs import Options
from scout.cli.waiting.follow import follow

_FILE = click.Option(["--file"], metavar="FILE", help="Read the text from a file.")
_TO = click.Option(
    ["--to", "to"],
    metavar="ADDRESS",
    help="The target, if it is not the first word.",
    shell_complete=complete_addresses,
)
_WAITING = [
    click.Option(["--wait", "wait"], type=float, metavar="SECONDS", help="Maximum time to wait."),
    click.Option(["--no-wait", "no_wait"], is_flag=True, help="Print the receipt and do not wait."),
    click.Option(["--notify", "notify"], is_flag=True, help="Do not wait. The answer goes to your inbox."),
]

_BODY = (
    "TEXT is the words you type, - for standard input, or --file FILE. Without any, a terminal opens $EDITOR."
)


def _build_spoken(
    operation: str, words: str, says: str, more: list[click.Parameter], left_out: set[str]
) -> click.Command:
    """Build a command whose target and text are plain words."""
    row = find_operation(operation)
    argument = click.Argument(["words"], nargs=-1, metavar=words, shell_complete=complete_addresses)
    flags = build_parameters(row, frozenset({"to", "body", *left_out}))

    def callback(**given: Any) -> None:
        spoken = list(given.pop("words"))
        manner = Options(**{name: given.pop(name) for name in _MANNER if name in given})
        parameters = tidy_parameters(row, given)
        run_guarded(lambda: _run_verb(operation, spoken, parameters, manner), manner.as_json)

    return click.Command(
        operation,
        params=[argument, *more, _FILE, *flags, *build_common_options(row)],
        callback=callback,
        help=says,
        short_help=row.says,
        epilog=build_epilog(operation),
    )


_MANNER = ("as_json", "act_as", "key", "file", "wait", "no_wait", "notify")


def _run_verb(operation: str, words: list[str], parameters: dict[str, Any], manner: Options) -> int:
    if operation == "reply":
        return verbs.reply(words, parameters, manner, _get_route(operation))
    return {"send": verbs.send, "ask": verbs.ask}[operation](words, parameters, manner)


def _get_route(operation: str) -> str:
    request = find_operation(operation).request
    assert request is not None
    return request.route


send = _build_spoken(
    "send",
    "[ADDRESS] TEXT...",
    f"Post a durable message. It starts no program, unless you add --wake.\n\n{_BODY}\n\n"
    "With --channel, --conversation, --thread or --broadcast there is no ADDRESS: every word is text.",
    [_TO],
    set(),
)
ask = _build_spoken(
    "ask",
    "[ADDRESS] TEXT...",
    f"Ask an agent or a project to do something, and wait for the answer. Only the answer goes to standard "
    f"output; progress goes to standard error.\n\n{_BODY}\n\nCtrl-C stops the wait, never the work. With "
    "--project or --session-id there is no ADDRESS: every word is text.",
    [_TO, *_WAITING],
    {"wait"},
)
reply = _build_spoken(
    "reply",
    "TEXT...",
    f"Answer a message or ask, in its conversation; the first answer to an ask completes it.\n\n{_BODY}",
    [],
    set(),
)


def _build_waiting(operation: str) -> click.Command:
    row = find_operation("flight.get")

    def callback(flight_id: str, timeout: float | None, as_json: bool, act_as: str | None) -> None:
        line = Options(act_as=act_as).line()
        run_guarded(lambda: follow(line, flight_id, timeout, as_json), as_json)

    limit = click.Option(["--timeout"], type=float, metavar="SECONDS", help="Maximum time to wait.")
    return click.Command(
        "wait",
        params=[
            click.Argument(
                ["flight_id"],
                required=False,
                default="only",
                metavar="[FLIGHT_ID]",
                **get_completion("flightId"),
            ),
            limit,
            *build_common_options(row),
        ],
        callback=callback,
        help="Wait for a flight to finish, and print its answer. Ctrl-C stops the wait, never the work.",
        epilog=build_epilog(*operation.split(".")),
    )


wait = _build_waiting("wait")
flight_wait = _build_waiting("flight.wait")


@click.command("complete", epilog=build_epilog("flight", "complete"))
@click.argument("flight_id", metavar="FLIGHT_ID")
@click.argument("words", nargs=-1, metavar="TEXT...")
@click.option("--file", metavar="FILE", help="Read the text from a file.")
@click.option("--revision", type=int, help="The revision you saw. Refused if it has changed since.")
def complete(flight_id: str, words: tuple[str, ...], revision: int | None, **given: Any) -> None:
    """Finish a flight with its result; the first result wins."""
    manner = Options(**given)

    def work() -> int:
        output = verbs.read_body(list(words), manner)
        told = {"flightId": flight_id, "output": output, "revision": revision}
        return perform_operation(find_operation("flight.complete"), told, manner)

    run_guarded(work, manner.as_json)


complete.params += build_common_options(find_operation("flight.complete"))


@click.command("put", epilog=build_epilog("attachment", "put"))
@click.argument("file")
@click.option("--as", "act_as", metavar="ADDRESS", help="Act as this agent, if you may.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def put(file: str, act_as: str | None, as_json: bool) -> None:
    """Store a file, to be attached to a message by its SHA-256."""

    def work() -> int:
        sha = verbs.store_file(Options(act_as=act_as).line(), file).partition(":")[0]
        verbs.print_result({"sha256": sha}, sha, as_json)
        return 0

    run_guarded(work, as_json)


@click.command("get", epilog=build_epilog("attachment", "get"))
@click.argument("sha256")
@click.option("--as", "act_as", metavar="ADDRESS", help="Act as this agent, if you may.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with the bytes as base64.")
def get(sha256: str, act_as: str | None, as_json: bool) -> None:
    """Write a stored file to standard output."""

    def work() -> int:
        told = Options(act_as=act_as).line().call(_get_route("attachment.get"), {"sha256": sha256})
        if as_json:
            verbs.print_result(told, "", as_json)
        else:
            sys.stdout.buffer.write(base64.b64decode(told["data"]))
        return 0

    run_guarded(work, as_json)
