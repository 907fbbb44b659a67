"""One call under way: who makes it, how it tells of progress, and when nobody waits for it any more."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, CallToolRequestParams, GetPromptRequestParams, RequestId

from scout.base.refusal import Refused
from scout.mcp.caller import McpCaller
from scout.model.problems.request import Busy
from scout.protocol.request import Request
from scout.protocol.scout import Scout

T = TypeVar("T")

STEP = 15.0  # after which a caller that asked for progress hears again that nothing happened
UNASKED = 50.0  # how long a wait is that says nothing: hosts give up a silent call after a minute
LONGEST = 240.0  # Codex gives up a call after 300, whatever progress it hears of


class Ends(NamedTuple):
    """What ends a wait before its time: the client is gone, or the daemon stops."""

    gone: asyncio.Event
    stopping: asyncio.Event


class Call(NamedTuple):
    """A tool that is called, or a prompt that is taken.

    `tell` reports progress to a caller that asked for it; `patient` says whether it did.
    """

    caller: McpCaller
    ends: Ends
    tell: Callable[[float, str], Awaitable[None]]
    patient: bool
    session: ServerSession
    params: CallToolRequestParams | GetPromptRequestParams
    request_id: RequestId | None = None

    @property
    def scout(self) -> Scout:
        return self.caller.scout

    async def ask(self, request: Request[T]) -> T:
        """An answer that may take its time: not waited for when there is nobody left to give it to."""
        working = asyncio.ensure_future(self.scout.call(request))
        gone = asyncio.ensure_future(self.ends.gone.wait())
        stopping = asyncio.ensure_future(self.ends.stopping.wait())
        try:
            await asyncio.wait({working, gone, stopping}, return_when="FIRST_COMPLETED")
            if working.done():
                return working.result()
            if stopping.done():
                raise Refused(Busy(reason="the daemon is stopping"))
            raise MCPError(CONNECTION_CLOSED, "the client is gone")
        finally:
            for one in (working, gone, stopping):
                one.cancel()
