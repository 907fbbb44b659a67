"""One real daemon for the tests of the terminal application: each of them uses names that no other uses."""

from collections.abc import Generator

import pytest

from scout.client.environment import SESSION_MARKS
from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.tui.stage import Fleet


@pytest.fixture(autouse=True)
def nothing_of_this_session(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SESSION_MARKS, "SCOUT_TOKEN", "SCOUT_URL", "SCOUT_SOCKET", "SCOUT_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def shell() -> Generator[Shell]:
    with a_shell(ends_runs=True) as shell:
        yield shell


@pytest.fixture(scope="session")
def fleet(shell: Shell) -> Fleet:
    return Fleet(shell, Daemon(shell.home, start_daemon(shell)))
