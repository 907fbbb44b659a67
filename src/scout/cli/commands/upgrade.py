"""`scout upgrade`: compare the command, the daemon and the store, and say what is left to do."""

from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import click

from scout import __version__
from scout.cli.connection.call import CliIdentity
from scout.cli.connection.text import note, print_json, print_out
from scout.cli.operations.build import build_epilog, run_guarded
from scout.daemon.start import find_running
from scout.store.database import connect
from scout.store.migrate import CURRENT, read_version

_LEFT = 9  # as `scout doctor` exits if something is wrong
_INSTALL = "git pull && pipx install --force .  # or the way that you installed it"


class Versioned(NamedTuple):
    """One thing that has a version. `next`: the command that is left to run, if any."""

    name: str
    says: str
    next: str = ""


@click.command("upgrade", epilog=build_epilog("upgrade"))
@click.option("--check", is_flag=True, help="Exit with 9 if something is left to do.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(check: bool, as_json: bool) -> None:
    """Compare the command, the daemon and the store, and show what is left to do after an upgrade.

    It installs nothing and looks nothing up. Install a new version the way you installed this one.
    """

    def work() -> int:
        parts = compare_parts(CliIdentity().where.home)
        left = list(dict.fromkeys(one.next for one in parts if one.next))
        if as_json:
            print_json({"parts": [_to_plain(one) for one in parts], "next": left})
        else:
            _show(parts, left)
        return _LEFT if check and left else 0

    run_guarded(work, as_json)


def compare_parts(home: str) -> list[Versioned]:
    """Return the versions of the command, the daemon and the store of a data folder."""
    return [Versioned("command", f"Scout {__version__}"), _look_at_daemon(home), _look_at_store(home)]


def _look_at_daemon(home: str) -> Versioned:
    running = find_running(home)
    if running is None:
        return Versioned("daemon", "not running")
    if running.version in ("", __version__):
        return Versioned("daemon", f"Scout {running.version or __version__}, running as pid {running.pid}")
    return Versioned("daemon", f"Scout {running.version} still runs as pid {running.pid}", "scout restart")


def _read_schema(file: Path) -> int:
    """Return the schema of the store, also while a daemon has the newest changes in the write-ahead log."""
    if not file.is_file():
        return 0
    with closing(connect(file, readonly=True)) as store:
        return read_version(store)


def _look_at_store(home: str) -> Versioned:
    file = Path(home) / "scout.db"
    found = _read_schema(file)
    if found == 0:
        return Versioned("store", "none yet")
    if found > CURRENT:
        says = f"{file} has schema {found}, and this Scout knows {CURRENT}: it was written by a newer one"
        return Versioned("store", says, _INSTALL)
    if found < CURRENT:
        return Versioned(
            "store", f"schema {found}; the next daemon upgrades it to {CURRENT}", "scout restart"
        )
    return Versioned("store", f"schema {found}, current")


def _to_plain(part: Versioned) -> dict[str, Any]:
    return {"name": part.name, "says": part.says, "next": part.next or None}


def _show(parts: list[Versioned], left: list[str]) -> None:
    for one in parts:
        print_out(f"{one.name:<8} {one.says}")
    for line in left:
        note(f"try: {line}")
    if not left:
        note(f"nothing is left to do; to install a newer version: {_INSTALL}")
