"""The log gives facts their order, and the tables follow it."""

import ast
import sqlite3
import typing
from pathlib import Path

import pytest
from msgspec.structs import replace

from scout import store as room
from scout.base.ids import derive_id
from scout.base.time import Time
from scout.model.conversation import Message, MessageKind
from scout.model.events.envelope import Changed
from scout.model.events.event_types import ALL
from scout.model.events.presence import AgentRegistered
from scout.model.events.talk import MessagePosted, Posted
from scout.store.log import read_events
from scout.store.table import TABLES, get_table
from tests.policy.fleets import agent
from tests.store.facts import NOW, append_records, fact


@pytest.mark.rows("R0-11")
def test_order_comes_from_the_number_and_never_from_the_clock(store: sqlite3.Connection) -> None:
    times = [NOW, Time(NOW - 5_000_000), Time(NOW - 9_000_000)]
    for number, moment in enumerate(times):
        payload = Posted(message_id=derive_id("msg", str(number)), text=str(number), kind=MessageKind.CHAT)
        fact(store, MessagePosted, derive_id("cnv", "c"), payload, time=moment)
    assert [event.seq for event in read_events(store, 0, 10)] == [1, 2, 3]
    assert [event.seq for event in read_events(store, 1, 1)] == [2]


@pytest.mark.rows("R1.1-8")
def test_the_store_keeps_paths_unique_among_live_and_retired_agents(store: sqlite3.Connection) -> None:
    append_records(store, agent("arc", id=derive_id("agt", "1"), path="/me/agent/arc"))
    with pytest.raises(sqlite3.IntegrityError, match=r"agents\.path"):
        append_records(store, agent("bow", id=derive_id("agt", "2"), path="/me/agent/arc"))


def test_the_store_keeps_live_names_unique_on_a_node(store: sqlite3.Connection) -> None:
    append_records(store, agent("arc", id=derive_id("agt", "1"), path="/me/agent/1"))
    append_records(store, agent("arc", id=derive_id("agt", "2"), path="/me/agent/2", node="book"))
    with pytest.raises(sqlite3.IntegrityError):
        append_records(store, agent("arc", id=derive_id("agt", "3"), path="/me/agent/3"))


def test_a_later_fact_replaces_the_row(store: sqlite3.Connection) -> None:
    first = agent("arc", id=derive_id("agt", "1"))
    later = replace(first, revision=2, workspace="fix")
    append_records(store, first)
    fact(store, AgentRegistered, first.id, Changed(record=later))
    table = get_table(type(first))
    assert table.get(store, first.id) == later
    assert store.execute("SELECT count(*), max(workspace) FROM agents").fetchone() == (1, "fix")
    assert table.get(store, derive_id("agt", "nobody")) is None


@pytest.mark.rows("R0-86")
def test_every_table_has_events_that_change_it() -> None:
    carried: set[object] = {Message}  # its payload is spelt out, so that the body is stored once
    for event in ALL:
        payload = typing.get_type_hints(event)["payload"]
        carried |= set(typing.get_args(payload))
    assert {table.record for table in TABLES.values()} <= carried


@pytest.mark.rows("R0-88")
def test_replay_calls_no_decision() -> None:
    folder = Path(next(iter(room.__path__)))
    for name in ("ledger", "unit_of_work", "derived", "table", "integrity/verify"):
        tree = ast.parse((folder / f"{name}.py").read_text())
        imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        deciding = {module for module in imported if module.startswith("scout.policy")}
        assert deciding <= {"scout.policy.nearest"}  # which only spells index keys
