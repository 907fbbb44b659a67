"""The manual page and the completion files are what the command table says today, and the wheel has them."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from scout.cli.connection.catalogue import COMMANDS
from tools import manual


@pytest.mark.parametrize("path", manual.build_files())
def test_a_file_is_current(path: str) -> None:
    written = (manual.FOLDER / path).read_text("utf-8")
    assert written == manual.build_files()[path], f"share/{path} is stale: run ./dev docs"


def test_the_manual_page_names_every_command() -> None:
    text = manual.build_manual().replace("\\-", "-")
    assert [name for name in COMMANDS if f"\n.B scout {name}" not in text] == []


def test_the_manual_page_is_sound() -> None:
    program = shutil.which("groff") or shutil.which("mandoc")
    if program is None:
        assert all(len(line) < 2000 for line in manual.build_manual().splitlines())
        return
    words = ["-man", "-Tutf8", "-ww", "-z"] if program.endswith("groff") else ["-Tlint"]
    page = manual.FOLDER / "man/man1/scout.1"
    checked = subprocess.run([program, *words, str(page)], capture_output=True, text=True, check=False)
    assert checked.stderr == ""


def test_the_wheel_installs_them() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"] == {"share": "share"}
