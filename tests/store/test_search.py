"""What was said is found, by those who may read it, as soon as it is said."""

import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scout.base.ids import derive_id
from scout.base.refusal import Refused
from scout.model.conversation import Member, MessageKind
from scout.model.events.envelope import Changed
from scout.model.events.talk import (
    ConversationMember,
    MessagePosted,
    Posted,
    WorkItemCreated,
    WorkItemUpdated,
)
from scout.model.ref import Ref
from scout.model.work_item import create_work, update_work
from scout.store.derived import DERIVED_TABLES
from scout.store.history.feed import HISTORY_TABLES
from scout.store.integrity.verify import VOLATILE_FIELDS, VOLATILE_TABLES
from scout.store.log import read_last_seq
from scout.store.search import SearchHit, index_events, list_places, search
from scout.store.table import TABLES
from tests.store.facts import NOW, fact

ANN, BOB, EVE = (derive_id("agt", name) for name in ("ann", "bob", "eve"))
HALL, ROOM = (derive_id("cnv", name) for name in ("hall", "room"))


def say(store: sqlite3.Connection, text: str, conversation: str = HALL, sender: str = ANN) -> str:
    ident = derive_id("msg", str(read_last_seq(store)))
    payload = Posted(message_id=ident, text=text, kind=MessageKind.CHAT)
    fact(store, MessagePosted, conversation, payload, source=Ref.to(sender))
    return ident


def ids(found: list[SearchHit]) -> list[str]:
    return [hit.id for hit in found]


def both_ways(store: sqlite3.Connection, text: str, places: tuple[str, ...] | None = None) -> list[SearchHit]:
    """What is found before the index has caught up, which is what is found afterwards."""
    early = search(store, text, places, None, 50)
    while index_events(store, 2):
        assert ids(search(store, text, places, None, 50)) == ids(early)
    assert search(store, text, places, None, 50) == early
    return early


def test_words_are_found_newest_first_before_and_after_they_are_indexed(store: sqlite3.Connection) -> None:
    one = say(store, "the parser drops a comma")
    say(store, "nothing of interest")
    two = say(store, "a Comma again, in the PARSER")
    assert ids(both_ways(store, "parser comma")) == [two, one]
    assert index_events(store, 100) == 0


def test_a_hit_says_who_where_when_and_shows_the_words(store: sqlite3.Connection) -> None:
    ident = say(store, f"{'before ' * 30}the needle {'after ' * 30}", sender=BOB)
    (hit,) = both_ways(store, "needle")
    assert hit[:6] == (1, "message", ident, HALL, BOB, NOW)
    assert "the «needle» after" in hit.snippet
    assert len(hit.snippet) < 150


def test_only_the_readable_is_found(store: sqlite3.Connection) -> None:
    hall, room = say(store, "secret plan", HALL), say(store, "secret plan", ROOM)
    assert ids(both_ways(store, "secret", (HALL,))) == [hall]
    assert ids(search(store, "secret", (ROOM, EVE), None, 9)) == [room]
    assert ids(search(store, "secret", None, None, 9)) == [room, hall]
    for nowhere in ((), (EVE,), ("",), ('" OR text : "secret',)):
        assert search(store, "secret", nowhere, None, 9) == []
    many = tuple(derive_id("cnv", str(number)) for number in range(2000))
    assert ids(search(store, "secret", (*many, HALL), None, 9)) == [hall]


def test_the_names_of_places_are_not_words(store: sqlite3.Connection) -> None:
    say(store, "hello")
    assert both_ways(store, HALL[-26:]) == []


def test_pages_go_on_where_the_last_one_ended(store: sqlite3.Connection) -> None:
    said = [say(store, f"word {number}") for number in range(7)]
    index_events(store, 4)
    pages: list[str] = []
    before = None
    while page := search(store, "word", None, before, 2):
        assert len(page) <= 2
        pages += ids(page)
        before = page[-1].cursor
    assert pages == said[::-1]


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5", "²", "9" * 30])
def test_a_cursor_of_something_else_is_refused(store: sqlite3.Connection, cursor: str) -> None:
    with pytest.raises(Refused, match="cursor"):
        search(store, "word", None, cursor, 2)


def test_a_star_stands_for_the_rest_of_a_word(store: sqlite3.Connection) -> None:
    long, short = say(store, "parsing"), say(store, "pa")
    assert ids(both_ways(store, "pars*")) == [long]
    assert ids(both_ways(store, "pars")) == []
    assert ids(both_ways(store, "pa*")) == [short]  # two letters are a word, not half a dictionary


def test_accents_and_punctuation_do_not_matter(store: sqlite3.Connection) -> None:
    ident = say(store, "Déjà-vu in foo_bar.baz()")
    for text in ("deja vu", "déjà-vu", "DEJA", "foo_bar", "bar", "foo.bar", '"baz"', "vu -"):
        assert ids(both_ways(store, text)) == [ident]


def test_work_is_found_by_its_newest_words_only(store: sqlite3.Connection) -> None:
    work = create_work(
        derive_id("wrk", "w"), "fix the lexer", NOW, requester_id=ANN, owner_id=BOB, description="tokens"
    )
    fact(store, WorkItemCreated, work.id, Changed(record=work))
    (hit,) = both_ways(store, "lexer tokens")
    assert (hit.noun, hit.id, hit.conversation_id, hit.sender) == ("work", work.id, None, BOB)
    later = update_work(work, NOW, title="fix the parser", conversation_id=ROOM)
    fact(store, WorkItemUpdated, work.id, Changed(record=later, move="update"))
    assert both_ways(store, "lexer") == []
    assert ids(both_ways(store, "parser tokens")) == [work.id]
    for place, seen in ((ANN, True), (BOB, True), (ROOM, True), (EVE, False), (HALL, False)):
        assert bool(search(store, "parser", (place,), None, 9)) is seen


def test_a_renewed_item_does_not_shorten_a_page(store: sqlite3.Connection) -> None:
    work = create_work(derive_id("wrk", "w"), "needle", NOW, requester_id=ANN, owner_id=BOB)
    old = say(store, "needle")
    fact(store, WorkItemCreated, work.id, Changed(record=work))
    index_events(store, 10)
    fact(store, WorkItemUpdated, work.id, Changed(record=work))
    assert ids(search(store, "needle", None, None, 2)) == [work.id, old]


def test_an_agent_reads_where_it_is_a_member(store: sqlite3.Connection) -> None:
    for conversation, left in ((HALL, None), (ROOM, NOW)):
        ident = derive_id("mbr", conversation)
        member = Member(
            id=ident, conversation_id=conversation, agent_id=ANN, left_at=left, created_at=NOW, updated_at=NOW
        )
        fact(store, ConversationMember, conversation, Changed(record=member))
    assert set(list_places(store, ANN)) == {ANN, HALL}
    assert list_places(store, EVE) == (EVE,)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(st.text(max_size=40) | st.text('"*:()^-+{}ANDORT NEa\0\ud800', max_size=20))
def test_no_text_is_a_syntax_error(store: sqlite3.Connection, text: str) -> None:
    assert isinstance(search(store, text, (HALL,), None, 5), list)


def test_a_thrown_away_index_is_rebuilt_from_the_log(store: sqlite3.Connection) -> None:
    ident = say(store, "still here")
    index_events(store, 10)
    store.execute("INSERT INTO search (search) VALUES ('delete-all')")
    store.execute("DELETE FROM indexed_work")
    store.execute("UPDATE indexed SET seq = 0")
    assert ids(both_ways(store, "still")) == [ident]


def test_search_scans_nothing_that_grows(store: sqlite3.Connection) -> None:
    statements: list[str] = []
    say(store, "hello")
    index_events(store, 1)
    store.set_trace_callback(statements.append)
    search(store, "hello", (HALL,), None, 5)
    list_places(store, ANN)
    index_events(store, 5)
    store.set_trace_callback(None)
    asked = [text for text in statements if text.startswith("SELECT") and "sqlite_master" not in text]
    assert len(asked) >= 5
    for text in asked:
        for row in store.execute(f"EXPLAIN QUERY PLAN {text}"):
            scanned = row[3].removeprefix("SCAN ").split()[0] if row[3].startswith("SCAN") else ""
            assert scanned in {"", "indexed", "search", "(subquery-1)", "(subquery"}, (text, row[3])


@pytest.mark.rows("R0-87", "R2.3-19")
def test_every_table_is_the_log_projected_derived_or_listed_as_volatile(store: sqlite3.Connection) -> None:
    shadows = {"search_data", "search_idx", "search_content", "search_docsize", "search_config"}
    found = {row[0] for row in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    kinds = [{"events"}, set(TABLES), set(DERIVED_TABLES), set(HISTORY_TABLES), set(VOLATILE_TABLES)]
    listed = [name for kind in kinds for name in kind]
    assert sorted(found - shadows) == sorted(listed)
    volatile = {name for name, table in TABLES.items() if table.record in VOLATILE_FIELDS}
    assert volatile == {"agents", "connector_keys", "endpoints", "sessions", "nodes", "tokens"}
