"""`scout tui`: the terminal application. Its library is an extra, so it is loaded only here."""

import importlib.metadata
import importlib.util
import shlex
import sys
from pathlib import Path

import click

from scout.cli.connection.refusal import RefusalError, build_remedy
from scout.cli.connection.text import is_interactive
from scout.cli.operations.build import build_epilog, run_guarded
from scout.cli.operations.verbs import Options

_PACKAGE = "scout-broker"
_EXTRA = 'extra == "tui"'


@click.command("tui", epilog=build_epilog("tui"))
@click.option("--as", "act_as", metavar="ADDRESS", help="Act as this agent, if you may.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal, to select text.")
@click.option("--json", "as_json", is_flag=True, help="A refusal as one JSON object.")
def command(act_as: str | None, no_mouse: bool, as_json: bool) -> None:
    """Open the terminal application: what needs you, who works, and what happened, live.

    Press ? in it for the keys. Quitting it stops nothing.
    """
    run_guarded(lambda: _run(Options(act_as=act_as, as_json=as_json), mouse=not no_mouse), as_json)


def _run(manner: Options, *, mouse: bool) -> int:
    if importlib.util.find_spec("textual") is None:
        raise _report_missing()
    if not is_interactive():
        remedies = [build_remedy("now"), build_remedy("watch")]
        raise RefusalError.of("bad_request", "the terminal application needs a terminal", remedies=remedies)
    manner.line().call("GET /v1/status", {})  # starts the daemon, or refuses before the screen is taken
    from scout.tui.app import run

    return run(manner.act_as, mouse=mouse)


def _report_missing() -> RefusalError:
    line = build_install_command(Path(sys.prefix), sys.executable)
    remedy = build_remedy("tui", line, "install what it needs, then: scout tui")
    message = "the terminal application needs the Python package textual, which is not installed"
    return RefusalError.of("not_installed", message, package="textual", remedies=[remedy])


def build_install_command(prefix: Path, python: str) -> str:
    """Return the command that adds the extra's packages to the environment that Scout is installed in."""
    packages = _list_packages()
    if (prefix / "pipx_metadata.json").exists():
        return shlex.join(["pipx", "inject", prefix.name, *packages])
    has_pip = any(prefix.glob("lib/python3*/site-packages/pip"))
    if (prefix / "uv-receipt.toml").exists() or not has_pip:
        return shlex.join(["uv", "pip", "install", "--python", python, *packages])
    return shlex.join([python, "-m", "pip", "install", *packages])


def _list_packages() -> list[str]:
    """Return the packages of the extra, as the installed package lists them."""
    try:
        named = importlib.metadata.requires(_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        named = []
    found = [one.partition(";")[0].strip() for one in named if _EXTRA in one.replace("'", '"')]
    return found or ["textual>=8.2,<9"]
