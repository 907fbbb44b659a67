"""A program as router: asked without a shell, heard once, ended in time with all it started."""

import asyncio
import json
import shlex
import sys
from pathlib import Path

import pytest

from scout.adapters.router import ProgramRouter
from tests.broker.rig import processes_with, wait_until


def script(folder: Path, text: str) -> str:
    path = folder / "a router.py"
    path.write_text(f"import json, os, subprocess, sys, time\n{text}\n")
    return shlex.join((sys.executable, str(path)))


def ask(command: str, seconds: float = 20.0, text: str = "who?") -> str | None:
    return asyncio.run(ProgramRouter(command, seconds).suggest(text, ("@a", "@b")))


def test_it_reads_the_message_and_the_candidates_and_names_one(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    command = script(
        tmp_path, f"open({str(kept)!r}, 'w').write(sys.stdin.read())\nprint(' @b ')\nprint('and more')"
    )
    body = 'it\'s `$HOME` "é"\n@a'
    assert ask(command, text=body) == "@b"
    assert json.loads(kept.read_text()) == {"text": body, "candidates": ["@a", "@b"]}


def test_it_is_no_shell_and_gets_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCOUT_TOKEN", "sct_secret")
    command = script(tmp_path, "print(sys.argv[1:], os.environ.get('SCOUT_TOKEN'))")
    assert ask(f"{command} '$HOME' ';' 'a b'") == "['$HOME', ';', 'a b'] None"


@pytest.mark.parametrize("text", ["", "print()", "sys.stdin.close()"])
def test_it_may_say_nothing(tmp_path: Path, text: str) -> None:
    assert ask(script(tmp_path, text)) is None


@pytest.mark.parametrize(
    ("text", "told"), [("sys.exit(7)", "exited with 7"), ("print('x' * 1_000_000)", "longer than 4096 bytes")]
)
def test_an_answer_that_is_none_is_an_error(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(OSError, match=told):
        ask(script(tmp_path, text))


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ask(str(tmp_path / "none"))
    with pytest.raises(ValueError, match="quotation"):
        ProgramRouter("router 'unbalanced")


@pytest.mark.parametrize("reads", [True, False])
def test_one_that_takes_too_long_is_ended_with_its_children(tmp_path: Path, reads: bool) -> None:
    mark = f"scout-router-{tmp_path.name}-{reads}"
    child = f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', {mark!r}])"
    command = script(tmp_path, f"{'sys.stdin.read()' if reads else ''}\n{child}\ntime.sleep(60)")
    with pytest.raises(TimeoutError):
        ask(command, seconds=1.0, text="x" * 200_000)
    asyncio.run(wait_until(lambda: not processes_with(mark)))
