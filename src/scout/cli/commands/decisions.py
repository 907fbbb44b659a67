"""The commands `approve`, `deny`, `answer`, `dismiss`: one item, several, or all of one agent or flight."""

from __future__ import annotations

from typing import Any

import click

from scout.cli.operations.build import epilog, every_option, parameters_of, run_guarded, tidy
from scout.cli.operations.decision_calls import decide
from scout.cli.operations.verbs import Options
from scout.protocol.operations import OPERATIONS


def _command(move: str, says: str) -> click.Command:
    row = OPERATIONS[f"attention.{move}"]
    left_out = frozenset({"attentionId", "answer"})

    def callback(**given: Any) -> None:
        words, of = list(given.pop("words")), given.pop("all_of")
        manner = Options(**{name: given.pop(name) for name in ("as_json", "act_as", "key")})
        run_guarded(lambda: decide(move, words, of, tidy(row, given), manner), manner.as_json)

    return click.Command(
        move,
        params=[
            click.Argument(["words"], nargs=-1, metavar=_metavar(move)),
            click.Option(
                ["--all-of", "all_of"], metavar="AGENT|FLIGHT", help="All open items of this agent or flight."
            ),
            *_options(row, left_out),
            *every_option(row),
        ],
        callback=callback,
        help=f"{says}\n\nITEM is an id, its beginning (att_ and at least 4 characters) or the address of its "
        "agent; several may be given, and none where only one is open. The first decision wins: who comes "
        "later is shown who decided and how.",
        short_help=says,
        epilog=epilog(move),
    )


def _metavar(move: str) -> str:
    return "[ITEM...] TEXT..." if move == "answer" else "[ITEM...] [REASON...]"


def _options(row: Any, left_out: frozenset[str]) -> list[click.Parameter]:
    """The flags of the operation; its reason is also a flag here, for words follow the items."""
    flags = [one for one in parameters_of(row, left_out | {"reason"}) if isinstance(one, click.Option)]
    return [click.Option(["--reason", "reason"], metavar="TEXT", help="Why."), *flags]


approve = _command("approve", "Say yes to what needs you.")
deny = _command("deny", "Say no to what needs you.")
answer = _command("answer", "Answer what needs you.")
dismiss = _command("dismiss", "Put away what needs you, without an answer.")
