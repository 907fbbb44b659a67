"""The life of an archive: kept, rewritten, replaced by a newer snapshot, or purged."""

import pytest

from scout.base.refusal import Refused
from scout.model.retention.archive import (
    ArchiveState,
    purge_archive,
    replace_snapshot,
    rewrite_archive,
)
from tests.policy.test_retention import NOW, archive


def test_a_rewritten_archive_has_another_file_and_stays() -> None:
    fresh = rewrite_archive(archive(9), NOW, file="events-1-9.2.jsonl.gz", sha256="1" * 64, size=2)
    assert (fresh.state, fresh.revision, fresh.file) == (ArchiveState.KEPT, 2, "events-1-9.2.jsonl.gz")


def test_what_is_purged_or_replaced_stays_so() -> None:
    purged, replaced = purge_archive(archive(9), NOW, "agt_me"), replace_snapshot(archive(9), NOW)
    assert (purged.state, purged.by, replaced.state) == (ArchiveState.PURGED, "agt_me", ArchiveState.REPLACED)
    for one in (purged, replaced):
        with pytest.raises(Refused):
            purge_archive(one, NOW, "agt_me")
