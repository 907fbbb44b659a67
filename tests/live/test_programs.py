"""Where the real programs come from: installed once, whole or not at all; said by name where they cannot be had."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.live import programs
from tests.live.programs import Program

THING = Program("@some/thing", "1.2.3", "@some/thing-*/bin/thing")
GOOD = 'echo . >> "$COUNT"; mkdir -p "$3/node_modules/@some/thing-os/bin"; : > "$3/node_modules/@some/thing-os/bin/thing"'


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in whose third argument is the folder to install into."""
    file = tmp_path / "bin" / "npm"
    file.parent.mkdir()
    monkeypatch.setenv("PATH", f"{file.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    return file


def write(npm: Path, text: str) -> None:
    npm.write_text(f"#!/bin/sh\n{text}\n")
    npm.chmod(0o755)


def test_it_is_installed_once_by_whoever_comes_first(npm: Path, tmp_path: Path) -> None:
    write(npm, f"sleep 0.1; {GOOD}")
    with ThreadPoolExecutor(4) as workers:
        found = {path for path, _ in workers.map(programs._had.__wrapped__, [THING] * 4)}
    cache = tmp_path / "cache" / "scout-tests" / "npm"
    folder = cache / "some-thing-1.2.3"
    assert found == {folder / "node_modules" / "@some" / "thing-os" / "bin" / "thing"}
    assert (tmp_path / "count").read_text() == ".\n"
    assert [one.name for one in folder.iterdir()] == ["node_modules"]


@pytest.mark.parametrize(
    ("npm_does", "why"),
    [
        ("echo the registry is out of reach >&2; exit 1", "the registry is out of reach"),
        ('mkdir -p "$3/node_modules"', "no program for this machine"),
    ],
)
def test_what_cannot_be_had_is_skipped_by_name(npm: Path, npm_does: str, why: str) -> None:
    write(npm, npm_does)
    programs._had.cache_clear()
    with pytest.raises(pytest.skip.Exception, match=rf"NOT PROVED HERE: @some/thing@1\.2\.3 .*{why}"):
        programs.require_program(THING)
    write(npm, GOOD)
    assert programs._had.__wrapped__(THING)[0] is not None  # nothing half done is in the way


def test_without_npm_nothing_is_tried(npm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(npm.parent))
    assert programs._had.__wrapped__(THING) == (None, "npm is missing")
