"""The tasks extension: an ask that the client follows itself. A task is a view of a flight.

Its content, visibility and result are derived from the flight each time; nothing is stored here.
"""

from typing import Any

from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    ElicitRequest,
    ElicitResult,
    RequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from scout.base.codec import render
from scout.base.refusal import Refused, WrongState, get_code
from scout.mcp.call import Call
from scout.mcp.caller import McpCaller, get_caller
from scout.mcp.tools import lines
from scout.mcp.tools.forms import build_form, can_show_forms, read_answer
from scout.mcp.tools.result import build_result, describe_flight
from scout.model.attention import AttentionMove
from scout.model.flight import FlightState
from scout.model.problems.diagnostics import ALL
from scout.model.waiting import WaitingKind
from scout.protocol.asks import CancelFlight, FlightView, GetFlight
from scout.protocol.attention import AnswerAttention, GetAttention
from scout.protocol.questions import AnswerQuestion, DeclineQuestion, GetQuestion
from scout.protocol.request import Request

TASKS = "io.modelcontextprotocol/tasks"
_POLL = 1000  # recommended poll interval, in milliseconds
_OURS = frozenset(get_code(one) for one in ALL)  # Scout's own codes; agents' failures have others


class NewTask(dict[str, Any]):
    """The response to a call that continues as a task."""


class TaskParams(RequestParams):
    """The task id."""

    task_id: str


class UpdateParams(TaskParams):
    """Answers to a task's questions."""

    input_responses: dict[str, Any] = {}


def can_use_tasks(session: ServerSession) -> bool:
    """Whether a client supports tasks; only the protocol generation without sessions has them."""
    offered = session.client_capabilities
    has = offered is not None and offered.extensions is not None and TASKS in offered.extensions
    return has and session.protocol_version in MODERN_PROTOCOL_VERSIONS


def check_tasks(session: ServerSession) -> None:
    """Refuse a client that does not support tasks."""
    if not can_use_tasks(session):
        facts: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, f"the client must offer {TASKS}", facts)


async def build_task(call: Call, flight_id: str) -> NewTask:
    """Return an existing flight as the task of a call."""
    view = await call.scout.call(GetFlight(flight_id=flight_id))
    status = "working" if view.finished_at is None else _describe_outcome(view)["status"]
    return NewTask(resultType="task", **_describe_task(view, status))


async def get(ctx: Any, params: TaskParams) -> dict[str, Any]:
    """Return the state of a task, with its result when finished, or its question when it needs input."""
    caller = _require_caller(ctx, params)
    view = await _call_scout(caller, GetFlight(flight_id=params.task_id))
    if view.finished_at is not None:
        over = _describe_outcome(view)
        return {**_describe_task(view, over["status"]), **over}
    asked = await _build_form(caller, view) if can_show_forms(_get_capabilities(ctx)) else None
    if asked is None:
        return _describe_task(view, "working")
    question = {_get_reference(view): asked.model_dump(by_alias=True, mode="json", exclude_none=True)}
    return {**_describe_task(view, "input_required"), "inputRequests": question}


async def update(ctx: Any, params: UpdateParams) -> dict[str, Any]:
    """Answer a task's question; answers to other questions are ignored."""
    caller = _require_caller(ctx, params)
    view = await _call_scout(caller, GetFlight(flight_id=params.task_id))
    ref = _get_reference(view)
    if ref in params.input_responses and _is_answer_required(caller, view):
        result = _parse_result(params.input_responses[ref])
        request = _answer(view, read_answer(result)) if result.action != "cancel" else None
        if request is not None:
            await _call_scout(caller, request)
    return {}


async def cancel(ctx: Any, params: TaskParams) -> dict[str, Any]:
    """Cancel the flight; a finished flight is left unchanged."""
    caller = _require_caller(ctx, params)
    try:
        await caller.scout.call(CancelFlight(flight_id=params.task_id, reason="its task was cancelled"))
    except Refused as refused:
        if not isinstance(refused.diagnostic, WrongState):
            raise _build_error(refused) from None
    return {}


# -- a flight as a task --------------------------------------------------------------------------------


def _describe_task(view: FlightView, status: str) -> dict[str, Any]:
    return {
        "taskId": view.id,
        "status": status,
        "statusMessage": view.reason,
        "createdAt": str(view.created_at),
        "lastUpdatedAt": str(view.updated_at),
        "ttlMs": None,  # flights are kept
        "pollIntervalMs": _POLL,
    }


def _describe_outcome(view: FlightView) -> dict[str, Any]:
    """Return the outcome: the agent's result or failure is a result; a failure of Scout is an error."""
    if view.state is FlightState.CANCELLED:
        return {"status": "cancelled"}
    facts = describe_flight(view)
    if view.error is not None and view.error.code in _OURS:
        error = {"code": INTERNAL_ERROR, "message": view.error.message, "data": facts}
        return {"status": "failed", "error": error}
    result = build_result(facts, lines.format_flight(facts))
    result.is_error = view.error is not None
    return {"status": "completed", "result": result.model_dump(by_alias=True, mode="json", exclude_none=True)}


# -- questions of a flight -----------------------------------------------------------------------------


def _get_reference(view: FlightView) -> str:
    return (view.waiting_on.ref if view.waiting_on else None) or ""


def _is_answer_required(caller: McpCaller, view: FlightView) -> bool:
    """Whether the caller itself has to answer: no agent answers for the person."""
    return view.is_asking and view.next_move_owner_id == caller.identity.agent_id


async def _build_form(caller: McpCaller, view: FlightView) -> ElicitRequest | None:
    if not _is_answer_required(caller, view):
        return None
    if _is_question(view):
        question = await _call_scout(caller, GetQuestion(question_id=_get_reference(view)))
        return build_form(question.body, question.options)
    item = await _call_scout(caller, GetAttention(attention_id=_get_reference(view)))
    answers = [one for one in item.actions if one.move is AttentionMove.ANSWER]
    return build_form(item.title, tuple(one.value for one in answers if one.value)) if answers else None


def _answer(view: FlightView, text: str | None) -> Request[Any] | None:
    if not _is_question(view):
        return AnswerAttention(attention_id=_get_reference(view), answer=text) if text else None
    if text is None:
        return DeclineQuestion(question_id=_get_reference(view), reason="declined at the client")
    return AnswerQuestion(question_id=_get_reference(view), answer=text)


def _is_question(view: FlightView) -> bool:
    return view.waiting_on is not None and view.waiting_on.kind is WaitingKind.QUESTION


def _parse_result(given: Any) -> ElicitResult:
    try:
        return ElicitResult.model_validate(given, by_name=False)
    except ValueError:
        raise MCPError(INVALID_PARAMS, "an answer is an action with its content") from None


# -- the caller ----------------------------------------------------------------------------------------


def _require_caller(ctx: Any, params: TaskParams) -> McpCaller:
    """Return the caller if it supports tasks and its header names the same task."""
    check_tasks(ctx.session)
    if decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER)) != params.task_id:
        raise MCPError(HEADER_MISMATCH, f"the header {MCP_NAME_HEADER} is not the task's id")
    return get_caller(ctx)


def _get_capabilities(ctx: Any) -> ClientCapabilities | None:
    session: ServerSession = ctx.session
    return session.client_capabilities


async def _call_scout(caller: McpCaller, request: Request[Any]) -> Any:
    try:
        return await caller.scout.call(request)
    except Refused as refused:
        raise _build_error(refused) from None


def _build_error(refused: Refused) -> MCPError:
    return MCPError(INVALID_PARAMS, refused.diagnostic.message, render(refused.diagnostic))
