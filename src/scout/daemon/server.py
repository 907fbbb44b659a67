"""The HTTP server: uvicorn on sockets that are already open; and the tether to another process."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Generator

import uvicorn

from scout.api.app import Application
from scout.api.http import Protocol
from scout.broker.local import LocalScout
from scout.protocol.overview import PauseScout
from scout.protocol.sessions import ListSessions, StopSession

_GRACE = 5
_STEP = 0.005
_KEEP_ALIVE = 75
_INPUT = 0  # the file descriptor of standard input


class Server(uvicorn.Server):
    """Serves an application. `stop` lets requests finish and tells streams why they end."""

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
            )
        )
        self._application = application
        self._ready = ready
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Start to shut down."""
        self.should_exit = True
        self._stopped.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals to the daemon."""
        yield

    async def main_loop(self) -> None:
        """Wait for `stop`, instead of polling ten times a second as uvicorn does."""
        await self.on_tick(0)
        self._ready()
        await self._stopped.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests finish, for a few seconds at most. uvicorn would sleep even if there are none."""
        self._application.stop()
        for listening in (*self.servers, *(sockets or ())):
            listening.close()
        for connection in [*self.server_state.connections]:
            connection.shutdown()
        try:
            async with asyncio.timeout(_GRACE):
                await self._wait_idle()
        except TimeoutError:
            for task in self.server_state.tasks:
                task.cancel()

    async def _wait_idle(self) -> None:
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 (uvicorn has no event for it)
            await asyncio.sleep(_STEP)
        for server in self.servers:
            await server.wait_closed()


class Tether:
    """Standard input, held open by the process that this daemon belongs to."""

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

    async def close(self, scout: LocalScout, wait_until_idle: Callable[[], Awaitable[None]]) -> None:
        """Stop all sessions if the other process closed its end.

        A program that is just being started can be stopped only after that, so nothing more is started first.
        """
        asyncio.get_running_loop().remove_reader(_INPUT)
        if not self.is_cut:
            return
        reason = "its Scout stopped"
        await scout.call(PauseScout(now=True, reason=reason))
        live = await scout.call(ListSessions(live=True, limit=200))
        stops = [StopSession(session_id=one.id, reason=reason) for one in live.items]
        await asyncio.gather(*map(scout.call, stops), return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await wait_until_idle()
