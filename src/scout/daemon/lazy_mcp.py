"""MCP, loaded late: its libraries are large, and nobody who starts a daemon waits for them."""
# ruff: noqa: PLC0415 (that is the point)

import asyncio
import gc
import sys
from typing import TYPE_CHECKING

from scout.api.asgi import AsgiSend, Receive, Scope
from scout.mcp.address import PATHS
from scout.protocol.scout import Scout

if TYPE_CHECKING:
    from scout.mcp.app import McpSurface

_SLICE = 0.0001  # seconds for which the import may hold up everybody else
_PAUSE = 2.0  # seconds in which those who started the daemon have it for themselves


class LazyMcp:
    """Loads the surface at the first request for it, or when the daemon has been up for a moment."""

    paths = PATHS

    def __init__(self, version: str) -> None:
        self._version = version
        self._stopped = False
        self._begun: asyncio.Task[McpSurface] | None = None
        self._running: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin_soon(self) -> None:
        """Load it in a moment."""
        self._timer = asyncio.get_running_loop().call_later(_PAUSE, self._begin)

    async def __call__(self, scout: Scout, scope: Scope, receive: Receive, send: AsgiSend) -> None:
        begun = self._begin()
        surface = begun.result() if begun.done() else await asyncio.shield(begun)
        await surface(scout, scope, receive, send)

    def stop(self) -> None:
        """End what waits, and every session."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._begun is not None and self._begun.done() and not self._begun.exception():
            self._begun.result().stop()

    async def close(self) -> None:
        """Stop, and leave nothing running."""
        self.stop()
        for task in (self._begun, self._running):
            if task is not None:
                await asyncio.wait({task})

    def _begin(self) -> "asyncio.Task[McpSurface]":
        if self._begun is None:
            self._begun = asyncio.get_running_loop().create_task(self._load())
        return self._begun

    async def _load(self) -> "McpSurface":
        """The surface, with its sessions held; others are answered while a thread imports it."""
        kind = await asyncio.to_thread(_imported)
        gc.freeze()  # what is there now stays: it need not be looked at again
        surface, started = kind(self._version), asyncio.Event()
        self._running = asyncio.get_running_loop().create_task(surface.run(started))
        await started.wait()
        if self._stopped:
            surface.stop()
        return surface


def _imported() -> "type[McpSurface]":
    """Importing is one long piece of work: who is served meanwhile must not wait for whole slices of it."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SLICE)
    try:
        from scout.mcp.app import McpSurface
    finally:
        sys.setswitchinterval(usual)
    return McpSurface
