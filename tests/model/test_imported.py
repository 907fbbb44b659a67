"""Imported records: an id that is the same in every import, and the time of a message."""

from msgspec import UNSET

from scout.base.time import Time
from scout.model.conversation import Message
from scout.model.events.talk import build_post
from scout.model.imported import ImportedFrom, derive_imported_id, is_imported

ORIGIN = ImportedFrom(system="openscout", id="m1")


def test_an_id_depends_on_the_system_and_the_id_there() -> None:
    ids = {
        derive_imported_id("wrk", origin, created)
        for origin in (
            ORIGIN,
            ImportedFrom(system="daycare", id="m1"),
            ImportedFrom(system="openscout", id="\ud800"),
        )
        for created in (None, Time(0), Time(1_794_819_347_011_000))
        for _ in range(2)
    }
    assert len(ids) == 9


def test_ids_with_a_time_sort_by_it() -> None:
    times = [Time(number * 1_000_000) for number in range(1, 50)]
    ids = [derive_imported_id("wrk", ORIGIN, one) for one in times]
    assert ids == sorted(ids)


def test_only_an_imported_message_carries_its_own_time() -> None:
    message = Message(id="msg_1", conversation_id="cnv_1", sender="agt_1", body="b", created_at=Time(7))
    imported = Message(
        id="msg_1",
        conversation_id="cnv_1",
        sender="agt_1",
        body="b",
        created_at=Time(7),
        imported_from=ORIGIN,
    )
    assert (build_post(message).written_at, is_imported(message.imported_from)) == (None, False)
    assert (build_post(imported).written_at, is_imported(imported.imported_from)) == (Time(7), True)
    assert build_post(message).imported_from is UNSET
