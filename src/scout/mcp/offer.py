"""The tools, resources and prompts that a server offers. The protocol around them is always the same."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import ServerEvent
from mcp_types import (
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    Prompt,
    RequestParams,
    Resource,
    ResourceTemplate,
    Tool,
)

from scout.mcp.call import Call
from scout.mcp.caller import McpCaller
from scout.mcp.tools.tasks import NewTask
from scout.model.events.envelope import Event
from scout.protocol.scout import Scout

Context = ServerRequestContext[Any, Any]


class Method(NamedTuple):
    """A protocol method that only some offers handle."""

    params: type[RequestParams]
    handler: Callable[[Context, Any], Awaitable[Any]]


class Offer(NamedTuple):
    """The content of a server. `touched` returns the resources and lists that an event changes for an agent.

    `schema_of` returns the input schema of tools that also pass arguments as headers.
    """

    instructions: str
    tools: Callable[[McpCaller], list[Tool]]
    call: Callable[[Call], Awaitable[CallToolResult | InputRequiredResult | NewTask]]
    resources: Callable[[Scout], Awaitable[list[Resource]]]
    templates: list[ResourceTemplate]
    read: Callable[[Scout, str], Awaitable[list[Any]]]
    touched: Callable[[Event, str | None], list[ServerEvent]]
    prompts: list[Prompt]
    prompt: Callable[[Call], Awaitable[GetPromptResult | InputRequiredResult]]
    schema_of: Callable[[str], Mapping[str, Any] | None] = lambda _: None
    methods: Mapping[str, Method] = {}
