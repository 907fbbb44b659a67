"""A flight as a task of A2A. There is no other record of a task."""

import json
from collections.abc import Sequence
from contextlib import suppress
from mimetypes import MimeTypes
from typing import NamedTuple

from a2a.types import a2a_pb2
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from google.protobuf.timestamp_pb2 import Timestamp

from scout.base.time import Time
from scout.model.conversation import Attachment
from scout.model.flight import FLIGHT, FlightState
from scout.protocol.asks import FlightView
from scout.protocol.questions import ListQuestions, QuestionView
from scout.protocol.scout import Scout
from scout.protocol.talk import GetBlob, GetMessage

REJECTED = "rejected"  # the code with which an agent fails a flight that it does not take

_STATES = {
    FlightState.QUEUED: a2a_pb2.TASK_STATE_SUBMITTED,
    FlightState.RUNNING: a2a_pb2.TASK_STATE_WORKING,
    FlightState.WAITING: a2a_pb2.TASK_STATE_WORKING,
    FlightState.COMPLETED: a2a_pb2.TASK_STATE_COMPLETED,
    FlightState.FAILED: a2a_pb2.TASK_STATE_FAILED,
    FlightState.CANCELLED: a2a_pb2.TASK_STATE_CANCELED,
}
_QUESTIONS = 200
_ROOM = 1024 * 1024  # bytes of files in one answer
_JSON, _LINK = "application/json", ".url"
_MEDIA_TYPES = MimeTypes()  # built-in types only, so that no file of the machine is read


class TaskStatus(NamedTuple):
    """What a client sees of a flight: two of them that are equal need no update between them."""

    state: a2a_pb2.TaskState
    text: str


def is_finished(flight: FlightView) -> bool:
    return flight.state in FLIGHT.terminal


def asks_client(flight: FlightView) -> bool:
    """Whether the flight waits for an answer of its requester; a question to anyone else is not theirs."""
    return flight.is_asking and flight.next_move_owner_id == flight.requester_id


def read_status(flight: FlightView, question: QuestionView | None = None) -> TaskStatus:
    """Return the state of a task and its explanation; a completed task needs none."""
    if asks_client(flight):
        return TaskStatus(a2a_pb2.TASK_STATE_INPUT_REQUIRED, question.body if question else flight.reason)
    if flight.state is FlightState.FAILED and flight.error is not None:
        rejected = flight.error.code == REJECTED
        state = a2a_pb2.TASK_STATE_REJECTED if rejected else a2a_pb2.TASK_STATE_FAILED
        return TaskStatus(state, flight.error.message)
    done = flight.state is FlightState.COMPLETED
    return TaskStatus(_STATES[flight.state], "" if done else flight.reason)


def get_context(flight: FlightView) -> str:
    """Return the context of a task; an ask that no client of A2A made has its conversation."""
    return flight.origin.context_id if flight.origin else flight.conversation_id


def build_status(flight: FlightView, status: TaskStatus) -> a2a_pb2.TaskStatus:
    told = None
    if status.text:
        told = _build_message(flight, f"{flight.id}.{flight.revision}", a2a_pb2.ROLE_AGENT, status.text)
    return a2a_pb2.TaskStatus(state=status.state, message=told, timestamp=_build_timestamp(flight.updated_at))


def build_task(
    flight: FlightView,
    status: TaskStatus,
    *,
    artifacts: Sequence[a2a_pb2.Artifact] = (),
    history: Sequence[a2a_pb2.Message] = (),
) -> a2a_pb2.Task:
    return a2a_pb2.Task(
        id=flight.id,
        context_id=get_context(flight),
        status=build_status(flight, status),
        artifacts=artifacts,
        history=history,
    )


# -- history -----------------------------------------------------------------------------------------


async def read_questions(scout: Scout, flight: FlightView) -> list[QuestionView]:
    """Return the questions that the agent asked the client during a flight, oldest first."""
    page = await scout.call(ListQuestions(limit=_QUESTIONS))
    asked = [one for one in page.items if one.flight_id == flight.id]
    return sorted(asked, key=lambda one: one.id)


def build_history(
    flight: FlightView, questions: Sequence[QuestionView], length: int | None
) -> list[a2a_pb2.Message]:
    """Return the messages of a task: the first one, then the questions and their answers.

    A question that is open is the message of the status, and not yet history.
    """
    first = flight.origin.message_id if flight.origin else flight.ask_id
    found = [_build_message(flight, first, a2a_pb2.ROLE_USER, flight.body)]
    for one in questions:
        if one.answer is not None:
            found += [
                _build_message(flight, one.message_id or one.id, a2a_pb2.ROLE_AGENT, one.body),
                _build_message(
                    flight, one.answer_message_id or f"{one.id}.answer", a2a_pb2.ROLE_USER, one.answer
                ),
            ]
    return found if length is None else found[len(found) - min(length, len(found)) :]


# -- the result --------------------------------------------------------------------------------------


async def read_artifacts(scout: Scout, flight: FlightView) -> list[a2a_pb2.Artifact]:
    """Return the answer of a completed flight: its text, and its files."""
    if flight.state is not FlightState.COMPLETED:
        return []
    parts = [a2a_pb2.Part(text=flight.output or "", media_type="text/markdown")]
    if flight.output_message_id is not None:
        said = await scout.call(GetMessage(message_id=flight.output_message_id))
        parts += await _read_files(scout, said.attachments)
    return [a2a_pb2.Artifact(artifact_id=f"{flight.id}.answer", name="answer", parts=parts)]


async def _read_files(scout: Scout, files: Sequence[Attachment]) -> list[a2a_pb2.Part]:
    """Return files as parts. One that does not fit into an answer is only named."""
    parts, room = list[a2a_pb2.Part](), _ROOM
    for file in files:
        room -= file.size
        if room < 0:
            parts.append(a2a_pb2.Part(text=f"{file.name}: {file.size} bytes are too many for this answer"))
        else:
            parts.append(_build_file(file, (await scout.call(GetBlob(sha256=file.sha256))).data))
    return parts


def _build_file(file: Attachment, data: bytes) -> a2a_pb2.Part:
    """Return a file as a part: JSON as data, `NAME.url` as the link it holds, any other file as its bytes."""
    if file.name.endswith(_LINK) and data.startswith((b"http://", b"https://")) and len(data.split()) == 1:
        name = file.name.removesuffix(_LINK)
        kind = _MEDIA_TYPES.guess_type(name)[0] or ""
        return a2a_pb2.Part(url=data.decode("utf-8", "replace").strip(), filename=name, media_type=kind)
    if file.media_type == _JSON:
        with suppress(ValueError):  # it may not be JSON, whatever its type states
            value = ParseDict(json.loads(data), Value())
            return a2a_pb2.Part(data=value, filename=file.name, media_type=_JSON)
    return a2a_pb2.Part(raw=data, filename=file.name, media_type=file.media_type)


def _build_message(flight: FlightView, ident: str, role: a2a_pb2.Role, text: str) -> a2a_pb2.Message:
    return a2a_pb2.Message(
        message_id=ident,
        task_id=flight.id,
        context_id=get_context(flight),
        role=role,
        parts=[a2a_pb2.Part(text=text)],
    )


def _build_timestamp(moment: Time) -> Timestamp:
    found = Timestamp()
    found.FromMicroseconds(int(moment))
    return found
