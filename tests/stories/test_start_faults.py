"""What a person sees when Scout cannot start, or was killed in the middle of putting a store back."""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import Shell, a_shell, start_daemon

pytestmark = pytest.mark.slow


def on_a_read_only_disk(shell: Shell, *words: str) -> subprocess.CompletedProcess[str]:
    """A command whose data folder is on a disk that takes no writes; nobody else sees that disk."""
    mounts = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 99; shift; exec "$@"'
    command = ["unshare", "-m", "--propagation", "private", "sh", "-c", mounts, "sh", str(shell.home)]
    done = subprocess.run(
        [*command, sys.executable, "-W", "error", "-m", "scout", *words],
        cwd=shell.folder,
        env=shell.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    if done.returncode in (1, 99) and "scout" not in done.stderr:
        pytest.skip("NOT PROVED HERE: needs root that may mount a disk")
    return done


@pytest.mark.skipif(os.getuid() != 0, reason="NOT PROVED HERE: needs root to mount a read-only disk")
@pytest.mark.parametrize("used", [False, True], ids=["a new home", "a home with a store"])
def test_a_read_only_disk_is_named_with_the_way_out(used: bool) -> None:
    with a_shell() as shell:
        if used:
            start_daemon(shell)
            shell.say("down")
        for words in (("up",), ("up", "--json"), ("up", "--foreground")):
            refused = on_a_read_only_disk(shell, *words)
            shown = refused.stdout + refused.stderr
            assert refused.returncode == (6 if used else 2), shown
            assert "Read-only file system" in shown
            assert str(shell.home) in shown
            assert "scout up" in shown
            assert "after setting SCOUT_HOME to a folder of your own" in shown
            assert "Traceback" not in shown
            assert "internal" not in shown
        start_daemon(shell)  # the disk takes writes again


# -- a restore that was killed ------------------------------------------------------------------------

KILL_AT = "inject=rename:signal=KILL:when={}"


def restore_until_killed(shell: Shell, copy: Path, step: int) -> bool:
    """Put a copy back, and be killed at the `step`th file that is renamed; whether it was."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("NOT PROVED HERE: strace is missing, so nothing can be killed at a given step")
    words = [strace, "-f", "-qq", "-o", os.devnull, "-e", "trace=rename", "-e", KILL_AT.format(step)]
    done = subprocess.run(
        [*words, sys.executable, "-B", "-m", "scout", "restore", str(copy)],
        cwd=shell.folder,
        env=shell.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, 137, -9), (done.stdout, done.stderr)
    return done.returncode != 0


def notes(shell: Shell) -> list[str]:
    return [one["body"] for one in shell.data("message", "list", "--to", "@upper")["items"]]


@pytest.mark.timeout(600)
def test_a_killed_restore_is_finished_or_was_never_begun() -> None:
    with a_shell() as shell:
        start_daemon(shell)
        shell.say("agent", "register", "upper")
        shell.say("send", "@upper", "before the backup")
        copy, kept = shell.folder / "monday.db", shell.folder / "kept.db"
        shell.say("backup", str(copy))
        shell.say("send", "@upper", "after the backup")
        shell.say("down")
        shutil.copy(shell.home / "scout.db", kept)
        seen = list[int]()
        for step in itertools.count(1):
            shutil.copy(kept, shell.home / "scout.db")
            killed = restore_until_killed(shell, copy, step)
            start_daemon(shell)
            found = notes(shell)
            assert found in (["before the backup"], ["before the backup", "after the backup"]), (step, found)
            assert "clean" in shell.say("verify")
            shell.say("down")
            left = [one.name for one in shell.home.iterdir() if "restor" in one.name]
            assert not left, (step, left)
            seen.append(len(found))
            if not killed:
                break
        assert len(seen) > 3
        assert (seen[0], seen[-1]) == (2, 1)  # killed at the first step, and not killed


# -- a configuration file that nobody meant -----------------------------------------------------------

DAMAGED = {
    "cut off": "roots = ['/srv",
    "no text": "\udc80\udcff\0",
    "an unknown key": "rootz = ['/srv']",
    "a wrong type": "port = 'seven'",
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_configuration_is_named_and_starts_nothing_half(text: str) -> None:
    with a_shell() as shell:
        config = shell.home / "config.toml"
        config.write_bytes(text.encode("utf-8", "surrogateescape"))
        up = shell.type("up")
        shown = up.stdout + up.stderr
        assert "Traceback" not in shown
        assert str(config) in shown, shown
        if up.returncode:
            assert "try: " in shown
            assert shell.type("status").returncode
        config.write_text("")
        shell.say("up")


@pytest.mark.skipif(os.getuid() != 0, reason="NOT PROVED HERE: needs root to give a file to somebody else")
@pytest.mark.parametrize("planted", ["of another user", "writable for all"])
def test_a_planted_configuration_is_not_followed(planted: str) -> None:
    with a_shell() as shell:
        config = shell.home / "config.toml"
        config.write_text('router = "touch /tmp/never"\n')
        if planted == "of another user":
            os.chown(config, 65534, 65534)
        else:
            config.chmod(0o666)
        up = shell.type("up")
        shown = up.stdout + up.stderr
        assert "Traceback" not in shown
        assert up.returncode == 2, shown
        assert f"{config} can be changed by other users" in shown
        os.chown(config, os.getuid(), os.getgid())
        config.chmod(0o600)
        shell.say("up")
