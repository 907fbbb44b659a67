"""Other words for a call, as the contract teaches them, read as the arguments that a tool has."""

from collections.abc import Mapping
from typing import Any

from scout.base.refusal import Refused
from scout.identity.lexer import lex
from scout.identity.name import HandleName, OperatorName, PathName
from scout.model.waiting import WaitingKind

_MOVES: Mapping[str, str] = {
    "waiting": "wait",
    "review": "submit",
    "working": "start",
    "done": "accept",
    "cancelled": "cancel",
}


def question(given: dict[str, Any]) -> dict[str, Any]:
    """Without a target, a question goes to the one who asked in the flight."""
    return given if "to" in given or "flightId" not in given else {**given, "to": given["flightId"]}


def work(given: dict[str, Any]) -> dict[str, Any]:
    """A state is the move that leads to it; a next owner alone is a handover."""
    rest = dict(given)
    if "move" not in rest and "state" in rest:
        state = rest.pop("state")
        rest["move"] = _MOVES.get(str(state), state)
    if "move" not in rest and "nextMoveOwnerId" in rest:
        rest.update(move="hand_over", to=rest.pop("nextMoveOwnerId"))
    if "waitingOn" in rest:
        on = rest.pop("waitingOn")
        rest.update(on=_kind_of(str(on)), ref=on)
    return rest


def _kind_of(text: str) -> WaitingKind:
    """What a text names that something waits for."""
    if text.startswith("wrk_"):
        return WaitingKind.WORK_ITEM
    try:
        name = lex(text)
    except Refused:
        return WaitingKind.CONDITION
    names_agent = isinstance(name, HandleName | PathName | OperatorName) and " " not in text.strip()
    return WaitingKind.ACTOR if names_agent else WaitingKind.CONDITION
