"""A daemon with published agents, and clients of the official SDK that ask them."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from pathlib import Path
from typing import Any, TypeVar

import httpx
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import a2a_pb2

from tests.daemon.daemons import Daemon, daemon

T = TypeVar("T")
BINDINGS = ("JSONRPC", "HTTP+JSON")
_PATIENCE = 60.0  # seconds: a busy machine is no failure


class Stage:
    """A daemon, a guest of its operator, and the agents that the guest may ask."""

    def __init__(self, running: Daemon) -> None:
        self.daemon = running
        self.guest = ""
        self.post("/v1/users", {"user": "acme"})
        self.guest = self.post("/v1/tokens", {"user": "acme"})["secret"]

    def post(self, path: str, body: object, **more: Any) -> Any:
        reply = self.daemon.call("POST", path, body, **more)
        assert reply.status < 300, reply.body
        return reply.json

    def publish(self, name: str, *, granted: bool = True, **fields: Any) -> str:
        """Register and publish an agent; return its URL."""
        path = self.daemon.register(name, **fields)["path"]
        if granted:
            self.post("/v1/grants", {"action": "ask", "holder": "acme", "path": path})
        return str(self.post(f"/v1/agents/{path.replace('/', '%2F')}/publish", {})["url"])


@contextlib.contextmanager
def staged(folder: Path, **more: str) -> Generator[Stage]:
    with daemon(folder / "home", **more) as running:
        yield Stage(running)


@contextlib.asynccontextmanager
async def connected(url: str, token: str, binding: str) -> AsyncGenerator[Client]:
    """A client of the SDK, by one binding, as its documentation makes it."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(headers=headers, timeout=_PATIENCE) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding])
        yield ClientFactory(config).create(card)


def play(url: str, token: str, binding: str, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
    """What a client does, in a loop of its own."""

    async def main() -> T:
        async with connected(url, token, binding) as client:
            return await asyncio.wait_for(work(client), _PATIENCE)

    return asyncio.run(main())


def say(text: str, **more: Any) -> a2a_pb2.SendMessageRequest:
    """A message of a client; the SDK's client streams it unless it is told not to."""
    configuration = more.pop("configuration", None)
    message = a2a_pb2.Message(
        message_id=more.pop("message_id", "m-1"),
        role=a2a_pb2.ROLE_USER,
        parts=more.pop("parts", None) or [a2a_pb2.Part(text=text)],
        **more,
    )
    return a2a_pb2.SendMessageRequest(message=message, configuration=configuration)


async def collect(client: Client, request: a2a_pb2.SendMessageRequest) -> list[a2a_pb2.StreamResponse]:
    return [event async for event in client.send_message(request)]


async def send(client: Client, request: a2a_pb2.SendMessageRequest) -> a2a_pb2.Task:
    """Send without a stream; the answer is the task once it has ended or asks, unless it returns at once."""
    client._config.streaming = False  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] (there is no other way to have both from one client)
    try:
        (event,) = await collect(client, request)
    finally:
        client._config.streaming = True  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] (as above)
    return event.task


class Asker:
    """An agent that connects by itself: it asks its requester before it answers.

    A body that begins with `file` is answered with files.
    """

    def __init__(self, stage: Stage, token: str) -> None:
        self._stage = stage
        self._token = token
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Asker":
        self._call("POST", "/v1/endpoints", {"transport": "pull", "state": "idle"})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(_PATIENCE)

    def _call(self, method: str, path: str, body: object = None) -> Any:
        reply = self._stage.daemon.call(method, path, body, token=self._token)
        assert reply.status < 300, reply.body
        return reply.json

    def _run(self) -> None:
        while not self._ended.is_set():
            for item in self._call("POST", "/v1/inbox/claim", {"wait": 1})["items"]:
                self._call("POST", "/v1/inbox/ack", {"deliveryIds": [item["deliveryId"]]})
                self._take(item["delivery"], item["message"])

    def _take(self, delivery: Any, message: Any) -> None:
        flight, body = delivery.get("flightId"), message["body"]
        if message["kind"] == "answer":
            self._call("POST", f"/v1/flights/{flight}/complete", {"output": f"painted it {body}"})
        elif body.startswith("file"):
            wishes = [
                ("data.json", "application/json", "eyJrZXkiOiA0Mn0="),
                ("notes.txt", "text/plain", "aGVsbG8="),
            ]
            files = [
                self._call("POST", "/v1/attachments", {"name": name, "mediaType": kind, "data": data})
                for name, kind, data in wishes
            ]
            named = [f"{one['sha256']}:{one['name']}" for one in files]
            self._call(
                "POST", "/v1/replies", {"body": "two files", "inReplyTo": flight, "attachments": named}
            )
        elif body.startswith("reject"):
            self._call("POST", f"/v1/flights/{flight}/fail", {"reason": "not my job", "code": "rejected"})
        elif flight is not None:
            self._call("POST", "/v1/questions", {"to": flight, "body": "Which colour?"})
