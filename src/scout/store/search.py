"""Full-text search, indexed behind the log. New events are searched in memory, by the same rules."""

import contextlib
import sqlite3
from collections.abc import Collection, Generator, Iterable, Iterator
from typing import NamedTuple

from scout.base.codec import decode, encode_for_store
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.events.envelope import Event
from scout.model.events.event_types import get_event_type
from scout.model.events.talk import MessagePosted, WorkItemCreated, WorkItemEvent, WorkItemUpdated
from scout.store.log import find_event
from scout.store.redact import overwrite_freed

_WORDS = 32  # maximum words of a query; more would be a pasted text
_PREFIX = 3  # minimum letters before a star, so that it does not match half of all words
_TAIL = 2000  # maximum unindexed rows that are searched
_MERGED = 500  # pages of the index rewritten per step
_NEWEST = 2**63 - 1
_KINDS = tuple(get_event_type(kind) for kind in (MessagePosted, WorkItemCreated, WorkItemUpdated))


class _Id(Record):
    id: str


class _Change(Record):
    record: _Id | None = None


class _Words(Record):
    """The parts of a stored event that tell whether it has words, and of which work item."""

    type: str
    payload: _Change


class SearchHit(NamedTuple):
    """One result; `snippet` has the words around the match, with the match in «…»."""

    seq: int
    noun: str
    id: str
    conversation_id: str | None
    sender: str | None
    time: Time
    snippet: str

    @property
    def cursor(self) -> str:
        """Return the `before` that continues after this result."""
        return str(self.seq)


# -------------------------------------------------------------------------------------- feeding


def index_events(connection: sqlite3.Connection, limit: int) -> int:
    """Index the next `limit` rows of the log; return how much was done, 0 when nothing is left."""
    done, stale = connection.execute("SELECT seq, stale FROM indexed").fetchone()
    if stale:
        _scrub(connection, stale)
    query = "SELECT count(*), max(seq) FROM (SELECT seq FROM events WHERE seq > ? ORDER BY seq LIMIT ?)"
    count, last = connection.execute(query, (done, limit)).fetchone()
    if count:
        _index(connection, done, last)
        connection.execute("UPDATE indexed SET seq = ?", (last,))
    return int(count) + bool(stale)


def is_behind(connection: sqlite3.Connection) -> bool:
    """Whether there are events to index."""
    query = "SELECT stale OR seq < (SELECT coalesce(max(seq), 0) FROM events) FROM indexed"
    return bool(connection.execute(query).fetchone()[0])


def _index(connection: sqlite3.Connection, after: int, last: int) -> None:
    """Index the words of the events up to `last`; of a work item only the newest stay."""
    reach = (after, last)
    found = list(_find_words(connection, after, last))
    rows = [(seq, row) for seq, row, _ in found]
    connection.executemany("INSERT OR IGNORE INTO indexed_events VALUES (?, ?)", rows)
    words = "SELECT seq, text, places FROM searched WHERE seq > ? AND seq <= ? ORDER BY seq"
    connection.execute(f"INSERT INTO search (rowid, text, places) {words}", reach)
    for seq, _, work_id in found:
        if work_id is not None:
            _take_out_older(connection, work_id, seq)


def _find_words(
    connection: sqlite3.Connection, after: int, last: int
) -> Iterator[tuple[int, int, str | None]]:
    """Yield the number of each event with words, the number of its row, and the work item that it changes."""
    query = "SELECT seq, first, data FROM events WHERE seq > ? AND seq <= ? ORDER BY seq"
    for row, first, data in connection.execute(query, (after, last)):
        for seq, one in enumerate(decode(data, list[_Words]), first):
            if one.type in _KINDS:
                yield seq, row, one.payload.record.id if one.payload.record is not None else None


def _take_out_older(connection: sqlite3.Connection, work_id: str, seq: int) -> None:
    older = connection.execute("SELECT seq FROM indexed_work WHERE id = ?", (work_id,)).fetchone()
    if older:
        connection.execute("DELETE FROM search WHERE rowid = ?", older)
        connection.execute("DELETE FROM indexed_events WHERE seq = ?", older)
    connection.execute(
        "INSERT INTO indexed_work VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET seq = excluded.seq",
        (work_id, seq),
    )


def _scrub(connection: sqlite3.Connection, stale: int) -> None:
    """Rewrite a part of the index, so that removed words also leave its pages.

    A negative number starts a merge of everything; fewer than two changes mean that nothing is left.
    """
    before = connection.total_changes
    pages = -_MERGED if stale > 1 else _MERGED
    with overwrite_freed(connection):
        connection.execute("INSERT INTO search (search, rank) VALUES ('merge', ?)", (pages,))
    if stale > 1 or connection.total_changes - before < 2:
        connection.execute("UPDATE indexed SET stale = stale - 1")


# ------------------------------------------------------------------------------------ archiving


def keep_words(connection: sqlite3.Connection, first: int, last: int) -> None:
    """Keep the words of events whose rows are about to leave the log."""
    query = "SELECT seq, text, places FROM searched WHERE seq >= ? AND seq <= ?"
    for seq, text, places in connection.execute(query, (first, last)).fetchall():
        hit = encode_for_store(_read_hit(connection, seq, ""))
        row = (seq, text, places, hit)
        connection.execute("INSERT OR IGNORE INTO archived_words VALUES (?, ?, ?, ?)", row)


# ------------------------------------------------------------------------------------ searching


def list_places(connection: sqlite3.Connection, agent_id: str) -> tuple[str, ...]:
    """Return what an agent may read: its conversations, and what names it."""
    query = "SELECT conversation_id FROM members WHERE agent_id = ? AND left_at IS NULL"
    return (agent_id, *(row[0] for row in connection.execute(query, (agent_id,))))


def search(
    connection: sqlite3.Connection, text: str, places: Collection[str] | None, before: str | None, limit: int
) -> list[SearchHit]:
    """Return what contains all these words, newest first; `word*` matches every word that begins so.

    `places`: ids of the conversations and agents that the caller may read; None: all.
    """
    match, newest = _build_match(text, places), _parse_position(before)
    if match is None:
        return []
    (done,) = connection.execute("SELECT seq FROM indexed").fetchone()
    with _index_tail(connection, done) as tail:
        later = _find_matches(tail, match, newest, limit)
        renewed = {row[0] for row in tail.execute("SELECT id FROM indexed_work")}
        hits = [_read_hit(tail, seq, snippet) for seq, snippet in later]
    wanted = limit - len(hits) + len(renewed)
    earlier = _find_matches(connection, match, min(newest, done + 1), wanted)
    old = (_read_hit(connection, seq, snippet) for seq, snippet in earlier)
    hits += [found for found in old if found.id not in renewed]
    return hits[:limit]


def _parse_position(before: str | None) -> int:
    if before is None:
        return _NEWEST
    if not (before.isascii() and before.isdigit() and len(before) < 19):
        raise Refused(
            BadRequest(problem=f"expected a cursor of this search, got {before!r:.60}", field="cursor")
        )
    return int(before)


def _build_match(text: str, places: Collection[str] | None) -> str | None:
    """Return the query in FTS5 syntax: each word quoted, so that nothing in it is syntax."""
    words = text.encode(errors="replace").decode().replace("\0", " ").split()
    terms = [term for term in map(_build_term, words) if term][:_WORDS]
    if not terms or (places is not None and not places):
        return None
    wanted = f"text : ({' AND '.join(terms)})"
    if places is None:
        return wanted
    readable = " OR ".join(sorted({f'"{_make_token(place)}"' for place in places}))
    return f"{wanted} AND places : ({readable})"


def _build_term(word: str) -> str:
    bare = word.rstrip("*").replace('"', " ")
    letters = sum(letter.isalnum() for letter in bare)
    if not letters:
        return ""
    return f'"{bare}"*' if word.endswith("*") and letters >= _PREFIX else f'"{bare}"'


def _make_token(place: str) -> str:
    """Return the last letters of an id, one word for the index; anything but an id matches nothing."""
    letters = place[-26:]
    return letters if letters.isascii() and letters.isalnum() else "none"


def _find_matches(
    connection: sqlite3.Connection, match: str, newest: int, limit: int
) -> list[tuple[int, str]]:
    query = (
        "SELECT rowid, snippet(search, 0, '«', '»', '…', 16) FROM search "
        "WHERE search MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"
    )
    return connection.execute(query, (match, newest, limit)).fetchall()


def _read_hit(connection: sqlite3.Connection, seq: int, snippet: str) -> SearchHit:
    """Return a result: from the log, or as it was when its event was archived."""
    archived = connection.execute("SELECT hit FROM archived_words WHERE seq = ?", (seq,)).fetchone()
    if archived is not None:
        return decode(archived[0], SearchHit)._replace(snippet=snippet)
    found = find_event(connection, seq)
    assert found is not None  # what is indexed is in the log
    return _build_hit(found, snippet)


def _build_hit(event: Event, snippet: str) -> SearchHit:
    if isinstance(event, WorkItemEvent):
        work = event.payload.record
        return SearchHit(event.seq, "work", work.id, work.conversation_id, work.owner_id, event.time, snippet)
    ident = event.payload.message_id
    return SearchHit(event.seq, "message", ident, event.target.id, event.source.id, event.time, snippet)


@contextlib.contextmanager
def _index_tail(connection: sqlite3.Connection, done: int) -> Generator[sqlite3.Connection]:
    """Index the newest, not yet indexed events in memory."""
    holding = " OR ".join(f"instr(data, CAST('\"{kind}\"' AS BLOB))" for kind in _KINDS)
    query = f"SELECT * FROM events WHERE seq > ? AND ({holding}) ORDER BY seq DESC LIMIT ?"
    rows = connection.execute(query, (done, _TAIL)).fetchall()
    memory = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for statement in _read_schema(connection):
            memory.execute(statement)
        memory.execute("BEGIN")
        memory.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
        _index(memory, done, _NEWEST)
        memory.execute("COMMIT")
        yield memory
    finally:
        memory.close()


def _read_schema(connection: sqlite3.Connection) -> Iterable[str]:
    names = "'events', 'searched', 'search', 'indexed_events', 'indexed_work', 'archived_words'"
    query = f"SELECT sql FROM sqlite_master WHERE name IN ({names}) ORDER BY type"
    return [row[0] for row in connection.execute(query)]
