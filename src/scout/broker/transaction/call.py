"""One request between transactions, for handlers that wait, keep state in memory or start programs.

The broker as its parts see it is here too, and idempotency keys: a repeated request returns the first answer
and changes nothing.
"""

import asyncio
import hashlib
import logging
import posixpath
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from msgspec.structs import replace

from scout.base.codec import decode, encode, encode_for_store
from scout.base.refusal import Refused
from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.cache import Cache
from scout.broker.transaction.services import Services
from scout.broker.transaction.streams import Waiters
from scout.broker.transaction.transaction import Transaction
from scout.model.access.token import TokenKind
from scout.model.delivery import Backoff, back_off
from scout.model.endpoint import Endpoint
from scout.model.problems.request import KeyReused, StoreFull
from scout.policy.permit import check_granted_directory
from scout.ports import Surroundings
from scout.protocol.access import Minted
from scout.protocol.agents import Identity, Registered
from scout.protocol.enrolment import Enrolled
from scout.protocol.inbox import Claimed
from scout.protocol.people.users import IssuedCode
from scout.protocol.request import Request, Write, get_result_type
from scout.store.ledger import Ledger, Remembered

T = TypeVar("T")

_LOG = logging.getLogger("scout.store")
_MACHINE = (TokenKind.OPERATOR, TokenKind.HOST)
_MOST = 5.0  # maximum seconds between two attempts
_VOLATILE = {"wait": 0, "traceparent": None}


class Transactions(Protocol):
    """Runs work on the store: `read` on a reader, the others in a transaction, as an actor."""

    services: Services

    async def read(self, work: Callable[[Ledger], T]) -> T: ...
    async def write(
        self, who: Admitted, work: Callable[[Transaction], T], place: Surroundings | None = None
    ) -> T: ...
    async def as_system(self, work: Callable[[Transaction], T]) -> T: ...
    async def as_sweeper(self, work: Callable[[Transaction], T]) -> T: ...


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

    async def check_folder(self, folder: str) -> None:
        """Refuse a folder that is no matter of the caller's user, before anything is told about it.

        The folders of this machine are the operator's; other users reach those of projects granted to them.
        """
        actor = self.who.actor
        if actor.kind in _MACHINE or actor.user is None or actor.user == self.services.operator:
            return
        projects = await self.read(lambda tx: tx.view.projects)
        path = posixpath.normpath(posixpath.join("/", self.who.base or "", folder))
        check_granted_directory(path, projects, actor.user)

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


# -- idempotency keys --------------------------------------------------------------------------------


def run_once(tx: Transaction, request: Write[T], handler: Callable[[Transaction, Any], T]) -> T:
    """Run a request once per key and return its first answer again; refuse another request under the key."""
    if request.idempotency_key is None:
        return handler(tx, request)
    known = find_answer(tx, request)
    if known is not None:
        return known
    answer = handler(tx, request)
    if isinstance(answer, Claimed) and not answer.items:
        return answer  # nothing was written, so a repeat is harmless
    receipt = Remembered(_hash_request(request), encode_for_store(_drop_secret(answer)))
    key = request.idempotency_key
    tx.ledger.remember(_get_actor_id(tx), request.operation, key, receipt=receipt, now=tx.now)
    return answer


def find_answer(tx: Transaction, request: Write[T]) -> T | None:
    """Return the first answer to a request with this key; refuse another request under the key."""
    if request.idempotency_key is None:
        return None
    known = tx.ledger.recall(_get_actor_id(tx), request.operation, request.idempotency_key)
    if known is None:
        return None
    if known.hash != _hash_request(request):
        raise Refused(KeyReused(key=request.idempotency_key, operation=request.operation))
    return decode(known.answer, get_result_type(type(request)))


def _get_actor_id(tx: Transaction) -> str:
    return tx.actor.agent_id or tx.actor.token_id


def _hash_request(request: Write[Any]) -> str:
    return hashlib.sha256(encode(_drop_volatile(request))).hexdigest()


def _drop_secret(answer: T) -> T:
    """Return the answer to store: a secret is shown once and stored nowhere."""
    if isinstance(answer, Registered | Enrolled):
        return replace(answer, token=None)
    if isinstance(answer, IssuedCode):
        return replace(answer, code="")
    return replace(answer, secret="") if isinstance(answer, Minted) else answer


def _drop_volatile(request: Write[T]) -> Write[T]:
    """Return the request without its wait and its trace: both may differ when it is repeated."""
    given = {name: nothing for name, nothing in _VOLATILE.items() if getattr(request, name, nothing)}
    return replace(request, **given) if given else request


# -- a full disk -------------------------------------------------------------------------------------


async def retry_until_stored(work: Callable[[], Awaitable[T]], rule: Backoff) -> T:
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
