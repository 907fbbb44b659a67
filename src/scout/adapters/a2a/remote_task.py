"""A task at an agent of another system, as far as a turn needs it, and what is kept of it on disk."""

from collections.abc import AsyncGenerator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from scout.base.codec import decode, encode
from scout.base.record import Record
from scout.base.refusal import Refused

_TASK, _CONTEXT = "task.json", "context.json"


class RemoteState(StrEnum):
    WORKING = "working"
    ASKING = "asking"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskFile(NamedTuple):
    name: str
    data: bytes


class RemoteTask(NamedTuple):
    """`text`: what the agent says about the state, or its answer. `question`: the id of what it asks now."""

    task_id: str
    context_id: str
    state: RemoteState
    text: str = ""
    question: str = ""
    files: tuple[TaskFile, ...] = ()


class RemoteProblem(Exception):  # noqa: N818 (an answer of the network, not a fault)
    """The agent cannot be reached, or does not take the request. `again`: a retry may succeed.

    `login`: it does not accept the credential.
    """

    def __init__(self, reason: str, *, again: bool = False, login: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again = again
        self.login = login


class OtherAgent(Protocol):
    """An agent of another system. Each method raises `RemoteProblem` and nothing else."""

    def send(self, text: str, *, key: str, known: "KeptTask") -> AsyncGenerator[RemoteTask]:
        """Send a message and follow its task until it ends or asks; without a task id, it begins one."""
        ...

    def follow(self, task_id: str) -> AsyncGenerator[RemoteTask]:
        """Follow a task until it ends or asks."""
        ...

    async def cancel(self, task_id: str) -> None: ...
    async def close(self) -> None: ...


class KeptTask(Record, omit_defaults=True):
    """What is kept of a turn: the task that it became, once that is known. `stopped`: why it was ended."""

    task_id: str = ""
    context_id: str = ""
    stopped: str = ""


class TurnFolder:
    """The folder of one turn, in the folder of its session, which keeps the context between turns."""

    def __init__(self, session: Path, delivery_id: str) -> None:
        self._session = session
        self.path = session / delivery_id

    def read(self) -> KeptTask | None:
        """Return what is kept of the turn; None if it never began."""
        return _read(self.path / _TASK)

    def read_context(self) -> str:
        """Return the context of the turns before; empty if there is none."""
        found = _read(self._session / _CONTEXT)
        return found.context_id if found else ""

    def write(self, kept: KeptTask) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(self.path / _TASK, kept)
        if kept.context_id:
            _write(self._session / _CONTEXT, KeptTask(context_id=kept.context_id))

    def store_file(self, file: TaskFile) -> Path:
        """Store a file of an answer under a safe name; return where."""
        name = "".join(one if one.isalnum() or one in "._-" else "_" for one in file.name).lstrip(".")
        place = self.path / (name[-100:] or "file")
        place.write_bytes(file.data)
        return place


def _read(file: Path) -> KeptTask | None:
    try:
        return decode(file.read_bytes(), KeptTask)
    except FileNotFoundError:
        return None
    except Refused:
        return KeptTask()


def _write(file: Path, kept: KeptTask) -> None:
    draft = file.with_name(f".{file.name}")
    draft.write_bytes(encode(kept))
    draft.replace(file)
