"""Sends what was read to the daemon in parts, and collects what became of each record."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from scout.base.codec import encode, to_plain
from scout.cli.imports.source import Left, Source, group_levels
from scout.identity.address import fold
from scout.protocol.imports.records import (
    AnyImported,
    ImportedAgent,
    ImportedAlias,
    ImportedConversation,
    ImportedMessage,
    ImportedQuestion,
    ImportedWork,
    get_type,
)
from scout.protocol.imports.requests import MOST_RECORDS

_OWN = ("operator", "system")  # Scout has its own of these
_PART_BYTES = 400_000  # of one part; the daemon takes 1 MiB
_RECORD_BYTES = 900_000
Send = Callable[[list[Any]], list[dict[str, Any]]]
Tell = Callable[[str, int], None]

# The fields of each kind that refer to other records, and what they refer to.
_REFERENCES: dict[type[Any], dict[str, str]] = {
    ImportedAgent: {"parent": "agent"},
    ImportedAlias: {"target": "agent"},
    ImportedConversation: {"parent": "conversation"},
    ImportedMessage: {"conversation": "conversation", "sender": "agent"},
    ImportedWork: {
        "owner": "agent",
        "requester": "agent",
        "next_move_owner": "agent",
        "conversation": "conversation",
    },
    ImportedQuestion: {"asker": "agent", "responder": "agent", "conversation": "conversation"},
}


class ChangedRecord(NamedTuple):
    """A record whose name in Scout is another one, or that loses something."""

    type: str
    id: str
    name: str
    reason: str


class Importer:
    """One import. `records` holds the ids that the daemon gave, by kind and the other system's id."""

    def __init__(self, source: Source, send: Send, tell: Tell = lambda kind, count: None) -> None:
        self._source = source
        self._send = send
        self._tell = tell
        self._ids: dict[tuple[str, str], str] = {("agent", one): one for one in _OWN}
        self.taken: Counter[str] = Counter()
        self.present: Counter[str] = Counter()
        self.changed: list[ChangedRecord] = []
        self.skipped: list[Left] = list(source.skipped)

    def run(self) -> None:
        """Send everything: what others refer to first."""
        source = self._source
        for level in group_levels(_drop_own(make_unique(source.agents))):
            self._send_all(level)
        self._send_all(source.aliases)
        for level in group_levels(source.conversations):
            self._send_all(level)
        self._send_all(source.messages())
        self._send_all(source.work)
        self._send_all(source.questions)

    def _send_all(self, records: Iterable[Any]) -> None:
        for part in self._divide(records):
            for outcome in self._send([to_plain(one) for one in part]):
                self._note(outcome)
            self._tell(get_type(part[-1]), self._count(get_type(part[-1])))

    def _count(self, kind: str) -> int:
        return self.taken[kind] + self.present[kind]

    def _divide(self, records: Iterable[Any]) -> Iterator[list[Any]]:
        """Yield parts that the daemon takes in one request."""
        part: list[Any] = []
        size = 0
        for record in records:
            ready = self._refer(record)
            if ready is None:
                continue
            more = len(encode(ready))
            if more > _RECORD_BYTES:
                self.skipped.append(Left(get_type(record), record.id[:80], "it is too large"))
                continue
            if part and (len(part) == MOST_RECORDS or size + more > _PART_BYTES):
                yield part
                part, size = [], 0
            part.append(ready)
            size += more
        if part:
            yield part

    # -- references --------------------------------------------------------------------------------

    def _refer(self, record: Any) -> Any | None:
        """Return a record that refers to records of Scout; None if it cannot be sent without one."""
        changes: dict[str, Any] = {}
        if isinstance(record, ImportedConversation):
            known = (self._ids.get(("agent", one)) for one in record.members)
            changes["members"] = tuple(one for one in known if one is not None)
        for field, kind in _REFERENCES[type(record)].items():
            wanted = getattr(record, field)
            found = self._ids.get((kind, wanted)) if wanted is not None else None
            if wanted is not None and found is None:
                if not isinstance(record, ImportedWork | ImportedQuestion):
                    reason = f"its {field} {wanted[:60]!r} was not imported"
                    self.skipped.append(Left(get_type(record), record.id[:80], reason))
                    return None
                found = self._replace_missing(record, field, kind, wanted)
            changes[field] = found
        return replace(record, **changes)

    def _replace_missing(self, record: AnyImported, field: str, kind: str, wanted: str) -> str | None:
        """Return what open work refers to instead: it is never lost, so the operator gets it."""
        if kind == "conversation" or field == "next_move_owner":
            return None
        reason = f"its {field} {wanted[:60]!r} was not imported; it is yours now"
        self.changed.append(ChangedRecord(get_type(record), record.id[:80], "operator", reason))
        return "operator"

    def _note(self, outcome: dict[str, Any]) -> None:
        kind, ident, reason = outcome["type"], outcome["id"], outcome["reason"]
        if outcome["state"] == "skipped":
            self.skipped.append(Left(kind, ident[:80], reason))
            return
        (self.taken if outcome["state"] == "taken" else self.present)[kind] += 1
        self._ids[kind, ident] = outcome["recordId"]
        if reason:
            self.changed.append(ChangedRecord(kind, ident[:80], outcome["name"], reason))


def _drop_own(agents: Iterable[ImportedAgent]) -> list[ImportedAgent]:
    return [one for one in agents if one.id not in _OWN]


def make_unique(agents: Iterable[ImportedAgent]) -> list[ImportedAgent]:
    """Return agents of which no two want the same name, so that a dry run can tell each name.

    The first one keeps it; a later one is called as it is in the other system, with its id.
    """
    seen: set[tuple[str, ...]] = set()
    unique: list[ImportedAgent] = []
    for agent in agents:
        wanted = tuple(fold(part or "") for part in (agent.name, agent.workspace, agent.profile))
        is_named = agent.path is None and agent.parent is None
        again = is_named and wanted in seen
        unique.append(replace(agent, name=f"{agent.name} {agent.id[:40]}") if again else agent)
        seen.add(wanted)
    return unique
