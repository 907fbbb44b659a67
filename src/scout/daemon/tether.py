"""A daemon that exists for another process: it ends when its standard input closes, with its sessions."""

import asyncio
import os
from collections.abc import Callable

from scout.broker.local import LocalScout
from scout.protocol.sessions import ListSessions, StopSession

_INPUT = 0  # the file descriptor of standard input


class Tether:
    """Standard input, held open by the process for which this daemon runs."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self.is_cut = False
        self._stop = stop
        asyncio.get_running_loop().add_reader(_INPUT, self._read)

    def _read(self) -> None:
        if os.read(_INPUT, 1024):
            return
        self.is_cut = True
        asyncio.get_running_loop().remove_reader(_INPUT)
        self._stop()

    async def close(self, scout: LocalScout) -> None:
        """End every session, if the other process is gone or wants no more of this daemon."""
        asyncio.get_running_loop().remove_reader(_INPUT)
        if self.is_cut:
            live = await scout.call(ListSessions(live=True, limit=200))
            stops = [StopSession(session_id=one.id, reason="its Scout ends") for one in live.items]
            await asyncio.gather(*map(scout.call, stops), return_exceptions=True)
