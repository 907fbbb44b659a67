"""Telling a person that something needs them, outside of Scout: after the commit, and never in anybody's way.

One lane per sink, so that a slow one delays no other. What is found is what the table says is open, so it
is told after a restart as well; what was decided before is not told at all.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.model.attention import Attention, AttentionMove, AttentionState, notify_attention
from scout.model.delivery import back_off
from scout.model.events.talk import AttentionCreated, AttentionNotified
from scout.model.permission import text_of_request
from scout.ports import Notice, Sink
from scout.store.ledger import Ledger

_LOG = logging.getLogger("scout.notify")
_WINDOW = 0.5  # seconds: what comes within it is one notice
_AT_ONCE = 200
_LISTED = 5


class _Lane:
    """One sink, what it has said (or given up to say), and how often it failed since it last worked."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.done: dict[str, bool] = {}
        self.failures = 0
        self.news = asyncio.Event()


class Notifier:
    """`write` runs a function of a Transaction as the broker itself; `read` runs one of a Ledger."""

    def __init__(
        self,
        services: Services,
        sinks: Sequence[Sink],
        write: Callable[[Callable[[Transaction], Any]], Awaitable[Any]],
        read: Callable[[Callable[[Ledger], Any]], Awaitable[Any]],
    ) -> None:
        self._services = services
        self._write = write
        self._read = read
        self._lanes = [_Lane(sink) for sink in sinks]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Take up what nobody was told of yet."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._serve(lane)) for lane in self._lanes]
        self._ring()

    async def close(self) -> None:
        """Say nothing more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def on_attention(self, _: AttentionCreated) -> None:
        """An attention item was committed."""
        self._ring()

    def _ring(self) -> None:
        for lane in self._lanes:
            lane.news.set()

    async def _serve(self, lane: _Lane) -> None:
        while True:
            await lane.news.wait()
            await asyncio.sleep(_WINDOW)
            lane.news.clear()
            try:
                await self._round(lane)
            except Exception:  # noqa: BLE001 (the next news comes; it is logged)
                _LOG.exception("telling %s", lane.sink.name)

    async def _round(self, lane: _Lane) -> None:
        found: list[Attention] = await self._read(self._untold)
        lane.done = {one.id: lane.done[one.id] for one in found if one.id in lane.done}
        items = [one for one in found if one.id not in lane.done]
        if not items:
            return
        try:
            await lane.sink.tell(_notice(items))
        except Exception as error:  # noqa: BLE001 (whatever a sink's world does: it is logged, then tried again)
            await self._failed(lane, items, error)
            return
        lane.failures = 0
        lane.done.update(dict.fromkeys((one.id for one in items), True))
        await self._record(found)

    def _untold(self, ledger: Ledger) -> list[Attention]:
        return ledger.many(Attention, "attention_untold", user=self._services.operator, limit=_AT_ONCE)

    async def _failed(self, lane: _Lane, items: Sequence[Attention], error: Exception) -> None:
        """Again after a growing pause; after so many failures it is left, and a restart tries once more."""
        rules = self._services.rules
        lane.failures += 1
        _LOG.warning("%s was not told (attempt %d): %s", lane.sink.name, lane.failures, error)
        if lane.failures < rules.limits.attempts:
            await asyncio.sleep(back_off(lane.failures, rules.back_off))
            lane.news.set()
            return
        lane.failures = 0
        lane.done.update(dict.fromkeys((one.id for one in items), False))
        await self._record(items)

    async def _record(self, found: Sequence[Attention]) -> None:
        told = self._told(found)
        if told:
            await self._write(lambda tx: _record(tx, told))

    def _told(self, found: Sequence[Attention]) -> list[str]:
        """Those of which every sink has told, or given up where another has told."""
        outcomes = {one.id: [lane.done.get(one.id) for lane in self._lanes] for one in found}
        return [ident for ident, said in outcomes.items() if None not in said and True in said]


def _notice(items: Sequence[Attention]) -> Notice:
    """One thing as itself; several as one summary. The newest is first."""
    newest = items[0]
    if len(items) == 1:
        return Notice(
            id=newest.id,
            title=newest.title,
            text=text_of_request(newest.permission) if newest.permission else newest.body,
            kind=newest.kind,
            risk=newest.risk,
            agent=newest.agent_id or "",
            at=newest.created_at,
        )
    more = [f"and {len(items) - _LISTED} more"] if len(items) > _LISTED else []
    text = "\n".join([*(one.title for one in items[:_LISTED]), *more])
    risk = max((one.risk for one in items), key=list(type(newest.risk)).index)
    title = f"{len(items)} things need you"
    return Notice(id=newest.id, title=title, text=text, risk=risk, count=len(items), at=newest.created_at)


def _record(tx: Transaction, idents: Sequence[str]) -> None:
    """That a person was told: once, and not of what was decided meanwhile."""
    for ident in idents:
        item = tx.get(Attention, ident)
        if item is not None and item.state is AttentionState.OPEN:
            tx.record(AttentionNotified, notify_attention(item, tx.now), move=AttentionMove.NOTIFY)
