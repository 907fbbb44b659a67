"""Logs of earlier versions: they are read, replayed to the rows that they had, and decided again."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from scout.model.events.event_types import read_event
from scout.policy.wake import compare_decision, describe_decision
from scout.store.database import connect
from scout.store.integrity.review import review
from scout.store.integrity.verify import verify
from scout.store.migrate import migrate
from scout.store.unit_of_work import append
from tests.broker.old_log import find_rows, logs, rows

# Decisions that a later policy makes otherwise on purpose: the log, the event's number, and why.
ACCEPTED: dict[tuple[str, int], str] = {}


def replay_log(log: Path, path: Path) -> sqlite3.Connection:
    store = connect(path)
    migrate(store)
    store.execute("BEGIN")
    for line in log.read_bytes().splitlines():
        append(store, read_event(line))
    store.execute("COMMIT")
    return store


def holds(then: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether what was known then is the same now; a later version may know more."""
    return all(name in now and _is_same(value, now[name]) for name, value in then.items())


def _is_same(then: Any, now: Any) -> bool:
    return holds(then, now) if isinstance(then, dict) and isinstance(now, dict) else then == now  # pyright: ignore[reportUnknownArgumentType] (of any record)


@pytest.mark.rows("R2.3-28")
@pytest.mark.parametrize("log", logs(), ids=lambda log: log.stem)
def test_a_log_that_was_kept_gives_the_rows_that_it_gave(log: Path, tmp_path: Path) -> None:
    store = replay_log(log, tmp_path / "scout.db")
    then = [json.loads(line) for line in find_rows(log).read_text().splitlines()]
    now = rows(store)
    assert [one["row"] for one in then] == list(now)
    assert [one["row"] for one in then if not holds(one["record"], now[one["row"]])] == []
    store.close()
    assert verify(tmp_path / "scout.db").clean


@pytest.mark.parametrize("log", logs(), ids=lambda log: log.stem)
def test_todays_policy_decides_as_it_was_decided(log: Path, tmp_path: Path) -> None:
    wakes = [(event.seq, event.metadata.wake) for event in map(read_event, log.read_bytes().splitlines())]
    other = {
        (log.stem, seq): f"{describe_decision(wake)} → {compare_decision(wake)}"
        for seq, wake in wakes
        if wake is not None and compare_decision(wake)
    }
    assert {key: words for key, words in other.items() if key not in ACCEPTED} == {}
    replay_log(log, tmp_path / "scout.db").close()
    report = review(tmp_path / "scout.db")
    assert report.decisions == sum(wake is not None for _, wake in wakes) > 20
    assert report.differing == len(other)


@pytest.mark.rows("R2.3-24")
@pytest.mark.parametrize("log", logs(), ids=lambda log: log.stem)
def test_every_work_item_in_it_has_both_owners_until_it_is_settled(log: Path) -> None:
    found = 0
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if not event["type"].startswith("collab.work_item."):
            continue
        item = event["payload"]["record"]
        if item["state"] not in ("done", "cancelled"):
            found += 1
            assert item["ownerId"], item
            assert item["nextMoveOwnerId"], item
    assert found > 5
