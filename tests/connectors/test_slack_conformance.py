"""The connector `slack` with a broker, on the stage of our strict Slack."""

from contextlib import AbstractContextManager

from tests.connectors.conformance import ConnectorConformance
from tests.connectors.slack_stage import slack_stage
from tests.connectors.stage import Stage


class TestSlack(ConnectorConformance):
    def stage(self) -> AbstractContextManager[Stage]:
        return slack_stage()
