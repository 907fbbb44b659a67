"""The tie-break: if the rules choose no agent in a channel of several, a router may name one.

It is asked only if it is set up, after the message is on disk and outside of any transaction. Its answer
is one more fact for the same rules. If the broker stops meanwhile, Scout does not ask again and wakes none.
"""

import asyncio
import logging
from typing import Any

from msgspec.structs import replace

from scout.base.codec import decode
from scout.broker.routing import wake
from scout.broker.transaction.services import Services
from scout.broker.transaction.streams import Subscriptions
from scout.broker.transaction.transaction import ReadLedger, Transaction, WriteAsBroker
from scout.model.agent import Agent, Lifecycle
from scout.model.conversation import Member, Message
from scout.model.events.talk import MessagePosted, read_message
from scout.policy.directory import Instance, Party
from scout.policy.wake import WakeFacts, may_suggest
from scout.ports import Router
from scout.store.ledger import Ledger

_LOG = logging.getLogger("scout.tie_break")
_AT_ONCE = 4
_MANY = 200


class TieBreaker:
    """Follows the log; without a router, or with `routing.modelAssisted` off, it does nothing."""

    def __init__(
        self,
        services: Services,
        write: WriteAsBroker,
        read: ReadLedger,
        router: Router | None,
    ) -> None:
        self._services = services
        self._write = write
        self._read = read
        self._router = router
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def subscriptions(self) -> Subscriptions:
        """Return what to call for which committed events; nothing without a router."""
        return ((self._on_message, (MessagePosted,)),) if self._router is not None else ()

    def _on_message(self, event: MessagePosted) -> None:
        """Ask the router about a message that woke no agent."""
        assert self._router is not None  # or nothing is subscribed
        if event.metadata.wake is not None and self._services.rules.routing.model_assisted:
            facts = decode(event.metadata.wake.facts, WakeFacts)
            if may_suggest(facts):
                self._begin(self._ask(self._router, read_message(event), facts))

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, router: Router, message: Message, facts: WakeFacts) -> None:
        """Ask the router, then decide again with its answer; on any failure nothing is woken."""
        candidates: dict[str, str] = await self._read(lambda ledger: _find_candidates(ledger, message))
        if len(candidates) < 2:
            return
        try:
            async with self._room:
                chosen = await router.suggest(message.body, tuple(candidates))
        except (OSError, TimeoutError) as error:
            _LOG.warning("the router gave no answer for %s: %s", message.id, str(error) or "it took too long")
            return
        if chosen is None or chosen not in candidates:
            _LOG.warning("the router named no agent that can be woken for %s: %.200r", message.id, chosen)
            return
        await self._write(lambda tx: _apply_answer(tx, message, facts, candidates[chosen]))

    async def close(self) -> None:
        """Cancel open requests to the router."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _find_candidates(ledger: Ledger, message: Message) -> dict[str, str]:
    """Return the agents of the channel besides the sender: their ids by address."""
    wanted = {"conversation": message.conversation_id, "after": "", "limit": _MANY}
    members = [one for one in ledger.many(Member, "members_of", **wanted) if one.left_at is None]
    agents = [ledger.get(Agent, one.agent_id) for one in members if one.agent_id != message.sender]
    return {
        Instance(agent=one).canonical: one.id
        for one in agents
        if one is not None and not one.is_person and one.lifecycle is not Lifecycle.RETIRED
    }


def _apply_answer(tx: Transaction, message: Message, facts: WakeFacts, agent_id: str) -> None:
    occasion = replace(facts.occasion, suggestion=Party(agent_id=agent_id))
    decision = wake.decide_who_is_woken(tx, occasion)
    if decision.holder is not None:
        wake.deliver_message(tx, message, decision.holder.agent_id, decision)
