"""One row of the log holds the events of a request: they are read back as they were, one by one and all together."""

import json
import sqlite3
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from scout.base.ids import derive_id, make_id_series
from scout.base.time import Time
from scout.model.conversation import MessageKind
from scout.model.events.asks import DeliveryRequested, FlightQueued
from scout.model.events.directory import UserRetired
from scout.model.events.envelope import Changed, Event, Metadata
from scout.model.events.talk import MessagePosted, MessageRedacted, Posted
from scout.model.ref import Ref
from scout.store.database import connect
from scout.store.integrity.damage import examine
from scout.store.integrity.verify import verify
from scout.store.log import MOST, LogRow, find_event, read_events, read_rows, unpack
from scout.store.migrate import migrate
from scout.store.redact import redact
from scout.store.search import index_events, search
from scout.store.unit_of_work import UnitOfWork, append
from tests.model.samples import a_delivery, a_flight, a_user, ident
from tests.policy.fleets import agent
from tests.store.facts import NOW, append_records, fact, post_message

ANN, BEN = ident("agt", 1), ident("agt", 2)
HALL = derive_id("cnv", "hall")
TOKEN = derive_id("tok", "ann")


def build_event(seq: int, kind: int, *, by: str = ANN, at: int = 0) -> Event:
    """A message, a flight or a delivery. The ids of one moment are of one series."""
    series = make_id_series(1_700_000_000_000 + at, bytes(10))
    whole: dict[str, Any] = {
        "id": f"evt_{next(islice(series, seq, None))}",
        "seq": seq,
        "time": Time(NOW + at),
        "source": Ref.to(by),
        "metadata": Metadata(token_id=TOKEN) if by == ANN else Metadata(),
    }
    if kind == 0:
        said = Posted(message_id=ident("msg", seq), text=f'"hello"\n{seq}', kind=MessageKind.CHAT)
        return MessagePosted(**whole, target=Ref.to(HALL), payload=said)
    if kind == 1:
        flight = a_flight(id=ident("flt", seq))
        return FlightQueued(**whole, target=Ref.to(flight.id), payload=Changed(record=flight, by=by))
    delivery = a_delivery(id=ident("dlv", seq))
    changed = Changed(record=delivery, move="request", by=None, reason="why")
    return DeliveryRequested(**whole, target=Ref.to(delivery.id), payload=changed)


kinds = st.tuples(st.integers(0, 2), st.sampled_from([ANN, BEN]), st.integers(0, 2))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(drawn=st.lists(kinds, min_size=1, max_size=9))
def test_events_are_read_back_as_they_were(
    store: sqlite3.Connection, drawn: Sequence[tuple[int, str, int]]
) -> None:
    events = [build_event(seq, kind, by=by, at=at) for seq, (kind, by, at) in enumerate(drawn, 1)]
    store.execute("BEGIN")
    try:
        append(store, *events)
        assert store.execute("SELECT seq, first FROM events").fetchall() == [(len(events), 1)]
        assert list(read_rows(store, 0)) == [LogRow(len(events), events)]
        assert [find_event(store, event.seq) for event in events] == events
        for after in range(len(events)):
            assert list(read_events(store, after, 2)) == events[after : after + 2]
        assert find_event(store, len(events) + 1) is None
    finally:
        store.execute("ROLLBACK")


def test_a_row_says_nothing_twice(store: sqlite3.Connection) -> None:
    append(store, build_event(1, 0), build_event(2, 1), build_event(3, 1, by=BEN, at=1))
    first, second, third = json.loads(store.execute("SELECT data FROM events").fetchone()[0])
    assert {"id", "time", "source", "target"} <= set(first)
    assert set(second) == {"type", "id", "payload"}
    assert "by" not in second["payload"]
    assert len(second["id"]) == 3
    assert set(third) == {"type", "id", "time", "source", "payload"}


def test_a_request_has_a_row_and_a_long_one_has_several(store: sqlite3.Connection) -> None:
    unit = UnitOfWork(store)
    for size in (1, 3, 0, MOST + 1):
        unit.begin_request()
        for _ in range(size):
            post_message("hello")(unit)
    unit.begin_request()
    post_message("refused")(unit)
    assert unit.take_back()
    unit.flush()
    rows = store.execute("SELECT first, seq FROM events").fetchall()
    assert rows == [(1, 1), (2, 4), (5, 4 + MOST), (5 + MOST, 5 + MOST)]


def test_numbers_that_do_not_follow_each_other_are_kept(store: sqlite3.Connection) -> None:
    append(store, build_event(1, 0), build_event(4, 0), build_event(5, 0))
    assert [event.seq for event in read_events(store, 0, 9)] == [1, 4, 5]
    assert find_event(store, 3) is None


def test_an_event_of_an_earlier_version_is_upcast_in_a_row(store: sqlite3.Connection) -> None:
    user = a_user()
    event = UserRetired(
        id=ident("evt", 1),
        seq=2,
        time=NOW,
        source=Ref.to(ANN),
        target=Ref.to(user.id),
        payload=Changed(record=user, by=ANN, move="delete"),
    )
    append(store, build_event(1, 0), event)
    (data,) = store.execute("SELECT data FROM events").fetchone()
    earlier = data.replace(b"collab.user.retired", b"collab.user.deleted")
    assert unpack(1, earlier)[1] == replace(event, v=2)


def test_the_body_of_a_message_in_the_middle_of_a_row_is_removed(store: sqlite3.Connection) -> None:
    events = [build_event(1, 1), build_event(2, 0), build_event(3, 0)]
    append(store, *events)
    index_events(store, 9)
    assert [hit.seq for hit in search(store, "hello", None, None, 9)] == [3, 2]
    store.execute("BEGIN")
    gone = redact(store, ident("msg", 2), NOW)
    fact(store, MessageRedacted, HALL, Changed(record=gone.message, move="redact"))
    store.execute("COMMIT")
    assert [hit.seq for hit in search(store, "hello", None, None, 9)] == [3]
    first, second, third = list(read_events(store, 0, 3))
    assert (first, third) == (events[0], events[2])
    assert second == replace(events[1], payload=replace(events[1].payload, text=""))


def test_a_damaged_store_counts_events_and_not_rows(tmp_path: Path) -> None:
    store = connect(tmp_path / "scout.db")
    migrate(store)
    append(store, *(build_event(seq, 0) for seq in range(1, 6)))
    store.close()
    report = examine(tmp_path / "scout.db")
    assert (report.events, report.last_seq, report.lost) == (5, 5, 0)


def test_verify_finds_a_missing_row(store: sqlite3.Connection) -> None:
    append_records(store, agent("arc", id=ANN))
    append(store, *(build_event(seq, 0) for seq in (2, 3)))
    append(store, build_event(4, 0))
    path = Path(store.execute("PRAGMA database_list").fetchone()[2])
    assert verify(path).events == 4
    store.execute("DROP TRIGGER events_stay")
    store.execute("DELETE FROM events WHERE seq = 3")
    assert verify(path).gaps == (1,)
