"""One request between transactions, for handlers that wait, keep state in memory or start programs."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.cache import Cache
from scout.broker.transaction.idempotency import run_once
from scout.broker.transaction.services import Services
from scout.broker.transaction.streams import Waiters
from scout.broker.transaction.transaction import Transaction
from scout.broker.transaction.transactions import Transactions
from scout.model.endpoint import Endpoint
from scout.model.token import TokenKind
from scout.ports import Surroundings
from scout.protocol.agents import Identity
from scout.protocol.request import Request, Write
from scout.store.ledger import Ledger

T = TypeVar("T")


class CallBroker(Transactions, Protocol):
    """The broker as a call sees it: the store, the waiters, and what is kept in memory."""

    waiters: Waiters
    cache: Cache
    signs_of_life: dict[str, Endpoint]
    identities: dict[tuple[str | None, ...], Identity]

    def glance(self) -> Ledger: ...
    def count(self, agent_id: str, what: str, text: str = "") -> None: ...


B_co = TypeVar("B_co", bound=CallBroker, covariant=True)


class CallContext(Generic[B_co]):
    """`surroundings`: the folder that the request names. `perform` runs a request without its wait."""

    def __init__(
        self,
        broker: B_co,
        who: Admitted,
        surroundings: Surroundings | None,
        perform: Callable[["CallContext[B_co]", Request[Any]], Awaitable[Any]],
    ) -> None:
        self.broker = broker
        self.who = who
        self.surroundings = surroundings
        self._perform = perform

    async def perform(self, request: Request[T]) -> T:
        """Run a request as its row in the handler table says, without waiting for what follows from it."""
        return await self._perform(self, request)

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on a reader thread, in the caller's name."""
        return await self.broker.read(lambda ledger: work(self._transaction(ledger)))

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction, in the caller's name."""
        return await self.broker.write(self.who, work, self.surroundings)

    async def write_once(self, request: Write[T], handler: Callable[[Transaction, Any], T]) -> T:
        """Run a handler in one transaction; under a key that was used before, return the first answer."""
        return await self.write(lambda tx: run_once(tx, request, handler))

    def glance(self) -> Transaction:
        """Return a read-only transaction for a short look from the event loop."""
        return self._transaction(self.broker.glance())

    def count(self, what: str, text: str = "") -> None:
        """Count something that costs an agent tokens; a person's time is not counted."""
        actor = self.who.actor
        if actor.kind is TokenKind.AGENT and actor.agent_id is not None:
            self.broker.count(actor.agent_id, what, text)

    @property
    def services(self) -> Services:
        return self.broker.services

    @property
    def agent_id(self) -> str:
        """Return the agent in whose name the caller waits."""
        return self.who.actor.agent_id or self.services.system_agent

    @property
    def token_id(self) -> str:
        """Return the caller's credential; the broker itself has none."""
        return self.who.actor.token_id or ""

    def _transaction(self, ledger: Ledger) -> Transaction:
        who = self.who
        return Transaction(
            self.services, ledger, who.actor, who.caller, here=who.here, place=self.surroundings
        )
