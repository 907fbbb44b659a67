"""The connector `telegram` with a broker, on the stage of our strict Bot API."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.connectors.conformance import ConnectorConformance
from tests.connectors.stage import Stage
from tests.connectors.telegram_stage import telegram_stage


class TestTelegram(ConnectorConformance):
    @pytest.mark.slow
    @pytest.mark.rows("R9.connectors-1", "R9.out-12")
    def test_a_few_kills_lose_nothing(self, tmp_path: Path) -> None:
        super().test_a_few_kills_lose_nothing(tmp_path)

    def stage(self) -> AbstractContextManager[Stage]:
        return telegram_stage()
