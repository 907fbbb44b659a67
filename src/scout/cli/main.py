"""The `scout` command. Commands are imported when they are used, so that starting one is fast."""

import difflib
import importlib
import os
import re
import shlex
import sys
from typing import Any

import click

from scout import __version__
from scout.cli.connection.catalogue import (
    ALONE,
    CHANGES,
    COMMANDS,
    EVERYDAY,
    GROUPS,
    LOOKS,
    MEANINGS,
    MODULES,
    OPERATIONS_OF,
    SAME_AS,
    suggest_commands,
)
from scout.cli.connection.refusal import RefusalError
from scout.cli.connection.text import note, print_note_text, print_out

_ID = re.compile(r"[a-z]{3}_[0-9a-z]+")
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _load_command(*path: str) -> click.Command:
    """Load a command by its words: written by hand, a group, or built from the operation table."""
    name = ".".join(path)
    if name in MODULES:
        module, _, attribute = MODULES[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    if name in GROUPS:
        return (_Alone if name in ALONE else _Words)(name, help=COMMANDS[name])
    from scout.cli.operations.build import build_command

    return build_command(OPERATIONS_OF.get(name, name), path)


class _Tidy(click.Group):
    """A group that suggests the nearest command for a mistyped one, ready to paste."""

    def names(self) -> dict[str, str]:
        raise NotImplementedError

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.names())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.names():
            ctx.fail("\n".join([f"No such command '{args[0]}'.", *self.offers(ctx, args)]))
        return super().resolve_command(ctx, args)

    def offers(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return suggestions for an unknown command: the nearest spelling."""
        near = difflib.get_close_matches(args[0], self.names(), n=1)
        path = ctx.command_path.split()
        return [f"try: {shlex.join([*path, *near, *args[1:]])}"] if near else []


class _Words(_Tidy):
    """The commands below a noun, such as `flight list`."""

    def __init__(self, name: str, **more: Any) -> None:
        super().__init__(name, epilog=_build_examples(name), **more)

    def names(self) -> dict[str, str]:
        assert self.name is not None
        return dict.fromkeys(GROUPS[self.name], "")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        assert self.name is not None
        return _load_command(self.name, cmd_name) if cmd_name in GROUPS[self.name] else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Accept synonyms of `show` and `list` below every noun, and an id alone, which is shown."""
        if args[0] not in self.names():
            if self._is_named(args[0]):
                args = [LOOKS[0][0], *args]
            if self.name == "agent" and args[0] in LOOKS[0]:
                return "show", _load_command("show"), args[1:]
            args = [*(self._find_synonyms(args[0], LOOKS) or args)[:1], *args[1:]]
        return super().resolve_command(ctx, args)

    def _is_named(self, word: str) -> bool:
        """Whether a word names a record of this noun instead of a command."""
        return bool(_ID.fullmatch(word)) or (self.name == "agent" and word.startswith(("@", "/")))

    def offers(self, ctx: click.Context, args: list[str]) -> list[str]:
        near = super().offers(ctx, args)
        meant = self._find_synonyms(args[0], CHANGES)
        return near or [f"try: {ctx.command_path} {word} --help" for word in meant]

    def _find_synonyms(self, word: str, meanings: tuple[tuple[str, ...], ...]) -> list[str]:
        """Return the commands of this noun with the same meaning as a word."""
        same = [one for words in meanings if word in words for one in words]
        return [one for one in self.names() if one in same]


class _Alone(_Words):
    """A noun that also works alone, as `inbox` lists; it takes the flags of that command."""

    def __init__(self, name: str, **more: Any) -> None:
        listing = _load_command(name, ALONE[name])

        def alone(**given: Any) -> None:
            context = click.get_current_context()
            if context.invoked_subcommand is None:
                context.invoke(listing, **dict.fromkeys(words), **given)

        words = [one.name for one in listing.params if isinstance(one, click.Argument) and one.name]
        options = [one for one in listing.params if isinstance(one, click.Option)]
        super().__init__(name, invoke_without_command=True, params=options, callback=alone, **more)


def _build_examples(name: str) -> str:
    from scout.cli.operations.examples import EXAMPLES

    lines = [EXAMPLES[f"{name}.{word}"][0] for word in GROUPS[name]]
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class _Scout(_Tidy):
    """All commands; a first word that starts with @ or >> is an ask."""

    def names(self) -> dict[str, str]:
        return COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _load_command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0].startswith("@"):
            to, space, body = args[0].partition(" ")
            args = ["ask", to, *([body] if space else []), *args[1:]]
        elif args[0].startswith(">>"):
            args = ["ask", *args]
        elif args[0] == "version":
            print_out(f"scout, version {__version__}")
            ctx.exit()
        elif args == ["message"]:
            args = ["latest"]  # `message list` requires a conversation
        elif args[0] not in COMMANDS and args[0] in SAME_AS:
            args = [*SAME_AS[args[0]], *args[1:]]
        return super().resolve_command(ctx, args)

    def offers(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the commands for a word's meaning, else the nearest spelling of a command or synonym."""
        from scout.policy.nearest import build_keys

        if args[0] in MEANINGS:
            return [f"try: {line}" for line in suggest_commands(args[0], args[1:])]
        known = {**{name: (name,) for name in COMMANDS}, **SAME_AS}
        begun = [name for name in COMMANDS if len(args[0]) > 2 and name.startswith(args[0])]
        slips = [name for name in known if len(args[0]) > 2 and build_keys(name) & build_keys(args[0])]
        near = difflib.get_close_matches(
            args[0], slips or [*known, *MEANINGS], n=1, cutoff=0.6 if slips else 0.75
        )
        meant = begun or near
        if meant and meant[0] in MEANINGS:
            return [f"try: {line}" for line in suggest_commands(meant[0], args[1:])]
        return [f"try: {shlex.join(['scout', *known[meant[0]], *args[1:]])}"] if meant else []

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in EVERYDAY.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name]) for name in names])

    def main(self, *args: Any, **more: Any) -> Any:
        """Run click, and end every error with a command to try next."""
        if not more.pop("standalone_mode", True):
            return super().main(*args, standalone_mode=False, **more)
        try:
            code = super().main(*args, standalone_mode=False, **more)
        except click.ClickException as error:
            _write_error(error)
            sys.exit(error.exit_code)
        except RefusalError as problem:
            sys.exit(problem.show())
        except (click.Abort, KeyboardInterrupt):
            note("stopped")
            sys.exit(130)
        sys.exit(code if isinstance(code, int) else 0)


def _suggest_nearest_choice(error: click.ClickException) -> str:
    """Return the typed command with the nearest of the words that a parameter allows; else empty."""
    kind = error.param.type if isinstance(error, click.BadParameter) and error.param else None
    if not isinstance(kind, click.Choice):
        return ""
    allowed = [str(one) for one in kind.choices]
    for number, word in enumerate(sys.argv):
        near = difflib.get_close_matches(word, allowed, n=1)
        if near and f"'{word}'" in error.format_message() and word not in allowed:
            return shlex.join(["scout", *sys.argv[1:number], *near, *sys.argv[number + 1 :]])
    return ""


def _write_error(error: click.ClickException) -> None:
    """Print a usage error and a command to try."""
    context: click.Context | None = getattr(error, "ctx", None)
    if context is not None:
        print_note_text(context.get_usage())
    message = error.format_message()
    print_note_text(f"Error: {message}")
    if nearest := _suggest_nearest_choice(error) or _separate_negative(error):
        note(f"try: {nearest}")
    elif "\ntry: " not in message:
        note(f"try: {context.command_path if context is not None else _find_typed_command()} --help")


def _find_typed_command() -> str:
    """Return the command whose words were typed."""
    first, second = (*sys.argv[1:3], "", "")[:2]
    words = [first] if first in COMMANDS else []
    words += [second] if second in GROUPS.get(first, ()) else []
    return " ".join(["scout", *words])


def _separate_negative(error: click.ClickException) -> str:
    """Return the typed command with a number such as -1001234 as a word instead of an option; else empty."""
    words = sys.argv[1:]
    numbers = [word for word in words if word[:1] == "-" and word[1:].isdecimal()]
    if not isinstance(error, click.NoSuchOption) or not numbers or "--" in words:
        return ""
    others = [word for word in words if word not in numbers]
    return shlex.join(["scout", *others, "--", *numbers])


@click.group(
    cls=_Scout,
    invoke_without_command=True,
    context_settings=_SETTINGS,
    epilog="\b\nExamples:\n  scout                                 # what needs you, who works, news\n"
    "  scout ask --project ../talkie 'Review this.'\n  scout @arc 'Review the last commit.'\n\n"
    "All commands: scout help all. One command: scout help COMMAND.\n\n"
    'Shell completion: eval "$(_SCOUT_COMPLETE=bash_source scout)" (or zsh_source, fish_source).',
)
@click.version_option(__version__, prog_name="scout")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def scout(ctx: click.Context, as_json: bool) -> None:
    """Scout gives every AI coding agent a name, a way to be reached, and work that is never lost."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(_load_command("now"), since=None, at=None, act_as=None, as_json=as_json)


def main() -> None:
    """Run the command line."""
    if "_SCOUT_COMPLETE" in os.environ:
        importlib.import_module("scout.cli.operations.complete")  # bash needs its own parsing of addresses
    scout(prog_name="scout")
