"""`scout tui`: what it needs, what it says without that, and what other commands do not pay for it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scout.cli.commands.tui import build_install_command
from tests.cli.running import a_shell, type_in_terminal
from tests.tui.stage import Fleet

_PACKAGES = re.compile(r"(pipx inject|pip install) .*'textual[^']*>=8\.2[^']*'")
_WITHOUT = "import sys; sys.modules['textual'] = None; from scout.__main__ import main; main()"


@pytest.mark.rows("R4.4t-15")
def test_without_its_library_it_refuses_with_the_command_that_installs_it(fleet: Fleet) -> None:
    for words in (["tui"], ["tui", "--json"]):
        done = subprocess.run(
            [sys.executable, "-c", _WITHOUT, *words],
            env=fleet.shell.environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 9
        if "--json" in words:
            told = json.loads(done.stdout)["error"]
            assert told["code"] == "not_installed"
            assert _PACKAGES.search(told["remedies"][0]["command"])
        else:
            assert "not_installed: the terminal application needs the Python package textual" in done.stderr
            assert "try: " in done.stderr
            assert _PACKAGES.search(done.stderr)


def test_the_command_fits_how_scout_is_installed(tmp_path: Path) -> None:
    pipx, uv, venv = tmp_path / "scout-broker", tmp_path / "uv", tmp_path / "venv"
    for folder in (pipx, uv, venv / "lib/python3.11/site-packages/pip"):
        folder.mkdir(parents=True)
    (pipx / "pipx_metadata.json").write_text("{}")
    (uv / "uv-receipt.toml").write_text("")
    assert build_install_command(pipx, "python").startswith("pipx inject scout-broker ")
    assert build_install_command(uv, "/uv/python").startswith("uv pip install --python /uv/python ")
    assert build_install_command(venv, "/venv/python").startswith("/venv/python -m pip install ")


def test_it_needs_a_terminal(fleet: Fleet) -> None:
    done = fleet.shell.type("tui")
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
    assert "try: scout now" in done.stderr


def test_without_a_daemon_it_refuses_before_it_takes_the_screen() -> None:
    with a_shell() as shell:
        code, shown = type_in_terminal(shell, "tui", SCOUT_AUTOSTART="0")
        assert code != 0
        assert "scout up" in shown
        assert "\x1b[?1049h" not in shown  # the screen of an application


@pytest.mark.parametrize("words", [(), ("--no-mouse",)])
def test_the_mouse_is_left_to_the_terminal_on_request(fleet: Fleet, words: tuple[str, ...]) -> None:
    code, shown = type_in_terminal(fleet.shell, "tui", *words, until="live")
    assert code == 0
    assert ("\x1b[?1000h" in shown) is (not words)
    assert "\x1b[?1049l" in shown  # it leaves the terminal as it was


def test_no_other_command_loads_its_library(fleet: Fleet) -> None:
    code = "import sys; from scout.__main__ import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    for words in (["--help"], ["who"], ["log"], ["attention"], ["runtimes", "--help"], ["tui", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            env=fleet.shell.environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert not {"textual", "rich", "scout.tui"} & set(done.stderr.split())
