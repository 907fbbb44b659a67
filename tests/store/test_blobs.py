"""Attachments lie under the hash of their bytes, whole or not at all."""

import errno
import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scout.base.refusal import Refused
from scout.model.problems.request import TooLarge
from scout.ports import Blobs
from scout.store.blobs import FolderBlobs

DATA = b"an attachment"
NAME = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "blobs"


@pytest.fixture
def blobs(folder: Path) -> Blobs:
    return FolderBlobs(folder, limit=1000)


@pytest.mark.rows("R0-71")
def test_bytes_are_stored_once_under_their_sha256(blobs: Blobs, folder: Path) -> None:
    assert [blobs.put(DATA), blobs.put(DATA)] == [NAME, NAME]
    assert blobs.get(NAME) == DATA
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files == [folder / NAME[:2] / NAME[2:4] / NAME]
    assert files[0].stat().st_mode & 0o777 == 0o600
    assert {place.stat().st_mode & 0o077 for place in (folder, *folder.rglob("*"))} == {0}


def test_nothing_is_also_a_file(blobs: Blobs) -> None:
    assert blobs.get(blobs.put(b"")) == b""


@pytest.mark.parametrize("name", [NAME, "", "x", "../" * 21 + "x", NAME.upper(), f"{NAME}\n", "a/" * 32])
def test_what_is_not_there_is_none(blobs: Blobs, name: str) -> None:
    assert blobs.get(name) is None


def test_too_large_is_refused_before_it_is_written(blobs: Blobs, folder: Path) -> None:
    blobs.put(b"x" * 1000)
    with pytest.raises(Refused) as caught:
        blobs.put(b"x" * 1001)
    assert isinstance(caught.value.diagnostic, TooLarge)
    assert (caught.value.diagnostic.size, caught.value.diagnostic.limit) == (1001, 1000)
    assert len([file for file in folder.rglob("*") if file.is_file()]) == 1


def test_a_damaged_file_is_never_handed_out(blobs: Blobs, folder: Path) -> None:
    blobs.put(DATA)
    (folder / NAME[:2] / NAME[2:4] / NAME).write_bytes(b"another")
    with pytest.raises(OSError, match="damaged") as caught:
        blobs.get(NAME)
    assert caught.value.errno == errno.EIO


def test_the_same_file_from_many_at_once(blobs: Blobs, folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(blobs.put, [DATA] * 40)) == {NAME}
    assert [file.name for file in folder.rglob("*") if file.is_file()] == [NAME]


# -- in parts ---------------------------------------------------------------------------------------


def test_a_file_arrives_in_parts(blobs: Blobs, folder: Path) -> None:
    assert blobs.add_part(NAME, 0, DATA[:5]) == 5
    assert blobs.size(NAME) is None, "it is not whole"
    assert blobs.add_part(NAME, 9, DATA[9:]) == 5, "a part is missing"
    assert FolderBlobs(folder, limit=1000).add_part(NAME, 5, DATA[5:]) == len(DATA), "after a restart"
    assert blobs.finish(NAME)
    assert blobs.get(NAME) == DATA
    assert [blobs.read_part(NAME, 3, 4), blobs.read_part(NAME, len(DATA), 4)] == [DATA[3:7], b""]
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files == [folder / NAME[:2] / NAME[2:4] / NAME]
    assert {place.stat().st_mode & 0o077 for place in (folder, *folder.rglob("*"))} == {0}


def test_parts_that_do_not_match_the_hash_are_dropped(blobs: Blobs) -> None:
    assert blobs.add_part(NAME, 0, b"something else") == 14
    assert not blobs.finish(NAME)
    assert blobs.size(NAME) is None
    assert blobs.add_part(NAME, 0, DATA) == len(DATA)
    assert blobs.add_part(NAME, 0, DATA) == len(DATA), "a part at 0 begins again"
    assert blobs.finish(NAME)


def test_parts_keep_the_limits(blobs: Blobs, folder: Path) -> None:
    with pytest.raises(Refused):
        blobs.add_part(NAME, 999, b"too long")
    with pytest.raises(Refused):
        blobs.add_part("../outside", 0, DATA)
    assert blobs.read_part("../outside", 0, 1) is blobs.read_part(NAME, 0, 1) is None
    for number in range(6):
        blobs.add_part(hashlib.sha256(str(number).encode()).hexdigest(), 0, b"x")
    assert len(list((folder / "arriving").iterdir())) == 4
