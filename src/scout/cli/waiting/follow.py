"""Waits for a flight: progress on stderr, the reply on stdout. Ending the wait never stops the work."""

from __future__ import annotations

import json
import sys
import time

from scout.cli.connection.call import ROUTES
from scout.cli.connection.refusal import OPEN, RefusalError, get_exit_code, list_tries, repeat_typed
from scout.cli.connection.text import note, paint, print_out, print_text
from scout.cli.output.own_name import say_you
from scout.cli.waiting.progress import ProgressLine, WatchedFlight, get_attention_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from scout.cli.connection.call import DaemonCall

FINISHED = ("completed", "failed", "cancelled")
POLL = 30.0  # seconds of one long poll without a terminal


def follow(line: DaemonCall, flight_id: str, budget: float | None, as_json: bool = False) -> int:
    """Wait until a flight is finished, the budget is used up or Ctrl-C; show it; return the exit code."""
    flight: dict[str, Any] = {}
    try:
        flight = _wait(line, flight_id, budget)
    except KeyboardInterrupt:
        ProgressLine.clear()
        return show_interrupted(flight_id)
    except RefusalError as problem:
        raise RefusalError(repeat_typed(problem.told, flight_id, "flightId")) from None
    finally:
        ProgressLine.clear()
    names = not as_json and flight["state"] != "completed"  # only then names are shown
    return settle(say_you(line, flight) if names else flight, as_json)


def show_interrupted(flight_id: str) -> int:
    """Show how to return to a flight after Ctrl-C; return the exit code."""
    note(f"the work continues; to wait again: scout wait {flight_id}")
    return 130


def settle(flight: dict[str, Any], as_json: bool = False) -> int:
    """Show a flight: the reply, why it failed, or that it is still running."""
    state = flight["state"]
    if as_json:
        print_out(json.dumps(flight))
    elif state == "completed":
        print_text(str(flight.get("output") or "").rstrip("\n"))
    elif state == "failed":
        _write_failure(flight)
    elif state == "cancelled":
        note(f"cancelled: {flight.get('reason') or 'no longer needed'}")
        note(f"try: scout flight retry {flight['id']}")
    else:
        note(f"still {state} ({_format_reason(flight)}); the work continues")
        if question := _get_question(flight):
            note(f"try: scout question answer {question} TEXT")
        if item := get_attention_id(flight):
            note(f"try: scout attention show {item}")
        for one in _list_known_remedies(flight):
            note(one)
        note(f"try: scout wait {flight['id']}")
    return choose_exit_code(flight)


def _get_question(flight: dict[str, Any]) -> str | None:
    """Return the question that a flight asks its requester: waiting for it would never end."""
    on: dict[str, Any] = flight.get("waitingOn") or {}
    mine = flight["state"] == "waiting" and flight.get("nextMoveOwnerId") == flight.get("requesterId")
    return str(on["ref"]) if mine and on.get("kind") == "question" else None


def choose_exit_code(flight: dict[str, Any]) -> int:
    """Return the exit code of a flight: 0 if it is completed, its error's, or that it is still open."""
    state = flight["state"]
    if state == "failed":
        error: dict[str, Any] = flight.get("error") or {}
        return get_exit_code(str(error.get("code", "")))
    return {"completed": 0, "cancelled": 7}.get(state, OPEN)


def _write_failure(flight: dict[str, Any]) -> None:
    error: dict[str, Any] = flight.get("error") or {}
    code = str(error.get("code", "failed"))
    note(f"{paint(code, 'red', sys.stderr)}: {error.get('message') or flight.get('reason')}")
    for one in _list_known_remedies(flight, error) or [f"try: scout flight retry {flight['id']}"]:
        note(one)


def _list_known_remedies(*sources: dict[str, Any]) -> list[str]:
    """Return the remedies of a flight or its error that exist as commands."""
    offered = next((source["remedies"] for source in sources if source.get("remedies")), ())
    return list_tries({"remedies": offered}, fall_back=False)


def _format_reason(flight: dict[str, Any]) -> str:
    return " · ".join(str(part) for part in (flight.get("phase"), flight.get("reason")) if part)


def _wait(line: DaemonCall, flight_id: str, budget: float | None) -> dict[str, Any]:
    began = time.monotonic()
    progress, watched = ProgressLine() if sys.stderr.isatty() else None, WatchedFlight(line)
    seen: int | None = None
    while True:
        left = None if budget is None else budget - (time.monotonic() - began)
        step = min(watched.step if progress else POLL, max(left, 0) if left is not None else POLL)
        asked = {"flightId": flight_id, "wait": round(step, 3), "seen": seen if progress else None}
        flight = line.call(ROUTES["flight.get"], asked)
        if flight["state"] in FINISHED or (left is not None and left <= step):
            return flight
        question = _get_question(flight)
        if question and not watched.can_answer:
            return flight
        seen = flight.get("revision")
        if progress:
            watched.tell(question or get_attention_id(flight))
            if not watched.listens():
                progress.show(watched.describe(flight), flight, time.monotonic() - began)
