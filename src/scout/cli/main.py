"""The `scout` command. Commands are imported when they are used, so that none pays for another."""

import difflib
import importlib
import shlex
import sys

import click

from scout import __version__
from scout.cli.commands import COMMANDS

__all__ = ["main", "scout"]


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"scout.cli.{cmd_name}").command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A mistyped command is refused with the nearest one, ready to paste."""
        near = difflib.get_close_matches(args[0], COMMANDS, n=1)
        if args[0] not in COMMANDS and near:
            again = shlex.join(["scout", *near, *args[1:]])
            ctx.fail(f"No such command '{args[0]}'.\ntry: {again}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Shell completion: eval "$(_SCOUT_COMPLETE=bash_source scout)" (or zsh_source, fish_source).',
)
@click.version_option(__version__, prog_name="scout")
def scout() -> None:
    """Scout gives every AI coding agent a name, a way to be reached, and work that is never lost."""


def main() -> None:
    """Run the command line; text that no locale can show is escaped instead of crashing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    scout(prog_name="scout")
