"""MCP as one ASGI application, for both generations of the protocol: with sessions, and without."""

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from scout.base.outside import check_each_once
from scout.base.refusal import Refused
from scout.mcp import prompts, resources
from scout.mcp.address import parse_path
from scout.mcp.caller import Backends, McpCaller, identify
from scout.mcp.offer import Offer
from scout.mcp.server import build_server
from scout.mcp.subscriptions import Following
from scout.mcp.tools.call_tool import call_tool, list_tools
from scout.model.problems.request import TooLarge
from scout.protocol.scout import Scout

_INSTRUCTIONS = (
    "Scout connects coding agents. To have work done, use `ask` and then the call under `next`; to find "
    "something out, `question_create`; to send a note, `messages_send`. Requests to you are in "
    "`messages_inbox`; `messages_reply` returns your result. A refusal names the next call under `remedies`."
)

OFFER = Offer(
    instructions=_INSTRUCTIONS,
    tools=list_tools,
    call=call_tool,
    resources=resources.list_resources,
    templates=resources.TEMPLATES,
    read=resources.read_resource,
    touched=resources.list_touched,
    prompts=prompts.PROMPTS,
    prompt=prompts.build_prompt,
)


_LIMIT = 1024 * 1024


class McpSurface:
    """Answers MCP requests, each with a view of Scout; `run` keeps the sessions open."""

    def __init__(self, version: str, offer: Offer = OFFER) -> None:
        self.backends = Backends()
        self._following = Following(offer.touched)
        self._stopping = asyncio.Event()
        server = build_server(version, offer, self._following, self._stopping)
        self._manager = StreamableHTTPSessionManager(server, max_request_body_size=_LIMIT)

    async def run(self, started: asyncio.Event) -> None:
        """Keep sessions open until `stop`."""
        async with self._manager.run():
            started.set()
            await self._stopping.wait()

    def stop(self) -> None:
        """End all waits and sessions."""
        self._following.close()
        self._stopping.set()

    async def __call__(self, scout: Scout, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handle one HTTP request of an admitted caller; a URL of another agent is refused."""
        _check_size(scope)
        caller = await identify(scout, parse_path(scope["raw_path"]), self.backends)
        gone = asyncio.Event()

        first = await _read_body(receive) if scope["method"] == "POST" else []

        async def receive_message() -> Any:
            message = first.pop(0) if first else await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            return message

        state = {**scope.get("state", {}), "caller": caller, "gone": gone}
        try:
            await self._manager.handle_request(
                {**scope, "state": state, "user": _build_user(caller)}, receive_message, send
            )
        except asyncio.CancelledError:  # the credential has ended: end its session too
            gone.set()
            await self._end_session(scope)
            raise

    async def _end_session(self, scope: Mapping[str, Any]) -> None:
        """End the session that a request belongs to, with its running calls."""
        ident = dict(scope["headers"]).get(b"mcp-session-id", b"").decode("latin-1")
        held = self._manager._server_instances  # pyright: ignore[reportPrivateUsage] (the SDK ends a session only when its client requests it)
        session = held.get(ident)
        if session is not None:
            await session.terminate()


def _check_size(scope: Mapping[str, Any]) -> None:
    """Refuse a body whose declared length is too large before reading it; the SDK counts the others."""
    declared = dict(scope["headers"]).get(b"content-length", b"")
    if declared.isdigit() and int(declared) > _LIMIT:
        raise Refused(TooLarge(what="request", size=int(declared), limit=_LIMIT))


async def _read_body(receive: Any) -> list[dict[str, Any]]:
    """Return the messages of the body, up to the size limit; JSON with a repeated key is refused."""
    messages: list[dict[str, Any]] = [await receive()]
    size = len(messages[-1].get("body", b""))
    while messages[-1].get("more_body") and size <= _LIMIT:
        messages.append(await receive())
        size += len(messages[-1].get("body", b""))
    if size <= _LIMIT:
        check_each_once(b"".join(one.get("body", b"") for one in messages))
    return messages


def _build_user(caller: McpCaller) -> AuthenticatedUser:
    """Return the owner of the session: only the same credential and agent may resume it."""
    identity = caller.identity
    return AuthenticatedUser(
        AccessToken(token="", client_id=identity.token_id, scopes=[], subject=identity.agent_id)
    )
