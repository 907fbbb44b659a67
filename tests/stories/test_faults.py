"""What a person sees when the machine fails them: a damaged store, a clock that jumps, a hostile folder."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import a_shell, start_daemon


@pytest.mark.rows("R6-4")
@pytest.mark.slow
def test_a_damaged_store_is_named_and_restored() -> None:
    with a_shell() as shell:
        start_daemon(shell)
        shell.say("agent", "register", "upper", "--command", "cat")
        for number in (0, 20, 40):
            shell.say("send", "@upper", f"note {number}")
        shell.say("backup", str(shell.home / "monday.db"))
        shell.say("send", "@upper", "after the backup")
        shell.say("down")
        scribble(shell.home / "scout.db")

        up = shell.type("up")
        assert up.returncode == 9, up.stderr
        assert "is damaged" in up.stderr
        assert f"scout restore {shell.home}/monday.db" in up.stderr

        doctor = shell.type("doctor")
        assert f"scout restore {shell.home}/monday.db" in doctor.stderr
        verify = shell.type("verify")
        assert verify.returncode == 9
        assert "nothing was changed or deleted" in verify.stdout
        assert f"scout restore {shell.home}/monday.db" in verify.stderr
        assert shell.type("verify", "--json").returncode == 9
        backup = shell.type("backup", str(shell.folder / "tuesday.db"))
        assert backup.returncode == 9
        assert not (shell.folder / "tuesday.db").exists()
        for shown in (up, doctor, verify, backup):
            assert "Traceback" not in shown.stdout + shown.stderr

        shell.say("restore", str(shell.home / "monday.db"))
        start_daemon(shell)
        assert "note 40" in shell.say("message", "list", "--to", "@upper")
        assert "clean" in shell.say("verify")


def scribble(file: Path) -> None:
    """Some pages in the middle are not what they were."""
    with file.open("r+b") as store:
        for page in range(2, 40, 3):
            store.seek(page * 4096)
            store.write(os.urandom(4096))


@pytest.mark.rows("R7-15")
@pytest.mark.slow
def test_a_hostile_folder_runs_nothing() -> None:
    """A folder from somewhere else, whose .git names a program for every occasion."""
    with a_shell() as shell:
        start_daemon(shell)
        work, mark = shell.project("strange"), shell.folder / "mark"
        script = shell.folder / "script"
        script.write_text(f"#!/bin/sh\necho ran >>{mark}\nexec cat\n")
        script.chmod(0o755)
        git = ["git", "-c", "user.name=ada", "-c", "user.email=ada@localhost"]
        (work / "readme").write_text("hello\n")
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
            subprocess.run([*git, *words], cwd=work, check=True)
        with (work / ".git" / "config").open("a") as config:
            config.write(f'[filter "a=b"]\n\tclean = {script}\n[core]\n\tfsmonitor = {script}\n')
        (work / ".gitattributes").write_text("* filter=a=b\n")
        os.utime(work / "readme", (0, 0))
        shell.say(
            "agent", "register", "editor", "--command", "sh -c 'echo more >>readme; echo done'", cwd=work
        )

        asked = shell.data("ask", "@editor", "add a line", cwd=work)
        assert asked["output"] == "done"
        assert "+more" in shell.say("flight", "diff", asked["flightId"], cwd=work)
        assert not mark.exists()
