"""Requests of the programs that people work in: a session enrols itself and reports what happens in it."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar

from scout.base.record import Record
from scout.model.session import Session
from scout.protocol.parameters import Words, says
from scout.protocol.request import Write

__all__ = ["Enrol", "Enrolled", "HookAnswer", "HookEvent", "ReportHook"]


class HookEvent(StrEnum):
    """What a host reports of a session; each host calls these moments by names of its own."""

    SESSION_START = "session_start"
    PROMPT_SUBMIT = "prompt_submit"
    STOP = "stop"
    TOOL_USE = "tool_use"
    PERMISSION_REQUEST = "permission_request"
    SESSION_END = "session_end"


class Enrolled(Record):
    """The session, whose it is, and its own credential, which is shown this once.

    `name`: what others call exactly this session. `has_door`: it can be woken while it is idle, so its host
    says that it is there even then.
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
    """Enter a session that a person opened, as its project's agent; no program is started."""

    operation: ClassVar[str] = "session.enrol"
    route: ClassVar[str] = "POST /v1/sessions/enrol"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("cwd",)
    flags: ClassVar[dict[str, str]] = {"nativeSessionId": "native"}
    permission: ClassVar[str] = "a host"
    folder_field: ClassVar[str] = "cwd"

    cwd: Annotated[Words, says("the directory that the session works in")]
    harness: Annotated[Words, says("the program that the person works in")]
    native_session_id: Annotated[Words | None, says("what that program calls the session")] = None
    parent_pid: Annotated[int | None, says("its process")] = None
    parent_started: Annotated[Words | None, says("when that process began, as the system says it")] = None
    window_pid: Annotated[int | None, says("the process of the window it is open in, if another")] = None
    window_started: Annotated[Words | None, says("when that window's process began")] = None
    model: Annotated[Words | None, says("the model that answers there")] = None


class HookAnswer(Record):
    """What the session is told now; `handed_over` is the mail in it, `attention_id` what a person decides.

    `notice`: what the person at the session is shown.
    """

    context: str = ""
    notice: str = ""
    handed_over: tuple[str, ...] = ()
    attention_id: str | None = None


class ReportHook(Write[HookAnswer]):
    """Report what happens in an enrolled session, and take along what waits for it."""

    operation: ClassVar[str] = "session.hook"
    route: ClassVar[str] = "POST /v1/sessions/{sessionId}/hook"
    words: ClassVar[tuple[str, ...]] = ("sessionId", "event")
    permission: ClassVar[str] = "the host that enrolled the session"

    session_id: Annotated[Words, says("the session's id")]
    event: Annotated[HookEvent, says("what happened")]
    prompt: Annotated[str, says("of a prompt: how it begins")] = ""
    last_text: Annotated[str, says("of a stop: what the model said last")] = ""
    tool: Annotated[str, says("of a permission request: the tool that is to be used")] = ""
    arguments: Annotated[dict[str, Any], says("of a permission request: what the tool is given")] = {}
    expires_in: Annotated[float, says("of a permission request: seconds until its host asks elsewhere")] = 60
