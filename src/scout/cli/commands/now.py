"""`scout now`, which is also `scout` alone."""

import click

from scout.cli.operations.build import epilog, run_guarded
from scout.cli.operations.overview import show_now
from scout.cli.operations.verbs import Options


@click.command("now", epilog=epilog("now"))
@click.option("--since", metavar="TIME", help="Look back to here instead of your last look.")
@click.option("--as", "act_as", metavar="ADDRESS", help="Act as this agent, if you may.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(since: str | None, act_as: str | None, as_json: bool) -> None:
    """Show what needs you, who is working, and what finished since you last looked.

    Shown on a terminal, it counts as looked at; in a pipe or with --json it does not.
    """
    run_guarded(lambda: show_now({"since": since}, Options(act_as=act_as, as_json=as_json)), as_json)
