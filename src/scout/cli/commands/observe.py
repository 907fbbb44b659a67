"""`now`, `watch` and `session tail`: show what is happening."""

import json
from typing import Any

import click

from scout.cli.connection.text import note, print_out
from scout.cli.operations.build import (
    build_common_options,
    build_epilog,
    build_parameters,
    perform_operation,
    run_guarded,
    tidy_parameters,
)
from scout.cli.operations.overview import follow_log, show_now
from scout.cli.operations.table import find_operation
from scout.cli.operations.verbs import Options
from scout.cli.output.observation import write_lines
from scout.protocol.observation import TailSession

_POLL = 30.0  # seconds of one long poll


def _tail_session(**given: Any) -> None:
    manner = Options(as_json=given.pop("as_json"), act_as=given.pop("act_as"))
    follow: bool = given.pop("follow")
    row = find_operation("session.tail")
    parameters = tidy_parameters(row, given)
    run_guarded(
        lambda: _follow_session(parameters, manner) if follow else perform_operation(row, parameters, manner),
        manner.as_json,
    )


def _follow_session(parameters: dict[str, Any], manner: Options) -> int:
    """Print the last lines and new ones until Ctrl-C; with --json one object per line."""
    line, wait = manner.line(), 0.0
    try:
        while True:
            told = line.call(TailSession.route, {**parameters, "wait": wait})
            if manner.as_json:
                for one in told["lines"]:
                    print_out(json.dumps(one))
            write_lines([] if manner.as_json else told["lines"])
            if not wait and not manner.as_json:
                note(f"following {told['source']}; Ctrl-C ends this, never the session")
            parameters, wait = {**parameters, "after": told["next"]}, _POLL
    except KeyboardInterrupt:
        return 130


tail = click.Command(
    "tail",
    params=[
        *build_parameters(find_operation("session.tail"), frozenset({"wait"})),
        click.Option(["--follow", "-f", "follow"], is_flag=True, help="Keep following, until Ctrl-C."),
        *build_common_options(find_operation("session.tail")),
    ],
    callback=_tail_session,
    help="Read a session's own transcript, where its harness keeps it. Scout does not store it.",
    short_help=find_operation("session.tail").says,
    epilog=build_epilog("session", "tail"),
)


@click.command("now", epilog=build_epilog("now"))
@click.option("--since", metavar="TIME", help="Show what happened since then, not since your last look.")
@click.option(
    "--at", metavar="MOMENT", help="Show it as it was: a time, '10 minutes ago' or an event's number."
)
@click.option("--as", "act_as", metavar="ADDRESS", help="Act as this agent, if you may.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def now(since: str | None, at: str | None, act_as: str | None, as_json: bool) -> None:
    """Show what needs you, who is working, and what finished since you last looked.

    Shown on a terminal, it counts as looked at; in a pipe or with --json it does not.
    """
    run_guarded(
        lambda: show_now({"since": since, "at": at}, Options(act_as=act_as, as_json=as_json)), as_json
    )


def _run_watch(**given: Any) -> None:
    manner = Options(as_json=given.pop("as_json"), act_as=given.pop("act_as"))
    count: int | None = given.pop("count")
    run_guarded(
        lambda: follow_log(tidy_parameters(find_operation("watch"), given), manner, count), manner.as_json
    )


watch = click.Command(
    "watch",
    params=[
        *build_parameters(find_operation("watch")),
        click.Option(["--count"], type=int, metavar="N", help="Stop after N events."),
        *build_common_options(find_operation("watch")),
    ],
    callback=_run_watch,
    help="Follow the log as it grows, one sentence per event, until Ctrl-C. A lost connection is resumed "
    "where it broke. With --json each event is one line of JSON, as the log has it.",
    epilog=build_epilog("watch"),
)
