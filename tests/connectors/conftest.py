"""Platforms for the tests of connectors."""

from collections.abc import Iterator

import pytest

from tests.connectors.synapse import Synapse, require_synapse


@pytest.fixture(scope="session")
def synapse() -> Iterator[Synapse]:
    """One real homeserver for the tests of one worker."""
    server = Synapse(require_synapse())
    try:
        server.start()
        yield server
    finally:
        server.remove()
