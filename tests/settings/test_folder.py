"""The folders on the disk."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.protocol.operations import check_remedy
from scout.settings.folder import NETWORK, find_file_system, prepare, refuse_network
from scout.settings.load import load
from scout.settings.record import Settings

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /net rw - nfs4 server:/x rw
31 30 8:2 / /net/local rw - xfs /dev/sdb rw
32 22 0:41 / /my\040files rw shared:5 master:1 - fuse.sshfs me@there: rw
33 22 0:42 / /twice rw - cifs //there/x rw
34 22 8:3 / /twice rw - btrfs /dev/sdc rw
a line that is none
"""


def settings_in(home: Path, **environ: str) -> Settings:
    return load({}, {"SCOUT_HOME": str(home), **environ}).settings


def mode(path: str) -> int:
    return Path(path).stat().st_mode & 0o7777


@pytest.mark.rows("R0-20")
def test_folders_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    loose = tmp_path / "home"
    (loose / "blobs").mkdir(parents=True)
    loose.chmod(0o777)
    (loose / "blobs").chmod(0o755)
    settings = settings_in(loose)
    for _ in range(2):
        prepare(settings)
    found = [settings.home, settings.blobs, settings.sessions, settings.logs]
    assert [mode(folder) for folder in found] == [0o700] * 4


@pytest.mark.rows("R0-17", "R0-20", "R0-21")
def test_the_folders_of_the_platform_are_made_too(tmp_path: Path) -> None:
    data, runtime = tmp_path / ("d" * 90), tmp_path
    xdg = {"XDG_DATA_HOME": str(data), "XDG_CONFIG_HOME": f"{tmp_path}/c", "XDG_RUNTIME_DIR": str(runtime)}
    settings = load({}, {"HOME": str(tmp_path), **xdg}).settings
    prepare(settings)
    try:
        assert settings.home == f"{data}/scout"
        assert settings.runtime != settings.home
        assert [mode(one) for one in (settings.home, f"{tmp_path}/c/scout", settings.runtime)] == [0o700] * 3
    finally:
        Path(settings.runtime).rmdir()


def test_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (tmp_path / "file").write_text("")
    good = settings_in(tmp_path / "home")
    for bad in (shared, tmp_path / "file", tmp_path / "file/x"):
        with pytest.raises(Refused, match="cannot be the data folder"):
            prepare(replace(good, home=str(bad)))
    assert mode(str(shared)) == 0o1777
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(Refused, match="it is a link"):
        prepare(replace(settings_in(tmp_path / "home"), runtime=str(tmp_path / "link")))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a folder of somebody else")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(Refused, match="other users have access"):
        prepare(settings_in(tmp_path / "theirs"))


@pytest.mark.rows("R0-22")
@pytest.mark.parametrize("home", ["/net", "/net/me/scout", "/my files/scout"])
def test_a_network_file_system_is_refused(home: str) -> None:
    with pytest.raises(Refused, match="network file system") as caught:
        refuse_network(home, MOUNTS)
    (remedy,) = caught.value.diagnostic.remedies
    assert check_remedy(remedy) == []
    assert "SCOUT_HOME" in remedy.why


@pytest.mark.rows("R0-22")
def test_the_nearest_and_last_mount_counts(tmp_path: Path) -> None:
    places = {"/x": "ext4", "/net/local/x": "xfs", "/network": "ext4", "/twice/x": "btrfs", "/net/x": "nfs4"}
    assert {place: find_file_system(place, MOUNTS) for place in places} == places
    assert find_file_system("/x", "") is None
    for home in ("/x", "/net/local", "/network", "/twice", str(tmp_path)):
        refuse_network(home, MOUNTS)
    assert {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs", "ceph", "glusterfs"} <= NETWORK
