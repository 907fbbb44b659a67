"""One call in progress: its caller, its progress reports, and the events that end its wait."""

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

STEP = 15.0  # seconds between progress reports while nothing changes
UNASKED = 50.0  # default wait in seconds: hosts give up a silent call after a minute
LONGEST = 240.0  # maximum wait in seconds: Codex gives up a call after 300 despite progress reports


class Ends(NamedTuple):
    """The events that end a wait early: the client disconnected, or the daemon stops."""

    gone: asyncio.Event
    stopping: asyncio.Event


class Call(NamedTuple):
    """A tool call or a prompt request.

    `tell` reports progress to a caller that asked for it; `patient` is whether it did.
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
        """Return the result; stop waiting if the client disconnects or the daemon stops."""
        working = asyncio.ensure_future(self.scout.call(request))
        gone = asyncio.ensure_future(self.ends.gone.wait())
        stopping = asyncio.ensure_future(self.ends.stopping.wait())
        try:
            await asyncio.wait({working, gone, stopping}, return_when="FIRST_COMPLETED")
            if working.done():
                return working.result()
            if stopping.done():
                raise Refused(Busy(reason="the daemon is stopping"))
            raise MCPError(CONNECTION_CLOSED, "the client disconnected")
        finally:
            for one in (working, gone, stopping):
                one.cancel()
