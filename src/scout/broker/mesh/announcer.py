"""What this node tells the others about its agents: published on a change, and whole after a connection."""

import asyncio
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from scout.broker.mesh.signatures import sign_record
from scout.broker.routing.remote import is_leaving
from scout.broker.routing.views import find_agent_status
from scout.broker.transaction.admission import admit_system
from scout.broker.transaction.call import Transactions
from scout.broker.transaction.streams import Subscriptions
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import Kind
from scout.model.agent import Agent, Lifecycle, return_from_move
from scout.model.events.asks import FlightEvent
from scout.model.events.envelope import Event, get_record
from scout.model.events.presence import AgentEvent, EndpointEvent, ReachEvent
from scout.model.events.talk import AttentionEvent
from scout.model.mesh.entry import SIGNED_AS, AgentEntry
from scout.model.remote_agent import build_entry
from scout.ports.mesh import MeshLink, NodeKeys
from scout.store.ledger import LAST, Ledger

_PAGE = 500
_PAUSE = 0.2  # seconds in which changes are collected: an agent at work changes often


def is_announced(agent: Agent, operator: str) -> bool:
    """Whether the others are told about an agent: the operator's own, no person, no part of Scout."""
    proper = agent.kind is not Kind.SYSTEM and not agent.is_person and not agent.is_remote
    return proper and agent.owner == operator and agent.lifecycle is not Lifecycle.RETIRED


class Announcer:
    """Publishes the entries of this node's agents. Their revisions count up from `number`."""

    def __init__(self, broker: Transactions, link: MeshLink, keys: NodeKeys, number: int) -> None:
        self._broker = broker
        self._services = broker.services
        self._link = link
        self._keys = keys
        self._revision = number
        self._published: dict[str, AgentEntry] = {}
        self._seen: dict[str, int] = {}  # revisions of own entries in the directory
        self._returned: dict[str, int] = {}  # those that were read back from it
        self._changed = set[str]()
        self._whole = False
        self._news = asyncio.Event()

    # -- facts to send -----------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """The number of agents that the others know."""
        return len(self._published)

    def subscriptions(self) -> Subscriptions:
        return ((self._on_event, (AgentEvent, EndpointEvent, ReachEvent, FlightEvent, AttentionEvent)),)

    def _on_event(self, event: Event) -> None:
        record = get_record(event)
        for ident in (event.target.id, getattr(record, "agent_id", None), getattr(record, "target", None)):
            if isinstance(ident, str) and ident.startswith("agt_"):
                self._changed.add(ident)
        self._news.set()

    def announce_all(self) -> None:
        """Publish every entry again: the connection is new, or the node has another name."""
        self._whole = True
        self._news.set()

    def note_own(self, agent_id: str, entry: AgentEntry | None) -> None:
        """Learn what the directory holds of an agent; a later entry needs a higher revision.

        None: it holds no entry that this node has signed. If there should be one, it is published again; so
        is one in whose place an older one appears.
        """
        if entry is None:
            self._seen.pop(agent_id, None)
        else:
            self._seen[agent_id] = max(entry.revision, self._seen.get(agent_id, 0))
        latest = self._returned.get(agent_id, 0)
        if entry is not None and entry.revision >= latest:
            self._returned[agent_id] = entry.revision
        elif self._published.pop(agent_id, None) is not None:
            self._changed.add(agent_id)
            self._news.set()
        else:
            self._returned.pop(agent_id, None)

    # -- telling -----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Publish changes until cancelled; raises `MeshDown` while there is no connection."""
        while True:
            await self._news.wait()
            await asyncio.sleep(_PAUSE)
            self._news.clear()
            await self.publish()

    async def publish(self) -> None:
        """Publish what changed since the last time."""
        whole, changed = self._whole, sorted(self._changed)
        self._whole = False
        self._changed.clear()
        try:
            if whole:
                await self._publish_all()
            elif changed:
                await self._publish(await self._broker.read(lambda ledger: self._build(ledger, changed)))
        except BaseException:
            self._whole = self._whole or whole
            self._changed.update(changed)
            raise

    async def _publish_all(self) -> None:
        bound, listed = LAST, set[str]()
        while True:
            idents = await self._broker.read(_list_page(bound))
            if not idents:
                break
            bound = idents[-1]
            built = await self._broker.read(lambda ledger, some=idents: self._build(ledger, some))
            listed |= {ident for ident, entry in built.items() if entry is not None}
            await self._publish(built, again=True)
        await self._publish(dict.fromkeys((set(self._seen) | set(self._published)) - listed))

    async def _publish(self, built: dict[str, AgentEntry | None], *, again: bool = False) -> None:
        """Publish entries that differ from the last ones; `again`: also those that do not."""
        out: dict[str, bytes | None] = {}
        for ident, entry in built.items():
            known = self._published.get(ident)
            if entry is None:
                if known is not None or ident in self._seen:
                    out[ident] = None
                    self._published.pop(ident, None)
                    self._seen.pop(ident, None)
                continue
            if known is not None and not again and _has_same_facts(known, entry):
                continue
            told = self._published[ident] = replace(entry, revision=self._next_revision(ident))
            out[ident] = sign_record(self._keys, SIGNED_AS, told)
        if out:
            await self._link.put_entries(out)

    def _next_revision(self, ident: str) -> int:
        """Return a revision above all earlier ones, also of an earlier run and whatever the clock does."""
        self._revision = max(self._revision, self._seen.get(ident, 0)) + 1
        self._seen[ident] = self._revision
        return self._revision

    def _build(self, ledger: Ledger, idents: Iterable[str]) -> dict[str, AgentEntry | None]:
        system = admit_system(self._services)
        tx = Transaction(self._services, ledger, system.actor, system.caller)
        return {ident: build_own_entry(tx, ident) for ident in idents}


def _list_page(bound: str) -> Callable[[Ledger], list[str]]:
    return lambda ledger: [one.id for one in ledger.many(Agent, "agents_all", before=bound, limit=_PAGE)]


def build_own_entry(tx: Transaction, ident: str) -> AgentEntry | None:
    """Return the entry of one of this node's agents; None if the others are told nothing about it.

    The entry of one that moved hands it over to its new node. While it is on its way, it is listed as before.
    """
    agent = tx.ledger.own_agent(ident)
    moved_to = agent.moved_to if agent is not None else None
    if agent is not None and moved_to is not None:
        agent = return_from_move(agent, tx.services.node, tx.now)
    if agent is None or not is_announced(agent, tx.services.operator):
        return None
    if moved_to is not None and not is_leaving(tx, agent.id):
        return replace(_build_entry(tx, agent), moved_to=moved_to, instances=())
    return _build_entry(tx, agent)


def _build_entry(tx: Transaction, agent: Agent) -> AgentEntry:
    endpoints, within = tx.endpoints(agent.id), tx.rules.periods.online_within
    status = find_agent_status(tx, agent, endpoints)
    node_id = tx.services.node_id
    return build_entry(agent, endpoints, status, node_id=node_id, revision=0, now=tx.now, within=within)


def _has_same_facts(known: AgentEntry, entry: AgentEntry) -> bool:
    return replace(known, revision=0, updated_at=entry.updated_at) == replace(entry, revision=0)
