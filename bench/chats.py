"""Chats: from a message in a chat to its answer there, from a post to the chat, and the memory of idle connectors."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Generator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.daemon import Daemon, fresh
from bench.figure import Figure
from tests.connectors.slack_stage import slack_stage
from tests.connectors.telegram_stage import TelegramStage, telegram_stage
from tests.connectors.whatsapp_stage import whatsapp_stage

COUNT = 100
_FIRST = 5  # not counted: the session is begun in them
_IDLE = 3.0  # seconds after which connectors are idle
_MEMORY = 120.0  # MB, as for the daemon without connectors


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """Messages one after the other; the platform is a fake on loopback that answers at once."""
    count = max(round(COUNT * scale), 20)
    with telegram_stage() as phone, fresh() as to:
        me = _connect(to, phone)
        to.call("POST", "/v1/agents", {"definitionId": "arc", "harness": "echo"})
        asked = [_measure_answer(phone, me, number) for number in range(_FIRST + count)][_FIRST:]
        posted = [_measure_post(to, phone, number) for number in range(_FIRST + count)][_FIRST:]
    yield from _show("message in a chat to its answer there", asked)
    yield from _show("post to the chat", posted)
    yield from _measure_memory()


def _connect(to: Daemon, phone: TelegramStage) -> str:
    to.call("POST", "/v1/connectors", {"connector": "telegram", "values": dict(phone.values)})
    me = phone.private(phone.person("me"))
    user = to.call("GET", "/v1/whoami")["path"].split("/")[1]
    code = to.call("POST", f"/v1/users/{user}/link", {"connector": "telegram"})["code"]
    phone.say(me, me, code)
    _wait_for(phone, "is linked to")
    return me


def _measure_answer(phone: TelegramStage, me: str, number: int) -> float:
    began = time.perf_counter()
    phone.say(me, me, f">> arc !say answer-{number}-end")
    return _wait_for(phone, f"answer-{number}-end") - began


def _measure_post(to: Daemon, phone: TelegramStage, number: int) -> float:
    user = to.call("GET", "/v1/whoami")["path"].split("/")[1]
    began = time.perf_counter()
    to.call("POST", f"/v1/users/{user}/post", {"body": f"post-{number}-end"})
    return _wait_for(phone, f"post-{number}-end") - began


def _wait_for(phone: TelegramStage, text: str) -> float:
    """The moment at which a text is shown."""
    fake = phone.fake
    with fake.news:
        assert fake.news.wait_for(lambda: any(text in one.text for one in fake.messages), 30), text
    return time.perf_counter()


def _show(name: str, times: list[float]) -> Iterator[Figure]:
    ordered = sorted(times)
    for part in (50, 99):
        result = 1000 * ordered[len(ordered) * part // 100]
        yield Figure(name=f"{name}: p{part}", result=result, unit="ms")


def _measure_memory() -> Iterator[Figure]:
    with fresh() as to:
        time.sleep(_IDLE)
        bare = to.memory()
        with telegram_stage() as one, slack_stage() as two, whatsapp_stage() as three, _quiet_matrix() as url:
            for stage in (one, two, three):
                body = {"connector": stage.connector, "values": dict(stage.values)}
                to.call("POST", "/v1/connectors", body)
            matrix = {"baseUrl": url, "accessToken": "token"}
            to.call("POST", "/v1/connectors", {"connector": "matrix", "values": matrix})
            time.sleep(_IDLE)
            states = to.call("GET", "/v1/status")["connectors"]
            assert set(states.values()) == {"running"}, states
            yield Figure(name="memory, no connector", result=bare, unit="MB")
            yield Figure(name="memory, four connectors idle", result=to.memory(), unit="MB", goal=_MEMORY)


# -- a homeserver without news -----------------------------------------------------------------------


class _Homeserver(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if "/sync" in self.path and "timeout=0" not in self.path and "since" in self.path:
            time.sleep(5)  # it has no news
        answers: dict[str, Any] = {
            "/account/whoami": {"user_id": "@scout:localhost", "device_id": "d"},
            "/sync": {"next_batch": "s1"},
        }
        found = next((one for name, one in answers.items() if name in self.path), {"displayname": "scout"})
        data = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(data)

    do_PUT = do_POST = do_GET  # noqa: N815 (the names of the base class)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base class)
        """Say nothing."""


@contextlib.contextmanager
def _quiet_matrix() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Homeserver)
    server.daemon_threads = True
    serve: Callable[[], None] = server.serve_forever
    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
