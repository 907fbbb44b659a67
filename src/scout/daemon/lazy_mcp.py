"""MCP, loaded lazily: its libraries are large, and starting the daemon must not wait for them."""
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

_SLICE = 0.0001  # seconds for which the import may block other threads
_PAUSE = 10.0  # seconds after the start in which only a request for MCP imports it


class LazyMcp:
    """Loads the MCP surface at the first request for it, or some seconds after the daemon has started."""

    paths = PATHS

    def __init__(self, version: str) -> None:
        self._version = version
        self._stopped = False
        self._begun: asyncio.Task[McpSurface] | None = None
        self._running: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin_soon(self) -> None:
        """Schedule the import."""
        self._timer = asyncio.get_running_loop().call_later(_PAUSE, self._begin)

    async def __call__(self, scout: Scout, scope: Scope, receive: Receive, send: AsgiSend) -> None:
        begun = self._begin()
        surface = begun.result() if begun.done() else await asyncio.shield(begun)
        await surface(scout, scope, receive, send)

    def stop(self) -> None:
        """Cancel the scheduled import and end all MCP sessions."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._begun is not None and self._begun.done() and not self._begun.exception():
            self._begun.result().stop()

    async def close(self) -> None:
        """Stop, and wait until nothing is running."""
        self.stop()
        for task in (self._begun, self._running):
            if task is not None:
                await asyncio.wait({task})

    def _begin(self) -> "asyncio.Task[McpSurface]":
        if self._begun is None:
            self._begun = asyncio.get_running_loop().create_task(self._load())
        return self._begun

    async def _load(self) -> "McpSurface":
        """Import the surface in a thread, so that other requests are answered meanwhile, and run it."""
        kind = await asyncio.to_thread(_import_surface)
        gc.freeze()  # these objects live as long as the daemon: the collector can skip them
        surface, started = kind(self._version), asyncio.Event()
        self._running = asyncio.get_running_loop().create_task(surface.run(started))
        await started.wait()
        if self._stopped:
            surface.stop()
        return surface


def _import_surface() -> "type[McpSurface]":
    """Import with a short thread switch interval, so that the event loop is not blocked for long."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SLICE)
    try:
        from scout.mcp.app import McpSurface
    finally:
        sys.setswitchinterval(usual)
    return McpSurface
