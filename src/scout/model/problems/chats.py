"""Refusals of chat platforms."""

from typing import ClassVar

from scout.base.refusal import Diagnostic, Family


class ConnectorFailed(Diagnostic, tag="connector_failed"):
    """The chat platform did not accept the connector.

    `kind` says what would help: other credentials, another attempt, or nothing. Nothing was stored; a
    connector that was set up before keeps running as it was.
    """

    family: ClassVar[Family] = Family.UNREACHABLE

    connector: str
    kind: str
    reason: str

    @property
    def message(self) -> str:
        return f"{self.connector} does not work with these values: {self.reason}"
