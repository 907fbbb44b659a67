"""The broker as its parts see it: where work runs in a transaction, or reads beside the writer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from scout.base.refusal import Refused
from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.model.delivery import Backoff, back_off
from scout.model.problems.request import StoreFull
from scout.ports import Surroundings
from scout.store.ledger import Ledger

T = TypeVar("T")


_LOG = logging.getLogger("scout.store")
_MOST = 5.0  # maximum seconds between two attempts


class Transactions(Protocol):
    """Runs work on the store: `read` on a reader, the others in a transaction, as an actor."""

    services: Services

    async def read(self, work: Callable[[Ledger], T]) -> T: ...
    async def write(
        self, who: Admitted, work: Callable[[Transaction], T], place: Surroundings | None = None
    ) -> T: ...
    async def as_system(self, work: Callable[[Transaction], T]) -> T: ...
    async def as_sweeper(self, work: Callable[[Transaction], T]) -> T: ...


async def until_stored(work: Callable[[], Awaitable[T]], rule: Backoff) -> T:
    """Run work that writes; while the disk is full, retry until it succeeds."""
    tries = 0
    while True:
        try:
            return await work()
        except Refused as refusal:
            if not isinstance(refusal.diagnostic, StoreFull):
                raise
            tries += 1
            if tries == 1:
                _LOG.warning("%s; the record is written when there is space", refusal)
            await asyncio.sleep(min(back_off(tries, rule), _MOST))
