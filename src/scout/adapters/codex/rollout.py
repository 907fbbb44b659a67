"""How a turn ended by the file of its thread: for a program that died before it could say so itself."""

import json
from pathlib import Path

from scout.adapters.codex.events import INTERRUPTED, End, failure
from scout.adapters.persistent.rpc import message_of
from scout.adapters.transcript import Entry, inner, text
from scout.model.problems.session import Layer
from scout.ports import Completed, Failed


def has_begun(rollout: Path, delivery_id: str) -> bool:
    """Whether the thread has the prompt of this delivery."""
    return bool(_turn(_events(rollout), delivery_id))


def end_of(rollout: Path, delivery_id: str) -> End | None:
    """The end of the turn that this delivery began; none while the file does not tell it."""
    events = _events(rollout)
    turn = _turn(events, delivery_id)
    of_turn = (event for event in events if turn and text(event, "turn_id") == turn)
    return next((end for event in of_turn if (end := _end(event)) is not None), None)


def _events(rollout: Path) -> list[Entry]:
    """What is said of turns; the lines of a conversation are passed over unread."""
    wanted = (b'"UserMessage"', b'"task_complete"', b'"turn_aborted"')
    try:
        with rollout.open("rb") as file:
            lines = [line for line in file if any(word in line for word in wanted)]
    except OSError:
        return []
    entries = map(message_of, lines)
    return [inner(one, "payload") for one in entries if text(one, "type") == "event_msg"]


def _turn(events: list[Entry], delivery_id: str) -> str:
    named = (event for event in events if text(inner(event, "item"), "client_id") == delivery_id)
    return next((text(event, "turn_id") for event in named), "")


def _end(event: Entry) -> End | None:
    kind = text(event, "type")
    if kind == "turn_aborted":
        return Failed(layer=Layer.SESSION, reason=INTERRUPTED)
    if kind != "task_complete":
        return None
    if error := inner(event, "error"):
        return failure(_as_told(error), [], None)
    return Completed(text=text(event, "last_agent_message"))


def _as_told(error: Entry) -> Entry:
    """The file spells names with underscores where the program itself does not."""
    return {"message": error.get("message"), "codexErrorInfo": _camel(error.get("codex_error_info"))}


def _camel(value: object) -> object:
    if isinstance(value, str):
        first, *more = value.split("_")
        return first + "".join(map(str.capitalize, more))
    words = json.dumps(value)
    return json.loads(words.replace("http_status_code", "httpStatusCode"))
