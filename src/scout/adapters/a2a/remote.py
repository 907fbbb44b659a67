"""Calls to an agent of another system, by the client of the A2A SDK. Loaded with the first call."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import aclosing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.client import ClientCallContext
from a2a.client.errors import A2AClientError, AgentCardResolutionError
from a2a.types import a2a_pb2
from a2a.utils.errors import A2AError, InternalError
from google.protobuf.json_format import MessageToDict

from scout.adapters.a2a.remote_task import KeptTask, RemoteProblem, RemoteState, RemoteTask, TaskFile

_BINDINGS = ("JSONRPC", "HTTP+JSON")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_CONNECTING, _PATIENCE = 10.0, 60.0  # seconds
_SILENCE = 120.0  # seconds without a byte of a stream, after which it is opened again
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_ATTEMPTS = 24  # in a row without an answer, about ten minutes
_LONGEST = 32 * 1024 * 1024  # bytes of one answer or stream

_STATES = {
    a2a_pb2.TASK_STATE_COMPLETED: RemoteState.COMPLETED,
    a2a_pb2.TASK_STATE_FAILED: RemoteState.FAILED,
    a2a_pb2.TASK_STATE_REJECTED: RemoteState.FAILED,
    a2a_pb2.TASK_STATE_CANCELED: RemoteState.CANCELLED,
    a2a_pb2.TASK_STATE_INPUT_REQUIRED: RemoteState.ASKING,
    a2a_pb2.TASK_STATE_AUTH_REQUIRED: RemoteState.ASKING,
}


async def connect(url: str, token: str) -> "SdkAgent":
    """Read the card of the agent at a URL, and return the agent.

    A token is sent to the origin of the URL and nowhere else, whatever the card or a redirect names.
    """
    _check_url(url, token)
    http = await asyncio.to_thread(_make_http, token)
    try:
        with _translate():
            card = await A2ACardResolver(http, url.rstrip("/")).get_agent_card()
            card = _keep_own_interfaces(card, url)
            config = ClientConfig(
                httpx_client=http,
                supported_protocol_bindings=list(_BINDINGS),
                polling=not card.capabilities.streaming,
            )
            return SdkAgent(ClientFactory(config).create(card), http, streams=card.capabilities.streaming)
    except BaseException:
        await http.aclose()
        raise


class SdkAgent:
    """One agent, while a turn follows its task. The connection may break and come back meanwhile."""

    def __init__(self, client: Client, http: httpx.AsyncClient, *, streams: bool) -> None:
        self._client = client
        self._http = http
        self._streams = streams

    async def send(self, text: str, *, key: str, known: KeptTask) -> AsyncGenerator[RemoteTask]:
        message = a2a_pb2.Message(
            message_id=key,
            role=a2a_pb2.ROLE_USER,
            task_id=known.task_id,
            context_id=known.context_id,
            parts=[a2a_pb2.Part(text=text)],
        )
        request = a2a_pb2.SendMessageRequest(message=message)
        context = ClientCallContext(service_parameters={"Idempotency-Key": key})
        begun = _Seen()
        try:
            with _translate():
                async with aclosing(
                    _read(begun, self._client.send_message(request, context=context))
                ) as tasks:
                    async for task in tasks:
                        yield task
        except RemoteProblem:
            if not begun.task.id:
                raise
        if begun.task.id and not begun.is_settled:
            async with aclosing(self.follow(begun.task.id)) as tasks:
                async for task in tasks:
                    yield task

    async def follow(self, task_id: str) -> AsyncGenerator[RemoteTask]:
        failures, pause = 0, _FIRST_PAUSE
        while True:
            seen = _Seen()
            try:
                with _translate():
                    async with aclosing(self._look(seen, task_id)) as tasks:
                        async for task in tasks:
                            failures, pause = 0, _FIRST_PAUSE
                            yield task
            except RemoteProblem as problem:
                failures += 1
                if not problem.again or failures >= _ATTEMPTS:
                    raise
            if seen.is_settled:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _look(self, seen: "_Seen", task_id: str) -> AsyncGenerator[RemoteTask]:
        """Yield the task as it is, then its changes as far as the agent streams them."""
        yield seen.take(
            a2a_pb2.StreamResponse(task=await self._client.get_task(a2a_pb2.GetTaskRequest(id=task_id)))
        )
        if seen.is_settled or not self._streams:
            return
        news = self._client.subscribe(a2a_pb2.SubscribeToTaskRequest(id=task_id))
        async with aclosing(_read(seen, news)) as tasks:
            async for task in tasks:
                yield task

    async def cancel(self, task_id: str) -> None:
        with _translate():
            await self._client.cancel_task(a2a_pb2.CancelTaskRequest(id=task_id))

    async def close(self) -> None:
        await self._http.aclose()


class _Seen:
    """A task as its events describe it so far."""

    def __init__(self) -> None:
        self.task = a2a_pb2.Task()
        self.is_settled = False

    def take(self, event: a2a_pb2.StreamResponse) -> RemoteTask:
        """Return the task after an event."""
        match event.WhichOneof("payload"):
            case "task":
                self.task.CopyFrom(event.task)
            case "message":
                self.task.context_id = event.message.context_id or self.task.context_id
                self.task.status.state = a2a_pb2.TASK_STATE_COMPLETED
                self.task.status.message.CopyFrom(event.message)
            case "status_update":
                self.task.status.CopyFrom(event.status_update.status)
            case "artifact_update":
                self._add_artifact(event.artifact_update)
            case _:
                pass
        found = _build_task(self.task)
        self.is_settled = found.state is not RemoteState.WORKING
        return found

    def _add_artifact(self, update: a2a_pb2.TaskArtifactUpdateEvent) -> None:
        for known in self.task.artifacts:
            if known.artifact_id == update.artifact.artifact_id:
                if update.append:
                    known.parts.extend(update.artifact.parts)
                else:
                    known.CopyFrom(update.artifact)
                return
        self.task.artifacts.append(update.artifact)


async def _read(seen: _Seen, events: AsyncIterator[a2a_pb2.StreamResponse]) -> AsyncGenerator[RemoteTask]:
    """Yield the task after each event. A subscription may be silent, but not for long."""
    iterator = aiter(events)
    while True:
        try:
            async with asyncio.timeout(_SILENCE):
                event = await anext(iterator)
        except StopAsyncIteration:
            return
        yield seen.take(event)
        if seen.is_settled:
            return


# -- what a task says --------------------------------------------------------------------------------


def _build_task(task: a2a_pb2.Task) -> RemoteTask:
    state = _STATES.get(task.status.state, RemoteState.WORKING)
    said = _join_text(task.status.message.parts)
    if state is RemoteState.COMPLETED:
        parts = [part for artifact in task.artifacts for part in artifact.parts]
        files = tuple(
            TaskFile(part.filename or "file", part.raw)
            for part in parts
            if part.WhichOneof("content") == "raw"
        )
        return RemoteTask(task.id, task.context_id, state, _join_text(parts) or said, files=files)
    if state is RemoteState.ASKING:
        needs = task.status.state == a2a_pb2.TASK_STATE_AUTH_REQUIRED
        text = said or ("It needs you to sign in." if needs else "It needs an answer.")
        return RemoteTask(task.id, task.context_id, state, text, question=_name_question(task))
    if state is RemoteState.FAILED and task.status.state == a2a_pb2.TASK_STATE_REJECTED:
        said = f"it rejected the task: {said}" if said else "it rejected the task"
    return RemoteTask(task.id, task.context_id, state, said)


def _name_question(task: a2a_pb2.Task) -> str:
    """Return a name for the current question that is the same after a restart."""
    return task.status.message.message_id or f"{task.id}.{task.status.timestamp.ToMicroseconds()}"


def _join_text(parts: Any) -> str:
    texts: list[str] = []
    for part in parts:
        match part.WhichOneof("content"):
            case "text":
                texts.append(part.text)
            case "data":
                data = MessageToDict(part).get("data")
                texts.append(f"```json\n{json.dumps(data, ensure_ascii=False, indent=2)}\n```")
            case "url":
                texts.append(f"{part.filename or 'file'}: {part.url}")
            case _:
                pass
    return "\n\n".join(one for one in texts if one.strip())


# -- the connection ----------------------------------------------------------------------------------


def _check_url(url: str, token: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise RemoteProblem(f"{url[:200]} is not a URL of http or https without a user")
    if token and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise RemoteProblem(f"the credential is not sent to {parts.hostname} without TLS: use https")


def _keep_own_interfaces(card: a2a_pb2.AgentCard, url: str) -> a2a_pb2.AgentCard:
    """Return the card with the interfaces at the origin of the URL; refuse one that has none."""
    own = urlsplit(url)[:2]
    kept = [
        one
        for one in card.supported_interfaces
        if urlsplit(one.url)[:2] == own and one.protocol_binding in _BINDINGS
    ]
    if not kept:
        raise RemoteProblem(f"its card names no interface by JSON-RPC or HTTP+JSON at {own[0]}://{own[1]}")
    found = a2a_pb2.AgentCard()
    found.CopyFrom(card)
    del found.supported_interfaces[:]
    found.supported_interfaces.extend(kept)
    return found


def _make_http(token: str) -> httpx.AsyncClient:
    """Make the client in a thread, because it reads the trusted certificates."""
    sent = {"Accept-Encoding": "identity", "User-Agent": "scout"}
    if token:
        sent["Authorization"] = f"Bearer {token}"
    return httpx.AsyncClient(
        transport=_BoundedTransport(httpx.AsyncHTTPTransport()),
        timeout=httpx.Timeout(_PATIENCE, connect=_CONNECTING, read=_SILENCE),
        headers=sent,
        follow_redirects=False,
        trust_env=False,
    )


class _BoundedTransport(httpx.AsyncBaseTransport):
    """A transport whose answers have a maximum length."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _BoundedStream(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for part in self._inner:
            total += len(part)
            if total > _LONGEST:
                raise httpx.ReadError(f"an answer of more than {_LONGEST} bytes")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


@contextmanager
def _translate() -> Generator[None]:
    """Raise what the SDK raises as a problem of the remote agent."""
    try:
        yield
    except AgentCardResolutionError as error:
        raise _read_status(error, f"its card cannot be read: {error.message}", error.status_code) from None
    except A2AClientError as error:
        cause = error.__cause__
        status = cause.response.status_code if isinstance(cause, httpx.HTTPStatusError) else None
        raise _read_status(error, str(error.message), status) from None
    except A2AError as error:
        raise RemoteProblem(f"it answered: {error.message}", again=isinstance(error, InternalError)) from None
    except (httpx.HTTPError, TimeoutError, ValueError) as error:
        raise RemoteProblem(f"cannot be reached: {error or type(error).__name__}", again=True) from None


def _read_status(error: Exception, reason: str, status: int | None) -> RemoteProblem:
    if status in (401, 403):
        return RemoteProblem(f"it does not accept the credential (HTTP {status})", login=True)
    refused = status is not None and 400 <= status < 500 and status not in (408, 429)
    return RemoteProblem(reason[:300], again=not refused)
