"""`scout allow`: let programs do something without asking again; list and revoke such decisions."""

from __future__ import annotations

import os
import shlex
from typing import Any

import click

from scout.cli.connection.refusal import RefusalError
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
from scout.cli.output.results import show


class _Allow(click.Group):
    """`allow list`, `show` and `revoke`; any other word is a command to allow."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "add":
            return _ADD
        return build_command(f"allow.{cmd_name}", ("allow", cmd_name)) if cmd_name in _BELOW else None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_BELOW)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `list` if there are no words, and `add` if the first word is not a subcommand."""
        first = args[0] if args else ""
        if first not in (*_BELOW, "-h", "--help"):
            args = ["add" if args else "list", *args]
        return super().parse_args(ctx, args)


_BELOW = ("add", "list", "show", "revoke")


def _build_add() -> click.Command:
    row = find_operation("allow.add")

    def callback(**given: Any) -> None:
        words = list(given.pop("words"))
        manner = Options(**{name: given.pop(name) for name in ("as_json", "act_as", "key")})

        def work() -> int:
            parameters = _build_parameters(words, tidy_parameters(row, given))
            assert row.request is not None
            show("allow.add", manner.line().call(row.request.route, parameters, manner.key), manner.as_json)
            return 0

        run_guarded(work, manner.as_json)

    flags = [one for one in build_parameters(row, frozenset({"command"})) if isinstance(one, click.Option)]
    return click.Command(
        "add",
        params=[
            click.Argument(["words"], nargs=-1, metavar="[COMMAND]"),
            *flags,
            *build_common_options(row),
        ],
        callback=callback,
        help=row.says,
        epilog=build_epilog("allow", "add"),
    )


def _build_parameters(words: list[str], given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters. A command is one quoted argument; paths are relative to this directory."""
    if len(words) > 1:
        again = shlex.join(["scout", "allow", " ".join(words)])
        raise RefusalError.of("bad_request", f"a command is one argument, so that it is exact: {again} …")
    for name in ("path", "project"):
        if given.get(name):
            given[name] = os.path.normpath(os.path.join(os.getcwd(), given[name]))  # noqa: PTH109, PTH118 (a pattern is no path)
    return {**given, **({"command": words[0]} if words else {})}


_ADD = _build_add()
command = _Allow(
    "allow",
    help="Let programs do something without asking you again: an exact command, a tool, or some files.",
    epilog=build_epilog("allow"),
)
