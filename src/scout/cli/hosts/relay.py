"""`scout mcp`: relays messages between a host's standard input and output and the daemon's /mcp.

One message per line. It uses only threads and the standard library, so that it starts in milliseconds.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from scout.cli.connection.text import note
from scout.cli.hosts.host_session import HostSession, NotEnrolled
from scout.cli.hosts.mcp_connection import Broken, ConnectionGone, McpConnection
from scout.client.http import is_object, to_object
from scout.client.session_files import restore_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

    Message = dict[str, Any]

_HOST = "mcp"  # default name of a host
_LINGER = 10.0  # seconds to wait for answers after the host has closed standard input
_BEAT = 30.0  # seconds between heartbeats while the session works
_TROUBLE = -32000  # a server-defined JSON-RPC error code
_PARSE, _INVALID = -32700, -32600
_LISTEN = "subscriptions/listen"
# Methods that are safe to repeat if the answer was lost: they change nothing.
_SAFE = ("initialize", "ping", "server/", "/list", "/read", "/get", "/subscribe", "/listen", "completion/")


def run_relay(words: list[str]) -> int:
    """Relay messages until the host closes standard input."""
    host = words[words.index("--host") + 1] if "--host" in words[:-1] else _HOST
    session = HostSession(host, restore_session(os.environ), timeout=30.0)
    Relay(McpConnection(session), sys.stdin, sys.stdout).run()
    sys.stdout.flush()
    return 0


class Relay:
    """One host at the other end of a pipe. Each request has a thread; notifications are sent in order."""

    def __init__(self, door: McpConnection, source: TextIO, sink: TextIO) -> None:
        self.door = door
        self._source, self._sink = source, sink
        self._writing = threading.Lock()
        self._working: set[threading.Thread] = set()
        self._over = threading.Event()
        door.heard = self.say

    def run(self) -> None:
        threading.Thread(target=self._beat, daemon=True).start()
        for line in self._source:
            if line.strip():
                self._take(line)
        end = time.monotonic() + _LINGER
        for thread in list(self._working):
            thread.join(max(end - time.monotonic(), 0))
        self._over.set()
        self.door.close()

    def say(self, message: Any) -> None:
        """Send one message to the host."""
        with self._writing:
            self._sink.write(f"{json.dumps(message, separators=(',', ':'))}\n")
            self._sink.flush()

    def _take(self, line: str) -> None:
        try:
            message: Any = json.loads(line)
        except ValueError:
            self._refuse(None, "this line is not JSON", _PARSE)
            return
        if not is_object(message):
            self._refuse(None, "expected one JSON-RPC message", _INVALID)
        elif "method" in message and "id" in message:
            self._begin(message)
        elif message.get("method") == "notifications/cancelled" and self.door.hang_up(
            _get_cancelled_id(message)
        ):
            return
        else:
            self._tell(message)

    def _begin(self, message: Message) -> None:
        def work() -> None:
            try:
                self._ask(message)
            finally:
                self._working.discard(threading.current_thread())

        thread = threading.Thread(target=work, daemon=True)
        if message["method"] != _LISTEN:  # it never ends, and listening does not count as work
            self._working.add(thread)
        thread.start()

    def _ask(self, message: Message) -> None:
        """Send a request. Every request is answered, if only with an error."""
        try:
            self.door.ask(message, again=_is_safe(message["method"]))
        except Broken as broken:
            look = "check what was already done before you repeat it"
            self._refuse(message["id"], f"the connection to Scout broke ({broken}); {look}")
        except (ConnectionGone, NotEnrolled) as gone:
            self._refuse(message["id"], str(gone))
        except Exception as fault:  # noqa: BLE001 (a host that gets no answer waits for ever)
            self._refuse(message["id"], f"{type(fault).__name__}: {fault}")

    def _tell(self, message: Message) -> None:
        try:
            self.door.tell(message)
        except (Broken, ConnectionGone, NotEnrolled) as problem:
            note(f"scout mcp: {problem}")

    def _refuse(self, ident: Any, problem: str, code: int = _TROUBLE) -> None:
        self.say({"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": problem}})

    def _beat(self) -> None:
        """Send heartbeats, so that a silent session that works, or can be woken, stays online."""
        while not self._over.wait(_BEAT):
            self.door.beat(working=bool(self._working))


def _get_cancelled_id(message: Message) -> Any:
    return to_object(message.get("params")).get("requestId")


def _is_safe(method: str) -> bool:
    return any(method.startswith(part) or method.endswith(part) for part in _SAFE)
