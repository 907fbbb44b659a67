"""The scripted model on loopback: it answers in the dialect of the request and remembers what it was asked."""

import contextlib
import gzip
import json
import secrets
import sys
import threading
import time
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any, NamedTuple

from tests.live.model import chat, gemini, messages, responses
from tests.live.model.script import Answer, Call, Heard, answer_to, has_script

__all__ = ["Exchange", "Model", "scripted_model"]

_DIALECTS: dict[str, ModuleType] = {dialect.PATH: dialect for dialect in (messages, responses, chat)}


class Exchange(NamedTuple):
    """One request as it came, what it says, and what was answered."""

    path: str
    headers: dict[str, str]
    body: Any
    heard: Heard
    answer: Answer

    @property
    def results(self) -> list[str]:
        """What tools had answered by then, oldest first."""
        return [turn.text for turn in self.heard.turns if turn.by == "tool"]

    @property
    def calls(self) -> list[str]:
        """The tools that were called."""
        return [block.name for block in self.answer.blocks if isinstance(block, Call)]


class Model:
    """Where it listens, and its log: every exchange, oldest first."""

    def __init__(self) -> None:
        self.log: list[Exchange] = []
        self.others: list[str] = []  # requests that no dialect knows
        self.faults: list[BaseException] = []
        self.silent: list[Answer] = []  # answers that sleep now
        self.over = threading.Event()
        self.unscripted: Callable[[Heard], Answer] | None = None  # who answers a prompt without a script
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, heard: Heard) -> Answer:
        """What the script in the prompts says, or whoever answers without one."""
        scripted = any(turn.by == "user" and has_script(turn.text) for turn in heard.turns)
        return answer_to(heard) if scripted or self.unscripted is None else self.unscripted(heard)

    @contextlib.contextmanager
    def hurrying(self) -> Generator[None]:
        """Meanwhile no answer waits: one that stalls is completed now."""
        self.over.set()
        try:
            yield
        finally:
            self.over.clear()

    def of(self, path: str) -> list[Exchange]:
        """The exchanges of one dialect."""
        return [one for one in self.log if one.path == path]


class _Handler(BaseHTTPRequestHandler):
    timeout = 5  # a connection that says nothing must not hold up the end

    @property
    def _model(self) -> Model:
        assert isinstance(self.server, _Server)
        return self.server.model

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        dialect = gemini if path.startswith(gemini.PATH) else _DIALECTS.get(path)
        if dialect is None:
            self._unknown()
            return
        body = json.loads(gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw)
        heard = dialect.read_request(body)
        answer = self._model.answer(heard)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._model.log.append(Exchange(path, headers, body, heard, answer))
        self._play(dialect, body, answer)

    def do_GET(self) -> None:
        self._unknown()

    do_HEAD = do_GET  # noqa: N815 (the base class looks for this name)

    def _play(self, dialect: ModuleType, body: Any, answer: Answer) -> None:
        if answer.sleep:
            self._model.silent.append(answer)
            self._model.over.wait(answer.sleep)
            self._model.silent.remove(answer)
        if answer.error is not None:
            code, text = answer.error
            self._json(code, dialect.problem(text))
            return
        ident = secrets.token_hex(8)
        self._head(200, "text/event-stream")
        for event in dialect.opening(body, ident):
            self.wfile.write(event)
        self._stall(answer.stall, dialect.PING)
        for event in dialect.closing(answer.blocks, body, ident):
            self.wfile.write(event)

    def _stall(self, seconds: float, ping: bytes) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._model.over.wait(min(left, 0.5)):
            self.wfile.write(ping)

    def _unknown(self) -> None:
        self._model.others.append(f"{self.command} {self.path}")
        self._json(404, {"error": {"message": "the scripted model has no such thing"}})

    def _json(self, code: int, body: Any) -> None:
        self._head(code, "application/json")
        if self.command != "HEAD":
            self.wfile.write(json.dumps(body).encode())

    def _head(self, code: int, kind: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class calls it so)
        """The log is kept elsewhere."""


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # the end waits for those who still answer

    def __init__(self, model: Model) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A program that goes away in mid-answer is no fault of the model."""
        problem = sys.exception()
        if problem is not None and not isinstance(problem, ConnectionError):
            self.model.faults.append(problem)


@contextlib.contextmanager
def scripted_model() -> Generator[Model]:
    """A model on a port of its own."""
    model = Model()
    with _Server(model) as server:
        model.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield model
        finally:
            model.over.set()
            server.shutdown()
            thread.join()
    assert model.faults == [], model.faults
