"""Requests about tasks: work for an agent that exists only for it."""

from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.base.time import Time
from scout.model.agent import Lifecycle
from scout.model.ask import AskReceipt, ReplyMode
from scout.model.flight import FlightError, FlightState
from scout.protocol.parameters import Body, Cursor, Limit, Seconds, Words, describe
from scout.protocol.request import Page, Request, Write


class CreateTask(Write[AskReceipt]):
    """Give a task to a new agent, which is retired when the task is done."""

    operation: ClassVar[str] = "task.create"
    typed: ClassVar[tuple[str, ...]] = ("task",)
    route: ClassVar[str] = "POST /v1/tasks"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("body",)
    flags: ClassVar[dict[str, str]] = {"projectPath": "project", "attachments": "attach"}
    permission: ClassVar[str] = "a person, or callers who control that person's task agents"
    folder_field: ClassVar[str] = "project_path"

    body: Body
    project_path: Annotated[
        Words | None,
        describe("the project directory; default: yours, if programs may start there"),
    ] = None
    harness: Annotated[Words | None, describe("the harness that runs it; default: that of the role task")] = (
        None
    )
    model: Annotated[Words | None, describe("the model to use")] = None
    reply_mode: Annotated[
        ReplyMode, describe("none, inline (you fetch it) or notify (sent to your inbox)")
    ] = ReplyMode.INLINE
    within: Annotated[Words | None, describe("the flight you are working on")] = None
    attachments: Annotated[
        tuple[Words, ...], describe("stored files, each as SHA256 or SHA256:NAME; maximum 32")
    ] = ()
    wait: Annotated[Seconds, describe("wait up to this many seconds for the result, maximum 60")] = 0


class TaskView(Record):
    """A task and its result. `id` names it in `task show`; `lifecycle` is that of its agent."""

    id: str
    agent_id: str
    address: str
    lifecycle: Lifecycle
    state: FlightState
    body: str
    output: str | None = None
    reason: str = ""
    error: FlightError | None = None
    ask_id: str
    flight_id: str
    folder: str | None = None
    harness: str | None = None
    model: str | None = None
    effort: str | None = None
    created_at: Time
    finished_at: Time | None = None


class ListTasks(Request[Page[TaskView]]):
    """List your tasks, newest first."""

    operation: ClassVar[str] = "task.list"
    route: ClassVar[str] = "GET /v1/tasks"
    permission: ClassVar[str] = "only your user's"

    open: Annotated[bool, describe("only unfinished tasks")] = False
    cursor: Cursor = None
    limit: Limit = None


class GetTask(Request[TaskView]):
    """Show a task and its result."""

    operation: ClassVar[str] = "task.show"
    route: ClassVar[str] = "GET /v1/tasks/{taskId}"
    words: ClassVar[tuple[str, ...]] = ("taskId",)
    permission: ClassVar[str] = "only your user's"

    task_id: Annotated[
        Words, describe("the task's id or its beginning, its agent's address, or its flight's id")
    ]
