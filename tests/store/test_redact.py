"""Redaction is the only change of history: the words are gone everywhere, that they were there is not."""

import sqlite3
from pathlib import Path

import pytest

from scout.base.ids import derive_id
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.model.conversation import Attachment, Message, MessageKind
from scout.model.events.envelope import Changed, Event
from scout.model.events.talk import MessagePosted, MessageRedacted, Posted
from scout.store.database import connect, empty_log
from scout.store.integrity.verify import verify
from scout.store.log import read_events
from scout.store.migrate import migrate
from scout.store.redact import redact
from scout.store.search import index_events, search
from scout.store.table import get_table
from tests.store.facts import NOW, fact, post_message

HALL = derive_id("cnv", "hall")
SECRET = "xylophonequartz"
LATER = NOW.plus(60)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scout.db"


@pytest.fixture
def store(path: Path):
    connection = connect(path)
    migrate(connection)
    yield connection
    connection.close()


def spill(store: sqlite3.Connection, text: str = f"the password is {SECRET}") -> str:
    ident = derive_id("msg", text)
    file = Attachment(sha256="0" * 64, name=f"{SECRET}.txt", size=3)
    payload = Posted(message_id=ident, text=text, kind=MessageKind.CHAT, attachments=(file,))
    fact(store, MessagePosted, HALL, payload)
    return ident


def take_out(store: sqlite3.Connection, ident: str, now: Time = LATER) -> bool:
    """As the broker does it: the change and its record in one transaction."""
    store.execute("BEGIN IMMEDIATE")
    gone = redact(store, ident, now)
    if gone.first:
        fact(store, MessageRedacted, HALL, Changed(record=gone.message, move="redact"), time=now)
    store.execute("COMMIT")
    return gone.first


@pytest.mark.parametrize("indexed", [True, False])
def test_the_words_leave_the_log_the_row_and_the_index(
    store: sqlite3.Connection, path: Path, indexed: bool
) -> None:
    other, ident = post_message("the password stays")(store), spill(store)
    if indexed:
        index_events(store, 100)
    assert len(search(store, "password", None, None, 9)) == 2
    assert take_out(store, ident) is True
    assert [hit.seq for hit in search(store, "password", None, None, 9)] == [other]
    while index_events(store, 100):
        assert [hit.seq for hit in search(store, "password", None, None, 9)] == [other]
    message: Message = get_table(Message).get(store, ident)
    assert (message.body, message.attachments, message.redacted_at) == ("", (), LATER)
    posted = next(read_events(store, other, 1))
    assert isinstance(posted, MessagePosted)
    assert (posted.payload.text, posted.payload.attachments, posted.payload.message_id) == ("", (), ident)
    assert verify(path).clean


def test_no_byte_of_it_stays_in_the_file(store: sqlite3.Connection, path: Path) -> None:
    for number in range(300):
        post_message(f"word{number} and more of it")(store)
        if number % 50 == 0:
            index_events(store, 1000)
    ident = spill(store)
    index_events(store, 1000)
    empty_log(store)
    assert (SECRET.encode() in path.read_bytes()) is True
    take_out(store, ident)
    for _ in range(10):  # the index is rewritten step by step, even when there is nothing to index
        index_events(store, 1000)
    assert store.execute("SELECT stale FROM indexed").fetchone() == (0,)
    empty_log(store)
    assert (SECRET.encode() in path.read_bytes()) is False
    assert path.with_name("scout.db-wal").stat().st_size == 0
    assert len(search(store, "more", None, None, 500)) == 300


def test_redacting_again_changes_nothing(store: sqlite3.Connection, path: Path) -> None:
    ident = spill(store)
    assert [take_out(store, ident), take_out(store, ident, LATER.plus(60))] == [True, False]
    message: Message = get_table(Message).get(store, ident)
    assert message.redacted_at == LATER
    assert verify(path).events == 2


def test_an_unknown_message_is_refused(store: sqlite3.Connection) -> None:
    with pytest.raises(Refused, match="no message"):
        redact(store, derive_id("msg", "none"), NOW)


def test_a_redaction_that_is_rolled_back_has_not_happened(store: sqlite3.Connection) -> None:
    ident = spill(store)
    index_events(store, 10)
    store.execute("BEGIN IMMEDIATE")
    redact(store, ident, NOW)
    store.execute("ROLLBACK")
    assert len(search(store, SECRET, None, None, 9)) == 1


@pytest.mark.rows("R0-85", "R2.3-1")
@pytest.mark.parametrize(
    "attempt",
    [
        "DELETE FROM events WHERE seq = 1",
        "DELETE FROM events",
        "UPDATE events SET seq = 9 WHERE seq = 1",
        "UPDATE events SET first = 0 WHERE seq = 1",
        "UPDATE events SET data = CAST(json_set(data, '$[0].time', 1) AS BLOB) WHERE seq = 1",
        "UPDATE events SET data = CAST(json_set(data, '$[0].payload.text', 'x') AS BLOB) WHERE seq = 1",
        "UPDATE events SET data = CAST(json_set(data, '$[0].payload.text', '', '$[0].v', 2) AS BLOB)",
        "UPDATE events SET data = CAST(json_insert(data, '$[#]', '{}') AS BLOB) WHERE seq = 1",
        "UPDATE events SET data = CAST(json_remove(data, '$[0]') AS BLOB) WHERE seq = 1",
        "UPDATE events SET data = data WHERE seq = 3",
    ],
)
def test_the_store_itself_refuses_to_rewrite_the_log(store: sqlite3.Connection, attempt: str) -> None:
    ident = spill(store)
    take_out(store, spill(store, "another"))
    before: list[Event] = list(read_events(store, 0, 9))
    with pytest.raises(sqlite3.IntegrityError, match=r"append-only|never rewritten"):
        store.execute(attempt)
    assert list(read_events(store, 0, 9)) == before
    assert ident in str(before[0])
