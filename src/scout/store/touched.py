"""Which rows of the log touch a record or an agent: an index that is fed behind the log.

The index has one entry for each key and row, however many events of the row have that key. It is written
with the history, in batches, so a request pays nothing for it. The rows after its mark are searched for the
id itself, which is part of their text, or for `agent:agt_…` where an agent is the source. They are those
since the last step of the feed, so there are few.

An agent's id finds the events that concern it. The id of any other record finds the events whose target it
is, except for a conversation: its messages are found through their table. `agent:agt_…` finds what an agent
did itself, and the series of an event's id finds the event.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

from msgspec.structs import astuple

from scout.base.codec import decode
from scout.base.ids import COUNTER, split_series
from scout.base.record import Record
from scout.base.time import Time
from scout.model.events.asks import DeliveryRequested
from scout.model.events.directory import ScheduleFired
from scout.model.events.envelope import AGENT_FIELDS, Event, list_concerned_agents
from scout.model.events.event_types import get_event_type
from scout.model.events.talk import MessagePosted
from scout.model.ref import Ref
from scout.store.archive.rows import find_archived_row
from scout.store.log import LAST, StoredRow, find_event, read_events, read_last_seq, unpack
from scout.store.table import QUERIES

_DEEDS = 1000  # rows of an agent that are searched for its messages
_Matches = Callable[[Event], bool]


class _Named(Record):
    """What a record or a payload may say about agents; `record` in the payload of a change."""

    id: Any = None
    agent_id: Any = None
    sender: Any = None
    target: Any = None
    requester_id: Any = None
    owner_id: Any = None
    next_move_owner_id: Any = None
    holder_id: Any = None
    asker_id: Any = None
    responder_id: Any = None


assert _Named.__struct_fields__ == AGENT_FIELDS


class _Payload(_Named):
    record: _Named | None = None


class _Targets(Record):
    target_agents: tuple[str, ...] = ()


class _Outline(Record):
    """The parts of a stored event that tell what it touches. Other parts are not decoded."""

    type: str
    id: str
    time: int | None = None
    source: str | None = None
    target: str | None = None
    metadata: _Targets = _Targets()
    payload: _Payload


class _Slot(Record):
    id: Any = None
    last_slot: Time | None = None


class _Run(Record):
    record: _Slot | None = None


class _Fired(Record):
    """The parts of a stored event that tell which time of a schedule has run."""

    type: str
    payload: _Run


class RowOutline(NamedTuple):
    """What a row touches, the types of its events, and their times in order."""

    seq: int
    keys: set[str]
    types: set[str]
    times: list[Time]


def outline(row: StoredRow) -> RowOutline:
    """Return what a row touches, without decoding its events."""
    keys: set[str] = set()
    types: set[str] = set()
    times: list[Time] = []
    for one in decode(row.data, list[_Outline]):
        record = one.payload.record or one.payload
        types.add(one.type)
        times.append(times[-1] if one.time is None else Time(one.time))
        if len(one.id) != COUNTER:  # else it is of a series that is known
            keys.add(_get_series(one.id))
        if one.source is not None:
            keys.add(one.source)
        keys.add(record.id if one.target is None else one.target.partition(":")[2])
        named = (one.source and one.source[6:], *one.metadata.target_agents, *astuple(record))
        keys.update([name for name in named if _is_agent(name)])
    # A conversation is not found here.
    return RowOutline(row.seq, {key for key in keys if key[:4] != "cnv_"}, types, times)


def _is_agent(name: Any) -> TypeGuard[str]:
    return name.__class__ is str and name[:4] == "agt_"


def list_entries(rows: Iterable[RowOutline]) -> list[tuple[str, int]]:
    """Return the entries of some rows, each once."""
    return [(key, row.seq) for row in rows for key in sorted(row.keys)]


def store_entries(connection: sqlite3.Connection, entries: Sequence[tuple[str, int]]) -> None:
    """Write entries; those that an upgrade has written stay."""
    connection.executemany("INSERT OR IGNORE INTO touched VALUES (?, ?)", entries)


def read_touched_mark(connection: sqlite3.Connection) -> int:
    """Return the number of the last event that the index knows.

    A reader asks for it first: what is added to the index meanwhile is newer, and read from the log.
    """
    return int(connection.execute(QUERIES["touched_mark"]).fetchone()[0] or 0)


class EventReader:
    """Reads events, by number and by what they touch, through a connection that has all of them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def count_unindexed(self) -> int:
        """Return the number of events that are not indexed yet."""
        return read_last_seq(self._connection) - read_touched_mark(self._connection)

    def read_after(self, seq: int, limit: int) -> Iterator[Event]:
        """Return the events after a number, oldest first."""
        return read_events(self._connection, seq, limit)

    def get(self, seq: int) -> Event | None:
        """Return the event with this number."""
        return find_event(self._connection, seq)

    def find(self, ident: str) -> Event | None:
        """Return the event with this id."""
        rest = split_series(ident)[2]  # only the first event of a row has its whole id there
        return self._first(self._walk(_get_series(ident), rest), lambda event: event.id == ident)

    def is_touched(self, ident: str, until: int) -> bool:
        """Whether an event up to another touches a record or is this event, also if it was purged."""
        key = _get_series(ident) if ident.startswith("evt_") else ident
        values = {"key": key, "after": 0, "mark": until}
        return self._connection.execute(QUERIES["touched_after"], values).fetchone() is not None

    def list_routed(self, after: int, until: int) -> list[Event]:
        """Return the deliveries that were requested after one event and up to another."""
        return [one for one in self.read_after(after, until - after) if isinstance(one, DeliveryRequested)]

    def list_deeds(self, agent_id: str, after: int, limit: int) -> list[Event]:
        """Return what an agent did itself after an event, oldest first."""
        source = Ref.to(agent_id)
        rows = self._walk(source, source, after)
        return self._take(rows, lambda event: event.seq > after and event.source == source, limit)

    def find_last_deed(self, agent_id: str) -> Time | None:
        """Return when an agent last did something itself."""
        source = Ref.to(agent_id)
        found = self._first(self._walk_back(source, source, LAST), lambda event: event.source == source)
        return found.time if found is not None else None

    def list_said(self, agent_id: str, limit: int) -> list[MessagePosted]:
        """Return what an agent said lately, newest first, among the latest things it did."""
        source, found = Ref.to(agent_id), list[MessagePosted]()
        rows = self._walk_back(source, source, LAST, most=_DEEDS, holding=_POSTED)
        for events in rows:
            found += [one for one in events if isinstance(one, MessagePosted) and one.source == source]
            if len(found) >= limit:
                break
        return found[:limit]

    def list_at(self, ident: str, after: int, limit: int, until: int = LAST) -> list[Event]:
        """Return what happened to one record after an event, oldest first; of a conversation nothing.

        `until`: later events are not needed.
        """
        rows = self._walk(ident, ident, after, until)
        return self._take(rows, lambda event: event.seq > after and event.target.id == ident, limit)

    def list_together(self, ident: str, until: int, limit: int) -> list[Event]:
        """Return the events up to another that were stored together with one about a record, oldest first."""
        return self._take(self._walk(ident, ident, until=until), lambda event: event.seq <= until, limit)

    def list_at_back(self, ident: str, before: int, limit: int) -> list[Event]:
        """Return the same before an event, newest first."""
        rows = self._walk_back(ident, ident, before)
        return self._take(rows, lambda event: event.seq < before and event.target.id == ident, limit)

    def list_fired_slots(self, schedule_id: str, limit: int) -> list[Time]:
        """Return the times of a schedule that ran last, newest first; `limit`: rows that are looked at."""
        rows = self._read_back(schedule_id, schedule_id, LAST, limit)
        events = (one for _, data in rows for one in reversed(decode(data, list[_Fired])))
        fired = [one.payload.record for one in events if one.type == _FIRED]
        return [one.last_slot for one in fired if one and one.id == schedule_id and one.last_slot is not None]

    def find_first_seq(self, ident: str) -> int:
        """Return the number of the first event about a record; 0 if there is none."""
        found = self._first(self._walk(ident, ident), lambda event: event.target.id == ident)
        return found.seq if found is not None else 0

    def list_concerning(self, agent_id: str, after: int, limit: int) -> list[Event]:
        """Return the events after another that concern an agent, oldest first."""
        rows = self._walk(agent_id, agent_id, after)
        return self._take(rows, lambda event: event.seq > after and _concerns(event, agent_id), limit)

    def list_concerning_back(self, agent_id: str, before: int, limit: int) -> list[Event]:
        """Return the same before an event, newest first."""
        rows = self._walk_back(agent_id, agent_id, before)
        return self._take(rows, lambda event: event.seq < before and _concerns(event, agent_id), limit)

    # -- walking through rows ----------------------------------------------------------------------

    def _take(self, rows: Iterator[list[Event]], matches: _Matches, limit: int) -> list[Event]:
        found: list[Event] = []
        for events in rows:
            found += filter(matches, events)
            if len(found) >= limit:
                break
        return found[:limit]

    def _first(self, rows: Iterator[list[Event]], matches: _Matches) -> Event | None:
        return next(iter(self._take(rows, matches, 1)), None)

    def _walk(self, key: str, ident: str, after: int = 0, until: int = LAST) -> Iterator[list[Event]]:
        """Yield the rows after an event that touch a key, oldest first: from the index, then newer ones.

        Those after `until` are not wanted: if the index has it, newer rows are not searched.
        """
        mark = read_touched_mark(self._connection)
        indexed = {"key": str(key), "after": after, "mark": mark}
        newer = {"after": max(after, mark), "ident": ident.encode()}
        for name, values in (("touched_after", indexed), ("untouched_after", newer))[: 1 + (until > mark)]:
            for row in self._connection.execute(QUERIES[name], values):
                found = row if row[2] is not None else find_archived_row(self._connection, row[0])
                if found is not None:  # else it was purged
                    yield unpack(found[1], found[2])

    def _walk_back(
        self, key: str, ident: str, before: int, most: int = LAST, holding: bytes = b""
    ) -> Iterator[list[Event]]:
        """Yield the rows before an event, the newest first, each with its events in this order."""
        for first, data in self._read_back(key, ident, before, most, holding):
            yield unpack(first, data)[::-1]

    def _read_back(
        self, key: str, ident: str, before: int, most: int, holding: bytes = b""
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the rows before an event as they are stored, the newest first.

        At most `most` rows are looked at; those that do not hold the bytes `holding` are left out.
        """
        mark, last = read_touched_mark(self._connection), self._find_row(before)
        newer = {"mark": mark, "last": last, "ident": ident.encode()}
        indexed = {"key": str(key), "last": min(mark, last)}
        bounds = {"limit": most, "holding": holding}
        for name, values in (("untouched_before", newer), ("touched_before", indexed)):
            for row in self._connection.execute(QUERIES[name], {**values, **bounds}):
                found = row if row[2] is not None else find_archived_row(self._connection, row[0])
                if found is not None and holding in found[2]:
                    yield found[1], found[2]

    def _find_row(self, before: int) -> int:
        """Return the number of the row with the event before this one."""
        found = self._connection.execute(QUERIES["log_row_number"], {"seq": before - 1}).fetchone()[0]
        return LAST if found is None else int(found)


_POSTED = b'"' + get_event_type(MessagePosted).encode() + b'"'
_FIRED = get_event_type(ScheduleFired)


def _get_series(ident: str) -> str:
    head, _, rest = split_series(ident)
    return head + rest


def _concerns(event: Event, agent_id: str) -> bool:
    return agent_id in list_concerned_agents(event)
