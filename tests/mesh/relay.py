"""A TCP relay before a server, which can stop forwarding without closing anything: a cable that was pulled."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class Relay:
    """Forwards bytes both ways, while it is not cut. New connections are accepted and get no byte."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._open = asyncio.Event()
        self._open.set()
        self._tasks = set[asyncio.Task[None]]()
        self.port = 0
        self.carried = 0  # bytes, both ways

    def cut(self) -> None:
        self._open.clear()

    def heal(self) -> None:
        self._open.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._pump(reader, far_writer))
                    both.create_task(self._pump(far_reader, writer))
            finally:
                far_writer.close()
                writer.close()
                self._tasks.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                await self._open.wait()
                self.carried += len(data)
                writer.write(data)
                await writer.drain()
        await self._open.wait()  # the other side does not learn of an end either
        writer.close()

    async def close(self) -> None:
        for one in [*self._tasks]:
            one.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


@asynccontextmanager
async def relaying(port: int) -> AsyncGenerator[Relay]:
    relay = Relay(port)
    server = await asyncio.start_server(relay.carry, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        await relay.close()
