"""The disk under the store is full, and later there is room again: nothing is lost, nothing is restarted."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import pytest

from tests.cli.running import Shell, a_shell
from tests.daemon.daemons import eventually

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="NOT PROVED HERE: needs root to mount a small disk"),
]


@pytest.mark.rows("R6-3")
def test_a_full_disk_refuses_writes_and_loses_nothing() -> None:
    with a_small_disk() as disk:
        disk.say("up")
        work, ready, gate = (
            disk.shell.project("slow"),
            disk.shell.folder / "ready",
            disk.shell.folder / "gate",
        )
        script = work / "slow.sh"
        script.write_text(
            f"#!/bin/sh\ntouch {ready}\nuntil [ -e {gate} ]; do sleep 0.02; done\necho the answer\n"
        )
        script.chmod(0o755)
        disk.say("agent", "register", "slow", "--command", str(script), "--project", str(work))
        flight = json.loads(disk.say("ask", "@slow", "go", "--no-wait", "--json"))["flightId"]
        eventually(ready.exists)

        disk.fill()
        refused = disk.until_refused()
        assert refused.returncode == 9
        assert "store_full: no space to write" in refused.stderr
        assert "try: scout" in refused.stderr
        assert "Traceback" not in refused.stderr
        assert disk.get("flight", "get", flight)["state"] == "running"

        gate.touch()
        assert disk.get("flight", "get", flight)["state"] == "running"
        assert disk.type("send", "@slow", "one more").returncode == 9

        disk.make_room()
        done = eventually(lambda: get_ended(disk.get("flight", "get", flight)))
        assert (done["state"], done["output"].strip()) == ("completed", "the answer")
        disk.say("send", "@slow", "there is room again")
        disk.say("down")
        assert "clean" in disk.say("verify")


def get_ended(flight: Any) -> Any:
    return flight if flight["state"] in ("completed", "failed", "cancelled") else None


class SmallDisk:
    """A home on a disk of a few megabytes, in a mount namespace that only these commands see."""

    def __init__(self, shell: Shell, keeper: int) -> None:
        self.shell = shell
        self._enter = ["nsenter", "-t", str(keeper), "-m", "--"]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._enter, *words],
            cwd=self.shell.folder,
            env=self.shell.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    def type(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "scout", *words)

    def say(self, *words: str) -> str:
        done = self.type(*words)
        assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def get(self, *words: str) -> Any:
        return json.loads(self.say(*words, "--json"))

    def fill(self) -> None:
        filled = self.run("dd", "if=/dev/zero", f"of={self.shell.home}/ballast", "bs=4096")
        assert "No space left" in filled.stderr

    def until_refused(self) -> subprocess.CompletedProcess[str]:
        """A store has a little room in its own files: large, then small messages use it up."""
        self._send_until_refused("x" * 100_000)
        return self._send_until_refused("x")

    def _send_until_refused(self, body: str) -> subprocess.CompletedProcess[str]:
        for _ in range(40):
            done = self.type("send", "@slow", body)
            if done.returncode:
                return done
        raise AssertionError("the disk is not full")

    def make_room(self) -> None:
        assert self.run("rm", f"{self.shell.home}/ballast").returncode == 0


@contextlib.contextmanager
def a_small_disk() -> Generator[SmallDisk]:
    """The programs' own folder is on another disk: it is the store that finds no room."""
    with a_shell() as shell:
        config = (shell.home / "config.toml").read_text()
        home, kept = shell.home, shell.folder / "config.toml"
        kept.write_text(config)
        sessions = f"{home}/sessions"
        mounts = (
            f"mount -t tmpfs -o size=6m,mode=700 scout {home} && mkdir -m 700 {sessions} && "
            f"mount -t tmpfs -o size=6m,mode=700 scout {sessions} && cp {kept} {home}/config.toml && "
            "echo mounted && exec sleep 600"
        )
        command = ["unshare", "-m", "--propagation", "private", "sh", "-c", mounts]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as keeper:
            assert keeper.stdout is not None
            try:
                if keeper.stdout.readline() != b"mounted\n":
                    pytest.skip("NOT PROVED HERE: needs root that may mount a small disk")
                disk = SmallDisk(shell, keeper.pid)
                try:
                    yield disk
                finally:
                    disk.type("down")
            finally:
                keeper.kill()
