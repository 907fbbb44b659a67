"""The broker as its parts see it: where work runs in a transaction, or reads beside the writer."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.ports import Surroundings
from scout.store.ledger import Ledger

T = TypeVar("T")


class Transactions(Protocol):
    """Runs work on the store: `read` on a reader, the others in a transaction and in somebody's name."""

    services: Services

    async def read(self, work: Callable[[Ledger], T]) -> T: ...
    async def write(
        self, who: Admitted, work: Callable[[Transaction], T], place: Surroundings | None = None
    ) -> T: ...
    async def as_system(self, work: Callable[[Transaction], T]) -> T: ...
    async def as_sweeper(self, work: Callable[[Transaction], T]) -> T: ...
