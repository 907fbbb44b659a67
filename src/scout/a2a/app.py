"""A2A as one ASGI application for all published agents, by JSON-RPC and by HTTP+JSON."""

import asyncio
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.server.routes import (
    DefaultServerCallContextBuilder,
    create_jsonrpc_routes,
    create_rest_routes,
)
from starlette.requests import Request
from starlette.routing import Router

from scout.a2a.address import parse_path
from scout.a2a.handler import CALL, A2aCall, ScoutHandler
from scout.base.outside import check_each_once
from scout.base.refusal import Refused
from scout.model.problems.request import TooLarge
from scout.protocol.agents import Resolve, ShowPublication
from scout.protocol.scout import Scout

_LIMIT = 1024 * 1024
_KEY = b"idempotency-key"


class _Contexts(DefaultServerCallContextBuilder):
    """Hands the call on to the handler."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state[CALL] = request.scope[CALL]
        return context


class A2aSurface:
    """Answers requests of clients, each with its own view of Scout. `stop` ends those that are open."""

    def __init__(self) -> None:
        handler, contexts = ScoutHandler(), _Contexts()
        self._rpc = Router(create_jsonrpc_routes(handler, "/", context_builder=contexts))
        self._rest = Router(create_rest_routes(handler, context_builder=contexts))
        self._open = set[asyncio.Task[None]]()

    def stop(self) -> None:
        """End all open requests."""
        for task in self._open:
            task.cancel()

    async def __call__(self, scout: Scout, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer one request of an admitted client; an agent that it may not ask is refused."""
        path = parse_path(scope["method"], scope["raw_path"])
        await scout.call(ShowPublication(address=path.agent))
        agent = await scout.call(Resolve(address=path.agent))
        body = await _read_body(scope, receive)
        key = dict(scope["headers"]).get(_KEY)
        call = A2aCall(scout, agent.agent_id, path.agent, key.decode("latin-1") if key else None)
        inner = {**scope, "path": path.route, "raw_path": path.route.encode(), "root_path": "", CALL: call}
        await self._run(self._rpc if path.route == "/" else self._rest, inner, body, receive, send)

    async def _run(self, router: Router, scope: dict[str, Any], body: bytes, receive: Any, send: Any) -> None:
        """Run a request until it is answered, the client disconnects, or the daemon stops."""
        first, gone = [{"type": "http.request", "body": body}], asyncio.Event()

        async def receive_message() -> dict[str, Any]:
            if first:
                return first.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        working = asyncio.ensure_future(router(scope, receive_message, send))
        leaving = asyncio.ensure_future(_wait_for_disconnect(receive))
        self._open.add(working)
        try:
            await asyncio.wait({working, leaving}, return_when="FIRST_COMPLETED")
            if working.done() and not working.cancelled():
                working.result()
        finally:
            self._open.discard(working)
            gone.set()
            for task in (working, leaving):
                task.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)


async def _wait_for_disconnect(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read_body(scope: dict[str, Any], receive: Any) -> bytes:
    """Return the body, up to the limit of other requests; JSON with a repeated key is refused."""
    declared = dict(scope["headers"]).get(b"content-length", b"")
    _check_size(int(declared) if declared.isdigit() else 0)
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        _check_size(len(body))
        more = bool(message.get("more_body"))
    check_each_once(body)
    return body


def _check_size(size: int) -> None:
    if size > _LIMIT:
        raise Refused(TooLarge(what="request", size=size, limit=_LIMIT))
