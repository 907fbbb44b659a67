"""A cache of records that many requests look up, kept until they change.

Only transactions use the cache. They run one after another on one thread, and each event that one of them
appends passes through `apply` before the next one starts, so an entry is never older than the log. Readers
beside the writer do not use it: they see the store as of an earlier commit, and would put old records back.

The table in `__init__` lists what each kind of record invalidates. Records by id are replaced or dropped. A
name is harder, because what it means follows from other records than its agent's own: a new agent, alias or
node may change the meaning of any name, so these forget all of them. A session changes none: only handles
are kept, and a handle finds an agent or an alias. An endpoint forgets the names of its own agent, and only
when it becomes usable or stops being so; taking up a turn and ending one changes nothing about how it is
reached.

`keep` remembers a name only if its meaning depends on names alone: not on online agents, the caller's
folder, or a harness that an agent may get later. Everything else is resolved each time.

`existing` remembers whether there is any chat, child, open item or reservation. Where there is none, a
transaction does not look for what would follow from one.

A transaction may be rolled back after `apply` saw its events. Then everything is dropped (`forget`),
which costs a few reads and is always right.
"""

import re
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from scout.model.access.grant import Grant
from scout.model.access.token import Token
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.ask import Ask
from scout.model.attention import Attention
from scout.model.conversation import Conversation
from scout.model.delivery import Delivery
from scout.model.endpoint import ACTIVE, Endpoint
from scout.model.flight import Flight
from scout.model.node import Node
from scout.model.people.binding import Binding
from scout.model.people.user import ConnectorKey
from scout.model.reservation import Reservation
from scout.model.session import Session
from scout.policy.permit import Actor
from scout.policy.resolver.resolve import Resolution
from scout.store.directory import View

_ROOM = 50_000
_RECENT = 5000
# A handle of names alone: no harness or model, which another agent might get later.
_PLAIN = re.compile(r"@[a-z0-9.-]+")
# Resolutions that depend on names alone, not on online agents or the caller's folder.
_LASTING = frozenset({"only match", "exact", "alias"})


class Cache:
    """Agents, endpoints and conversations by id, the meaning of names, and recent asks and flights."""

    def __init__(self) -> None:
        self.agents: dict[str, Agent | None] = {}
        self.endpoints: dict[str, list[Endpoint]] = {}
        self.conversations: dict[str, Conversation] = {}
        self.grants: dict[tuple[str | None, str | None], list[Grant]] = {}
        self.views: dict[Actor, View] = {}  # of callers without grants
        self.names: dict[Hashable, Resolution] = {}
        self.addresses: dict[tuple[str, str | None], str] = {}  # by agent and user
        self._keys: dict[str, set[Hashable]] = {}
        self.recent: dict[str, Any] = {}
        self._asked: dict[str, deque[int]] = {}  # the times of each sender's recent asks
        self._open: dict[str, set[str]] = {}  # each agent's open flights
        self.last_seq: int | None = None
        self.paused: bool | None = None  # by the last change of this machine's record
        self.existing: dict[str, bool] = {}  # whether there is any record of a kind that few have
        self._tables: tuple[dict[Any, Any], ...] = (
            self.agents,
            self.endpoints,
            self.conversations,
            self.grants,
            self.views,
            self._asked,
            self._open,
        )
        self._learn: dict[type, Callable[[Any], object]] = {
            Endpoint: self._apply_endpoint,
            Agent: self._apply_agent,
            Conversation: lambda one: self.conversations.pop(one.id, None),
            Grant: lambda _: self._forget_grants(),
            Alias: lambda _: self._forget_addresses(),
            Session: self._replace_record,
            Node: self._apply_node,
            Ask: self._apply_ask,
            Delivery: self._replace_record,
            Flight: self._apply_flight,
            Token: self._replace_record,
            Attention: lambda _: self.existing.pop("items", None),
            Binding: lambda _: self.existing.pop("chats", None),
            ConnectorKey: lambda _: self.existing.pop("chats", None),
            Reservation: lambda _: self.existing.pop("reservations", None),
        }

    def keep(self, key: Hashable, found: Resolution, endpoints: Iterable[Endpoint]) -> None:
        """Remember what a name means, if neither time nor place nor another endpoint could change it."""
        ways = list(endpoints)
        lasting = found.rule in _LASTING and len(ways) <= 1 and _PLAIN.fullmatch(found.text)
        if lasting and all(one.isolated_for is None and _is_timeless(one) for one in ways):
            if len(self.names) >= _ROOM:
                self._forget_names()
            self.names[key] = found
            self._keys.setdefault(found.agent.id, set()).add(key)

    def apply(self, seq: int, record: object) -> None:
        """Forget what an appended event invalidates."""
        self.last_seq = seq
        if record.__class__ in self._learn:
            self._learn[record.__class__](record)

    def refresh(self, endpoint: Endpoint) -> None:
        """Update an endpoint after a sign of life; it is reached as before."""
        known = self.endpoints.get(endpoint.agent_id)
        if known is not None:
            ways = [endpoint if one.id == endpoint.id else one for one in known]
            self.endpoints[endpoint.agent_id] = ways

    def _apply_endpoint(self, endpoint: Endpoint) -> None:
        known = self.endpoints.get(endpoint.agent_id, [])
        for place, one in enumerate(known):
            if one.id == endpoint.id and _is_usable(one) and _is_usable(endpoint):
                # It takes up a turn or ends one: it is reached as before, under the same names.
                self.endpoints[endpoint.agent_id] = [*known[:place], endpoint, *known[place + 1 :]]
                return
        self.endpoints.pop(endpoint.agent_id, None)
        for key in self._keys.pop(endpoint.agent_id, ()):
            self.names.pop(key, None)

    def _replace_record(self, record: Ask | Delivery | Flight | Session | Token) -> None:
        """Replace the records of an ask, which each of its next steps reads again."""
        self.recent[record.id] = record

    def _apply_node(self, node: Node) -> None:
        if node.local:
            self.paused = node.paused is not None
            self.recent.clear()  # its sessions may hold an earlier name of the node
        self.forget_mirror()

    def forget_mirror(self) -> None:
        """Forget agents after the mirror or a node has changed: the names and states of its agents."""
        self.agents.clear()
        self.endpoints.clear()
        self._forget_addresses()

    def forget_remote(self, agent_ids: Iterable[str]) -> None:
        """Forget agents of other nodes whose entries changed under the same names."""
        for ident in agent_ids:
            self.agents.pop(ident, None)
            self.endpoints.pop(ident, None)
            for key in self._keys.pop(ident, ()):
                self.names.pop(key, None)

    def _apply_ask(self, ask: Ask) -> None:
        self._replace_record(ask)
        moments = self._asked.get(ask.sender)
        if moments is not None:
            moments.append(int(ask.created_at))

    def _apply_flight(self, flight: Flight) -> None:
        self._replace_record(flight)
        known = self._open.get(flight.target)
        if known is not None:
            (known.add if flight.finished_at is None else known.discard)(flight.id)

    def list_asks_since(self, sender: str, since: int, load: Callable[[], Iterable[int]]) -> deque[int]:
        """Return when a sender asked since a moment, oldest first; `load` reads it once."""
        moments = self._asked.get(sender)
        if moments is None:
            moments = self._asked[sender] = deque(sorted(load()))
        while moments and moments[0] <= since:
            moments.popleft()
        return moments

    def open_flights(self, agent_id: str, load: Callable[[], Iterable[str]]) -> set[str]:
        """Return the open flights to an agent; `load` reads them once."""
        known = self._open.get(agent_id)
        if known is None:
            known = self._open[agent_id] = set(load())
        return known

    def _apply_agent(self, agent: Agent) -> None:
        self.agents.pop(agent.id, None)
        self.existing.pop("children", None)
        self._forget_addresses()

    def forget(self) -> None:
        """Forget everything, after a rollback or after rows were refreshed without an event."""
        for kept in (*self._tables, self.recent):
            kept.clear()
        self._forget_addresses()
        self.existing.clear()
        self.last_seq = self.paused = None

    def make_room(self) -> None:
        """Drop entries beyond the maximum."""
        while len(self.recent) > _RECENT:
            del self.recent[next(iter(self.recent))]
        if sum(map(len, self._tables)) > _ROOM:
            self.forget()

    def _forget_grants(self) -> None:
        self.grants.clear()
        self.views.clear()

    def _forget_addresses(self) -> None:
        """Forget addresses after a change of an agent or an alias; sessions and nodes change none."""
        self.addresses.clear()
        self._forget_names()

    def _forget_names(self) -> None:
        self.names.clear()
        self._keys.clear()


def _is_usable(endpoint: Endpoint) -> bool:
    return endpoint.held and endpoint.state in ACTIVE


def _is_timeless(endpoint: Endpoint) -> bool:
    return endpoint.held or endpoint.state not in ACTIVE
