"""Listening sockets, and the process that holds a port which is in use."""

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from scout.base.refusal import Refused, Remedy
from scout.model.problems.request import Forbidden, PortInUse

_BACKLOG = 1024
_LISTENING = "0A"


def open_to_others(host: str) -> Forbidden:
    """Build the refusal of an address that other machines can reach. It says what allowing it means."""
    meaning = (
        "--insecure-bind (SCOUT_INSECURE_BIND=1): the port speaks plain HTTP, so anyone on the network "
        "can read everything that is sent, tokens included"
    )
    remedy = Remedy(
        operation="config.set",
        parameters={"key": "host", "value": "127.0.0.1"},
        why="listen on this machine only",
    )
    return Forbidden(action="listen", subject=host, needs=(meaning,), remedies=(remedy,))


def listen_tcp(host: str, port: int) -> socket.socket:
    """Listen on a TCP port. A port in use is refused with the process that holds it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno != errno.EADDRINUSE:
            raise
        raise Refused(_refuse_port(port)) from None
    return listening


def listen_unix(path: Path) -> socket.socket:
    """Listen on a Unix socket for the owner alone. The caller holds the lock, so an old socket is stale."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(str(path))
    except BaseException:
        listening.close()
        raise
    finally:
        os.umask(before)
    listening.listen(_BACKLOG)
    return listening


def format_url(listening: socket.socket) -> str:
    """Return the address that was bound."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def find_holder(port: int, proc: Path = Path("/proc")) -> tuple[int | None, str]:
    """Return the process that listens on a port, as far as this user may see it."""
    inodes = set(_list_inodes(port, proc))
    if not inodes:
        return None, ""
    for process in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(descriptor.readlink()) in inodes:
                        return int(process.name), (process / "comm").read_text().strip()
    return None, ""


def _list_inodes(port: int, proc: Path) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (proc / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    yield f"socket:[{fields[9]}]"


def _refuse_port(port: int) -> PortInUse:
    pid, process = find_holder(port)
    another = port + 1 if port < 65_535 else port - 1
    remedies = (
        Remedy(operation="config.set", parameters={"key": "port", "value": another}, why="use another port"),
    )
    return PortInUse(port=port, pid=pid, process=process, remedies=remedies)
