"""The connector `matrix` with a broker, on a real Synapse."""

from contextlib import AbstractContextManager

import pytest

from tests.connectors.conformance import ConnectorConformance
from tests.connectors.matrix_stage import matrix_stage
from tests.connectors.stage import Stage
from tests.connectors.synapse import Synapse


@pytest.mark.slow
class TestMatrix(ConnectorConformance):
    @pytest.fixture(autouse=True)
    def _homeserver(self, synapse: Synapse) -> None:  # pyright: ignore[reportUnusedFunction] (pytest calls it)
        self._synapse = synapse

    def stage(self) -> AbstractContextManager[Stage]:
        return matrix_stage(self._synapse)
