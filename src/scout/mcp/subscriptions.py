"""Subscriptions: log events visible to the caller's credential, reported as resource changes."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, aclosing
from typing import Any, cast

from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ServerEvent
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, SubscriptionsListenRequestParams, SubscriptionsListenResult

from scout.base.codec import decode, render
from scout.base.refusal import Refused
from scout.mcp.caller import McpCaller, get_caller
from scout.model.events.envelope import Event
from scout.protocol.log import Watch

SubscriptionContext = ServerRequestContext[Any, Any]
Touched = Callable[[Event, str | None], list[ServerEvent]]
_STATE = "scout.subscriptions"
_BEGIN = 0.05  # seconds within which the broker has refused or started listening


class Following:
    """The subscriptions in both protocol generations: by session, or by one long request."""

    def __init__(self, touched: Touched) -> None:
        self._touched = touched
        self._open: set[ListenHandler] = set()

    # -- sessions ----------------------------------------------------------------------------------

    async def subscribe(self, ctx: SubscriptionContext, uri: str) -> None:
        """Notify this session when a resource changes; one watcher serves all its subscriptions."""
        state, ending = _get_session(ctx)
        wanted: set[str] | None = state.get(_STATE)
        if wanted is None:
            wanted = state[_STATE] = set[str]()

            async def tell(changed: ServerEvent) -> None:
                if isinstance(changed, ResourceUpdated) and changed.uri in state.get(_STATE, ()):
                    await ctx.session.send_resource_updated(changed.uri)

            try:
                task = await _start_watcher(self._watch(get_caller(ctx), tell))
            except MCPError:
                del state[_STATE]
                raise
            task.add_done_callback(lambda _: state.pop(_STATE, None))
            ending.push_async_callback(_end_watcher, task)
        wanted.add(uri)

    async def unsubscribe(self, ctx: SubscriptionContext, uri: str) -> None:
        """Stop notifying about a resource."""
        state, _ = _get_session(ctx)
        state.get(_STATE, set[str]()).discard(uri)

    # -- one long request --------------------------------------------------------------------------

    async def listen(
        self, ctx: SubscriptionContext, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Report changes in the response to this request until the client disconnects or the daemon stops."""
        bus = InMemorySubscriptionBus()
        handler = ListenHandler(bus)
        task = await _start_watcher(self._watch(get_caller(ctx), bus.publish))
        self._open.add(handler)
        task.add_done_callback(lambda _: handler.close())  # end the response when the watcher ends
        try:
            return await handler(ctx, params)
        finally:
            self._open.discard(handler)
            await _end_watcher(task)

    def close(self) -> None:
        """End every stream with its final frame."""
        for handler in tuple(self._open):
            handler.close()

    async def _watch(self, caller: McpCaller, tell: Callable[[ServerEvent], Awaitable[None]]) -> None:
        """Report changes. After falling too far behind, resume from the position that the refusal gives."""
        request = Watch()
        while True:
            events = caller.scout.watch(request)
            try:
                async with aclosing(cast("Any", events)):
                    async for event in events:
                        for changed in self._touched(event, caller.identity.agent_id):
                            await tell(changed)
                return
            except Refused as refused:
                again = [one for one in refused.diagnostic.remedies if one.operation == Watch.operation]
                if not again:
                    raise
                request = decode(again[0].parameters, Watch)


async def _start_watcher(watching: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """Start the watcher; its refusal is an error of the request."""
    task = asyncio.get_running_loop().create_task(watching)
    await asyncio.wait({task}, timeout=_BEGIN)
    if task.done() and isinstance(problem := task.exception(), Refused):
        facts = render(problem.diagnostic)
        raise MCPError(INTERNAL_ERROR, facts["message"], facts)
    return task


async def _end_watcher(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _get_session(ctx: SubscriptionContext) -> tuple[dict[str, Any], AsyncExitStack]:
    """Return the session's state and its exit stack."""
    connection = ctx.session._connection  # pyright: ignore[reportPrivateUsage] (the SDK requires cleanup there and gives handlers no other access)
    return connection.state, connection.exit_stack
