"""What transactions read again and again, kept in memory so that a commit group is not written early.

A query on a table with unwritten changes makes the unit of work write all of them first. The steps of an ask
would do that several times for each group. So the records that steps share, and the lists in `KEPT`, are
answered from here. A list is read from the table once, as it is there, and the unwritten records are added to
it; from then on every appended record is put in its place. Lists that grow long are not kept.

The memory belongs to the writer's unit of work, so only transactions read it, one after another. A request
that is refused takes back what it changed: every list and record that it touched is dropped, and read again
when it is needed. After a rollback everything is dropped, because nothing of the group was committed.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from scout.base.record import Record
from scout.model.access.token import Token
from scout.model.ask import Ask
from scout.model.attention import Attention, AttentionState
from scout.model.conversation import Conversation, Message
from scout.model.delivery import Delivery, DeliveryState
from scout.model.endpoint import Endpoint
from scout.model.flight import Flight
from scout.model.mesh.outbox import OutboxEntry
from scout.model.node import Node
from scout.model.session import Session

_RECORDS = 8192  # most records
_LISTS = 8192  # most lists of one query
LONGEST = 256  # most records in one list
_BODY = 4096  # characters of a message that is kept
_KINDS = frozenset({Ask, Delivery, Endpoint, Flight, Message, Node, OutboxEntry, Session, Token})
_WAITING = frozenset({DeliveryState.PENDING, DeliveryState.LEASED})
_OPEN = frozenset({AttentionState.OPEN, AttentionState.NOTIFIED})


class KeptList(NamedTuple):
    """A query whose results are kept: the records of a kind with one value in a field that never changes.

    `parameter` is the value's name in the query, `holds` the rest of its condition. `starts`: the kind of
    record whose creation begins an empty list under its id. `since`: the parameter that limits the age.
    """

    kind: type[Record]
    parameter: str
    key: Callable[[Any], str | None]
    holds: Callable[[Any], bool] = lambda _: True
    starts: type[Record] | None = None
    newest_first: bool = False
    since: str | None = None


def _is_waiting(delivery: Delivery) -> bool:
    return delivery.state in _WAITING


def _is_open_item(item: Attention) -> bool:
    return item.state in _OPEN


def _is_open_flight(flight: Flight) -> bool:
    return flight.finished_at is None


KEPT: dict[str, KeptList] = {
    "deliveries_of_flight": KeptList(Delivery, "flight", attrgetter("flight_id"), starts=Flight),
    "inbox": KeptList(Delivery, "agent", attrgetter("target"), _is_waiting),
    "wakes_in": KeptList(
        Delivery,
        "conversation",
        attrgetter("conversation_id"),
        attrgetter("wake"),
        starts=Conversation,
        newest_first=True,
        since="since",
    ),
    "attention_about": KeptList(Attention, "dedupe", attrgetter("dedupe"), _is_open_item),
    "flights_open_to": KeptList(Flight, "agent", attrgetter("target"), _is_open_flight, newest_first=True),
    "flights_of_ask": KeptList(Flight, "ask", attrgetter("ask_id"), starts=Ask),
    "outbox_about": KeptList(OutboxEntry, "subject", attrgetter("subject")),
    "outbox_of_delivery": KeptList(
        OutboxEntry, "delivery", attrgetter("delivery_id"), starts=Delivery, newest_first=True
    ),
}
_Entries = dict[str, Any]
_Lists = dict[str | None, _Entries]


class _Places(NamedTuple):
    """The lists that a record of a kind may be in, each with its key and condition, and those it begins."""

    under: tuple[tuple[_Lists, Callable[[Any], str | None], Callable[[Any], bool]], ...]
    begins: tuple[_Lists, ...]


class Memory:
    """Records by id, and the results of the queries in `KEPT`."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self._lists: dict[str, _Lists] = {name: {} for name in KEPT}
        self._since: dict[tuple[str, str | None], int] = {}  # how far back a list with an age reaches
        # Where a record of a kind belongs: in lists under a key, and as the beginning of others.
        self._places = {kind: self._find_places(kind) for kind in _list_kinds()}

    def clear(self) -> None:
        """Forget everything, after a rollback."""
        self.records.clear()
        self._since.clear()
        for lists in self._lists.values():
            lists.clear()

    def _find_places(self, kind: type[Record]) -> "_Places":
        named = [(self._lists[name], one) for name, one in KEPT.items()]
        return _Places(
            tuple((lists, one.key, one.holds) for lists, one in named if one.kind is kind),
            tuple(lists for lists, one in named if one.starts is kind),
        )

    def apply(self, record: Any) -> None:
        """Put a record as it is after an event in its places."""
        places = self._places.get(record.__class__)
        if places is None:
            return
        self.keep(record)
        for lists, key, holds in places.under:
            value = key(record)
            if value not in lists:
                continue
            entries = lists[value]
            if holds(record):
                entries[record.id] = record
            else:
                entries.pop(record.id, None)
        if places.begins and getattr(record, "revision", 1) == 1:
            for lists in places.begins:
                lists.setdefault(record.id, {})

    def keep(self, record: Any) -> None:
        """Keep a record that was read or changed, if its kind is kept; a long message is not."""
        kind = record.__class__
        if kind not in _KINDS:
            return
        if kind is Message and len(record.body) > _BODY:
            self.records.pop(record.id, None)
            return
        self.records[record.id] = record
        if len(self.records) > _RECORDS:
            del self.records[next(iter(self.records))]

    def drop(self, record: Any) -> None:
        """Forget a record and every list in which it may be."""
        self.records.pop(record.id, None)
        places = self._places.get(record.__class__)
        if places is not None:
            for lists, key, _ in places.under:
                lists.pop(key(record), None)
            for lists in places.begins:
                lists.pop(record.id, None)

    def find(self, name: str, values: Mapping[str, Any]) -> list[Any] | None:
        """Return the result of a kept query; None if it is not known."""
        kept = KEPT[name]
        key = values[kept.parameter]
        entries = self._lists[name].get(key)
        if entries is None:
            return None
        if len(entries) > LONGEST:
            del self._lists[name][key]
            return None
        if kept.since is not None and values[kept.since] < self._since.get((name, key), 0):
            return None  # the clock was set back
        return _select(entries, kept, values)

    def load(
        self, name: str, values: Mapping[str, Any], stored: Iterable[Any], unwritten: Iterable[Any]
    ) -> list[Any]:
        """Keep the stored records of a query, with the unwritten ones in their places; return its result."""
        kept = KEPT[name]
        key = values[kept.parameter]
        entries: _Entries = {one.id: one for one in stored}
        for record in unwritten:
            if record.__class__ is not kept.kind or kept.key(record) != key:
                continue
            if kept.holds(record):
                entries[record.id] = record
            else:
                entries.pop(record.id, None)
        lists = self._lists[name]
        lists[key] = entries
        if kept.since is not None:
            self._since[name, key] = values[kept.since]
        if len(lists) > _LISTS:
            oldest = next(iter(lists))
            del lists[oldest]
            self._since.pop((name, oldest), None)
        return _select(entries, kept, values)


def _list_kinds() -> set[type[Record]]:
    return {
        *_KINDS,
        *(one.kind for one in KEPT.values()),
        *(one.starts for one in KEPT.values() if one.starts),
    }


def _select(entries: _Entries, kept: KeptList, values: Mapping[str, Any]) -> list[Any]:
    """Return the records of a list as the query would: in order, within its bounds, up to its limit."""
    if not entries:
        return []
    found = [entries[ident] for ident in sorted(entries, reverse=kept.newest_first)]
    if values.get("after"):
        found = [one for one in found if one.id > values["after"]]
    if "before" in values:
        found = [one for one in found if one.id < values["before"]]
    if kept.since is not None:
        found = [one for one in found if one.created_at > values[kept.since]]
    return found[: values["limit"]] if "limit" in values else found
