"""Who holds a program between turns, moved by hand and by an injected clock; its socket and files are real."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from scout.adapters.persistent.keeper import JOURNAL, SOCKET, Keeper, build_command
from tests.adapters.turns import list_left_over
from tests.daemon.daemons import eventually

ECHO = ["sed", "-u", "s/^/said /"]


class Held:
    """A keeper whose steps and time are ours. What it keeps writes to the output of the test."""

    all: ClassVar[list["Held"]] = []

    def __init__(self, folder: Path, *program: str, grace: float = 600, memory: int = 0) -> None:
        self.now = 1000.0
        self.folder = folder
        self.keeper = Keeper(folder, list(program or ECHO), grace, memory, lambda: self.now)
        self.keeper.begin()
        self.all.append(self)

    def ended(self, seconds: float = 10) -> int | None:
        """How the program ended, within that time of the real clock."""
        until = time.monotonic() + seconds
        while (code := self.keeper.step(0.02)) is None and time.monotonic() < until:
            pass
        return code

    def connected(self) -> socket.socket:
        with_path = socket.socket(socket.AF_UNIX)
        here = Path.cwd()
        os.chdir(self.folder)
        try:
            with_path.connect(SOCKET)
        finally:
            os.chdir(here)
        with_path.settimeout(5)
        self.keeper.step(0.1)
        return with_path

    def say(self, connection: socket.socket, *pieces: bytes) -> bytes:
        for piece in pieces:
            connection.sendall(piece)
            self.keeper.step(0.1)
        return connection.recv(100)

    @property
    def stopped(self) -> str:
        file = self.folder / "stopped"
        return file.read_text() if file.exists() else ""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    mask = os.umask(0o077)  # a keeper sets it for itself
    made = tmp_path / "run"
    made.mkdir()
    yield made
    os.umask(mask)
    for held in Held.all:
        held.keeper.close()
    Held.all.clear()
    assert not (made / SOCKET).exists()


def test_ten_minutes_without_a_broker_end_the_program(folder: Path) -> None:
    held = Held(folder)
    held.now += 600
    assert held.keeper.step(0) is None
    connection = held.connected()
    held.now += 10_000  # a broker is there
    assert held.keeper.step(0) is None
    assert held.say(connection, b"tell a 2\nhi") == b"ok\n"
    connection.close()
    held.keeper.step(0.1)
    held.now += 599
    assert held.keeper.step(0) is None
    assert held.stopped == ""
    held.now += 2
    assert held.ended() == 0
    assert held.stopped == "no broker was connected for 600 s"


def test_a_program_that_rests_ends_unless_it_is_told_something(folder: Path) -> None:
    held = Held(folder)
    connection = held.connected()
    assert held.say(connection, b"rest 300\n") == b"ok\n"
    held.now += 299
    assert held.say(connection, b"tell a 2\nhi") == b"ok\n"
    held.now += 1000
    assert held.keeper.step(0) is None
    assert held.say(connection, b"rest 0.5\n") == b"ok\n"
    held.now += 1
    assert held.ended() == 0
    assert held.stopped == "it was idle"
    connection.close()


def test_frames_may_come_in_pieces_or_together(folder: Path) -> None:
    held = Held(folder)
    one, other = held.connected(), held.connected()
    assert held.say(one, b"te", b"ll tag:1 5", b"\nhe", b"llo") == b"ok\n"
    assert held.say(other, b"tell tag:2 2\nyotell tag:3 0\nrest 5\n") == b"ok\n" * 3
    lines = (folder / JOURNAL).read_bytes().splitlines()
    assert [line.split(b" ", 1)[1] for line in lines] == [b"tag:1 hello", b"tag:2 yo", b"tag:3 "]
    assert (folder / JOURNAL).stat().st_mode & 0o777 == 0o600
    held.keeper.end()
    assert held.say(one, b"tell tag:4 1\nx") == b"gone\n"
    assert held.ended() == 0
    assert b"tag:4" not in (folder / JOURNAL).read_bytes()
    for connection in (one, other):
        connection.close()


def test_a_line_that_is_larger_than_a_pipe_reaches_a_slow_reader(folder: Path) -> None:
    count = folder / "count"
    held = Held(folder, "sh", "-c", f"sleep 0.2; wc -c >'{count}'")
    connection = held.connected()
    line = b"x" * (3 << 20)
    connection.settimeout(None)
    frame = b"tell a %d\n" % len(line) + line
    while frame:
        frame = frame[connection.send(frame[: 1 << 16]) :]
        held.keeper.step(0)
    assert connection.recv(10) == b"ok\n"
    until = time.monotonic() + 60
    while held.keeper._unsent and time.monotonic() < until:
        held.keeper.step(0.05)
    held.keeper.end()
    assert held.ended() == 0
    assert int(count.read_text()) == len(line) + 1
    connection.close()


def test_a_program_that_does_not_end_by_itself_is_made_to(folder: Path) -> None:
    deaf = folder.parent / "deaf"
    held = Held(folder, "sh", "-c", f"trap '' TERM; touch '{deaf}'; while :; do sleep 0.05; done")
    eventually(deaf.exists)
    held.keeper.end()
    held.now += 6
    for _ in range(5):
        assert held.keeper.step(0.02) is None  # it does not listen to a signal
    held.now += 5
    assert held.ended() == -9


def test_memory_has_a_limit(folder: Path) -> None:
    hungry = "b = bytearray(200 << 20); b[::4096] = b'x' * len(b[::4096]); import time; time.sleep(60)"
    held = Held(folder, sys.executable, "-c", hungry, memory=100)
    connection = held.connected()
    until = time.monotonic() + 60
    while not held.stopped and time.monotonic() < until:
        held.now += 1
        held.keeper.step(0.02)
    assert held.stopped == "it used more than 100 MB of memory"
    held.now += 20
    assert held.ended() is not None
    connection.close()


def _start_keeper(folder: Path, *program: str) -> "subprocess.Popen[bytes]":
    words = build_command(folder, program, grace=600, memory=0)
    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    )


def _wait_for_text(path: Path) -> str:
    until = time.monotonic() + 60
    while not (path.exists() and path.read_text().endswith("\n")) and time.monotonic() < until:
        time.sleep(0.01)
    return path.read_text()


@pytest.mark.parametrize("number", ["TERM", "HUP", "INT"])
def test_a_signal_ends_it_and_its_program(folder: Path, number: str) -> None:
    began = folder / "began"
    process = _start_keeper(folder, "sh", "-c", f"echo >'{began}'; cat; exit 3")
    _wait_for_text(began)
    subprocess.run(["kill", f"-{number}", str(process.pid)], check=True)
    assert process.wait(60) == 3
    assert not (folder / SOCKET).exists()


@pytest.mark.parametrize("how", ["exit 0", "kill -9 $$"])
def test_what_a_program_leaves_running_is_ended(folder: Path, how: str) -> None:
    """Also what went into a session of its own, whoever its parent was."""
    began = folder / "began"
    away = f'setsid sh -c \'trap "" HUP; echo >"{began}"; sleep 1000\' & sleep 1000 &'
    process = _start_keeper(folder, "sh", "-c", f"{away} until test -s '{began}'; do sleep 0.01; done; {how}")
    assert process.wait(60) == (0 if how == "exit 0" else 137)
    assert list_left_over(folder) == []
