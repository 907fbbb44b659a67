"""The journal of begun changes: on disk before anything happens, and readable whatever lies beside it."""

import os
from pathlib import Path

import pytest

from scout.base.time import Time
from scout.ports import JournalEntry
from scout.tree.journal import FileJournal
from scout.tree.tree_ports import build_tree_ports


def entry(ident: str, at: int = 1, **facts: str) -> JournalEntry:
    return JournalEntry(id=ident, what="spawn", root="/arc", branch="main.ü", facts=facts, begun_at=Time(at))


def test_entries_stay_until_they_end(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "trees" / "journal")
    assert journal.unfinished() == ()
    journal.end("jrn_1")
    journal.begin(entry("jrn_2", 2))
    journal.begin(entry("jrn_1", 3))
    journal.begin(entry("jrn_3", 1))
    journal.update(entry("jrn_1", 3, commit="abc"))
    again = FileJournal(tmp_path / "trees" / "journal")
    assert again.unfinished() == (entry("jrn_3", 1), entry("jrn_2", 2), entry("jrn_1", 3, commit="abc"))
    again.end("jrn_2")
    again.end("jrn_2")
    assert [one.id for one in journal.unfinished()] == ["jrn_3", "jrn_1"]


def test_files_are_private_and_no_half_one_is_left(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.begin(entry("jrn_1"))
    (file,) = (tmp_path / "journal").iterdir()
    assert (file.name, file.stat().st_mode & 0o777) == ("jrn_1.json", 0o600)
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o700


def test_an_entry_and_its_folder_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    journal = FileJournal(tmp_path / "journal")
    journal.begin(entry("jrn_1"))
    assert [name.startswith(".jrn_1.json.") for name in synced] == [True, False]
    assert synced[1] == "journal"
    synced.clear()
    journal.end("jrn_1")
    assert synced == ["journal"]


def test_what_scout_did_not_write_is_left_alone(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path)
    journal.begin(entry("jrn_1"))
    (tmp_path / "jrn_2.json").write_text("{")
    (tmp_path / "jrn_3.json").symlink_to(tmp_path / "jrn_1.json")
    (tmp_path / "jrn_4.json").write_bytes((tmp_path / "jrn_1.json").read_bytes())
    os.mkfifo(tmp_path / "jrn_5.json")
    (tmp_path / ".jrn_6.json.0.new").write_text("half")
    assert [one.id for one in journal.unfinished()] == ["jrn_1"]
    for ident in ("../x", "", "a b", "ü", "a/b"):
        with pytest.raises(ValueError, match="not an id"):
            journal.begin(entry(ident))


def test_the_daemon_gets_all_three_ports(tmp_path: Path) -> None:
    ports = build_tree_ports(tmp_path, b"key", ("NODE_*",))
    ports.journal.begin(entry("jrn_1"))
    assert (tmp_path / "trees" / "journal" / "jrn_1.json").exists()
    assert ports.work_trees.look(str(tmp_path)) is None
    assert ports.folders.scan(str(tmp_path)) == ()
