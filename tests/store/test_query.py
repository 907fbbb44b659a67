"""Every named query is answered from an index: none looks through a table that grows."""

import re
import sqlite3
from pathlib import Path

import pytest

from scout.store.database import connect
from scout.store.migrate import migrate
from scout.store.table import QUERIES, TABLES, Table

# Indexes that hold only what is in use now: as small as the work under way.
SMALL = (
    "agents_kept_warm",
    "aliases_of_sessions",
    "endpoints_held",
    "endpoints_kept_warm",
    "sessions_running",
    "deliveries_due",
    "invitations_open",
)
_NAME = re.compile(r":([a-z_]+)")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> sqlite3.Connection:
    path: Path = tmp_path_factory.mktemp("plans") / "scout.db"
    connection = connect(path)
    migrate(connection)
    return connection


def scans(step: str) -> bool:
    if not step.startswith("SCAN") or step.startswith(("SCAN r", "SCAN (subquery", "SCAN CONSTANT")):
        return False
    return not step.endswith(SMALL)


@pytest.mark.parametrize("name", QUERIES)
def test_a_named_query_neither_scans_nor_sorts(store: sqlite3.Connection, name: str) -> None:
    values = dict.fromkeys(_NAME.findall(QUERIES[name]), 1)
    steps = [str(row[3]) for row in store.execute(f"EXPLAIN QUERY PLAN {QUERIES[name]}", values)]
    assert not [step for step in steps if scans(step) or "TEMP B-TREE" in step], steps


# Members have no ids that anybody names: they are found by their conversation and agent.
@pytest.mark.parametrize("table", [one for one in TABLES.values() if one.name != "members"])
def test_the_beginning_of_an_id_is_looked_up_in_its_index(store: sqlite3.Connection, table: Table) -> None:
    steps = [row[3] for row in store.execute(f"EXPLAIN QUERY PLAN {table.starting}", ("a_", "a_{", 2))]
    assert not [step for step in steps if scans(step) or "TEMP B-TREE" in step], steps


def test_every_query_has_a_purpose_and_a_name() -> None:
    assert len(QUERIES) > 50
    assert all(statement.startswith("SELECT") for statement in QUERIES.values())
