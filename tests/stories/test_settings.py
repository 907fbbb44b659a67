"""A setting that is changed while the daemon runs is in force for the next request."""

from collections.abc import Generator

import pytest

from tests.cli.running import Shell, a_shell, start_daemon

pytestmark = pytest.mark.slow


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as shell:
        start_daemon(shell)
        yield shell


def ask(shell: Shell, name: str, *words: str) -> str:
    done = shell.type("ask", f"@{name}", "hello", *words)
    return done.stdout + done.stderr


def test_a_limit_and_the_default_harness_are_in_force_at_once(shell: Shell) -> None:
    arc = shell.project("arc")
    shell.say("agent", "register", "arc", "--project", ".", "--harness", "echo", cwd=arc)
    shell.say("session", "start", "--agent", "@arc")
    pid = shell.data("status")["pid"]

    changed = shell.type("config", "set", "limits.openFlights", "0")
    assert changed.returncode == 2, changed.stderr
    changed = shell.type("config", "set", "limits.openFlights", "1")
    assert "the running daemon uses it from now on" in changed.stderr
    shell.say("pause")
    assert "flt_" in ask(shell, "arc", "--no-wait")
    assert "limit" in ask(shell, "arc", "--no-wait")
    assert shell.data("config", "set", "limits.openFlights", "9")["takesEffect"] == "now"
    assert "flt_" in ask(shell, "arc", "--no-wait")
    shell.say("resume")

    shell.say("config", "set", "harness", "echo")
    asked = shell.type("ask", "--project", ".", "hello", cwd=shell.project("bow"))
    assert asked.returncode == 0, asked.stderr
    assert "hello" in asked.stdout
    assert shell.data("status")["pid"] == pid


def test_a_setting_of_the_sockets_needs_a_restart_and_a_wrong_file_changes_nothing(shell: Shell) -> None:
    assert "until: scout restart" in shell.type("config", "set", "logLevel", "debug").stderr
    assert shell.type("config", "set", "logLevel", "info").stderr == ""  # as the daemon has it
    (shell.home / "config.toml").write_text("[limits\n")
    assert shell.type("who").returncode == 0
