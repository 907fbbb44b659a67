"""The daemon's parts that need no daemon."""

import logging
import os
import plistlib
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from scout.base.ids import parse_prefix
from scout.base.refusal import Refused
from scout.daemon import lock
from scout.daemon.clock import SystemClock, SystemIds
from scout.daemon.log_file import open_log, redact
from scout.daemon.port import find_holder, format_url, listen_tcp, listen_unix
from scout.daemon.secret_file import read_node_key, read_operator_token
from scout.daemon.unit import KINDS, build_unit
from scout.model.problems.request import PortInUse


def test_ids_and_secrets_are_new_each_time() -> None:
    ids = SystemIds()
    found = [f"msg_{next(ids.series())}" for _ in range(5000)]
    assert found == sorted(set(found))
    assert {parse_prefix(one) for one in found} == {"msg"}
    secrets = {ids.secret() for _ in range(100)}
    assert len(secrets) == 100
    assert all(secret.startswith("sct_") and len(secret) >= 40 for secret in secrets)


def test_the_clock_is_the_machines() -> None:
    clock = SystemClock()
    assert str(clock.now()) >= "2025"
    assert clock.monotonic() <= clock.monotonic()


def test_the_lock_is_held_by_one_and_says_where(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert not lock.is_held(home)
    assert lock.read_facts(home) == {}
    held = lock.take(home)
    assert held is not None
    assert lock.is_held(home)
    assert lock.take(home) is None
    held.write_facts({"pid": 123456})
    held.write_facts({"pid": 1})
    assert lock.read_facts(home) == {"pid": 1}
    held.release()
    assert not lock.is_held(home)
    again = lock.take(home)
    assert again is not None
    again.release()
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff"])
def test_a_lock_file_that_says_nothing_is_no_fault(tmp_path: Path, text: str) -> None:
    (tmp_path / "lock").write_text(text, encoding="latin-1")
    assert lock.read_facts(str(tmp_path)) == {}


def test_a_secret_is_made_once_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "token"
    assert read_operator_token(file, lambda: "sct_one") == "sct_one"
    assert read_operator_token(file, lambda: "sct_two") == "sct_one"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("")
    assert read_operator_token(file, lambda: "sct_three") == "sct_three"
    assert len(read_node_key(tmp_path / "node.key")) == 32
    assert read_node_key(tmp_path / "node.key") == read_node_key(tmp_path / "node.key")
    assert {one.name for one in tmp_path.iterdir()} == {"token", "node.key"}


def _plant_open(file: Path, _: Path) -> None:
    file.write_text("sct_planted")
    file.chmod(0o644)


def _plant_pipe(file: Path, _: Path) -> None:
    os.mkfifo(file, 0o600)


def _plant_folder(file: Path, _: Path) -> None:
    file.mkdir()


PLANTED: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "link": (Path.symlink_to, "it is a link"),
    "hard link": (Path.hardlink_to, "it has a second hard link"),
    "open": (_plant_open, "mode 0644"),
    "pipe": (_plant_pipe, "it is not a regular file"),
    "folder": (_plant_folder, "it is not a regular file"),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_secret_is_refused(tmp_path: Path, kind: str) -> None:
    plant, why = PLANTED[kind]
    file, other = tmp_path / "token", tmp_path / "other"
    other.write_text("sct_planted")
    other.chmod(0o600)
    plant(file, other)
    with pytest.raises(Refused) as refused:
        read_operator_token(file, lambda: "sct_own")
    assert why in str(refused.value)
    (remedy,) = refused.value.diagnostic.remedies
    assert f"rm {file}" in (remedy.why or "")


@pytest.mark.skipif(os.getuid() != 0, reason="NOT PROVED HERE: needs root to give a file away")
def test_the_secret_of_another_user_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("sct_planted")
    file.chmod(0o600)
    os.chown(file, 65534, 65534)
    with pytest.raises(Refused, match="belongs to user 65534"):
        read_operator_token(file, lambda: "sct_own")


@pytest.mark.rows("R7-3")
def test_the_socket_is_the_owners_and_replaces_a_stale_one(tmp_path: Path) -> None:
    path = tmp_path / "run" / "s"
    listen_unix(path).close()
    with listen_unix(path) as listening:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
        assert listening.fileno() >= 0


def test_a_file_in_the_sockets_place_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("mine")
    with pytest.raises(OSError, match="in use"):
        listen_unix(path)
    assert path.read_text() == "mine"


@pytest.mark.rows("R0-28")
def test_port_0_is_any_port_and_the_real_one_is_told() -> None:
    with listen_tcp("127.0.0.1", 0) as one:
        assert format_url(one) == f"http://127.0.0.1:{one.getsockname()[1]}"


@pytest.mark.rows("R0-30")
def test_a_taken_port_is_refused_with_its_holder() -> None:
    with listen_tcp("127.0.0.1", 0) as one:
        port = one.getsockname()[1]
        with pytest.raises(Refused) as refused:
            listen_tcp("127.0.0.1", port)
        assert isinstance(refused.value.diagnostic, PortInUse)
        assert refused.value.diagnostic.pid == os.getpid()


def test_where_nothing_is_known_of_processes_none_is_named(tmp_path: Path) -> None:
    assert find_holder(1, tmp_path) == (None, "")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text("head\n0: 0100007F:0001 0:0 0A 0 0 0 0 0 77 1\n")
    assert find_holder(1, tmp_path) == (None, "")


@pytest.mark.rows("R7-20")
def test_no_credential_is_written_to_the_log(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "scout.log"
    handlers = open_log(file, level="info", foreground=False)
    log = logging.getLogger("scout.test")
    try:
        log.info("came with %s", "Authorization: Bearer abc.def-ghi")
        try:
            raise ValueError("sct_0123456789abcdef in a trace")
        except ValueError:
            log.exception("failed")
    finally:
        for handler in handlers:
            logging.getLogger().removeHandler(handler)
            handler.close()
    text = file.read_text()
    assert "Bearer …" in text
    assert "sct_…" in text
    assert "abc.def" not in text
    assert "0123456789" not in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert redact("nothing secret") == "nothing secret"


def test_a_systemd_unit_starts_the_daemon_in_the_foreground() -> None:
    text = build_unit("systemd", "/opt/my scout/python", {"SCOUT_HOME": "/data/100%", "PATH": "/a:/b"})
    assert 'Environment="PATH=/a:/b"' in text
    assert "ExecStart='/opt/my scout/python' -m scout.daemon --foreground\n" in text
    assert 'Environment="SCOUT_HOME=/data/100%%"\n' in text
    assert "KillMode=process\n" in text


def test_a_launchd_unit_is_a_property_list() -> None:
    unit = plistlib.loads(build_unit("launchd", "/opt/python", {"SCOUT_HOME": "/data/<a&b>"}).encode())
    assert unit["ProgramArguments"] == ["/opt/python", "-m", "scout.daemon", "--foreground"]
    assert unit["EnvironmentVariables"] == {"SCOUT_HOME": "/data/<a&b>"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_unit_names_no_folder_unless_one_was_named(kind: str) -> None:
    assert "SCOUT_HOME" not in build_unit(kind, "python", {})


def test_another_kind_of_unit_is_refused() -> None:
    with pytest.raises(Refused, match="systemd and launchd"):
        build_unit("upstart", "python", {})
