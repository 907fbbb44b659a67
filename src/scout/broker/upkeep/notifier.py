"""Notifying a person outside of Scout: after the commit, and without delaying anything.

One lane per sink, so that a slow one delays no other. Open items are read from the table, so they are
sent after a restart too; decided items are not sent.
"""

import asyncio
import logging
from collections.abc import Sequence

from msgspec.structs import replace

from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import ReadLedger, Transaction, WriteAsBroker
from scout.model.access.permission import format_request
from scout.model.attention import Attention, AttentionMove, AttentionState, notify_attention
from scout.model.delivery import back_off
from scout.model.events.talk import AttentionCreated, AttentionNotified
from scout.model.people.user import ConnectorKey, KeyState, User, UserState
from scout.ports import Notice, Sink
from scout.store.ledger import LAST, Ledger

_LOG = logging.getLogger("scout.notify")
_WINDOW = 0.5  # seconds: items within it become one notice
_AT_ONCE = 200
_LISTED = 5


class _Lane:
    """One sink, the items it sent or gave up, and its failures since it last worked."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.done: dict[str, bool] = {}
        self.failures = 0
        self.news = asyncio.Event()


class Notifier:
    """Sends notices. `write` runs a function of a Transaction as the broker; `read` one of a Ledger."""

    def __init__(
        self,
        services: Services,
        sinks: Sequence[Sink],
        write: WriteAsBroker,
        read: ReadLedger,
    ) -> None:
        self._services = services
        self._write = write
        self._read = read
        self._lanes = [_Lane(sink) for sink in sinks]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the lanes with the items that were not sent yet."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._serve(lane)) for lane in self._lanes]
        self._wake_lanes()

    async def close(self) -> None:
        """Stop the lanes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def on_attention(self, _: AttentionCreated) -> None:
        """Wake the lanes for a new attention item."""
        self._wake_lanes()

    def _wake_lanes(self) -> None:
        for lane in self._lanes:
            lane.news.set()

    async def _serve(self, lane: _Lane) -> None:
        while True:
            await lane.news.wait()
            await asyncio.sleep(_WINDOW)
            lane.news.clear()
            try:
                await self._round(lane)
            except Exception:  # noqa: BLE001 (it is logged; the next item is tried)
                _LOG.exception("notifying through %s", lane.sink.name)

    async def _round(self, lane: _Lane) -> None:
        found: list[Attention] = await self._read(self._find_unsent)
        lane.done = {one.id: lane.done[one.id] for one in found if one.id in lane.done}
        items = [one for one in found if one.id not in lane.done]
        if not items:
            return
        try:
            await lane.sink.tell(_build_notice(items))
        except Exception as error:  # noqa: BLE001 (it is logged and retried)
            await self._handle_failure(lane, items, error)
            return
        lane.failures = 0
        lane.done.update(dict.fromkeys((one.id for one in items), True))
        await self._record(found)

    def _find_unsent(self, ledger: Ledger) -> list[Attention]:
        """Return what the operator was not told yet: their own items, and those of quiet sub-users."""
        operator = self._services.operator
        found = ledger.many(Attention, "attention_untold", user=operator, limit=_AT_ONCE)
        for user in _list_without_chat(ledger, operator):
            items = ledger.many(Attention, "attention_untold", user=user, limit=_AT_ONCE)
            found += [replace(one, title=f"{user}: {one.title}") for one in items]
        return sorted(found, key=lambda one: one.id, reverse=True)[:_AT_ONCE]

    async def _handle_failure(self, lane: _Lane, items: Sequence[Attention], error: Exception) -> None:
        """Retry after a growing pause; after the maximum of attempts give up until a restart."""
        rules = self._services.rules
        lane.failures += 1
        _LOG.warning("%s did not send a notice (attempt %d): %s", lane.sink.name, lane.failures, error)
        if lane.failures < rules.limits.attempts:
            await asyncio.sleep(back_off(lane.failures, rules.back_off))
            lane.news.set()
            return
        lane.failures = 0
        lane.done.update(dict.fromkeys((one.id for one in items), False))
        await self._record(items)

    async def _record(self, found: Sequence[Attention]) -> None:
        sent = self._find_sent(found)
        if sent:
            await self._write(lambda tx: _record_sent(tx, sent))

    def _find_sent(self, found: Sequence[Attention]) -> list[str]:
        """Return the items that every sink has sent or given up, and at least one has sent."""
        outcomes = {one.id: [lane.done.get(one.id) for lane in self._lanes] for one in found}
        return [ident for ident, sent in outcomes.items() if None not in sent and True in sent]


def _list_without_chat(ledger: Ledger, owner: str) -> list[str]:
    """Return the sub-users of a user who have no chat account in which they could be told themselves."""
    owned = ledger.many(User, "users_owned", owner=owner, before=LAST, limit=_AT_ONCE)
    return [one.name for one in owned if one.state is UserState.ACTIVE and not _has_chat(ledger, one.name)]


def _has_chat(ledger: Ledger, user: str) -> bool:
    keys = ledger.many(ConnectorKey, "keys_of_user", user=user, before=LAST, limit=_AT_ONCE)
    return any(one.state is KeyState.ACTIVE for one in keys)


def _build_notice(items: Sequence[Attention]) -> Notice:
    """Build a notice of one item, or a summary of several; the newest comes first."""
    newest = items[0]
    if len(items) == 1:
        return Notice(
            id=newest.id,
            title=newest.title,
            text=format_request(newest.permission) if newest.permission else newest.body,
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


def _record_sent(tx: Transaction, idents: Sequence[str]) -> None:
    """Record that a person was notified of the items that are still open."""
    for ident in idents:
        item = tx.get(Attention, ident)
        if item is not None and item.state is AttentionState.OPEN:
            tx.record(AttentionNotified, notify_attention(item, tx.now), move=AttentionMove.NOTIFY)
