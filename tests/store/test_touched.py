"""Events by what they touch: the index behind the log and the log itself give what a look at every event gives."""

import random
import sqlite3
from collections.abc import Callable

import pytest

from scout.model.events.envelope import Event, list_concerned_agents
from scout.model.events.event_types import get_event_type, read_event
from scout.model.events.talk import MessagePosted
from scout.model.ref import Ref, RefKind
from scout.store.history.feed import prepare_batch, store_batch
from scout.store.log import LAST, read_events, read_rows, read_stored_rows
from scout.store.touched import EventReader, outline, read_touched_mark
from scout.store.unit_of_work import append
from tests.broker.old_log import logs
from tests.model.samples import ident
from tests.store.test_packed_log import ANN, BEN, build_event

CARL = ident("agt", 7)
ROWS = 60


def fill(store: sqlite3.Connection) -> list[Event]:
    chance, seq = random.Random(4), 0
    for row in range(ROWS):
        size = chance.randint(1, 5)
        by = chance.choice((ANN, BEN))
        append(
            store,
            *(build_event(seq + place, chance.randrange(3), by=by, at=row) for place in range(1, size + 1)),
        )
        seq += size
    return list(read_events(store, 0, LAST))


def follow(store: sqlite3.Connection, part: float) -> None:
    """Follow the log up to a part of it."""
    last = read_events(store, 0, LAST)
    until = part * max(event.seq for event in last)
    while read_touched_mark(store) < until and (batch := prepare_batch(store, 7)) is not None:
        store_batch(store, batch)


@pytest.mark.parametrize("part", [0, 0.5, 1])
def test_every_reader_gives_what_a_look_at_every_event_gives(store: sqlite3.Connection, part: float) -> None:
    events, log = fill(store), EventReader(store)
    follow(store, part)
    numbers = (0, 1, 7, events[len(events) // 2].seq, events[-1].seq, events[-1].seq + 5)

    def choose(wanted: Callable[[Event], bool]) -> list[Event]:
        return [event for event in events if wanted(event)]

    for agent in (ANN, BEN, CARL):
        about = choose(lambda event, agent=agent: agent in list_concerned_agents(event))
        deeds = choose(lambda event, agent=agent: event.source == Ref.to(agent))
        for seq in numbers:
            assert log.list_concerning(agent, seq, 9) == [one for one in about if one.seq > seq][:9]
            before = [one for one in about if one.seq < seq]
            assert log.list_concerning_back(agent, seq, 9) == before[::-1][:9]
            assert log.list_deeds(agent, seq, 9) == [one for one in deeds if one.seq > seq][:9]
        assert log.find_last_deed(agent) == (deeds[-1].time if deeds else None)
        said = [one for one in deeds if isinstance(one, MessagePosted)]
        assert log.list_said(agent, 5) == said[::-1][:5]
    for event in events:
        assert log.find(event.id) == event
        assert log.get(event.seq) == event
        if not isinstance(event, MessagePosted):
            assert log.list_at(event.target.id, 0, 5) == [event]
            assert log.list_at_back(event.target.id, LAST, 5) == [event]
            assert log.find_first_seq(event.target.id) == event.seq
    assert log.find(ident("evt", 9)) is None
    assert log.find_first_seq(CARL) == 0


def test_the_index_has_one_entry_for_a_key_and_a_row(store: sqlite3.Connection) -> None:
    append(store, *(build_event(seq, 0) for seq in range(1, 6)))
    follow(store, 1)
    (count,) = store.execute("SELECT count(*) FROM touched").fetchone()
    assert count == 3  # the agent, what it did, and the series of the ids


def test_an_outline_of_a_row_has_the_keys_of_its_events(store: sqlite3.Connection) -> None:
    """The log of a whole day: the outline, which decodes little, agrees with the decoded events."""
    for line in logs()[0].read_bytes().splitlines():
        append(store, read_event(line))
    for row, stored in zip(read_rows(store, 0), read_stored_rows(store, 0), strict=True):
        (event,) = row.events
        keys = {str(event.source), *list_concerned_agents(event)}
        keys |= {event.target.id} if event.target.kind is not RefKind.CONVERSATION else set()
        found = outline(stored)
        assert {key for key in found.keys if not key.startswith("evt_")} == keys
        assert (found.types, found.times) == ({get_event_type(type(event))}, [event.time])
