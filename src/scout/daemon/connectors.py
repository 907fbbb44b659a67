"""The connectors that this Scout could run. To add one, add its row to this table.

Its fields are read without loading the connector. Its module is loaded when it is set up. What is set for it
is stored in a file that only the owner can read.
"""

import asyncio
import importlib
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from scout.base.codec import decode
from scout.base.refusal import BadRequest, Refused, Remedy
from scout.connectors.matrix.fields import FIELDS as MATRIX
from scout.connectors.slack.fields import FIELDS as SLACK
from scout.connectors.telegram.fields import FIELDS as TELEGRAM
from scout.connectors.whatsapp.fields import FIELDS as WHATSAPP
from scout.daemon.secret_file import read_secret, write_secret
from scout.model.problems.chats import ConnectorFailed
from scout.ports.connector import Connector, ConnectorSetup, FailureKind, SetupField


class _Row(NamedTuple):
    """`module` has `build(setup)`, and `prepare(setup)` if values are exchanged before they are stored.

    `extra`: the extra of the package that its library comes with.
    """

    module: str
    fields: tuple[SetupField, ...]
    extra: str = ""


_TABLE = {
    "telegram": _Row("scout.connectors.telegram.connector", TELEGRAM),
    "matrix": _Row("scout.connectors.matrix.connector", MATRIX),
    "slack": _Row("scout.connectors.slack.connector", SLACK),
    "whatsapp": _Row("scout.connectors.whatsapp.connector", WHATSAPP),
}


class StoredConnectors:
    """The table, and a folder with one file for each connector that is set up."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_known(self) -> dict[str, tuple[SetupField, ...]]:
        """Return the fields of each known connector, without loading one."""
        return {name: row.fields for name, row in _TABLE.items()}

    def list_stored(self) -> tuple[str, ...]:
        """Return the connectors that are set up, by name."""
        return tuple(name for name in sorted(_TABLE) if os.path.lexists(self._path(name)))

    def read(self, connector: str) -> ConnectorSetup:
        """Return a stored set-up."""
        file = self._path(connector)
        try:
            values = decode(read_secret(file), dict[str, str])
        except (Refused, UnicodeDecodeError) as error:
            problem = f"{file} cannot be read: {error}"
            add = Remedy(
                operation="connector.add", parameters={"connector": connector}, why="set it up again"
            )
            raise Refused(BadRequest(problem=problem, remedies=(add,))) from None
        return ConnectorSetup(connector=connector, values=values)

    async def prepare(self, setup: ConnectorSetup) -> ConnectorSetup:
        """Return the set-up to store."""
        module = await asyncio.to_thread(_load, setup.connector)
        exchange: Callable[[ConnectorSetup], Awaitable[ConnectorSetup]] | None
        exchange = getattr(module, "prepare", None)
        return await exchange(setup) if exchange is not None else setup

    def store(self, setup: ConnectorSetup) -> None:
        """Store a set-up in a file of mode 0600."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        write_secret(self._path(setup.connector), json.dumps(setup.values, indent=2) + "\n")

    def forget(self, connector: str) -> None:
        """Remove a set-up with its secrets."""
        self._path(connector).unlink(missing_ok=True)

    def build(self, setup: ConnectorSetup) -> Connector:
        """Load and build a connector."""
        return _load(setup.connector).build(setup)

    def _path(self, connector: str) -> Path:
        return self._folder / f"{connector}.json"


def _load(connector: str) -> Any:
    row = _TABLE[connector]
    try:
        return importlib.import_module(row.module)
    except ImportError as error:
        missing, extra = error.name, row.extra or connector
        reason = f"the package '{missing}' is missing: pip install 'scout-broker[{extra}]'"
        failed = ConnectorFailed(connector=connector, kind=FailureKind.REFUSED, reason=reason)
        raise Refused(failed) from None
