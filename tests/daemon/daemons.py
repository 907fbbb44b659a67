"""A real daemon in a process of its own, and a plain way to talk to it."""

import contextlib
import http.client
import json
import os
import socket
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from scout.daemon import lock, start

T = TypeVar("T")
_PATIENCE = 60.0  # seconds: a busy machine is no failure


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Daemon:
    """A running daemon and its operator's token."""

    def __init__(self, home: Path, running: start.Running) -> None:
        self.home = home
        self.running = running
        self.token = (home / "token").read_text().strip()

    @property
    def port(self) -> int:
        return int(self.running.url.rpartition(":")[2])

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] = {},
        *,
        token: str | None = "",
        unix: bool = False,
    ) -> Reply:
        """One request; `token` is the operator's unless said, None for none."""
        connection = (
            _UnixConnection(self.running.socket, _PATIENCE)
            if unix
            else http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE)
        )
        sent = dict(headers)
        if token is not None:
            sent.setdefault("Authorization", f"Bearer {token or self.token}")
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            connection.close()

    def raw(self, data: bytes, *, until: bytes | None = None) -> bytes:
        """What comes back for these very bytes, until the other side closes or the mark is seen."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=_PATIENCE) as client:
            client.sendall(data)
            found = b""
            while (until is None or until not in found) and (more := client.recv(65536)):
                found += more
            return found

    def register(self, name: str, **fields: Any) -> Any:
        """An agent of this name, and its token if it connects by itself."""
        reply = self.call("POST", "/v1/agents", {"definitionId": name, **fields})
        assert reply.status == 201, reply.body
        return reply.json

    def make_token(self, agent: str) -> str:
        """A token for an agent."""
        reply = self.call("POST", "/v1/tokens", {"agent": agent})
        assert reply.status == 201, reply.body
        return str(reply.json["secret"])


def environment(home: Path, **more: str) -> dict[str, str]:
    """What a daemon sees: this interpreter's paths and nothing else of the machine."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "PYTHONPATH", "COVERAGE_PROCESS_START")
        if name in os.environ
    }
    person = home.parent / "person"
    person.mkdir(exist_ok=True)
    return {
        **kept,
        "HOME": str(person),
        "SCOUT_HOME": str(home),
        "SCOUT_PORT": "0",
        "SCOUT_NOTIFY_DESKTOP": "0",
        "SCOUT_MCP_PRELOAD": "false",
        "LC_ALL": "C.UTF-8",
        **more,
    }


@contextlib.contextmanager
def daemon(home: Path, *arguments: str, **more: str) -> Generator[Daemon]:
    """A daemon that is gone at the end."""
    running, _ = start.start(
        str(home), arguments=arguments, environ=environment(home, **more), timeout=_PATIENCE
    )
    try:
        yield Daemon(home, running)
    finally:
        if lock.is_held(str(home)):
            assert start.stop(str(home), timeout=_PATIENCE)


def eventually(look: Callable[[], T | None], within: float = _PATIENCE) -> T:
    """What `look` finds, as soon as it finds something. Looking takes at most about half of the time."""
    until = time.monotonic() + within
    while True:
        began = time.monotonic()
        if found := look():
            return found
        spent = time.monotonic() - began
        assert began + spent < until, f"not within {within} s"
        time.sleep(min(max(spent, 0.01), 0.25))
