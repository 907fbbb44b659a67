"""The state of records at any moment: equal to a replay, flat in the history, and sound when the clock is not."""

import random
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from scout.base.record import Record
from scout.base.time import Time
from scout.model.agent import Agent, Lifecycle
from scout.model.endpoint import Endpoint, EndpointState
from scout.model.events.asks import FlightUpdated
from scout.model.events.envelope import Changed, Event
from scout.model.events.presence import AgentUpdated, EndpointUpdated
from scout.model.events.talk import AttentionCreated, WorkItemUpdated
from scout.model.flight import FLIGHT, Flight, FlightState
from scout.model.history import FOLLOWED, list_parties
from scout.model.work_item import WorkItem, WorkState
from scout.store.database import connect
from scout.store.history.feed import HISTORY_TABLES, build_batch, prepare_batch, read_mark, store_batch
from scout.store.history.moments import count_events, find_seq, read_time
from scout.store.history.past import Past
from scout.store.integrity.verify import verify
from scout.store.log import read_events, read_last_seq, read_stored_rows
from scout.store.migrate import migrate
from scout.store.unit_of_work import list_records
from tests import seeds
from tests.model.samples import a_flight, a_work_item, an_agent, an_attention, an_endpoint, ident
from tests.store.facts import NOW, fact, post_message
from tests.store.old_store import load, stores

_AGENTS = [ident("agt", number) for number in range(3)]
OPEN = [state for state in FlightState if state not in FLIGHT.terminal]


def a_record(kind: str, number: int, state: int) -> tuple[type[Event], Record]:
    """One of a few records, in one of its states, concerning one of a few agents."""
    party = _AGENTS[(number + state) % 3]
    if kind == "flight":
        states = [*FlightState]
        return FlightUpdated, a_flight(
            id=ident("flt", number), state=states[state % len(states)], target=_AGENTS[number % 3]
        )
    if kind == "endpoint":
        found = [*EndpointState][state % len(EndpointState)]
        return EndpointUpdated, an_endpoint(id=ident("ept", number), state=found)
    if kind == "agent":
        return AgentUpdated, an_agent(
            f"/u1/agent/a{number}", id=ident("agt", number), lifecycle=[*Lifecycle][state % 3]
        )
    if kind == "work":
        found = [*WorkState][state % len(WorkState)]
        return WorkItemUpdated, a_work_item(id=ident("wrk", number), state=found, owner_id=party)
    return AttentionCreated, an_attention(id=ident("att", number), agent_id=_AGENTS[number % 3])


kinds = st.sampled_from(["flight", "endpoint", "agent", "work", "attention", "message"])
changes = st.tuples(kinds, st.integers(0, 4), st.integers(0, 8), st.integers(-3000, 3000))
histories = st.lists(changes, min_size=1, max_size=60)


def play(store: sqlite3.Connection, history: Iterable[tuple[str, int, int, int]]) -> None:
    """Append a history; the last number of each change is the milliseconds by which the clock moves."""
    now = NOW
    for kind, number, state, moves in history:
        now = now.plus(moves / 1000)
        if kind == "message":
            post_message("hello")(store)
            continue
        event, record = a_record(kind, number, state)
        fact(store, event, getattr(record, "id"), Changed(record=record), time=now)  # noqa: B009 (any record)


def follow(store: sqlite3.Connection, step: int = 7) -> None:
    while (batch := prepare_batch(store, step)) is not None:
        store.execute("BEGIN")
        store_batch(store, batch)
        store.execute("COMMIT")


def replay(store: sqlite3.Connection, seq: int) -> dict[str, tuple[int, Record]]:
    """Every followed record after an event, by id, with its first event: the log is read from its beginning."""
    found: dict[str, tuple[int, Record]] = {}
    for event in read_events(store, 0, seq):
        for record in list_records(event):
            if type(record) in FOLLOWED:
                name: str = getattr(record, "id")  # noqa: B009 (any record)
                found[name] = (found.get(name, (event.seq,))[0], record)
    return found


def read_all(store: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of the history; the events of two stores have other ids."""
    store.execute("DELETE FROM touched WHERE key LIKE 'evt\\_%' ESCAPE '\\'")
    return {
        name: store.execute(f"SELECT {', '.join(columns)} FROM {name} ORDER BY 1, 2, 3").fetchall()
        if len(columns) > 2
        else store.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
        for name, columns in HISTORY_TABLES.items()
    }


@pytest.mark.rows("R6.h-2")
@settings(deadline=None, max_examples=40)
@given(histories, st.data())
def test_the_past_is_what_a_replay_of_the_log_up_to_there_gives(
    history: list[tuple[str, int, int, int]], data: st.DataObject
) -> None:
    store = sqlite3.connect(":memory:", isolation_level=None)
    migrate(store)
    play(store, history)
    follow(store, data.draw(st.integers(1, 20)))
    seq = data.draw(st.integers(1, read_last_seq(store)))
    past, then = Past(store, seq), replay(store, seq)
    for kind in (Flight, Endpoint, Agent, WorkItem):
        name = FOLLOWED[kind]
        known = sorted(
            ((first, one) for first, one in then.values() if isinstance(one, kind)), key=lambda pair: -pair[0]
        )
        newest = past.list_newest(kind, limit=100)
        assert [(one.record, one.state) for one in newest] == [(n, name.get_state(one)) for n, one in known]
        assert past.load_all(kind, newest) == [one for _, one in known]
        assert past.list_newest(kind, limit=2) == newest[:2]
        for state in {name.get_state(one) for _, one in known} | {"online", "queued"}:
            wanted = [number for number, one in known if name.get_state(one) == state]
            assert [one.record for one in past.list_in(kind, (state,), limit=100)] == wanted
        for party in _AGENTS:
            own = past.list_newest(kind, party=party, limit=100)
            assert {number for number, one in known if party in list_parties(one)} <= {
                one.record for one in own
            }
            open_ = past.list_in(kind, OPEN, party=party, limit=100)
            assert {one.record for one in open_} <= {one.record for one in own}
    assert past.get(Flight, ident("flt", 99)) is None
    store.close()


@settings(deadline=None, max_examples=40)
@given(histories, st.integers(1, 30))
def test_the_steps_in_which_the_log_is_followed_do_not_matter(
    history: list[tuple[str, int, int, int]], step: int
) -> None:
    stores = [sqlite3.connect(":memory:", isolation_level=None) for _ in range(2)]
    for store, size in zip(stores, (step, 1000), strict=True):
        migrate(store)
        play(store, history)
        follow(store, size)
    one, other = map(read_all, stores)
    assert one == other
    for store in stores:
        store.close()


@pytest.mark.rows("R2.3-31")
@settings(deadline=None, max_examples=40)
@given(histories, st.lists(st.integers(-200_000, 200_000), min_size=1, max_size=10))
def test_a_time_is_the_last_event_at_or_before_it_also_when_the_clock_goes_back(
    history: list[tuple[str, int, int, int]], offsets: list[int]
) -> None:
    store = sqlite3.connect(":memory:", isolation_level=None)
    migrate(store)
    play(store, history)
    follow(store)
    events = list(read_events(store, 0, 1000))
    for offset in offsets:
        time = NOW.plus(offset / 1000)
        wanted = max((one.seq for one in events if one.time // 1000 <= time // 1000), default=0)
        assert find_seq(store, time) == wanted
    for event in events:
        assert find_seq(store, Time.parse(str(event.time))) >= event.seq
    first, last = min(one.time for one in events), max(one.time for one in events)
    assert read_time(store, 1) == events[0].time
    assert read_time(store, len(events) + 1) is None
    if [one.time for one in events] == sorted(one.time for one in events):
        parts = [Time(first + (last - first) * part // 5) for part in range(6)]
        assert sum(count_events(store, parts)) == len(events)
    store.close()


def test_a_step_that_does_not_continue_from_the_mark_changes_nothing(store: sqlite3.Connection) -> None:
    play(store, [("flight", 1, 0, 1)] * 3)
    batch = prepare_batch(store, 2)
    assert batch is not None
    store_batch(store, batch)
    before = read_all(store)
    store_batch(store, batch)
    assert read_all(store) == before
    assert read_mark(store) == 2


@pytest.mark.rows("R6.h-5")
@pytest.mark.parametrize("loss", ["DELETE FROM history_mark", "UPDATE history_mark SET seq = 99"])
def test_a_history_without_a_mark_or_beyond_the_log_is_built_anew(
    store: sqlite3.Connection, loss: str
) -> None:
    play(store, [("flight", 1, state, 1) for state in range(6)])
    follow(store)
    before = read_all(store)
    store.execute(loss)
    assert read_mark(store) is None
    follow(store)
    assert read_mark(store) == 6
    assert read_all(store) == before


@pytest.mark.rows("R6.h-2")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE history_records SET state = 'lost'",
        "DELETE FROM history_versions WHERE seq = 3",
        "UPDATE history_spans SET last = last + 1 WHERE entered = 2",
        "DELETE FROM history_parties",
        "UPDATE history_moments SET seq = 1",
    ],
)
def test_verify_repeats_the_history_and_shows_what_differs(tmp_path: Path, change: str) -> None:
    path = tmp_path / "scout.db"
    store = connect(path)
    migrate(store)
    play(store, [("flight", 1, state, 1000) for state in range(6)])
    follow(store)
    play(store, [("flight", 2, 0, 9000)])  # not followed yet: no difference
    assert verify(path).clean
    store.execute(change)
    assert [one.table for one in verify(path).differences] == [change.split()[2 if "FROM" in change else 1]]
    store.close()


@pytest.mark.rows("R6.h-5")
@pytest.mark.parametrize("number", stores())
def test_a_store_of_an_earlier_schema_is_filled(tmp_path: Path, number: int) -> None:
    path = tmp_path / "scout.db"
    load(stores()[number], path)
    store = connect(path)
    migrate(store)
    assert (read_mark(store), read_last_seq(store)) == (0, 5)
    follow(store, 2)
    assert read_mark(store) == 5
    assert [one.state for one in Past(store, 5).list_newest(WorkItem, limit=9)] == ["open"]
    assert Past(store, 4).list_newest(WorkItem, limit=9) == []
    assert len(Past(store, 1).list_newest(Agent, limit=9)) == 1
    assert verify(path).clean
    store.close()


# -- flat in the history -------------------------------------------------------------------------------


def fill(store: sqlite3.Connection, flights: int) -> None:
    """Flights that are open for a while each, some of them for very long, one after another."""
    chance = random.Random(seeds.run_seed())
    running: list[Flight] = []
    store.execute("BEGIN")
    for number in range(flights):
        running.append(a_flight(id=f"flt_{number:026}", state=FlightState.QUEUED))
        fact(store, FlightUpdated, running[-1].id, Changed(record=running[-1]), time=NOW.plus(number))
        if len(running) > 20:
            ended = replace(running.pop(chance.randrange(1, 20)), state=FlightState.COMPLETED)
            fact(store, FlightUpdated, ended.id, Changed(record=ended), time=NOW.plus(number))
    store.execute("COMMIT")
    follow(store, 1000)


def count_steps(store: sqlite3.Connection, work: Callable[[], object]) -> int:
    """The instructions of SQLite's machine that a query takes: as many for each row that it visits."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    store.set_progress_handler(count, 1)
    work()
    store.set_progress_handler(None, 1)
    return steps


@pytest.mark.rows("R2.3-30")
def test_the_state_at_a_moment_costs_the_same_with_ten_times_the_history(tmp_path: Path) -> None:
    costs: list[dict[str, float]] = []
    for flights in (400, 4000):
        store = connect(tmp_path / f"{flights}.db")
        migrate(store)
        fill(store, flights)
        last = read_last_seq(store)
        cost: dict[str, float] = {"in": 0, "newest": 0, "moment": 0}
        for part in range(1, 10):  # early, in the middle, and late
            past = Past(store, last * part // 10)
            assert len(past.list_in(Flight, OPEN, limit=100)) >= 20
            cost["in"] += count_steps(store, lambda past=past: past.list_in(Flight, OPEN, limit=100))
            cost["newest"] += count_steps(store, lambda past=past: past.list_newest(Flight, limit=50))
            moment = NOW.plus(flights * part / 10)
            cost["moment"] += count_steps(store, lambda store=store, moment=moment: find_seq(store, moment))
        costs.append(cost)
        store.close()
    small, large = costs
    assert large["in"] <= 1.5 * small["in"]
    assert large["newest"] <= 1.3 * small["newest"]
    assert large["moment"] <= 1.3 * small["moment"]


def test_following_a_message_writes_nothing_but_its_time(store: sqlite3.Connection) -> None:
    for _ in range(5):
        post_message("hello")(store)
    batch = build_batch(store, 0, list(read_stored_rows(store, 0)))
    assert (batch.records, batch.versions, batch.spans, batch.parties) == ([], [], [], [])
    assert len(batch.moments) == 1
