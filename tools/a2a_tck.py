"""Run the public compatibility kit of A2A against a daemon: `./dev a2a-tck FOLDER [ARGUMENTS OF THE KIT]`.

FOLDER is a checkout of the kit (a2aproject/a2a-tck, branch 1.0-dev). It is installed into FOLDER/.venv if that does
not exist yet. The kit sends no credential, so it talks to a proxy that adds the token of a guest. What the agent
does with a message is decided by the beginning of its `messageId`, as the scenarios of the kit name it.
"""

import argparse
import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import venv
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from scout import Scout
from scout.base.refusal import Refused
from scout.daemon import start
from scout.protocol.access import AddGrant, CreateToken
from scout.protocol.agents import PublishAgent, RegisterAgent
from scout.protocol.asks import CompleteFlight, FailFlight, GetFlight, StartFlight
from scout.protocol.endpoints import RegisterEndpoint
from scout.protocol.inbox import AckInbox, ClaimInbox
from scout.protocol.people.users import AddUser
from scout.protocol.questions import CreateQuestion
from scout.protocol.talk import PutBlob, Reply

_WORK = 2.0  # seconds for which a task of the kit works before it ends
_PASSED_ON = ("content-type", "a2a-version", "a2a-extensions", "if-none-match", "accept")
_FILES = {
    "tck-artifact-file-url": ("output.txt.url", "text/plain", b"https://example.com/output.txt"),
    "tck-artifact-file": ("output.txt", "text/plain", b"tck"),
    "tck-artifact-data": ("output.json", "application/json", b'{"key": "value", "count": 42}'),
    "tck-stream-artifact-file": ("output.txt", "text/plain", b"tck"),
}
_TEXTS = {
    "tck-artifact-text": "Generated text content",
    "tck-stream-artifact-text": "Streamed text content",
    "tck-stream-ordering": "Ordered output",
    "tck-stream-001": "Stream hello from TCK",
    "tck-stream-003": "Stream task lifecycle",
}
_SLOW = ("tck-delayed-complete", "test-resubscribe-message-id")


# -- the agent -----------------------------------------------------------------------------------------


class Agent:
    """The agent behind the card: it does what the kit expects of a message."""

    def __init__(self, scout: Scout) -> None:
        self._scout = scout
        self._working = set[asyncio.Task[None]]()

    async def run(self) -> None:
        await self._scout.call(RegisterEndpoint())
        while True:
            for item in (await self._scout.call(ClaimInbox(wait=30))).items:
                if item.delivery_id is not None:
                    await self._scout.call(AckInbox(delivery_ids=(item.delivery_id,)))
                if (
                    item.delivery is not None
                    and item.delivery.flight_id is not None
                    and item.message is not None
                ):
                    answered = item.message.kind == "answer"
                    work = asyncio.create_task(self._work(item.delivery.flight_id, answered=answered))
                    self._working.add(work)
                    work.add_done_callback(self._working.discard)

    async def _work(self, flight_id: str, *, answered: bool) -> None:
        with contextlib.suppress(Refused):  # it was cancelled meanwhile
            flight = await self._scout.call(GetFlight(flight_id=flight_id))
            named = flight.origin.message_id if flight.origin else ""
            if answered:
                await self._scout.call(CompleteFlight(flight_id=flight_id, output="Hello from TCK"))
            elif named.startswith("tck-input-required"):
                await self._scout.call(CreateQuestion(to=flight_id, body="Which one?"))
            elif named.startswith("tck-reject-task"):
                await self._scout.call(FailFlight(flight_id=flight_id, reason="rejected", code="rejected"))
            else:
                await self._answer(flight_id, named)

    async def _answer(self, flight_id: str, named: str) -> None:
        if named.startswith(_SLOW):
            with contextlib.suppress(Refused):  # its delivery has started it
                await self._scout.call(StartFlight(flight_id=flight_id))
            await asyncio.sleep(_WORK)
        text = next((text for start, text in _TEXTS.items() if named.startswith(start)), "Hello from TCK")
        files = [file for start, file in _FILES.items() if named.startswith(start)][:1]
        stored = [
            await self._scout.call(PutBlob(name=name, media_type=kind, data=data))
            for name, kind, data in files
        ]
        attachments = tuple(f"{one.sha256}:{one.name}" for one in stored)
        await self._scout.call(Reply(body=text, in_reply_to=flight_id, attachments=attachments))


# -- the proxy -----------------------------------------------------------------------------------------


def build_proxy(daemon: str, agent: str, own: str, token: str) -> Starlette:
    """Return the proxy: what is asked of it is asked of the agent, in the name of the guest."""
    http = httpx2.AsyncClient(base_url=daemon, timeout=None)

    async def forward(request: Request) -> Response:
        sent = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        path = f"{agent}{request.url.path}" + (f"?{request.url.query}" if request.url.query else "")
        wish = http.build_request(
            request.method,
            path,
            content=await request.body(),
            headers={**sent, "Authorization": f"Bearer {token}"},
        )
        answer = await http.send(wish, stream=True)
        kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
        if request.url.path.endswith("agent-card.json"):
            card = (await answer.aread()).replace(f"{daemon}{agent}".encode(), own.encode())
            return Response(card, answer.status_code, kept)
        done = BackgroundTask(answer.aclose)
        return StreamingResponse(_read(answer), answer.status_code, kept, background=done)

    methods = ["GET", "POST", "DELETE"]
    return Starlette(routes=[Route("/{path:path}", forward, methods=methods)])


async def _read(answer: httpx2.Response) -> AsyncIterator[bytes]:
    async for part in answer.aiter_raw():
        yield part


# -- the run -------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def serving(home: Path) -> AsyncGenerator[str]:
    """The URL at which the kit finds the agent."""
    environ = {
        **os.environ,
        "SCOUT_HOME": str(home),
        "SCOUT_PORT": "0",
        "SCOUT_LIMITS_ASKS_PER_MINUTE": "100000",
    }
    running, _ = await asyncio.to_thread(start.start, str(home), environ=environ, timeout=60)
    listener = socket.create_server(("127.0.0.1", 0))
    own = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        async with Scout(url=running.url, token=(home / "token").read_text().strip()) as operator:
            made = await operator.call(
                RegisterAgent(definition_id="tck", config={"description": "Conformance."})
            )
            published = await operator.call(PublishAgent(address=made.address))
            await operator.call(AddUser(user="kit"))
            guest = await operator.call(CreateToken(user="kit"))
            await operator.call(AddGrant(action="ask", holder="kit", path=published.path))  # pyright: ignore[reportArgumentType] (the value of an enumeration)
        proxy = build_proxy(running.url, f"/a2a{published.path}", own, guest.secret)
        server = uvicorn.Server(uvicorn.Config(proxy, log_level="error"))
        async with Scout(url=running.url, token=made.token) as scout:
            agent = asyncio.create_task(Agent(scout).run())
            serve = asyncio.create_task(server.serve(sockets=[listener]))
            yield own
            server.should_exit = True
            agent.cancel()
            await asyncio.gather(agent, serve, return_exceptions=True)
    finally:
        await asyncio.to_thread(start.stop, str(home), timeout=60)


def find_python(kit: Path) -> str:
    """The interpreter of the kit, with the kit installed."""
    python = kit / ".venv" / "bin" / "python"
    if not python.exists():
        venv.create(kit / ".venv", with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "-e", str(kit)], check=True)
    return str(python)


async def run(kit: Path, arguments: list[str]) -> int:
    python = await asyncio.to_thread(find_python, kit)
    wish = arguments or ["--transport", "jsonrpc,http_json"]
    with tempfile.TemporaryDirectory(prefix="scout-tck-") as folder:
        async with serving(Path(folder) / "home") as url:
            process = await asyncio.create_subprocess_exec(
                python, "run_tck.py", "--sut-host", url, *wish, cwd=str(kit)
            )
            return await process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev a2a-tck", description=__doc__, add_help=True)
    parser.add_argument("folder", type=Path, help="a checkout of a2aproject/a2a-tck, branch 1.0-dev")
    wish, rest = parser.parse_known_args()
    if not (wish.folder / "run_tck.py").is_file():
        parser.error(f"{wish.folder} has no run_tck.py: it is no checkout of the kit")
    sys.exit(asyncio.run(run(wish.folder.absolute(), rest)))


if __name__ == "__main__":
    main()
