"""The listening part: uvicorn on sockets that are open already, stopped by us and nobody else."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator

import uvicorn

from scout.api.app import Application
from scout.api.http import Protocol

_GRACE = 5
_KEEP_ALIVE = 75


class Server(uvicorn.Server):
    """Serves an application; `stop` lets requests finish and tells streams why they end."""

    def __init__(self, application: Application, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=Protocol,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=_GRACE,
            )
        )
        self._application = application
        self._ready = ready
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Begin to stop."""
        self.should_exit = True
        self._stopped.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are the daemon's own business."""
        yield

    async def main_loop(self) -> None:
        """Wait for the stop, instead of asking ten times a second whether it has come."""
        await self.on_tick(0)
        self._ready()
        await self._stopped.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._application.stop()
        await super().shutdown(sockets)
