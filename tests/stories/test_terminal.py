"""A newcomer at a terminal: what is typed, and what is seen."""

import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.running import Shell, a_shell, type_in_terminal

pytestmark = pytest.mark.slow


@pytest.fixture
def fresh() -> Generator[Shell]:
    """A home of its own, without a daemon."""
    with a_shell() as shell:
        yield shell


def _complete(shell: Shell, line: str, folder: Path) -> list[str]:
    """What a real bash offers when Tab is pressed at the end of a line."""
    script = f"""
    scout() {{ python -m scout "$@"; }}
    eval "$(_SCOUT_COMPLETE=bash_source python -m scout)"
    COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_CWORD=1
    _scout_completion "{folder}/scout"
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    program = folder / "scout"
    if not program.exists():
        program.write_text('#!/bin/sh\nexec python -m scout "$@"\n')
        program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", script], env=shell.environ, capture_output=True, text=True, timeout=30, check=True
    )
    return done.stdout.split()


@pytest.mark.rows("R4.1-24")
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here: completion in it is not proved")
def test_tab_completes_names_behind_an_at_ids_and_harnesses(fresh: Shell, tmp_path: Path) -> None:
    fresh.say("up")
    fresh.say(
        "agent", "register", "hudson", "--project", ".", "--harness", "echo", cwd=fresh.project("hudson")
    )
    flight = fresh.data("ask", "@hudson", "x")["id"]
    assert _complete(fresh, "scout ask @hud", tmp_path) == ["hudson"]  # bash keeps the @ that is typed
    assert _complete(fresh, "scout show ", tmp_path)[0].startswith(("@hudson", "/"))
    assert _complete(fresh, "scout flight get flt", tmp_path) == [flight[:14]]
    assert _complete(fresh, "scout ask --harness cla", tmp_path) == ["claude"]


@pytest.mark.rows("R4.1-14")
def test_a_folder_that_is_not_allowed_yet_is_asked_for_and_the_command_is_done(fresh: Shell) -> None:
    outside = fresh.folder / "outside"
    (outside / ".scout").mkdir(parents=True)
    (outside / ".scout/project.toml").write_text('name = "outside"\n')
    fresh.say("up")
    fresh.say("agent", "register", "outer", "--project", ".", "--command", "cat", cwd=outside)
    ask = ("ask", "@outer", "hello there")
    refused = fresh.type(*ask)
    assert "directory_not_allowed" in refused.stderr  # a script is refused
    code, shown = type_in_terminal(fresh, "config", "roots")
    assert str(outside) not in shown
    code, shown = _answer(fresh, "y\n", *ask)
    assert (code, "Allow it? [y/N]" in shown, "hello there" in shown) == (0, True, True)
    assert str(outside) in fresh.say("config", "roots")


def _answer(shell: Shell, keys: str, *words: str) -> tuple[int, str]:
    """Type a command on a terminal, and these keys when it asks."""
    import os
    import pty
    import sys

    near, far = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "scout", *words],
        env={**shell.environ, "TERM": "xterm", "NO_COLOR": "1"},
        cwd=shell.folder,
        stdin=far,
        stdout=far,
        stderr=far,
    )
    os.close(far)
    shown = b""
    try:
        while True:
            try:
                data = os.read(near, 65536)
            except OSError:
                break
            shown += data
            if keys and b"[y/N]" in shown:
                os.write(near, keys.encode())
                keys = ""
        return process.wait(60), shown.decode()
    finally:
        os.close(near)


def test_retiring_an_agent_at_work_is_asked_about(fresh: Shell) -> None:
    fresh.say("up")
    register = ("agent", "register", "hudson", "--project", ".", "--harness", "echo")
    fresh.say(*register, cwd=fresh.project("hudson"))
    fresh.say("ask", "@hudson", "hello")
    code, shown = _answer(fresh, "n\n", "agent", "retire", "@hudson")
    assert (code, "@hudson has 1 live session" in shown, "nothing was changed" in shown) == (1, True, True)
    assert fresh.data("show", "@hudson")["lifecycle"] == "active"
    # With --yes nobody is asked.
    code, shown = _answer(fresh, "", "agent", "retire", "@hudson", "--yes")
    assert (code, "[y/N]" in shown, "retired" in shown) == (0, False, True)


def test_the_first_words_a_newcomer_tries(fresh: Shell) -> None:
    fresh.say("up")
    assert "All quiet" in fresh.say()
    fresh.say(
        "agent", "register", "upper", "--command", "tr a-z A-Z", "--project", ".", cwd=fresh.project("u")
    )
    assert fresh.say("ask", "@upper", "make this loud").strip() == "MAKE THIS LOUD"
    assert fresh.say("tell", "@upper", "hello").startswith("sent ")
    assert "@upper" in fresh.say("list")
    assert "you → @upper: hello" in fresh.say("log", "--newest")
    for noun in ("work", "question", "session", "flight", "channel", "alias", "card", "token", "agent"):
        assert fresh.type(noun).returncode == 0, noun
    stopped = fresh.type("stop")
    assert (stopped.returncode, stopped.stderr.splitlines()[2]) == (2, "try: scout down")
    assert "scout, version" in fresh.say("version")
    assert len(fresh.say("--help").splitlines()) < 50
