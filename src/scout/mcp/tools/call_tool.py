"""Calling Scout's tools: the role decides which are available; every failure is a tool result."""

import logging
import secrets
from typing import Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from mcp_types import Tool as ListedTool
from msgspec.structs import replace

from scout.base.refusal import Candidate, Refused
from scout.mcp.call import Call
from scout.mcp.caller import McpCaller
from scout.mcp.tools.forms import FormRequest
from scout.mcp.tools.result import build_refusal, build_result, drop_empty
from scout.mcp.tools.table import TOOLS, get_role_tools
from scout.mcp.tools.tasks import NewTask
from scout.mcp.tools.tool import Tool
from scout.model.agent import ToolRole
from scout.model.problems.request import Forbidden, NotFound
from scout.policy.nearest import rank_names
from scout.protocol.request import Request
from scout.protocol.tools import list_roles

_LOG = logging.getLogger("scout.mcp")
_TRACE = 200  # characters of a trace context that are read


def list_tools(caller: McpCaller) -> list[ListedTool]:
    """Return the tools of the caller's role."""
    return _LISTED[caller.role]


async def call_tool(call: Call) -> CallToolResult | NewTask:
    """Return the result of a tool; a refusal is a result too."""
    offered, params = get_role_tools(call.caller.role), call.params
    try:
        tool = _find_tool(params.name, call.caller, offered)
        request = _add_trace(tool.build_request(params.arguments or {}), call)
        result = await (tool.act(call, request) if tool.act else call.scout.call(request))
    except Refused as problem:
        return build_refusal(problem.diagnostic, offered)
    except (MCPError, FormRequest):
        raise
    except Exception:  # noqa: BLE001 (every internal error is answered and logged)
        return _build_fault(params.name)
    if isinstance(result, NewTask):
        return result
    if isinstance(result, dict):  # an act chooses the fields itself
        return build_result(cast("dict[str, Any]", result), tool.line(result))
    return build_result(drop_empty(result, tool.shows), tool.line(result))


def _add_trace(request: Request[Any], call: Call) -> Request[Any]:
    """Return the request in the trace that the client names; it is ignored where it means nothing."""
    given = (call.params.meta or {}).get("traceparent")
    if not isinstance(given, str) or "traceparent" not in request.__struct_fields__:
        return request
    return replace(request, traceparent=given[:_TRACE])


def _build_fault(name: str) -> CallToolResult:
    """Return the result for an internal error, with the reference to search for in the log."""
    reference = f"err_{secrets.token_hex(6)}"
    _LOG.exception("%s: the tool %s", reference, name[:60])
    said = f"internal error; search the daemon log for {reference}"
    facts = {"code": "internal", "message": said, "reference": reference}
    return CallToolResult(content=[TextContent(text=said)], structured_content=facts, is_error=True)


def _find_tool(name: str, caller: McpCaller, offered: tuple[Tool, ...]) -> Tool:
    """Return the tool; refuse it if the caller's role does not have it."""
    if name in TOOLS:
        if TOOLS[name] in offered:
            return TOOLS[name]
        needs = tuple(f"the role {role}" for role in list_roles(name))
        raise Refused(Forbidden(action=name, subject=f"the role {caller.role}", needs=needs))
    near = rank_names(name[:60], [tool.name for tool in offered], 3)
    found = tuple(Candidate(address=one) for one in near)
    raise Refused(NotFound(noun="tool", id=name[:60], candidates=found))


def _describe_tool(tool: Tool) -> ListedTool:
    meta = {"anthropic/alwaysLoad": True} if tool.main else None
    reads = not any(request.writes for request in tool.requests.values())
    return ListedTool(
        name=tool.name,
        description=tool.says,
        input_schema=tool.schema,
        annotations=ToolAnnotations(read_only_hint=True) if reads else None,
        _meta=meta,
    )


_LISTED = {role: [_describe_tool(tool) for tool in get_role_tools(role)] for role in ToolRole}
