"""A real ssh daemon on loopback, with keys and settings of its own in a temporary folder.

It works for root and, on most machines, for others: a daemon that is not root lets its own user in, which is all
that is needed, but it can make a terminal only where terminals belong to the group `tty`. Root's daemon wants the
folder that Debian makes for it when the machine starts; where it is missing, it is made.
"""

import contextlib
import getpass
import os
import shlex
import socket
import subprocess
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from tests.daemon.daemons import eventually

__all__ = ["SshServer", "an_ssh_server"]

_DAEMON = Path("/usr/sbin/sshd")
_PRIVILEGED = Path("/run/sshd")
_SETTINGS = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/person.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
PrintLastLog no
"""


class SshServer:
    """The daemon while it runs."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port = folder, port

    def build_line(self, environ: Mapping[str, str], *words: str) -> str:
        """The line that runs a command there, in a terminal."""
        command = shlex.join(["env", *(f"{name}={value}" for name, value in environ.items()), *words])
        options = {
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": f"{self._folder}/known",
            "IdentitiesOnly": "yes",
            "BatchMode": "yes",
        }
        given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        place = ["-i", f"{self._folder}/person", "-p", str(self._port), f"{getpass.getuser()}@127.0.0.1"]
        called = ["ssh", "-F", os.devnull, "-tt", *given, *place, command]
        plain = [f"{name}={os.environ[name]}" for name in ("PATH", "HOME") if name in os.environ]
        return shlex.join(["env", "-i", *plain, "TERM=xterm-256color", *called])


@contextlib.contextmanager
def an_ssh_server(folder: Path) -> Generator[SshServer]:
    """A daemon that lets this user in by a key; the test is skipped where there is none."""
    if not _DAEMON.exists():
        pytest.skip("NOT PROVED HERE: openssh-server is not installed")
    folder.mkdir(mode=0o700)
    for name in ("host", "person"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    port = _find_port()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "settings").write_text(_SETTINGS.format(port=port, folder=folder))
    with _make_privileged_folder(), (folder / "log").open("wb") as log:
        command = [str(_DAEMON), "-D", "-e", "-f", str(folder / "settings")]
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            eventually(lambda: _answers(port, daemon))
            server = SshServer(folder, port)
            _check_terminal(server)
            yield server
        finally:
            daemon.terminate()
            daemon.wait(60)


def _check_terminal(server: SshServer) -> None:
    done = subprocess.run(["sh", "-c", server.build_line({}, "true")], capture_output=True, check=False)
    if done.returncode != 0 and os.getuid() != 0:
        pytest.skip("NOT PROVED HERE: a terminal over ssh; needs root where /dev/pts has no group tty")
    assert done.returncode == 0, done.stderr


def _find_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answers(port: int, daemon: "subprocess.Popen[bytes]") -> bool:
    assert daemon.poll() is None, "the ssh daemon has ended"
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.contextmanager
def _make_privileged_folder() -> Generator[None]:
    is_ours = os.getuid() == 0 and not _PRIVILEGED.exists()
    if is_ours:
        _PRIVILEGED.mkdir(mode=0o755)
    try:
        yield
    finally:
        if is_ours:
            with contextlib.suppress(OSError):
                _PRIVILEGED.rmdir()
