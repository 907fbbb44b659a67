"""Shared parts of all harnesses: defaults for unsupported features, and common steps."""

import asyncio
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from scout.adapters.transcript import get_object, to_list
from scout.base.refusal import Refused, Remedy
from scout.model.problems.session import Layer, Missing, SessionNotAttachable
from scout.ports import (
    Failed,
    HumanAnswer,
    Observed,
    OpenedSession,
    ProgramSight,
    Prompt,
    SessionSpec,
    Tailed,
    Transcript,
)

INTERRUPTED = "interrupted"
STOPPED = "the session was stopped"
# The name of the MCP server that Scout gives to a run. Never `scout`: `scout setup` and people use that name,
# and hosts merge servers of the same name.
MCP_KEY = "scout_run"

_ID = re.compile(r"\w[\w.-]*", re.ASCII)
_SERVER = re.compile(r"[\w-]+", re.ASCII)
_VERSION_WAIT = 10.0
_CHARACTERS_PER_TOKEN = 4


class BasicHarness:
    """A harness without a persistent program: nothing to steer, to open or to observe."""

    name: str

    async def is_warm(self, session_id: str) -> bool:
        return False

    async def look(self, session_id: str) -> ProgramSight:
        return ProgramSight()

    async def steer(self, session_id: str, text: str) -> bool:
        return False

    async def respond(self, session_id: str, request: str, answer: HumanAnswer) -> bool:
        return False

    async def deliver_live(self, native_id: str, text: str) -> bool:
        return False

    async def open(self, spec: SessionSpec) -> OpenedSession:
        reason = f"{self.name} has no session that a terminal can resume"
        raise Refused(refuse_attach(self.name, spec, spec.session_id, reason))

    def locate_transcript(self, native_id: str, cwd: str | None) -> Transcript | None:
        """Return None: the harness keeps no transcript."""
        return None

    async def observe(self) -> list[Observed]:
        return []

    async def tail(self, spec: SessionSpec, after: int, limit: int) -> Tailed:
        look = Remedy(
            operation="session.inspect", parameters={"sessionId": spec.session_id}, why="its last output"
        )
        raise Refused(
            SessionNotAttachable(
                session_id=spec.session_id,
                layer=Layer.HARNESS,
                reason=f"{self.name} keeps no transcript",
                remedies=(look,),
            )
        )


class TurnImpossible(Exception):  # noqa: N818 (a signal between two methods)
    """No program can take the turn; `failed` is the end of the turn."""

    def __init__(
        self,
        reason: str,
        layer: Layer = Layer.PROCESS,
        *,
        again: bool = False,
        log: str | None = None,
        missing: Missing | None = None,
        remedies: tuple[Remedy, ...] = (),
    ) -> None:
        super().__init__(reason)
        self.failed = Failed(
            layer=layer, reason=reason, again=again, log=log, missing=missing, remedies=remedies
        )


def refuse_attach(harness: str, spec: SessionSpec, native_id: str, reason: str) -> SessionNotAttachable:
    """Build the refusal of this session. The remedy is a new session."""
    start = {"agent": spec.address, "harness": harness}
    remedy = Remedy(operation="session.start", parameters=start, why="start a new session")
    return SessionNotAttachable(session_id=native_id, layer=Layer.HARNESS, reason=reason, remedies=(remedy,))


# -- sessions ----------------------------------------------------------------------------------------


def check_id(part: str) -> str:
    """Return an id that is safe as the name of a folder."""
    if not _ID.fullmatch(part):
        raise ValueError(f"not an id: {part!r}")
    return part


def choose_directory(spec: SessionSpec, scratch: Path) -> Path:
    """Return the folder a program runs in: the agent's, or `scratch`, which is then made in its parent."""
    if spec.cwd is None:
        scratch.mkdir(mode=0o700, exist_ok=True)
        return scratch
    directory = Path(spec.cwd)
    if not directory.is_dir():
        raise TurnImpossible(f"its directory {directory} does not exist")
    return directory


def build_first_prompt(spec: SessionSpec, prompt: Prompt, *, had_turns: bool) -> str:
    """Return the text of a turn. Without a system prompt, the contract comes with the first turn."""
    if had_turns or not spec.instructions:
        return prompt.text
    return f"{spec.instructions}\n{prompt.text}"


# -- programs ----------------------------------------------------------------------------------------


def find_command(command: tuple[str, ...], directory: Path, path: str) -> tuple[str, ...] | None:
    """Return a command line with its program as a path; none if the program is not found."""
    program, *arguments = command
    wanted = str(directory / program) if "/" in program else program
    found = shutil.which(wanted, path=path)
    return (str(Path(found).absolute()), *arguments) if found else None


async def read_version(program: str, environment: Mapping[str, str]) -> list[str]:
    """Return the words that `PROGRAM --version` prints; none if it does not answer in time."""
    null = asyncio.subprocess.DEVNULL
    with suppress(OSError, TimeoutError):
        process = await asyncio.create_subprocess_exec(
            program, "--version", env=environment, stdin=null, stdout=asyncio.subprocess.PIPE, stderr=null
        )
        try:
            async with asyncio.timeout(_VERSION_WAIT):
                printed, _ = await process.communicate()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        return printed.decode("utf-8", "replace").split()
    return []


def estimate_tokens(characters: int) -> int:
    """Estimate the tokens of a text by its length."""
    return -(-characters // _CHARACTERS_PER_TOKEN)


def find_relays(servers: Mapping[str, Any], host: str) -> tuple[str, ...]:
    """Return the names of the MCP servers in a host's configuration that run `scout mcp --host HOST`.

    A run leaves them out, because they would call Scout for another session.
    """
    wanted = ["mcp", "--host", host]
    entries = dict(servers)
    return tuple(
        name
        for name in entries
        if _SERVER.fullmatch(name) and to_list(get_object(entries, name).get("args"))[-3:] == wanted
    )
