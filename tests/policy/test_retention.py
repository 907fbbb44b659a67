"""What may be archived, and what a purge deletes."""

import pytest
from msgspec.structs import replace

from scout.base.ids import derive_id
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.model.retention.archive import Archive, ArchiveKind
from scout.policy.retention import YOUNGEST, check_age, choose_purged

NOW = Time(1_700_000_000_000_000)
DAY = 86_400.0


def archive(number: int) -> Archive:
    """The archive of one day, that many days ago."""
    at = NOW.plus(-number * DAY)
    return Archive(
        id=derive_id("arc", str(number)),
        created_at=NOW,
        updated_at=NOW,
        kind=ArchiveKind.EVENTS,
        first=1,
        last=9,
        since=at.plus(-DAY),
        until=at,
        file="events-1-9.jsonl.gz",
        sha256="0" * 64,
        size=1,
        by=derive_id("agt", "one"),
    )


def test_the_youngest_events_stay() -> None:
    oldest = NOW.plus(-YOUNGEST)
    assert check_age(oldest, NOW, "archive.create") == oldest
    with pytest.raises(Refused) as caught:
        check_age(oldest.plus(1), NOW, "archive.create")
    assert caught.value.diagnostic.remedies[0].parameters == {"before": "2 days ago"}


def test_a_purge_takes_the_oldest_and_leaves_no_gap() -> None:
    kept = [archive(days) for days in (90, 60, 30)]
    assert choose_purged(kept, None) == tuple(kept)
    assert choose_purged(kept, NOW.plus(-45 * DAY)) == tuple(kept[:2])
    assert choose_purged(kept, NOW.plus(-100 * DAY)) == ()
    late = replace(kept[0], until=NOW)  # the clock was ahead
    assert choose_purged([late, *kept[1:]], NOW.plus(-45 * DAY)) == ()
