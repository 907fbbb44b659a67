"""What Scout keeps and starts stays with its owner: the token, the files, the processes of a turn."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import eventually


@pytest.mark.slow
def test_a_planted_token_is_refused_with_words_that_help() -> None:
    with a_shell() as shell:
        token = shell.home / "token"
        token.write_text("sct_known-to-somebody-else\n")
        token.chmod(0o644)

        up = shell.type("up")
        assert up.returncode != 0
        assert f"{token} cannot be used as a secret: others can read or write it (mode 0644)" in up.stderr
        assert f"rm {token}" in up.stderr

        token.unlink()
        shell.say("up")
        assert "sct_known" not in token.read_text()
        assert stat.S_IMODE(token.stat().st_mode) == 0o600


@pytest.mark.slow
def test_after_a_turn_everything_on_disk_is_private() -> None:
    with a_shell() as shell:
        start_daemon(shell)
        work = repository(shell)
        shell.say(
            "agent", "register", "editor", "--command", "sh -c 'echo more >>readme; echo done'", cwd=work
        )
        shell.say("ask", "@editor", "add a line", cwd=work)
        shell.say("down")
        sessions = list((shell.home / "sessions").rglob("*"))
        assert any(one.suffix == ".json" for one in sessions)
        assert open_to_others(shell.home) == {}


@pytest.mark.slow
def test_what_a_command_left_in_its_own_session_ends_with_the_turn() -> None:
    """The child begins a session of its own, and its parent is gone: nothing but its environment names it."""
    with a_shell() as shell:
        start_daemon(shell)
        work, file = shell.project("strays"), shell.folder / "pid"
        script = work / "stray.sh"
        script.write_text(
            f"#!/bin/sh\nsetsid sh -c 'echo $$ >{file}; exec sleep 7771' >/dev/null 2>&1 &\n"
            f"while [ ! -s {file} ]; do sleep 0.01; done\necho done\n"
        )
        script.chmod(0o755)
        shell.say("agent", "register", "stray", "--command", str(script), cwd=work)

        assert "done" in shell.say("ask", "@stray", "go", cwd=work)
        eventually(lambda: not is_running(int(file.read_text())))


def repository(shell: Shell) -> Path:
    work = shell.project("letters")
    (work / "readme").write_text("hello\n")
    git = ["git", "-c", "user.name=ada", "-c", "user.email=ada@localhost"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], cwd=work, check=True)
    return work


def open_to_others(home: Path) -> dict[str, str]:
    """Every file and folder that somebody else may read or write."""
    ours = (one for one in home.rglob("*") if one.name != "config.toml")  # the person writes that one
    modes = {str(one.relative_to(home)): one.lstat().st_mode for one in ours}
    return {name: oct(mode) for name, mode in modes.items() if stat.S_IMODE(mode) & 0o077}


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
