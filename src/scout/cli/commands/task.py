"""`scout task`: give a task to an agent that exists only for it, and wait as `scout ask` does."""

from __future__ import annotations

import difflib
from typing import Any

import click

from scout.cli.operations import verbs
from scout.cli.operations.build import (
    build_command,
    build_common_options,
    build_epilog,
    build_parameters,
    run_guarded,
    tidy_parameters,
)
from scout.cli.operations.table import find_operation
from scout.cli.operations.verbs import Options

_BELOW = ("create", "list", "show")
_ALONE = {"create": "create --help", "list": "list", "show": "list"}  # each of them as it works alone
_HELP = """Give a task to an agent that exists only for it, and wait for the answer.

TEXT: the words you type, - for standard input, or --file FILE. Without any, a terminal opens $EDITOR.

The agent works in your project, or in the one that --project names, and is retired when it is done. Its
result is kept: scout task list, scout task show. Ctrl-C stops the wait, never the work."""
_WAITING = [
    click.Option(["--file"], metavar="FILE", help="Read the text from a file."),
    click.Option(["--wait", "wait"], type=float, metavar="SECONDS", help="Maximum time to wait."),
    click.Option(["--no-wait", "no_wait"], is_flag=True, help="Print the receipt and do not wait."),
    click.Option(["--notify", "notify"], is_flag=True, help="Do not wait. The answer goes to your inbox."),
]
_MANNER = ("as_json", "act_as", "key", "file", "wait", "no_wait", "notify")


class _Task(click.Group):
    """`task list` and `show`; any other word begins a task."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "create":
            return create
        return build_command(f"task.{cmd_name}", ("task", cmd_name)) if cmd_name in _BELOW else None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_BELOW)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `list` if there are no words, and `create` if the first word is not a subcommand."""
        first = args[0] if args else ""
        if first not in (*_BELOW, "-h", "--help"):
            _check_word(ctx, args)
            args = ["create" if args else "list", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "[OPTIONS] TEXT...")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the options of a new task: `create` is seldom typed."""
        create.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def _check_word(ctx: click.Context, args: list[str]) -> None:
    """Refuse one word that is nearly a subcommand: it would start a program with that word as its task."""
    near = difflib.get_close_matches(args[0], _BELOW, n=1, cutoff=0.7) if len(args) == 1 else []
    if near:
        ctx.fail(
            f"'{args[0]}' is no task.\ntry: scout task {_ALONE[near[0]]}\ntry: scout task create {args[0]}"
        )


def _build_create() -> click.Command:
    row = find_operation("task.create")
    assert row.request is not None
    route = row.request.route

    def callback(words: tuple[str, ...], **given: Any) -> None:
        manner = Options(**{name: given.pop(name) for name in _MANNER})
        parameters = tidy_parameters(row, given)
        run_guarded(lambda: verbs.ask([*words], parameters, manner, route), manner.as_json)

    return click.Command(
        "create",
        params=[
            click.Argument(["words"], nargs=-1, metavar="TEXT..."),
            *_WAITING,
            *build_parameters(row, frozenset({"body", "wait"})),
            *build_common_options(row),
        ],
        callback=callback,
        help=_HELP,
        short_help=row.says,
        epilog=build_epilog("task", "create"),
    )


create = _build_create()
command = _Task("task", help=_HELP, epilog=build_epilog("task"))
