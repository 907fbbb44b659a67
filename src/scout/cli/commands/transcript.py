"""`scout session tail`: a session's own transcript, read where its harness keeps it."""

import json
from typing import Any

import click

from scout.cli.connection.text import note, out
from scout.cli.operations.build import epilog, every_option, parameters_of, perform, run_guarded, tidy
from scout.cli.operations.verbs import Options
from scout.cli.output.observation import write_lines
from scout.protocol.observation import TailSession
from scout.protocol.operations import OPERATIONS

_POLL = 30.0  # seconds of one long poll


def _callback(**given: Any) -> None:
    manner = Options(as_json=given.pop("as_json"), act_as=given.pop("act_as"))
    follow: bool = given.pop("follow")
    row = OPERATIONS["session.tail"]
    parameters = tidy(row, given)
    run_guarded(
        lambda: _follow(parameters, manner) if follow else perform(row, parameters, manner), manner.as_json
    )


def _follow(parameters: dict[str, Any], manner: Options) -> int:
    """The last lines and those that come, until Ctrl-C; with --json one object a line."""
    line, wait = manner.line(), 0.0
    try:
        while True:
            told = line.call(TailSession.route, {**parameters, "wait": wait})
            if manner.as_json:
                for one in told["lines"]:
                    out(json.dumps(one))
            write_lines([] if manner.as_json else told["lines"])
            if not wait and not manner.as_json:
                note(f"following {told['source']}; Ctrl-C ends this, never the session")
            parameters, wait = {**parameters, "after": told["next"]}, _POLL
    except KeyboardInterrupt:
        return 130


tail = click.Command(
    "tail",
    params=[
        *parameters_of(OPERATIONS["session.tail"], frozenset({"wait"})),
        click.Option(["--follow", "-f", "follow"], is_flag=True, help="Go on with what comes, until Ctrl-C."),
        *every_option(OPERATIONS["session.tail"]),
    ],
    callback=_callback,
    help="Read a session's own transcript, where its harness keeps it. Nothing of it is stored by Scout.",
    short_help=OPERATIONS["session.tail"].says,
    epilog=epilog("session", "tail"),
)
