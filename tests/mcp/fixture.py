"""The tools, resources and prompts that the public conformance suite prescribes, as an offer of Scout's server.

Bodies only: how they are reached, how they ask the client, how they become tasks and how changes are told is
Scout's own code. A task is a flight here as everywhere: `worker` does what it is asked, as an agent does.
"""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ToolsListChanged
from mcp_types import (
    INVALID_PARAMS,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ClientCapabilities,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    EmptyResult,
    GetPromptResult,
    ImageContent,
    InputRequest,
    ListRootsRequest,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    Resource,
    ResourceTemplate,
    SamplingCapability,
    SamplingMessage,
    SetLevelRequestParams,
    TextContent,
    TextResourceContents,
    Tool,
)

from scout.base.refusal import Refused
from scout.broker.seat import Seat
from scout.mcp.call import Call
from scout.mcp.caller import Caller
from scout.mcp.forms import ask_client, check_offered, offers_forms
from scout.mcp.offer import Method, Offer
from scout.mcp.tasks import NewTask, check_tasks, speaks_tasks, started
from scout.model.conversation import Message
from scout.model.envelope import Event, record_of
from scout.protocol.asks import CompleteFlight, FailFlight, GetFlight, MakeAsk, StartFlight
from scout.protocol.inbox import AckInbox, ClaimInbox
from scout.protocol.questions import CreateQuestion, GetQuestion
from scout.protocol.scout import Scout
from scout.protocol.talk import Send

__all__ = ["OFFER", "WORKER", "work"]

Body = Callable[[Call, Mapping[str, Any]], Awaitable[CallToolResult | NewTask]]
WORKER = "worker"
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
_WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
_NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
_TEXT: dict[str, Any] = {"type": "string"}

_bodies: dict[str, Body] = {}
_tools: list[Tool] = []


def _tool(name: str, schema: Mapping[str, Any] = _NOTHING) -> Callable[[Body], Body]:
    """A tool, and what it does."""

    def kept(body: Body) -> Body:
        _bodies[name] = body
        _tools.append(Tool(name=name, description=body.__doc__ or name, input_schema=dict(schema)))
        return body

    return kept


def _takes(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _said(text: str, *more: Any, wrong: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text), *more], is_error=wrong)


def _offered(_: Caller) -> list[Tool]:
    return _tools


async def _call(call: Call) -> CallToolResult | NewTask:
    body = _bodies.get(call.params.name)
    if body is None:
        raise MCPError(INVALID_PARAMS, f"no tool {call.params.name}")
    return await body(call, call.params.arguments or {})


# -- results -------------------------------------------------------------------------------------------


@_tool("test_simple_text")
async def simple_text(_: Call, __: Mapping[str, Any]) -> CallToolResult:
    """Text."""
    return _said("This is a simple text response for testing.")


@_tool("test_image_content")
async def image_content(_: Call, __: Mapping[str, Any]) -> CallToolResult:
    """A picture."""
    return CallToolResult(content=[ImageContent(data=_PNG, mime_type="image/png")])


@_tool("test_audio_content")
async def audio_content(_: Call, __: Mapping[str, Any]) -> CallToolResult:
    """A sound."""
    return CallToolResult(content=[AudioContent(data=_WAV, mime_type="audio/wav")])


@_tool("test_embedded_resource")
async def embedded_resource(_: Call, __: Mapping[str, Any]) -> CallToolResult:
    """A resource."""
    text = "This is an embedded resource content."
    return CallToolResult(content=[_embedded("test://embedded-resource", "text/plain", text)])


@_tool("test_multiple_content_types")
async def multiple_content_types(_: Call, __: Mapping[str, Any]) -> CallToolResult:
    """Text, a picture and a resource."""
    data = '{"test":"data","value":123}'
    resource = _embedded("test://mixed-content-resource", "application/json", data)
    return _said("Multiple content types test:", ImageContent(data=_PNG, mime_type="image/png"), resource)


@_tool("test_error_handling")
async def error_handling(_: Call, __: Mapping[str, Any]) -> CallToolResult:
    """An error."""
    return _said("This tool intentionally returns an error for testing", wrong=True)


@_tool("test_tool_with_progress")
async def tool_with_progress(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """Progress on the way."""
    for progress in (0, 50, 100):
        await call.session.report_progress(progress, 100, f"Completed step {progress} of 100")
        await asyncio.sleep(0.05)
    return _said("Progress was reported.")


@_tool("test_tool_with_logging")
async def tool_with_logging(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """Messages to the client's log on the way."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        params = LoggingMessageNotificationParams(level="info", data=line)
        await call.session.send_notification(LoggingMessageNotification(params=params), call.request_id)
        await asyncio.sleep(0.05)
    return _said("Messages were sent.")


@_tool("test_logging_tool")
async def logging_tool(_: Call, __: Mapping[str, Any]) -> CallToolResult:
    """No messages, for nobody asked for them."""
    return _said("Nothing was logged.")


_SCHEMA_2020: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": _TEXT, "city": _TEXT},
        }
    },
    "properties": {
        "name": _TEXT,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": _TEXT,
        "email": _TEXT,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@_tool("json_schema_2020_12_tool", _SCHEMA_2020)
async def json_schema_2020_12_tool(_: Call, __: Mapping[str, Any]) -> CallToolResult:
    """Arguments that are described with every word of JSON Schema."""
    return _said("Taken.")


@_tool("header_tool", _takes(region={"type": "string", "x-mcp-header": "Region"}))
async def header_tool(_: Call, given: Mapping[str, Any]) -> CallToolResult:
    """An argument that is a header as well."""
    return _said(f"In {given.get('region')}.")


# -- asking the client ---------------------------------------------------------------------------------


def _form(message: str, **properties: Mapping[str, Any]) -> ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sampling(prompt: str, most: int) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(text=prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=most))


async def _asked(call: Call, **requests: InputRequest) -> dict[str, Any]:
    return await ask_client(call, requests)


def _field(result: Any, name: str) -> Any:
    """What a form was filled in with."""
    content: dict[str, Any] = result.content or {}
    return content.get(name)


def _filled(result: Any) -> str:
    return f"action={result.action}, content={json.dumps(result.content)}"


@_tool("test_sampling", _takes(prompt=_TEXT))
async def sampling(call: Call, given: Mapping[str, Any]) -> CallToolResult:
    """What the client's model says."""
    found = await _asked(call, said=_sampling(given["prompt"], 100))
    return _said(f"LLM response: {found['said'].content.text}")


@_tool("test_elicitation", _takes(message=_TEXT))
async def elicitation(call: Call, given: Mapping[str, Any]) -> CallToolResult:
    """What the client's person says."""
    found = await _asked(call, said=_form(given["message"], username=_TEXT, email=_TEXT))
    return _said(f"User response: {_filled(found['said'])}")


@_tool("test_elicitation_sep1034_defaults")
async def elicitation_sep1034_defaults(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """A form with something in each field."""
    form = _form(
        "Please provide user information",
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return _said(f"Elicitation completed: {_filled((await _asked(call, said=form))['said'])}")


@_tool("test_elicitation_sep1330_enums")
async def elicitation_sep1330_enums(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """A form with each way to choose."""
    plain, titled = ["option1", "option2", "option3"], [f"value{number}" for number in (1, 2, 3)]
    choices = [{"const": one, "title": f"The choice {one}"} for one in titled]
    form = _form(
        "Please choose",
        untitledSingle={"type": "string", "enum": plain},
        titledSingle={"type": "string", "oneOf": choices},
        legacyEnum={"type": "string", "enum": plain, "enumNames": ["One", "Two", "Three"]},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": plain}},
        titledMulti={"type": "array", "items": {"anyOf": choices}},
    )
    return _said(f"Elicitation completed: {_filled((await _asked(call, said=form))['said'])}")


@_tool("test_missing_capability")
async def missing_capability(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """Nothing for a client without a model."""
    check_offered(call, ClientCapabilities(sampling=SamplingCapability()))
    return _said("The client has a model.")


@_tool("test_streaming_elicitation")
async def streaming_elicitation(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """A form, after some progress."""
    await call.session.report_progress(1, 2, "about to ask")
    return _said(_filled((await _asked(call, said=_form("Go on?", ok={"type": "boolean"})))["said"]))


_NAME = _form("What is your name?", name=_TEXT)


@_tool("test_input_required_result_elicitation")
async def input_required_result_elicitation(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """Greets who is there."""
    found = await _asked(call, user_name=_NAME)
    return _said(f"Hello, {_field(found['user_name'], 'name')}!")


@_tool("test_input_required_result_sampling")
async def input_required_result_sampling(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """Asks the client's model."""
    found = await _asked(call, capital_question=_sampling("What is the capital of France?", 100))
    return _said(found["capital_question"].content.text)


@_tool("test_input_required_result_list_roots")
async def input_required_result_list_roots(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """Asks for the client's folders."""
    found = await _asked(call, client_roots=ListRootsRequest())
    return _said(", ".join(str(root.uri) for root in found["client_roots"].roots))


@_tool("test_input_required_result_capabilities")
async def input_required_result_capabilities(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """Asks only for what the client has."""
    offered = call.session.client_capabilities
    wanted: dict[str, InputRequest] = {}
    if offers_forms(offered):
        wanted["name"] = _NAME
    if offered is not None and offered.sampling is not None:
        wanted["greeting"] = _sampling("Generate a greeting", 50)
    return _said(f"It gave {', '.join(await ask_client(call, wanted))}.")


# What a call goes on with is kept here; what comes back from a client is only looked up.
_states: dict[str, str] = {}


def _state(value: str) -> str:
    ident = secrets.token_urlsafe()
    _states[ident] = value
    return ident


def _kept(call: Call) -> str | None:
    ident = call.params.request_state
    if ident is None:
        return None
    if ident not in _states:
        raise MCPError(INVALID_PARAMS, "this state was not given out here")
    return _states[ident]


_CONFIRM: dict[str, InputRequest] = {"confirm": _form("Please confirm", ok={"type": "boolean"})}


@_tool("test_input_required_result_request_state")
async def input_required_result_request_state(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """Goes on where it was."""
    kept = _kept(call)
    await ask_client(call, _CONFIRM, _state("state-ok"))
    return _said(f"{kept}")


@_tool("test_input_required_result_tampered_state")
async def input_required_result_tampered_state(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """Goes on where it was, and nowhere else."""
    kept = _kept(call)
    await ask_client(call, _CONFIRM, _state("untouched"))
    return _said(f"{kept}")


@_tool("test_input_required_result_multiple_inputs")
async def input_required_result_multiple_inputs(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """Asks for several things at once."""
    _kept(call)
    wanted = {
        "user_name": _NAME,
        "greeting": _sampling("Generate a greeting", 50),
        "client_roots": ListRootsRequest(),
    }
    return _said(f"It gave {', '.join(await ask_client(call, wanted, _state('')))}.")


@_tool("test_input_required_result_multi_round")
async def input_required_result_multi_round(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """Asks for one thing after the other."""
    name = _kept(call)
    if name is None or name == "first":
        found = await ask_client(
            call, {"step1": _form("Step 1: What is your name?", name=_TEXT)}, _state("first")
        )
        name = str(_field(found["step1"], "name"))
    color = _form("Step 2: What is your favorite color?", color=_TEXT)
    found = await ask_client(call, {"step2": color}, _state(name))
    return _said(f"{name} likes {_field(found['step2'], 'color')}.")


# -- tasks ---------------------------------------------------------------------------------------------


async def _task(call: Call, job: str, **given: Any) -> CallToolResult | NewTask:
    """Work for the worker: as a task where the client follows those, and waited for where it does not."""
    ask = MakeAsk(to=WORKER, body=json.dumps({"job": job, **given}))
    receipt = await call.scout.call(ask)
    if speaks_tasks(call.session):
        return await started(call, receipt.flight_id)
    view = await call.ask(GetFlight(flight_id=receipt.flight_id, wait=20))
    return _said(view.output or view.reason, wrong=view.output is None)


@_tool("greet", _takes(name=_TEXT))
async def greet(_: Call, given: Mapping[str, Any]) -> CallToolResult:
    """A greeting, at once."""
    return _said(f"Hello, {given.get('name')}!")


@_tool("slow_compute", _takes(seconds={"type": "number"}, label=_TEXT))
async def slow_compute(call: Call, given: Mapping[str, Any]) -> CallToolResult | NewTask:
    """A result after so many seconds."""
    return await _task(call, "sleep", seconds=given.get("seconds", 0))


@_tool("failing_job")
async def failing_job(call: Call, _: Mapping[str, Any]) -> CallToolResult | NewTask:
    """Work that the worker gives up; only as a task."""
    check_tasks(call.session)
    return await _task(call, "give up")


@_tool("protocol_error_job")
async def protocol_error_job(call: Call, _: Mapping[str, Any]) -> CallToolResult | NewTask:
    """Work that Scout cannot have done."""
    return await _task(call, "vanish")


@_tool("confirm_delete", _takes(filename=_TEXT))
async def confirm_delete(call: Call, given: Mapping[str, Any]) -> CallToolResult | NewTask:
    """Work that asks back."""
    return await _task(call, "ask back", questions=[f"Delete {given.get('filename')}?"])


@_tool("multi_input")
async def multi_input(call: Call, _: Mapping[str, Any]) -> CallToolResult | NewTask:
    """Work that asks back twice."""
    return await _task(call, "ask back", questions=["Who are you?", "Are you sure?"])


@_tool("test_tool_with_task")
async def tool_with_task(call: Call, _: Mapping[str, Any]) -> CallToolResult | NewTask:
    """Asks first, and becomes a task then."""
    check_tasks(call.session)
    found = await _asked(call, user_name=_NAME)
    return await _task(call, "greet", name=_field(found["user_name"], "name"))


async def work(seat: Seat) -> None:
    """The worker: takes each ask from its inbox and does it, many at a time."""
    async with asyncio.TaskGroup() as doing:
        while True:
            claimed = await seat.call(ClaimInbox(wait=30))
            for item in claimed.items:
                await seat.call(AckInbox(delivery_ids=(item.delivery.id,)))
                if item.message is not None and item.message.flight_id is not None:
                    doing.create_task(_done(seat, item.message.flight_id, json.loads(item.message.body)))


async def _done(seat: Seat, flight_id: str, job: Mapping[str, Any]) -> None:
    try:
        await seat.call(StartFlight(flight_id=flight_id))
        await _jobs[job["job"]](seat, flight_id, job)
    except Refused:
        return  # it was cancelled meanwhile


async def _sleep(seat: Seat, flight_id: str, job: Mapping[str, Any]) -> None:
    await asyncio.sleep(job["seconds"])
    await seat.call(CompleteFlight(flight_id=flight_id, output=f"Done after {job['seconds']} seconds."))


async def _give_up(seat: Seat, flight_id: str, _: Mapping[str, Any]) -> None:
    await seat.call(FailFlight(flight_id=flight_id, reason="this always fails", code="gave_up"))


async def _vanish(seat: Seat, flight_id: str, _: Mapping[str, Any]) -> None:
    await seat.call(CompleteFlight(flight_id=flight_id, output=" "))


async def _ask_back(seat: Seat, flight_id: str, job: Mapping[str, Any]) -> None:
    view = await seat.call(GetFlight(flight_id=flight_id))
    for body in job["questions"]:
        asked = await seat.call(CreateQuestion(to=view.requester_address, body=body, flight_id=flight_id))
        asked = await seat.call(GetQuestion(question_id=asked.id, wait=20))
    await seat.call(CompleteFlight(flight_id=flight_id, output="Every question was answered."))


async def _greet(seat: Seat, flight_id: str, job: Mapping[str, Any]) -> None:
    await seat.call(CompleteFlight(flight_id=flight_id, output=f"Hello, {job['name']}!"))


_jobs = {"sleep": _sleep, "give up": _give_up, "vanish": _vanish, "ask back": _ask_back, "greet": _greet}


# -- resources, and what changes -----------------------------------------------------------------------


def _embedded(uri: str, kind: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=kind, text=text))


_RESOURCES = {
    "test://static-text": TextResourceContents(
        uri="test://static-text",
        mime_type="text/plain",
        text="This is the content of the static text resource.",
    ),
    "test://static-binary": BlobResourceContents(
        uri="test://static-binary", mime_type="image/png", blob=_PNG
    ),
    "test://watched-resource": TextResourceContents(
        uri="test://watched-resource", mime_type="text/plain", text="Watched resource content."
    ),
}


async def _listed(_: Scout) -> list[Resource]:
    return [
        Resource(name=uri.removeprefix("test://"), uri=uri, description="For tests.", mime_type=one.mime_type)
        for uri, one in _RESOURCES.items()
    ]


async def _read(_: Scout, uri: str) -> list[Any]:
    if uri in _RESOURCES:
        return [_RESOURCES[uri]]
    ident = uri.removeprefix("test://template/").removesuffix("/data")
    if uri != f"test://template/{ident}/data":
        raise MCPError(INVALID_PARAMS, "no such resource", {"uri": uri})
    text = json.dumps({"id": ident, "templateTest": True, "data": f"Data for ID: {ident}"})
    return [TextResourceContents(uri=uri, mime_type="application/json", text=text)]


_CHANGES = {"other tools": ToolsListChanged(), "other prompts": PromptsListChanged()}


def _touched(event: Event, _: str | None) -> list[Any]:
    """A message that says so stands for a change of the lists."""
    record = record_of(event)
    return [_CHANGES[record.body]] if isinstance(record, Message) and record.body in _CHANGES else []


@_tool("test_trigger_tool_change")
async def trigger_tool_change(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """As if there were other tools."""
    await call.scout.call(Send(to=WORKER, body="other tools"))
    return _said("There are.")


@_tool("test_trigger_prompt_change")
async def trigger_prompt_change(call: Call, _: Mapping[str, Any]) -> CallToolResult:
    """As if there were other prompts."""
    await call.scout.call(Send(to=WORKER, body="other prompts"))
    return _said("There are.")


# -- prompts -------------------------------------------------------------------------------------------


def _prompt(name: str, *arguments: str) -> Prompt:
    takes = [PromptArgument(name=one, description=one, required=True) for one in arguments]
    return Prompt(name=name, description="For tests.", arguments=takes)


_PROMPTS = [
    _prompt("test_simple_prompt"),
    _prompt("test_prompt_with_arguments", "arg1", "arg2"),
    _prompt("test_prompt_with_embedded_resource", "resourceUri"),
    _prompt("test_prompt_with_image"),
    _prompt("test_input_required_result_prompt"),
]


async def _prompted(call: Call) -> GetPromptResult:
    given = call.params.arguments or {}
    match call.params.name:
        case "test_simple_prompt":
            return _messages("This is a simple prompt for testing.")
        case "test_prompt_with_arguments":
            return _messages(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")
        case "test_prompt_with_embedded_resource":
            text = "Embedded resource content for testing."
            resource = _embedded(given["resourceUri"], "text/plain", text)
            return _messages(resource, "Please process the embedded resource above.")
        case "test_prompt_with_image":
            picture = ImageContent(data=_PNG, mime_type="image/png")
            return _messages(picture, "Please analyze the image above.")
        case "test_input_required_result_prompt":
            form = _form("What context should the prompt use?", context=_TEXT)
            found = await _asked(call, user_context=form)
            return _messages(f"Use {_field(found['user_context'], 'context')}.")
        case other:
            raise MCPError(INVALID_PARAMS, f"no prompt {other}")


def _messages(*contents: Any) -> GetPromptResult:
    blocks = [TextContent(text=one) if isinstance(one, str) else one for one in contents]
    return GetPromptResult(messages=[PromptMessage(role="user", content=one) for one in blocks])


async def _completed(_: Any, __: CompleteRequestParams) -> CompleteResult:
    return CompleteResult(completion=Completion(values=["paris", "park", "party"], total=3, has_more=False))


async def _level_set(_: Any, __: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()


OFFER = Offer(
    instructions="For tests.",
    tools=_offered,
    call=_call,
    resources=_listed,
    templates=[
        ResourceTemplate(name="data", uri_template="test://template/{id}/data", description="For tests.")
    ],
    read=_read,
    touched=_touched,
    prompts=_PROMPTS,
    prompt=_prompted,
    schema_of={one.name: one.input_schema for one in _tools}.get,
    methods={
        "completion/complete": Method(CompleteRequestParams, _completed),
        "logging/setLevel": Method(SetLevelRequestParams, _level_set),
    },
)
