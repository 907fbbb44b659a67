"""`scout watch`: the log as it grows."""

from typing import Any

import click

from scout.cli.operations.build import epilog, every_option, parameters_of, run_guarded, tidy
from scout.cli.operations.log_stream import follow_log
from scout.cli.operations.verbs import Options
from scout.protocol.operations import OPERATIONS


def _callback(**given: Any) -> None:
    manner = Options(as_json=given.pop("as_json"), act_as=given.pop("act_as"))
    count: int | None = given.pop("count")
    run_guarded(lambda: follow_log(tidy(OPERATIONS["watch"], given), manner, count), manner.as_json)


command = click.Command(
    "watch",
    params=[
        *parameters_of(OPERATIONS["watch"]),
        click.Option(["--count"], type=int, metavar="N", help="End after so many events."),
        *every_option(OPERATIONS["watch"]),
    ],
    callback=_callback,
    help="Follow the log as it grows, one sentence an event, until Ctrl-C. A lost connection is taken up "
    "where it broke. With --json each event is one line of JSON, as the log has it.",
    epilog=epilog("watch"),
)
