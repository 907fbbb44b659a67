"""The methods of A2A, each answered by operations of Scout in the name of the client."""

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from hashlib import sha256
from types import CoroutineType
from typing import Any, NamedTuple, NoReturn, TypeVar
from uuid import uuid4

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import a2a_pb2
from a2a.utils.errors import (
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields

from scout.a2a.errors import build_error
from scout.a2a.messages import ClientMessage, read_message, store_files
from scout.a2a.task_list import list_tasks
from scout.a2a.tasks import (
    TaskStatus,
    asks_client,
    build_history,
    build_status,
    build_task,
    get_context,
    is_finished,
    read_artifacts,
    read_questions,
    read_status,
)
from scout.base.refusal import Refused
from scout.model.ask import AskOrigin
from scout.protocol.asks import CancelFlight, FlightView, GetFlight, MakeAsk
from scout.protocol.questions import AnswerQuestion, GetQuestion, QuestionView
from scout.protocol.scout import Scout
from scout.protocol.talk import Send

T = TypeVar("T")
Event = a2a_pb2.Task | a2a_pb2.TaskStatusUpdateEvent | a2a_pb2.TaskArtifactUpdateEvent
CALL = "scout.call"
_WAIT = 30.0  # seconds of one long poll


class A2aCall(NamedTuple):
    """A request of a client: its Scout, and the agent at whose URL it arrived.

    `key`: repeating a request with the same key returns the first task.
    """

    scout: Scout
    agent_id: str
    agent_path: str
    key: str | None = None


def _translate(
    method: "Callable[..., CoroutineType[Any, Any, T]]",
) -> "Callable[..., CoroutineType[Any, Any, T]]":
    """Check the required fields of a request, and return refusals as errors of the protocol."""

    @functools.wraps(method)
    async def answer(self: Any, params: Any, context: ServerCallContext) -> T:
        validate_proto_required_fields(params)
        try:
            return await method(self, params, context.state[CALL])
        except Refused as refused:
            raise build_error(refused.diagnostic) from None

    return answer


def _translate_stream(method: Callable[..., AsyncGenerator[Event]]) -> Callable[..., AsyncGenerator[Event]]:
    """Do the same for a method that yields events."""

    @functools.wraps(method)
    async def answer(self: Any, params: Any, context: ServerCallContext) -> AsyncGenerator[Event]:
        validate_proto_required_fields(params)
        try:
            async with aclosing(method(self, params, context.state[CALL])) as events:
                async for event in events:
                    yield event
        except Refused as refused:
            raise build_error(refused.diagnostic) from None

    return answer


class ScoutHandler(RequestHandler):
    """Answers requests for every published agent. It keeps nothing: a task is a flight."""

    # -- messages ----------------------------------------------------------------------------------

    @_translate
    async def on_message_send(self, params: a2a_pb2.SendMessageRequest, call: A2aCall) -> a2a_pb2.Task:
        flight = await _take_message(call, params)
        if not params.configuration.return_immediately:
            while not (is_finished(flight) or asks_client(flight)):
                flight = await call.scout.call(GetFlight(flight_id=flight.id, wait=_WAIT))
        return await _show_task(call, flight, _read_length(params.configuration))

    @_translate_stream
    async def on_message_send_stream(
        self, params: a2a_pb2.SendMessageRequest, call: A2aCall
    ) -> AsyncGenerator[Event]:
        flight = await _take_message(call, params)
        yield await _show_task(call, flight, _read_length(params.configuration))
        async for event in _follow(call, flight, until_question=True):
            yield event

    @_translate_stream
    async def on_subscribe_to_task(
        self, params: a2a_pb2.SubscribeToTaskRequest, call: A2aCall
    ) -> AsyncGenerator[Event]:
        flight = await _find_flight(call, params.id)
        if is_finished(flight):
            raise UnsupportedOperationError(message=f"the task is {flight.state}: there is nothing to follow")
        yield await _show_task(call, flight, None)
        async for event in _follow(call, flight, until_question=False):
            yield event

    # -- tasks -------------------------------------------------------------------------------------

    @_translate
    async def on_get_task(self, params: a2a_pb2.GetTaskRequest, call: A2aCall) -> a2a_pb2.Task:
        return await _show_task(call, await _find_flight(call, params.id), _read_length(params))

    @_translate
    async def on_list_tasks(
        self, params: a2a_pb2.ListTasksRequest, call: A2aCall
    ) -> a2a_pb2.ListTasksResponse:
        page = await list_tasks(call.scout, call.agent_id, params)
        length = _read_length(params) if params.HasField("history_length") else 0
        tasks = [
            await _show_task(call, one, length, with_artifacts=params.include_artifacts)
            for one in page.flights
        ]
        return a2a_pb2.ListTasksResponse(
            tasks=tasks, next_page_token=page.next_token, page_size=page.size, total_size=page.total
        )

    @_translate
    async def on_cancel_task(self, params: a2a_pb2.CancelTaskRequest, call: A2aCall) -> a2a_pb2.Task:
        flight = await _find_flight(call, params.id)
        if is_finished(flight):
            raise TaskNotCancelableError(message=f"the task is already {flight.state}")
        ended = await call.scout.call(CancelFlight(flight_id=flight.id))
        return await _show_task(call, ended, None)

    # -- what the card does not offer --------------------------------------------------------------

    async def on_create_task_push_notification_config(
        self, params: a2a_pb2.TaskPushNotificationConfig, context: ServerCallContext
    ) -> NoReturn:
        raise PushNotificationNotSupportedError

    async def on_get_task_push_notification_config(
        self, params: a2a_pb2.GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> NoReturn:
        raise PushNotificationNotSupportedError

    async def on_list_task_push_notification_configs(
        self, params: a2a_pb2.ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> NoReturn:
        raise PushNotificationNotSupportedError

    async def on_delete_task_push_notification_config(
        self, params: a2a_pb2.DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> NoReturn:
        raise PushNotificationNotSupportedError

    async def on_get_extended_agent_card(
        self, params: a2a_pb2.GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> NoReturn:
        raise UnsupportedOperationError(message="there is no extended card")


# -- taking a message --------------------------------------------------------------------------------


async def _take_message(call: A2aCall, params: a2a_pb2.SendMessageRequest) -> FlightView:
    """Begin a task, or continue the one that the message names; return its flight."""
    message = params.message
    if message.role == a2a_pb2.ROLE_AGENT:
        raise InvalidParamsError(message="a client sends messages with the role ROLE_USER")
    sent = read_message(message)
    if message.task_id:
        return await _continue_task(call, message, sent)
    return await _begin_task(call, message, sent)


async def _begin_task(call: A2aCall, message: a2a_pb2.Message, sent: ClientMessage) -> FlightView:
    origin = AskOrigin(
        context_id=message.context_id or _name_context(call.key), message_id=message.message_id
    )
    ask = MakeAsk(
        to=call.agent_path,
        body=sent.text,
        attachments=await store_files(call.scout, sent.files),
        origin=origin,
        idempotency_key=call.key,
    )
    receipt = await call.scout.call(ask)
    return await call.scout.call(GetFlight(flight_id=receipt.flight_id))


async def _continue_task(call: A2aCall, message: a2a_pb2.Message, sent: ClientMessage) -> FlightView:
    """Answer the question of a task. A message to a task that works is mail for its agent."""
    flight = await _find_flight(call, message.task_id)
    if message.context_id not in ("", get_context(flight)):
        raise InvalidParamsError(message="contextId is not the context of the task")
    if is_finished(flight):
        raise UnsupportedOperationError(message=f"the task is {flight.state}: begin a new one")
    if asks_client(flight) and flight.waiting_on is not None and flight.waiting_on.ref is not None:
        answer = AnswerQuestion(question_id=flight.waiting_on.ref, answer=sent.text, idempotency_key=call.key)
        await call.scout.call(answer)
    else:
        files = await store_files(call.scout, sent.files)
        await call.scout.call(
            Send(to=call.agent_path, body=sent.text, attachments=files, idempotency_key=call.key)
        )
    return await call.scout.call(GetFlight(flight_id=flight.id))


def _name_context(key: str | None) -> str:
    """Return a new context; a request that is repeated with its key has the same one."""
    return f"ctx_{sha256(key.encode()).hexdigest()[:32] if key else uuid4().hex}"


# -- showing a task ----------------------------------------------------------------------------------


async def _find_flight(call: A2aCall, task_id: str) -> FlightView:
    """Return the flight of a task. A flight of another client or to another agent is not found."""
    if not task_id.startswith("flt_"):
        raise TaskNotFoundError
    flight = await call.scout.call(GetFlight(flight_id=task_id))
    if flight.id != task_id or flight.target != call.agent_id:
        raise TaskNotFoundError
    return flight


async def _show_task(
    call: A2aCall, flight: FlightView, length: int | None, *, with_artifacts: bool = True
) -> a2a_pb2.Task:
    """Return a flight as a task. `length`: how many messages of its history; None: all."""
    questions = await read_questions(call.scout, flight) if length != 0 else []
    history = build_history(flight, questions, length) if length != 0 else []
    artifacts = await read_artifacts(call.scout, flight) if with_artifacts else []
    return build_task(flight, await _read_status(call, flight), artifacts=artifacts, history=history)


async def _read_status(call: A2aCall, flight: FlightView) -> TaskStatus:
    return read_status(flight, await _find_question(call, flight))


async def _find_question(call: A2aCall, flight: FlightView) -> QuestionView | None:
    """Return the question that a task asks its client now."""
    on = flight.waiting_on
    if not asks_client(flight) or on is None or not (on.ref or "").startswith("qst_"):
        return None
    return await call.scout.call(GetQuestion(question_id=on.ref or ""))


async def _follow(call: A2aCall, flight: FlightView, *, until_question: bool) -> AsyncIterator[Event]:
    """Yield what changes until the task ends or, if wanted, until it asks the client."""
    shown = await _read_status(call, flight)
    while not (is_finished(flight) or (until_question and asks_client(flight))):
        flight = await call.scout.call(GetFlight(flight_id=flight.id, wait=_WAIT, seen=flight.revision))
        status = await _read_status(call, flight)
        if status == shown:
            continue
        shown = status
        for artifact in await read_artifacts(call.scout, flight):
            yield a2a_pb2.TaskArtifactUpdateEvent(
                task_id=flight.id, context_id=get_context(flight), artifact=artifact, last_chunk=True
            )
        yield a2a_pb2.TaskStatusUpdateEvent(
            task_id=flight.id, context_id=get_context(flight), status=build_status(flight, status)
        )


def _read_length(
    wish: a2a_pb2.SendMessageConfiguration | a2a_pb2.GetTaskRequest | a2a_pb2.ListTasksRequest,
) -> int | None:
    """Return how many messages of the history are wanted; None if the client leaves it to Scout."""
    if not wish.HasField("history_length"):
        return None
    if wish.history_length < 0:
        raise InvalidParamsError(message="historyLength must not be negative")
    return wish.history_length
