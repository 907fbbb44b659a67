"""A damaged store is reported with what is lost and how to go on, and is left as it is."""

import asyncio
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from scout.protocol.operations import OPERATIONS
from scout.store.database import Database, connect
from scout.store.integrity.backup import backup, restore
from scout.store.integrity.damage import DamageReport, examine, is_header_sound
from scout.store.integrity.wal import read_log
from scout.store.log import read_last_seq
from scout.store.migrate import CURRENT, migrate
from tests.store.facts import post_message

PAGE = 4096


def make_store(path: Path, count: int) -> Path:
    async def main() -> None:
        database = Database(path)
        await asyncio.gather(
            *(database.write(post_message(f"{number} {'x' * 300}")) for number in range(count))
        )
        await database.close()

    asyncio.run(main())
    return path


def make_killed_store(folder: Path, commits: int) -> Path:
    """A store as a killed daemon leaves it: its commits lie in the write-ahead log alone."""
    live = folder / "live" / "scout.db"
    live.parent.mkdir()
    store = connect(live)
    migrate(store)
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for number in range(commits):
        store.execute("BEGIN")
        post_message(str(number))(store)
        store.execute("COMMIT")
    for ending in ("", "-wal"):
        shutil.copyfile(f"{live}{ending}", folder / f"scout.db{ending}")
    store.close()
    return folder / "scout.db"


def examine_untouched(path: Path) -> DamageReport:
    """The report; every file must hold the same bytes afterwards, but for SQLite's own index of its log."""
    beside = [file for file in path.parent.iterdir() if file.is_file() and not file.name.endswith("-shm")]
    files = {file: file.read_bytes() for file in beside}
    report = examine(path)
    assert all(file.read_bytes() == content for file, content in files.items())
    assert is_header_sound(path) or not report.sound
    assert all(remedy.operation in OPERATIONS for remedy in report.remedies)
    return report


def test_a_healthy_store_is_sound(tmp_path: Path) -> None:
    report = examine_untouched(make_store(tmp_path / "scout.db", 30))
    assert report.sound
    assert (report.events, report.last_seq, report.lost, report.version) == (30, 30, 0, CURRENT)
    assert report.unreadable == ()
    assert {"events", "messages", "agents"} <= set(report.tables)
    assert "sound" in report.lines[0]


def test_a_store_after_kill_9_is_sound(tmp_path: Path) -> None:
    path = make_killed_store(tmp_path, 5)
    log = read_log(tmp_path / "scout.db-wal")
    assert log is not None
    assert (log.readable, log.open, log.lost) == (True, 0, 0)
    assert log.used * (PAGE + 24) + 32 == log.size
    assert (examine_untouched(path).sound, examine_untouched(path).events) == (True, 5)


def test_a_missing_and_an_empty_file(tmp_path: Path) -> None:
    missing = examine_untouched(tmp_path / "scout.db")
    assert "there is no file" in missing.problems[0]
    (tmp_path / "scout.db").touch()
    assert examine_untouched(tmp_path / "scout.db").sound


def test_what_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "scout.db"
    path.write_bytes(b"noise" * 1000)
    report = examine_untouched(path)
    assert "not a database" in report.problems[0]
    assert (report.events, report.remedies[0].parameters) == (0, {"file": "FILE"})
    assert not is_header_sound(path)


@pytest.mark.parametrize("part", [0.9, 0.5, 0.1, 0.001])
def test_a_truncated_file_with_a_copy_beside_it(tmp_path: Path, part: float) -> None:
    path = make_store(tmp_path / "scout.db", 50)
    backup(path, tmp_path / "copy.db")
    make_store(path, 50)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * part)])
    report = examine_untouched(path)
    assert not report.sound
    assert report.events < 100
    assert report.expected_seq >= 50
    assert [(copy.file, copy.last_seq) for copy in report.copies] == [(str(tmp_path / "copy.db"), 50)]
    text = "\n".join(report.lines)
    assert "is damaged" in text
    assert "nothing was changed or deleted" in text
    restore(Path(report.remedies[0].parameters["file"]), path, tmp_path / "old.db")
    assert examine_untouched(path).sound


def test_scribbles_are_found_and_what_is_left_is_counted(tmp_path: Path) -> None:
    original = make_store(tmp_path / "scout.db", 200).read_bytes()
    chance = random.Random(11)
    path = tmp_path / "scout.db"
    seen: set[bool] = set()
    for number in range(200):
        if number >= 15 and len(seen) == 2:
            break
        damaged = bytearray(original)
        for _ in range(4):
            start = chance.randrange(PAGE, len(damaged) - PAGE)
            damaged[start : start + PAGE] = chance.randbytes(PAGE)
        path.write_bytes(damaged)
        report = examine_untouched(path)
        assert not report.sound
        assert report.events <= 200
        assert "events" in report.tables or report.events < 200
        seen.add(report.lost > 0)
    assert seen == {True, False}


def test_a_lost_tail_of_the_log_is_told_by_what_speaks_of_it(tmp_path: Path) -> None:
    path = make_store(tmp_path / "scout.db", 20)
    store = sqlite3.connect(path)
    store.execute("DROP TRIGGER events_stay")
    store.execute("DELETE FROM events WHERE seq > 15")
    store.commit()
    store.close()
    report = examine_untouched(path)
    assert (report.events, report.last_seq, report.expected_seq, report.lost) == (15, 15, 20, 5)


def test_a_write_ahead_log_that_sqlite_would_ignore_is_a_loss(tmp_path: Path) -> None:
    path, log = make_killed_store(tmp_path, 5), tmp_path / "scout.db-wal"
    content = log.read_bytes()
    log.write_bytes(b"\0\0\0\0" + content[4:])
    report = examine_untouched(path)
    assert "write-ahead log" in report.problems[0]
    log.write_bytes(content[:12] + b"??" + content[14:])  # the header's own sum no longer holds
    assert not examine_untouched(path).sound
    assert not is_header_sound(path)
    log.write_bytes(content[:20])
    assert not examine_untouched(path).sound
    assert not is_header_sound(path)
    log.write_bytes(content)
    assert is_header_sound(path)


def test_a_scribble_in_the_write_ahead_log_loses_answered_commits(tmp_path: Path) -> None:
    path, log = make_killed_store(tmp_path, 5), tmp_path / "scout.db-wal"
    content = log.read_bytes()
    log.write_bytes(content[:100] + b"????" + content[104:])
    report = examine_untouched(path)
    assert "the last 5 commits in it are lost" in report.problems[0]
    assert report.events == 0


def test_a_torn_end_of_the_write_ahead_log_is_a_note(tmp_path: Path) -> None:
    path, log = make_killed_store(tmp_path, 5), tmp_path / "scout.db-wal"
    log.write_bytes(log.read_bytes()[:-10])
    report = examine_untouched(path)
    assert (report.sound, report.events) == (True, 4)
    assert "without a commit" in report.notes[0]


def test_a_store_of_a_newer_scout_is_not_damaged_but_not_ours(tmp_path: Path) -> None:
    path = make_store(tmp_path / "scout.db", 3)
    store = connect(path)
    store.execute(f"PRAGMA user_version = {CURRENT + 1}")
    assert read_last_seq(store) == 3
    store.close()
    report = examine_untouched(path)
    assert "use the newer Scout" in report.problems[0]
    assert report.events == 3
