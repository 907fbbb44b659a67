"""Keeps the server of a mesh running: one that ended, or does not answer any more, is started again."""

import asyncio
import logging

from scout.base.refusal import Refused
from scout.model.delivery import Backoff, back_off
from scout.ports.mesh import MeshLink, MeshServer

_LOG = logging.getLogger("scout.mesh")
_LOOK = 0.5  # seconds between two looks at the connection


class ServerKeeper:
    """Exists on the node that runs the server. Its own connection tells whether the server answers."""

    def __init__(self, server: MeshServer, link: MeshLink, pauses: Backoff) -> None:
        self._server = server
        self._link = link
        self._pauses = pauses

    async def run(self) -> None:
        """Start the server whenever the connection to it is lost, until cancelled."""
        failures = 0
        while True:
            await asyncio.sleep(back_off(failures, self._pauses) if failures else _LOOK)
            if self._link.status.connected:
                continue
            try:
                await self._server.start()
                failures = 0
            except Refused as refused:
                failures += 1
                _LOG.warning("%s", refused.diagnostic.message)
