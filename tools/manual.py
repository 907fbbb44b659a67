"""Write `share/` from the command table: the manual page and the completion of each shell.

`./dev docs` runs it, a test compares the files with the code, and the wheel installs them below the prefix.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from scout.cli.connection.catalogue import COMMANDS, GROUPS, SECTIONS
from scout.cli.main import scout

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "share"
_SHELLS: dict[str, type[ShellComplete]] = {
    "bash-completion/completions/scout": BashComplete,
    "zsh/site-functions/_scout": ZshComplete,
    "fish/vendor_completions.d/scout.fish": FishComplete,
}
_ENDING = r""".SH FILES
.TP
.I ~/.local/share/scout
The data folder; SCOUT_HOME names another one. It holds the store, the token of the operator and the log.
.TP
.I config.toml
The settings, in the folder that
.B scout config
names.
.SH EXIT STATUS
0 if the command did what it says. Every refusal has a code, a reason and the next command;
.B scout explain CODE
tells more.
.SH SEE ALSO
.BR "scout COMMAND \-\-help" ,
.BR tmux (1),
.BR git (1)
"""


def build_files() -> dict[str, str]:
    """Return each file below `share/` and its text."""
    completion = {
        path: kind(scout, {}, "scout", "_SCOUT_COMPLETE").source() for path, kind in _SHELLS.items()
    }
    return {"man/man1/scout.1": build_manual(), **completion}


def build_manual() -> str:
    """Return the manual page; it has no date and no version, so that it changes only with the commands."""
    head = (
        '.TH SCOUT 1 "" Scout "User Commands"\n.SH NAME\nscout \\- a local\\-first broker for coding agents\n'
        ".SH SYNOPSIS\n.B scout\n.I COMMAND\n[\\fIOPTION\\fR]...\n.SH DESCRIPTION\n"
        f"{_escape(_join(scout.help or ''))}\n"
    )
    root = click.Context(scout, info_name="scout")
    parts = (part for title, names in SECTIONS.items() for part in _list_section(root, title, names))
    return head + "".join(parts) + _ENDING


def _list_section(root: click.Context, title: str, names: Iterable[str]) -> Iterator[str]:
    yield f".SH {_escape(title.upper())}\n"
    for name in names:
        yield from _list_commands(root, scout, name)


def _list_commands(parent: click.Context, group: click.Group, name: str) -> Iterator[str]:
    """Yield a command, and the commands below it."""
    command = group.get_command(parent, name)
    assert command is not None, name
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join(command.collect_usage_pieces(context))
    says = command.get_short_help_str(400) or COMMANDS.get(name, "")
    yield f".TP\n.B {_escape(f'{context.command_path} {usage}'.rstrip())}\n{_escape(_join(says))}\n"
    if isinstance(command, click.Group):
        for below in GROUPS.get(name) or command.list_commands(context):
            yield from _list_commands(context, command, below)


def _join(text: str) -> str:
    return " ".join(text.replace("\b", "").split())


def _escape(text: str) -> str:
    """Return text that roff prints as it is."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return f"\\&{safe}" if safe[:1] in (".", "'") else safe


def main() -> None:
    for path, text in build_files().items():
        file = FOLDER / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
