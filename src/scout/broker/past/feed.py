"""Keeps the history up to date behind the log, in small steps beside the requests."""

import asyncio
import logging

from scout.broker.transaction.transaction import ReadLedger, WriteAsBroker
from scout.ports import Clock
from scout.store.history.feed import FAR_BEHIND, Batch

_LOG = logging.getLogger("scout.history")
_EVERY = 1.0  # seconds
_STEP = 400  # events


class HistoryFeed:
    """Follows the log. A step reads on a reader and writes in one transaction; steps take turns."""

    def __init__(self, clock: Clock, read: ReadLedger, write: WriteAsBroker) -> None:
        self._clock = clock
        self._read = read
        self._write = write
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow the log until closed."""
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Stop. A step that was not stored is made again after the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def catch_up(self) -> None:
        """Make the steps to the end of the log, if they are few."""
        for _ in range(FAR_BEHIND // _STEP):
            if not await self._make_step():
                return

    async def _follow(self) -> None:
        while True:
            try:
                began = self._clock.monotonic()
                while await self._make_step():
                    # After an upgrade there is a long way to go: leave more time to requests than it takes.
                    await asyncio.sleep(2 * (self._clock.monotonic() - began))
                    began = self._clock.monotonic()
            except Exception:  # noqa: BLE001 (it is logged; the next round continues from the mark)
                _LOG.exception("following the log")
            await asyncio.sleep(_EVERY)

    async def _make_step(self) -> bool:
        """Follow the next events; return whether there may be more."""
        async with self._turn:
            batch: Batch | None = await self._read(lambda ledger: ledger.prepare_history(_STEP))
            if batch is None:
                return False
            await self._write(lambda tx: tx.ledger.store_history(batch))
            return batch.last - batch.after >= _STEP or batch.last == 0
