"""Requests of host programs: a session enrols itself and reports its events."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar

from scout.base.record import Record
from scout.model.session import Session
from scout.protocol.parameters import Words, describe
from scout.protocol.request import Write


class HookEvent(StrEnum):
    """The session events a host reports. Hosts have their own names for them."""

    SESSION_START = "session_start"
    PROMPT_SUBMIT = "prompt_submit"
    STOP = "stop"
    TOOL_USE = "tool_use"
    PERMISSION_REQUEST = "permission_request"
    SESSION_END = "session_end"


class Enrolled(Record):
    """The session, its agent, and its token, which is shown once.

    `name`: the address of exactly this session. `has_door`: it can be woken while idle, so its host
    sends heartbeats even then.
    """

    session: Session
    agent_id: str
    address: str
    minimal: str
    name: str
    endpoint_id: str
    token: str | None = None
    has_door: bool = False


class Enrol(Write[Enrolled]):
    """Enrol a session that a person opened, as its project's agent. Starts no program."""

    operation: ClassVar[str] = "session.enrol"
    route: ClassVar[str] = "POST /v1/sessions/enrol"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("cwd",)
    flags: ClassVar[dict[str, str]] = {"nativeSessionId": "native"}
    permission: ClassVar[str] = "a host"
    folder_field: ClassVar[str] = "cwd"

    cwd: Annotated[Words, describe("the session's directory")]
    harness: Annotated[Words, describe("the host program")]
    native_session_id: Annotated[Words | None, describe("the session's id in that program")] = None
    parent_pid: Annotated[int | None, describe("the program's process id")] = None
    parent_started: Annotated[
        Words | None, describe("when that process started, as the operating system reports it")
    ] = None
    window_pid: Annotated[int | None, describe("the process id of its window, if different")] = None
    window_started: Annotated[Words | None, describe("when the window's process started")] = None
    model: Annotated[Words | None, describe("the model in use")] = None


class HookAnswer(Record):
    """Text for the session. `handed_over`: the messages in it. `attention_id`: the item a person decides.

    `notice`: text shown to the person at the session.
    """

    context: str = ""
    notice: str = ""
    handed_over: tuple[str, ...] = ()
    attention_id: str | None = None


class ReportHook(Write[HookAnswer]):
    """Report an event of an enrolled session and receive its waiting messages."""

    operation: ClassVar[str] = "session.hook"
    route: ClassVar[str] = "POST /v1/sessions/{sessionId}/hook"
    words: ClassVar[tuple[str, ...]] = ("sessionId", "event")
    permission: ClassVar[str] = "the host that enrolled the session"

    session_id: Annotated[Words, describe("the session's id")]
    event: Annotated[HookEvent, describe("what happened")]
    prompt: Annotated[str, describe("prompt: its beginning")] = ""
    last_text: Annotated[str, describe("stop: the model's last text")] = ""
    tool: Annotated[str, describe("permission request: the tool")] = ""
    arguments: Annotated[dict[str, Any], describe("permission request: the tool's arguments")] = {}
    expires_in: Annotated[float, describe("permission request: seconds until the host asks elsewhere")] = 60
