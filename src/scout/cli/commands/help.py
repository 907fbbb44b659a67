"""`scout help`: help of one command or of all, or the manual page."""

import json

import click

from scout import __version__
from scout.cli.connection.catalogue import COMMANDS, GROUPS, SECTIONS
from scout.cli.connection.text import paint, print_out, print_text, wrap
from scout.cli.operations.build import build_epilog


@click.command("help", epilog=build_epilog("help"))
@click.argument("words", nargs=-1, metavar="[COMMAND | all | man]")
@click.option("--json", "as_json", is_flag=True, help="Every command and what it does, as one JSON object.")
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...], as_json: bool) -> None:
    """Show the help of a command, of all commands (all), or the manual page (man)."""
    root = ctx.find_root()
    if as_json:
        print_out(json.dumps({"commands": COMMANDS, "below": GROUPS}))
    elif words == ("all",):
        _write_all()
    elif words == ("man",):
        print_text(build_manual(root))
    else:
        print_text(_get_help(root, words))


def _write_all() -> None:
    for title, rows in SECTIONS.items():
        print_out(paint(title, "bold"))
        wide = max(map(len, rows))
        for name, says in rows.items():
            print_out(wrap(says, f"  {name:<{wide}}  "))
            if name in GROUPS:
                print_out(wrap(", ".join(GROUPS[name]), f"  {'':<{wide}}    "))
        print_out("")
    print_out("Each has more: scout help COMMAND")


def _get_help(root: click.Context, words: tuple[str, ...]) -> str:
    """Return the `--help` text of these words."""
    found, context = root.command, root
    for word in words:
        assert isinstance(found, click.Group)
        name, below, _ = found.resolve_command(context, [word])
        assert below is not None
        found, context = below, click.Context(below, info_name=name, parent=context)
    return found.get_help(context)


def build_manual(root: click.Context) -> str:
    """Return the manual page in man macros, from the same table and help."""
    scout = root.command
    parts = [
        f'.TH SCOUT 1 "" "scout {__version__}" "Scout"',
        ".SH NAME",
        "scout \\- a broker for AI coding agents on this machine",
        ".SH SYNOPSIS",
        ".B scout",
        "[\\fICOMMAND\\fR] [\\fIARGUMENT\\fR]...",
        ".SH DESCRIPTION",
        _escape((scout.help or "").strip()),
    ]
    for title, rows in SECTIONS.items():
        parts.append(f'.SH "{title.upper()} COMMANDS"')
        for name, says in rows.items():
            below = f" {_escape('Below it: ' + ', '.join(GROUPS[name]) + '.')}" if name in GROUPS else ""
            parts += [".TP", f".B scout {name}", f"{_escape(says)}{below}"]
    return "\n".join(
        [*parts, ".SH SEE ALSO", _escape("scout help COMMAND shows the flags and examples of one.")]
    )


def _escape(text: str) -> str:
    """Escape a text, so that nothing in it is a macro."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("\n.", "\n\\&.")
