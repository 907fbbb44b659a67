"""One daemon for all tests of the contract's sentences: each of them uses names that no other uses."""

from collections.abc import Generator

import pytest

from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.surface.site import Site

_CONFIG = """
roots = ['{folder}/work']

[limits]
asksPerMinute = 100000
"""


@pytest.fixture(scope="session")
def site() -> Generator[Site]:
    with a_shell(ends_runs=True) as shell:
        (shell.home / "config.toml").write_text(_CONFIG.format(folder=shell.folder))
        yield Site(shell, Daemon(shell.home, start_daemon(shell)))
