"""`scout upgrade`: the versions of the command, the daemon and the store, and what is left to do."""

import subprocess
import sys

import pytest

from scout import __version__
from scout.store.migrate import CURRENT
from tests.cli.running import Shell, start_daemon
from tests.store.old_store import load, stores

pytestmark = pytest.mark.slow

_NEWER = (
    "import sys, scout; scout.__version__ = '9.9.9'\n"
    "from scout.cli.main import scout as command; sys.exit(command(sys.argv[1:]))"
)


def test_an_earlier_store_a_current_one_and_a_newer_command(fresh: Shell) -> None:
    fresh.home.mkdir(parents=True, exist_ok=True)
    load(stores()[9], fresh.home / "scout.db")
    checked = fresh.type("upgrade", "--check")
    assert checked.returncode == 9, checked.stderr
    assert f"schema 9; the next daemon upgrades it to {CURRENT}" in checked.stdout
    assert checked.stderr.splitlines() == ["try: scout restart"]

    start_daemon(fresh)
    after = fresh.type("upgrade", "--check")
    assert after.returncode == 0, after.stdout
    assert f"schema {CURRENT}, current" in after.stdout

    words = [sys.executable, "-c", _NEWER, "upgrade", "--check"]
    newer = subprocess.run(words, env=fresh.environ, capture_output=True, text=True, check=False)
    assert newer.returncode == 9, newer.stderr
    assert f"Scout {__version__} still runs" in newer.stdout
    assert "try: scout restart" in newer.stderr


def test_a_store_of_a_newer_scout_needs_that_scout(fresh: Shell) -> None:
    fresh.home.mkdir(parents=True, exist_ok=True)
    load(stores()[9], fresh.home / "scout.db")
    file = fresh.home / "scout.db"
    data = bytearray(file.read_bytes())
    data[60:64] = (CURRENT + 1).to_bytes(4, "big")
    file.write_bytes(bytes(data))
    told = fresh.data("upgrade")
    store = told["parts"][2]
    assert f"schema {CURRENT + 1}" in store["says"]
    assert store["next"].startswith("git pull")
    assert fresh.type("upgrade").returncode == 0  # without --check it only shows


def test_nothing_is_left_to_do_on_an_empty_machine(fresh: Shell) -> None:
    assert [one["says"] for one in fresh.data("upgrade", "--check")["parts"]] == [
        f"Scout {__version__}",
        "not running",
        "none yet",
    ]
