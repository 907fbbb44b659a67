"""Every test of the command line has a home of its own, and nothing of the session that runs the tests."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from scout.client.environment import SESSION_MARKS
from tests.cli.running import Shell, a_shell, start_daemon


@pytest.fixture(autouse=True)
def a_home_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("SCOUT_") and name != "SCOUT_HYPOTHESIS":
            monkeypatch.delenv(name)
    for name in (*SESSION_MARKS, "NO_COLOR", "EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SCOUT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SCOUT_PORT", "0")
    monkeypatch.setenv("SCOUT_AUTOSTART", "0")
    monkeypatch.setenv("SCOUT_NOTIFY_DESKTOP", "0")
    monkeypatch.setenv("SCOUT_MCP_PRELOAD", "false")


@pytest.fixture(scope="session")
def shell() -> Generator[Shell]:
    """One real daemon for the tests that only add to it."""
    with a_shell() as shell:
        start_daemon(shell)
        for name in ("arc", "bow"):
            shell.say(
                "agent", "register", name, "--project", ".", "--harness", "echo", cwd=shell.project(name)
            )
        yield shell


@pytest.fixture
def fresh() -> Generator[Shell]:
    """A home of its own, without a daemon."""
    with a_shell() as shell:
        yield shell
