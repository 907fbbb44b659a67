"""Tool results: compact facts and a line of text; refusals include the next call."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from mcp_types import CallToolResult, TextContent

from scout.base.codec import encode, render, to_plain
from scout.base.refusal import Diagnostic, Refused, Remedy
from scout.mcp.tools.tool import Tool
from scout.model.flight import FLIGHT
from scout.model.problems.request import TooLarge
from scout.protocol.asks import FlightView
from scout.protocol.correction import attach_file, list_remedies
from scout.protocol.operations import build_command_line
from scout.protocol.request import Page


def build_result(facts: Mapping[str, Any], line: str) -> CallToolResult:
    """Return a tool result."""
    return CallToolResult(content=[TextContent(text=line)], structured_content=dict(facts))


def drop_empty(value: Any, shows: tuple[str, ...] = ()) -> Any:
    """Return the wire form without empty or false values, limited to the fields in `shows` if given."""
    facts: Any = _drop_empty_values(to_plain(value))
    if isinstance(value, Page):
        facts.setdefault("items", [])  # a model may see only the facts, so an empty list is stated
    if not shows or not isinstance(facts, dict):
        return facts
    found = cast("dict[str, Any]", facts)
    if "items" in found:
        return {**found, "items": [_choose_fields(one, shows) for one in found["items"]]}
    return _choose_fields(found, shows)


def build_refusal(diagnostic: Diagnostic, tools: Iterable[Tool]) -> CallToolResult:
    """Return a refusal as a tool error: the same facts as on every surface, and remedies as tool calls."""
    offered = tuple(tools)
    facts = render(diagnostic)
    found = list_remedies(diagnostic)
    if isinstance(diagnostic, TooLarge):
        found = attach_file(found)  # a model writes a file instead of repeating the text in base64
    remedies = [_build_step(remedy, offered) for remedy in found]
    structured = drop_empty({**facts, "remedies": remedies})
    text = f"{facts['code']}: {facts['message']}"
    if remedies:
        text = f"{text}; next: {_spell_step(remedies[0])}"
    return CallToolResult(
        content=[TextContent(text=text)], structured_content=cast("dict[str, Any]", structured), is_error=True
    )


def build_call(tool: str, **arguments: Any) -> dict[str, Any]:
    """Return a call that the caller can make unchanged."""
    return {"tool": tool, "arguments": arguments}


def _build_step(remedy: Remedy, tools: tuple[Tool, ...]) -> dict[str, Any]:
    why = {"why": remedy.why} if remedy.why else {}
    for tool in tools:
        arguments = tool.call_for(remedy)
        if arguments is not None:
            return {**build_call(tool.name, **arguments), **why}
    try:
        return {"command": build_command_line(remedy), **why}
    except Refused:
        return {"operation": remedy.operation, "parameters": remedy.parameters, **why}


def _spell_step(step: Mapping[str, Any]) -> str:
    if "tool" in step:
        return f"{step['tool']} {encode(step['arguments']).decode()}"
    return str(step.get("command") or step.get("operation"))


def _choose_fields(facts: Mapping[str, Any], shows: tuple[str, ...]) -> dict[str, Any]:
    return {name: facts[name] for name in shows if name in facts}


def _drop_empty_values(value: Any) -> Any:
    if isinstance(value, dict):
        pairs = ((name, _drop_empty_values(one)) for name, one in cast("dict[str, Any]", value).items())
        return {
            name: one
            for name, one in pairs
            if one is not None and one is not False and one not in ("", [], {})
        }
    if isinstance(value, list | tuple):
        return [_drop_empty_values(one) for one in cast("list[Any]", value)]
    return value


def describe_flight(view: FlightView) -> dict[str, Any]:
    """Return the state and result of a flight, and the call to wait for it while it is open."""
    shown = {
        "flightId": view.id,
        "askId": view.ask_id,
        "state": view.state,
        "phase": view.phase,
        "target": view.target_address,
        "node": view.target_node,
        "mesh": view.mesh,
        "output": view.output,
        "error": view.error,
        "reason": view.reason,
        "waitingOn": view.waiting_on,
        "nextMoveOwnerId": view.next_move_owner_id,
        "workItemId": view.work_item_id,
        "mayRepeat": view.may_repeat,
        "revision": view.revision,
    }
    after = build_call("invocations_wait", flightId=view.id) if view.state not in FLIGHT.terminal else None
    return {**drop_empty(shown), **({"next": after} if after else {})}
