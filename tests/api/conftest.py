"""One daemon for all tests of the HTTP surface: each of them uses names of its own."""

from collections.abc import Iterator

import pytest

from tests.daemon.daemons import Daemon, daemon


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with daemon(tmp_path_factory.mktemp("live") / "home") as running:
        yield running
