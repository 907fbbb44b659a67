"""An agent of another system: a server made of the parts of the official SDK, as its own program.

The first word of a message directs it: `!fail WHY`, `!ask QUESTION`, `!hang`, `!file TEXT`, `!reject WHY`.
Without one it answers with the message. `--no-streaming`: its card does not offer streams. `--token`: what a
caller has to send.
"""

import argparse
import asyncio
import socket
from typing import Any

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message
from a2a.server.agent_execution.agent_executor import AgentExecutor
from a2a.server.agent_execution.context import RequestContext
from a2a.server.events.event_queue import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.server.tasks.task_updater import TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response


class Executor(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id
        assert context.context_id
        assert context.message is not None
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        text = context.message.parts[0].text
        word, _, rest = text.partition(" ")

        def build(words: str) -> Any:
            return updater.new_agent_message([Part(text=words)])

        match word:
            case "!fail":
                await updater.failed(build(rest))
            case "!reject":
                await updater.reject(build(rest))
            case "!ask":
                await updater.requires_input(build(rest))
            case "!hang":
                await updater.start_work(build("working on it"))
                await asyncio.Event().wait()
            case "!file":
                parts = [Part(text="see the file"), Part(raw=rest.encode(), filename="../notes.txt")]
                await updater.add_artifact(parts)
                await updater.complete()
            case _:
                await updater.start_work(build("working on it"))
                await updater.add_artifact([Part(text=text)])
                await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id
        assert context.context_id
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def build_application(url: str, *, streaming: bool, interface: str) -> Starlette:
    card = AgentCard(
        name="other",
        description="An agent of another system.",
        version="1",
        supported_interfaces=[
            AgentInterface(url=interface or url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="say", name="say", description="Says it again.", tags=["say"])],
    )
    handler = DefaultRequestHandler(
        agent_executor=Executor(), task_store=InMemoryTaskStore(), agent_card=card
    )
    routes = [
        *create_jsonrpc_routes(handler, "/"),
        *create_agent_card_routes(card),
        *create_rest_routes(handler, path_prefix="/rest"),
    ]
    return Starlette(routes=routes)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-streaming", action="store_true")
    parser.add_argument("--interface", default="")
    parser.add_argument("--token", default="")
    wish = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    application = build_application(url, streaming=not wish.no_streaming, interface=wish.interface)

    async def check(request: Request, call_next: Any) -> Response:
        sent = request.headers.get("authorization", "")
        if wish.token and request.method == "POST" and sent != f"Bearer {wish.token}":
            return PlainTextResponse("who are you?", 401)
        return await call_next(request)

    if wish.token:
        application.add_middleware(BaseHTTPMiddleware, dispatch=check)
    print(url, flush=True)
    uvicorn.Server(uvicorn.Config(application, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main()
