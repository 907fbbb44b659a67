"""The programs that the sessions have had: found again by their folders, and begun when there is need."""

import asyncio
import os
import re
import shutil
import uuid
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from scout.adapters.claude import flags
from scout.adapters.claude.files import LiveClaude, home_of, live_session, relays_of, transcript_of
from scout.adapters.harness import not_attachable
from scout.adapters.persistent.pipe import Wire, WireLimits, clear_last, next_number, wires
from scout.adapters.persistent.rpc import message_of
from scout.adapters.process.environment import environment_for
from scout.adapters.process.spawn import Launch
from scout.adapters.transcript import Entry, inner, items, text
from scout.base.refusal import Diagnostic, Remedy
from scout.model.problems.session import HarnessUnavailable, Layer, Missing, SessionFailed
from scout.ports import Failed, SessionSpec

INSTALL = "install Claude Code (npm install -g @anthropic-ai/claude-code) so that `claude` is on the PATH"
_NAME = "claude"
_SPACE = uuid.UUID("5c0a7d6e-1f0b-4c0e-9d5e-7b1f3a2c9e41")  # of the ids that Scout makes for Claude Code
_SAFE = re.compile(r"\w[\w.-]*", re.ASCII)
_NO_DOOR = "its program has ended meanwhile, and another needs a credential of its own"


class ClaudeUnavailable(Exception):  # noqa: N818 (a signal between two methods)
    """There is no program that could take a turn."""

    def __init__(
        self,
        reason: str,
        layer: Layer = Layer.PROCESS,
        *,
        again: bool = False,
        log: str | None = None,
        missing: Missing | None = None,
    ) -> None:
        self.failed = Failed(layer=layer, reason=reason, again=again, log=log, missing=missing)

    def diagnostic(self, spec: SessionSpec) -> Diagnostic:
        """The same as a refusal."""
        failed = self.failed
        if failed.missing is not None:
            look = Remedy(operation="runtimes.check", parameters={"harness": _NAME}, why="see what it lacks")
            hint, program = (INSTALL, _NAME) if failed.missing is Missing.BINARY else (failed.reason, "")
            return HarnessUnavailable(
                harness=_NAME, missing=failed.missing, hint=hint, program=program, remedies=(look,)
            )
        if failed.layer is Layer.SESSION:
            return not_attachable(_NAME, spec, session_of(spec), failed.reason)
        return SessionFailed(
            session_id=spec.session_id, layer=failed.layer, reason=failed.reason, log=failed.log
        )


def ident_of(name: str) -> str:
    """What Claude Code calls a session or a prompt that Scout began: always the same for the same name."""
    return str(uuid.uuid5(_SPACE, name))


def session_of(spec: SessionSpec) -> str:
    """What Claude Code calls this session, also before it has begun."""
    return spec.native_ids.get("session") or ident_of(spec.session_id)


def is_scouts_own(spec: SessionSpec) -> bool:
    """Whether Scout began the session: Claude Code keeps the system prompt that a session began with."""
    return session_of(spec) == ident_of(spec.session_id) and spec.fork_of is None


class ClaudePrograms:
    """One and the same object for a program while the broker runs: its keeper knows it by its connection."""

    def __init__(self, sessions: Path, environment: tuple[str, ...], limits: WireLimits) -> None:
        self._sessions = sessions
        self._also = (*flags.ENVIRONMENT, *environment)
        self._limits = limits
        self._known: dict[Path, Wire] = {}
        self._beginning: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def environment(self, spec: SessionSpec | None = None) -> dict[str, str]:
        """What a program is given of the broker's environment, and of its session."""
        given = dict(spec.environment) if spec else {}
        if spec and spec.door:
            given["SCOUT_TOKEN"] = spec.door.token
        return environment_for(given, also=self._also)

    @property
    def home(self) -> Path:
        """Where Claude Code keeps its files."""
        return home_of(self.environment())

    # -- those there are -------------------------------------------------------------------------

    def all(self, session_id: str) -> list[Wire]:
        """Those of a session, the newest last."""
        found = wires(self._folder(session_id))
        return [self._known.setdefault(wire.run.folder, wire) for wire in found]

    def running(self, session_id: str) -> Wire | None:
        """The one that runs now."""
        return next((wire for wire in reversed(self.all(session_id)) if wire.is_running), None)

    def holder(self, session_id: str, delivery_id: str) -> Wire | None:
        """The one that was told this delivery; of several, the last."""
        found = (wire for wire in reversed(self.all(session_id)) if wire.begun_at(delivery_id) is not None)
        return next(found, None)

    def elsewhere(self, spec: SessionSpec, native_id: str) -> LiveClaude | None:
        """Another program that has this session open: a session has one writer."""
        own = self.running(spec.session_id)
        pids = {one.pid for one in own.run.members()} if own else set[int]()
        return live_session(self.home, native_id, besides=pids)

    def _folder(self, session_id: str) -> Path:
        if not _SAFE.fullmatch(session_id):
            raise ValueError(f"not an id: {session_id!r}")
        return self._sessions / session_id

    # -- one that runs ---------------------------------------------------------------------------

    async def ready(self, spec: SessionSpec) -> Wire:
        """The program of a session; begun if none runs."""
        async with self._beginning[spec.session_id]:
            await clear_last(self._folder(spec.session_id))
            if other := await asyncio.to_thread(self.elsewhere, spec, session_of(spec)):
                raise ClaudeUnavailable(open_elsewhere(other), Layer.SESSION, again=True)
            return self.running(spec.session_id) or await self._begun(spec)

    async def _begun(self, spec: SessionSpec) -> Wire:
        if spec.door is None:
            raise ClaudeUnavailable(_NO_DOOR, again=True)
        environment = self.environment(spec)
        program = _program(environment)
        session, where = await asyncio.to_thread(self._session, spec), str(self._directory(spec))
        folder = self._folder(spec.session_id) / str(next_number(self._folder(spec.session_id)))
        wire = self._known.setdefault(folder, Wire(folder))
        wire.run.prepare()
        servers = folder / "mcp.json"
        _write(servers, flags.mcp_servers(spec.door))
        root = flags.as_root(environment)
        relays = await asyncio.to_thread(relays_of, environment, where)
        contract = self._contract(spec, folder)
        words = flags.command(
            program, spec, session, str(servers), root=root, relays=relays, contract=contract
        )
        try:
            began = await wire.begin(Launch(words, where, "", environment), self._limits)
        except (OSError, ValueError) as error:
            raise ClaudeUnavailable(f"{program}: {error}") from error
        if not began:
            raise ClaudeUnavailable("its shell did not begin", again=True)
        return wire

    def _contract(self, spec: SessionSpec, folder: Path) -> str:
        """The file of the system prompt's addition; none where it cannot be in the system prompt."""
        if not (spec.instructions and is_scouts_own(spec)):
            return ""
        file = folder / "contract.md"
        _write(file, spec.instructions.encode())
        return str(file)

    def had_turns(self, session_id: str) -> bool:
        """Whether Scout said anything in it."""
        told = (one for wire in self.all(session_id) for one in wire.told())
        return any(b'"type":"user"' in one.text for one in told)

    def _session(self, spec: SessionSpec) -> tuple[str, ...]:
        """Which session it goes on with: exactly the one that there is; a new one only before any turn."""
        native = session_of(spec)
        if transcript_of(self.home, native) is not None:
            return (f"--resume={native}",)
        if native != ident_of(spec.session_id) or self._had_turns(spec.session_id):
            raise ClaudeUnavailable(f"Claude Code has no session {native} any more", Layer.SESSION)
        if spec.fork_of is None:
            return (f"--session-id={native}",)
        if transcript_of(self.home, spec.fork_of) is None:
            raise ClaudeUnavailable(f"Claude Code has no session {spec.fork_of} to begin from", Layer.SESSION)
        return (f"--resume={spec.fork_of}", "--fork-session", f"--session-id={native}")

    def _had_turns(self, session_id: str) -> bool:
        """Whether a program answered something in it, so that there was a transcript."""
        said = (line.text for wire in self.all(session_id) for line in wire.said())
        return any(b'"type":"assistant"' in line for line in said)

    def _directory(self, spec: SessionSpec) -> Path:
        """Where it works; without a directory of its agent, in an empty one of its own."""
        if spec.cwd is None:
            folder = self._folder(spec.session_id)
            self._sessions.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / "work").mkdir(mode=0o700, exist_ok=True)
            return folder / "work"
        directory = Path(spec.cwd)
        if not directory.is_dir():
            raise ClaudeUnavailable(f"its directory {directory} is not there")
        return directory

    # -- what its transcript says ----------------------------------------------------------------

    def final_text(self, native_id: str, prompt_ident: str) -> str | None:
        """The last text of a turn that its program wrote down before it died; none if it had not ended."""
        path = transcript_of(self.home, native_id)
        if path is None:
            return None
        found, ours = None, False
        with path.open("rb") as file:
            for entry in map(message_of, file):
                kind, message = entry.get("type"), inner(entry, "message")
                if kind == "user" and isinstance(message.get("content"), str):
                    ours = entry.get("uuid") == prompt_ident
                elif ours and kind == "assistant" and not entry.get("isSidechain"):
                    found = _last_text(message)
        return found


def open_elsewhere(live: LiveClaude) -> str:
    """Why a session is left alone, and what to do."""
    return (
        f"it is open in another program (process {live.process.pid}, {live.status or 'running'}): "
        "close it there, or ask while it is open"
    )


def _program(environment: Mapping[str, str]) -> str:
    """The program as a path, so that the one that was looked for is the one that runs."""
    found = shutil.which(_NAME, path=environment["PATH"])
    if found is None:
        raise ClaudeUnavailable(f"the program {_NAME} was not found; {INSTALL}", missing=Missing.BINARY)
    return str(Path(found).absolute())


def _last_text(message: Entry) -> str | None:
    """The text of an answer that is the end of its turn."""
    blocks = items(message.get("content"))
    ended = message.get("stop_reason") == "end_turn" and blocks and text(blocks[-1], "type") == "text"
    return text(blocks[-1], "text") if ended else None


def _write(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
