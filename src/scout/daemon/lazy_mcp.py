"""MCP, loaded lazily: its libraries are large, and starting the daemon must not wait for them."""
# ruff: noqa: PLC0415 (that is the point)

import asyncio
import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from scout.api.asgi import AsgiSend, Receive, Scope
from scout.mcp.address import PATHS
from scout.protocol.scout import Scout

if TYPE_CHECKING:
    from scout.mcp.app import McpSurface

_SLICE = 0.0001  # seconds for which the import may block other threads
_PAUSE = 10.0  # seconds without a request after which MCP is imported


class LazyMcp:
    """Loads the MCP surface at the first request for it, or once the daemon has been idle for some seconds.

    The import takes about a second of a processor. The first request for MCP waits for it; no other request
    does, because it runs in a thread, and it never begins by itself while the daemon has work.
    """

    paths = PATHS

    def __init__(self, version: str, pause: float = _PAUSE) -> None:
        self._version = version
        self._pause = pause
        self._stopped = False
        self._begun: asyncio.Task[McpSurface] | None = None
        self._running: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_begun(self) -> bool:
        return self._begun is not None

    def begin_when_idle(self, count_requests: Callable[[], int]) -> None:
        """Import once no request has been made for a while."""
        self._look_again(count_requests, count_requests())

    def _look_again(self, count_requests: Callable[[], int], before: int) -> None:
        def look() -> None:
            if (now := count_requests()) == before:
                self._begin()
            else:
                self._look_again(count_requests, now)

        if not self.is_begun:
            self._timer = asyncio.get_running_loop().call_later(self._pause, look)

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
