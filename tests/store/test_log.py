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
from scout.model.agent import Agent
from scout.model.attention import Attention
from scout.model.conversation import Conversation, ConversationKind, Member, Message, MessageKind
from scout.model.events.envelope import Changed
from scout.model.events.event_types import ALL
from scout.model.events.presence import AgentOnline, AgentRegistered, Reached
from scout.model.events.talk import ConversationCreated, MessagePosted, Opened, Posted
from scout.model.session import Session
from scout.store.ledger import Ledger, list_changed_kinds, list_records, read_events
from scout.store.table import TABLES, get_table
from tests.policy.fleets import agent
from tests.store.facts import NOW, append_records, build_event, fact


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


def test_events_are_written_before_a_query_that_they_concern_and_not_before(
    store: sqlite3.Connection,
) -> None:
    ledger, arc = Ledger(store), agent("arc", id=derive_id("agt", "1"))
    ledger.unwritten.append(build_event(store, AgentRegistered, arc.id, Changed(record=arc)))
    assert ledger.many(Attention, "attention_about", dedupe="x") == []
    assert ledger.get(Session, derive_id("ses", "1")) is None
    assert ledger.unwritten
    assert ledger.one(Agent, "agent_at_path", path=str(arc.path)) == arc
    assert not ledger.unwritten
    payload = Posted(message_id=derive_id("msg", "1"), text="x", kind=MessageKind.CHAT)
    ledger.unwritten.append(build_event(store, MessagePosted, derive_id("cnv", "c"), payload))
    assert ledger.get(Agent, arc.id) == arc
    assert ledger.unwritten
    assert ledger.get(Message, derive_id("msg", "1")) is not None
    ledger.unwritten.append(build_event(store, AgentRegistered, arc.id, Changed(record=arc)))
    assert [event.target.id for event in ledger.facts("events_after", after=0, limit=9)][-1] == arc.id


def test_the_kinds_that_an_event_changes_are_those_of_its_rows(store: sqlite3.Connection) -> None:
    posted = Posted(message_id=derive_id("msg", "1"), text="x", kind=MessageKind.CHAT)
    place = Conversation(
        id=derive_id("cnv", "c"),
        kind=ConversationKind.CHANNEL,
        created_by="a",
        created_at=NOW,
        updated_at=NOW,
    )
    member = Member(id="m", conversation_id=place.id, agent_id="a", created_at=NOW, updated_at=NOW)
    events = [
        build_event(store, AgentRegistered, derive_id("agt", "1"), Changed(record=agent("arc"))),
        build_event(store, MessagePosted, place.id, posted),
        build_event(store, ConversationCreated, place.id, Opened(record=place, members=(member,))),
        build_event(store, AgentOnline, derive_id("agt", "1"), Reached(agent_id="a", endpoint_id="e")),
    ]
    for event in events:
        assert set(list_changed_kinds(event)) == {type(record) for record in list_records(event)}
    payloads = {typing.get_type_hints(kind)["payload"] for kind in ALL}
    carrying = {typing.get_origin(one) or one for one in payloads}
    assert {one for one in carrying if issubclass(one, Changed)} == {Changed, Opened}


@pytest.mark.rows("R0-88")
def test_replay_calls_no_decision() -> None:
    folder = Path(next(iter(room.__path__)))
    for name in ("ledger", "derived", "table", "integrity/verify"):
        tree = ast.parse((folder / f"{name}.py").read_text())
        imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        deciding = {module for module in imported if module.startswith("scout.policy")}
        assert deciding <= {"scout.policy.nearest"}  # which only spells index keys
