"""The MCP server: a handler for each protocol message, independent of the offer."""

import asyncio
from typing import Any

from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)

from scout.mcp.call import Call, Ends
from scout.mcp.caller import get_caller
from scout.mcp.offer import Context, Offer
from scout.mcp.subscriptions import Following
from scout.mcp.tools import tasks
from scout.mcp.tools.forms import FormRequest


def build_server(version: str, offer: Offer, following: Following, stopping: asyncio.Event) -> Server[Any]:
    """Return the server of an offer; the caller comes with each request."""

    async def call_tool(ctx: Context, params: CallToolRequestParams) -> Any:
        try:
            return await offer.call(_build_call(ctx, params, stopping))
        except FormRequest as wanted:
            return wanted.result

    async def list_tools(ctx: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=offer.tools(get_caller(ctx)))

    async def list_resources(ctx: Context, _: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=await offer.resources(get_caller(ctx).scout))

    async def list_templates(_: Context, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=offer.templates)

    async def read_resource(ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        return ReadResourceResult(contents=await offer.read(get_caller(ctx).scout, params.uri))

    async def subscribe(ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        await following.subscribe(ctx, params.uri)
        return EmptyResult()

    async def unsubscribe(ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        await following.unsubscribe(ctx, params.uri)
        return EmptyResult()

    async def list_prompts(_: Context, __: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=offer.prompts)

    async def get_prompt(
        ctx: Context, params: GetPromptRequestParams
    ) -> GetPromptResult | InputRequiredResult:
        try:
            return await offer.prompt(_build_call(ctx, params, stopping))
        except FormRequest as wanted:
            return wanted.result

    server: Server[Any] = Server(
        "scout",
        version=version,
        instructions=offer.instructions,
        get_tool_input_schema=offer.schema_of,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_subscriptions_listen=following.listen,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    server.middleware.clear()  # tracing spans are not collected
    server.extensions[tasks.TASKS] = {}
    server.add_request_handler("tasks/get", tasks.TaskParams, tasks.get)
    server.add_request_handler("tasks/update", tasks.UpdateParams, tasks.update)
    server.add_request_handler("tasks/cancel", tasks.TaskParams, tasks.cancel)
    for name, method in offer.methods.items():
        server.add_request_handler(name, method.params, method.handler)
    return server


def _build_call(
    ctx: Context, params: CallToolRequestParams | GetPromptRequestParams, stopping: asyncio.Event
) -> Call:
    async def tell(steps: float, message: str) -> None:
        await ctx.session.report_progress(steps, None, message)

    gone: asyncio.Event = ctx.request.scope["state"]["gone"] if ctx.request is not None else asyncio.Event()
    return Call(
        caller=get_caller(ctx),
        ends=Ends(gone, stopping),
        tell=tell,
        patient=bool(ctx.meta and ctx.meta.get("progress_token") is not None),
        session=ctx.session,
        params=params,
        request_id=ctx.request_id,
    )
