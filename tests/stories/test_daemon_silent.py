"""A daemon that runs and cannot answer: what the commands say, and the command that helps."""

import os
import signal
from pathlib import Path

import pytest

from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import eventually


@pytest.mark.slow
def test_a_deleted_socket_is_named_and_restart_helps() -> None:
    with a_shell() as shell:
        daemon = start_daemon(shell)
        shell.say("agent", "register", "upper", "--command", "cat")
        Path(daemon.socket).unlink()

        said = f"the daemon (pid {daemon.pid}) is running, but its socket {daemon.socket} is gone"
        for words in (["status"], ["up"], ["send", "@upper", "hello"]):
            for autostart in ("0", "1"):
                shown = shell.type(*words, SCOUT_AUTOSTART=autostart)
                assert shown.returncode != 0, words
                assert said in shown.stderr, words
                assert "try: scout restart" in shown.stderr, words

        shell.say("restart")
        shell.say("send", "@upper", "hello")


@pytest.mark.slow
def test_a_suspended_daemon_is_named_and_restart_helps() -> None:
    with a_shell() as shell:
        daemon = start_daemon(shell)
        shell.say("agent", "register", "upper", "--command", "cat")
        os.kill(daemon.pid, signal.SIGSTOP)
        eventually(lambda: Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(") ")[2].startswith("T"))

        for words in (["status"], ["up"], ["send", "@upper", "hello"]):
            shown = shell.type(*words)
            assert shown.returncode != 0, words
            assert f"the daemon (pid {daemon.pid}) is running, but it is suspended" in shown.stderr, words
            assert "try: scout restart" in shown.stderr, words

        shell.say("restart")
        shell.say("send", "@upper", "hello")
