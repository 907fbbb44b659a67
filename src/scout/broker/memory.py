"""What many requests look up, kept until something of it changes.

Only transactions use it: they follow each other, so what is kept is never older than the log.
"""

import re
from collections.abc import Hashable, Iterable

from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.conversation import Conversation
from scout.model.endpoint import ACTIVE, Endpoint
from scout.model.envelope import Event, record_of
from scout.model.grant import Grant
from scout.model.node import Node
from scout.model.session import Session
from scout.policy.resolve import Resolution

__all__ = ["Memory"]

_ROOM = 50_000
# A handle of names alone: no harness or model, which another agent might come to have.
_PLAIN = re.compile(r"@[a-z0-9.-]+")
# Resolutions that rest on names alone, and not on who is online or where the caller stands.
_LASTING = frozenset({"only match", "exact", "alias"})


class Memory:
    """Agents, endpoints and conversations by id, and what names mean."""

    def __init__(self) -> None:
        self.agents: dict[str, Agent | None] = {}
        self.endpoints: dict[str, list[Endpoint]] = {}
        self.conversations: dict[str, Conversation] = {}
        self.grants: dict[tuple[str | None, str | None], list[Grant]] = {}
        self.names: dict[Hashable, Resolution] = {}
        self._keys: dict[str, set[Hashable]] = {}

    def keep(self, key: Hashable, found: Resolution, endpoints: Iterable[Endpoint]) -> None:
        """Remember what a name means, if neither time nor place nor another's endpoint could change it."""
        ways = list(endpoints)
        lasting = found.rule in _LASTING and len(ways) <= 1 and _PLAIN.fullmatch(found.text)
        if lasting and all(one.isolated_for is None and _is_timeless(one) for one in ways):
            if len(self.names) >= _ROOM:
                self._forget_names()
            self.names[key] = found
            self._keys.setdefault(found.agent.id, set()).add(key)

    def heard(self, event: Event) -> None:
        """A fact was added: what it makes untrue is forgotten."""
        record = record_of(event)
        match record:
            case Endpoint():
                self.endpoints.pop(record.agent_id, None)
                for key in self._keys.pop(record.agent_id, ()):
                    self.names.pop(key, None)
            case Agent():
                self.agents.pop(record.id, None)
                self._forget_names()
            case Conversation():
                self.conversations.pop(record.id, None)
            case Grant():
                self.grants.clear()
            case Alias() | Session() | Node():
                self._forget_names()
            case _:
                pass

    def forget(self) -> None:
        """Everything: a transaction was undone, or rows were refreshed beside the log."""
        for kept in (self.agents, self.endpoints, self.conversations, self.grants):
            kept.clear()
        self._forget_names()

    def make_room(self) -> None:
        """Keep no more than is useful."""
        if sum(map(len, (self.agents, self.endpoints, self.conversations, self.grants))) > _ROOM:
            self.forget()

    def _forget_names(self) -> None:
        self.names.clear()
        self._keys.clear()


def _is_timeless(endpoint: Endpoint) -> bool:
    return endpoint.held or endpoint.state not in ACTIVE
