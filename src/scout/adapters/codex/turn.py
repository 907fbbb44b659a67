"""One turn of Codex, read from the files of its program, or from its thread if the program died."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from scout.adapters.codex.events import CodexReader, TurnEnd, read_failure
from scout.adapters.codex.program import CodexProgram
from scout.adapters.harness import INTERRUPTED
from scout.adapters.persistent.harness import accept, describe_end
from scout.adapters.persistent.rpc import is_call, parse_message
from scout.adapters.transcript import Entry, get_object, get_text
from scout.model.problems.session import Layer
from scout.ports import Completed, Failed, HarnessEvent, Identified, Limited

_INTERRUPTED = Failed(layer=Layer.SESSION, reason=INTERRUPTED)


class CodexTurn:
    """A turn that was sent to the program. `find_rollout` returns the file of the program's thread."""

    def __init__(
        self, program: CodexProgram, delivery_id: str, find_rollout: Callable[[], Path | None]
    ) -> None:
        self._program = program
        self._pipe = program.pipe
        self._delivery = delivery_id
        self._reader = CodexReader(delivery_id, program.number, program.model)
        self._find_rollout = find_rollout

    @property
    def is_waiting(self) -> bool:
        return self._reader.waits

    async def events(self) -> AsyncIterator[HarnessEvent]:
        accepted = False
        async for line in self._pipe.follow_lines(self._pipe.find_position(self._delivery) or 0):
            for event in await self._read(parse_message(line.text)):
                if isinstance(event, Completed | Limited | Failed):
                    yield self._explain(event)
                    return
                if accepted:
                    yield event
            if self._reader.turn_id and not accepted:
                accepted = True
                yield accept(self._pipe)
                yield Identified(native_ids={"thread": self._program.thread}, model=self._program.model)
        end, taken = await asyncio.to_thread(self._explain_loss)
        if taken and not accepted:
            yield accept(self._pipe)
        yield self._explain(end)

    def was_taken(self) -> bool:
        """Whether the program began the turn."""
        if self._program.has_answered(self._delivery):
            return True
        rollout = self._find_rollout()
        return rollout is not None and has_begun(rollout, self._delivery)

    async def _read(self, message: Entry) -> Iterable[HarnessEvent]:
        """Read a message. A request that is not for a person is refused immediately."""
        if not is_call(message):
            return list(self._reader.read(message))
        needed = self._reader.read_request(message)
        if needed is None:
            await self._program.rpc.refuse(message["id"], "Scout does not support this request")
            return ()
        return (needed,) if self._program.is_open(message["id"]) else ()

    def _explain(self, end: TurnEnd) -> TurnEnd:
        """Return why a turn was interrupted: a limit or a stopped session may be the cause."""
        is_stopped = self._pipe.run.stopped not in ("", INTERRUPTED)
        return describe_end(self._pipe) if end == _INTERRUPTED and is_stopped else end

    def _explain_loss(self) -> tuple[TurnEnd, bool]:
        """Return the end of a turn whose program has ended, and whether the program had taken it."""
        rollout = self._find_rollout()
        if rollout is not None and (end := read_end(rollout, self._delivery)):
            return end, True
        taken, end = self.was_taken(), describe_end(self._pipe)
        again = not taken and not self._pipe.run.stopped
        return Failed(layer=end.layer, reason=end.reason, log=end.log, again=again), taken


# -- the file of a thread ----------------------------------------------------------------------------


def has_begun(rollout: Path, delivery_id: str) -> bool:
    """Whether the thread contains the prompt of this delivery."""
    return bool(_find_turn(_read_events(rollout), delivery_id))


def read_end(rollout: Path, delivery_id: str) -> TurnEnd | None:
    """Return the end of the turn that this delivery began; None if the file does not have it yet."""
    events = _read_events(rollout)
    turn = _find_turn(events, delivery_id)
    of_turn = (event for event in events if turn and get_text(event, "turn_id") == turn)
    return next((end for event in of_turn if (end := _read_event(event)) is not None), None)


def _read_events(rollout: Path) -> list[Entry]:
    """Return the events of turns; the lines of the conversation are skipped without parsing."""
    wanted = (b'"UserMessage"', b'"task_complete"', b'"turn_aborted"')
    try:
        with rollout.open("rb") as file:
            lines = [line for line in file if any(word in line for word in wanted)]
    except OSError:
        return []
    entries = map(parse_message, lines)
    return [get_object(one, "payload") for one in entries if get_text(one, "type") == "event_msg"]


def _find_turn(events: list[Entry], delivery_id: str) -> str:
    named = (event for event in events if get_text(get_object(event, "item"), "client_id") == delivery_id)
    return next((get_text(event, "turn_id") for event in named), "")


def _read_event(event: Entry) -> TurnEnd | None:
    kind = get_text(event, "type")
    if kind == "turn_aborted":
        return _INTERRUPTED
    if kind != "task_complete":
        return None
    if error := get_object(event, "error"):
        return read_failure(_convert_error(error), [], None)
    return Completed(text=get_text(event, "last_agent_message"))


def _convert_error(error: Entry) -> Entry:
    """Spell an error as the program itself does; the file has underscores in its names."""
    return {"message": error.get("message"), "codexErrorInfo": _to_camel_case(error.get("codex_error_info"))}


def _to_camel_case(value: object) -> object:
    if isinstance(value, str):
        first, *more = value.split("_")
        return first + "".join(map(str.capitalize, more))
    words = json.dumps(value)
    return json.loads(words.replace("http_status_code", "httpStatusCode"))
