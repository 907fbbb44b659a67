"""Stores of earlier schemas, kept as SQL text under tests/data/stores.

`python -m tests.store.old_store N` prints a small store of schema N, made with the code of today; that is
done once, when the schema is new. From its release on the file is never made again: it is what users have.
"""

import sqlite3
import sys
from pathlib import Path

from scout.base.ids import derive_id
from scout.model.events.envelope import Changed
from scout.model.events.talk import WorkItemCreated
from scout.model.work_item import create_work
from scout.store.migrate import load_scripts
from tests.policy.fleets import agent, endpoint
from tests.store import facts

FOLDER = Path(__file__).parents[1] / "data" / "stores"


def stores() -> dict[int, Path]:
    """The stored stores by their schema."""
    return {int(file.stem.partition("-")[2]): file for file in FOLDER.glob("schema-*.sql")}


def load(text: Path, path: Path) -> None:
    """Make the file that the text describes."""
    store = sqlite3.connect(path)
    store.executescript(text.read_text())
    store.close()


def dump(number: int) -> str:
    """A small store of this schema as text."""
    facts._RUN = "stored"  # the same ids each time
    store = sqlite3.connect(":memory:", isolation_level=None)
    for _, script in sorted(one for one in load_scripts().items() if one[0] <= number):
        store.executescript(script)
    _fill(store)
    # A search index has no words of its own: they are read from the log again.
    kept = [line for line in store.iterdump() if not line.startswith('INSERT INTO "search" ')]
    lines = [*kept, f"PRAGMA user_version = {number};", ""]
    store.close()
    return "\n".join(lines)


def _fill(store: sqlite3.Connection) -> None:
    one = agent("arc", id=derive_id("agt", "arc"))
    facts.append_records(store, one, endpoint(one, "codex", "gpt-5.5", id=derive_id("ept", "e")))
    for text in ("the parser drops a comma", "it’s fixed now"):
        facts.post_message(text, message=text)(store)
    work = create_work(
        derive_id("wrk", "w"), "fix the parser", facts.NOW, requester_id=one.id, owner_id=one.id
    )
    facts.fact(store, WorkItemCreated, work.id, Changed(record=work))


if __name__ == "__main__":
    sys.stdout.write(dump(int(sys.argv[1])))
