"""The display during a wait: one status line, and any decision that a person must make."""

from __future__ import annotations

import functools
import os
import sys
import time

from scout.base.visible import make_visible
from scout.cli.connection.call import ROUTES
from scout.cli.connection.refusal import RefusalError
from scout.cli.connection.text import erase_status, format_age, note, show_status
from scout.policy.sentences import add_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from scout.cli.connection.call import DaemonCall
    from scout.cli.waiting.decision_prompt import DecisionPrompt

TICK = 1.0  # seconds of one long poll with a terminal
_QUIET = 10.0  # seconds without activity before it is shown
_WIDE = 110


class ProgressLine:
    """One line that is rewritten: state, elapsed time, last activity."""

    def __init__(self) -> None:
        self.turn = 0

    def show(self, says: str, record: dict[str, Any], passed: float) -> None:
        self.turn += 1
        spin = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"[self.turn % 10]
        text = f" · {int(passed // 60)}:{int(passed % 60):02d}{describe_silence(record.get('updatedAt'))}"
        room = _get_columns() - len(text) - 3
        says = make_visible(" ".join(says.split()))
        show_status(f"{spin} {says if len(says) <= room else says[: room - 1] + '…'}{text}")

    @staticmethod
    def clear() -> None:
        """Erase the line."""
        erase_status()


def _get_columns() -> int:
    try:
        return min(os.get_terminal_size(sys.stderr.fileno()).columns or _WIDE, _WIDE)
    except (OSError, ValueError):
        return _WIDE


def describe_silence(moment: object) -> str:
    """Return how long there was no activity, if that is long enough to show."""
    from datetime import datetime

    if not isinstance(moment, str) or time.time() - datetime.fromisoformat(moment).timestamp() < _QUIET:
        return ""
    return f" · last sign of life {format_age(moment)}"


class WatchedFlight:
    """A flight shown in a terminal: its program and folder, and its current activity."""

    def __init__(self, line: DaemonCall) -> None:
        self._line = line
        self._places: dict[str, str] = {}
        self._told = set[str]()
        self._prompt: DecisionPrompt | None = None

    def describe(self, flight: dict[str, Any]) -> str:
        """Return the program, its folder, and the latest activity."""
        who = self._place(flight.get("sessionId")) or _name_target(flight)
        does = flight.get("reason") or flight.get("phase")
        if flight["state"] != "running":
            does = _join_once(flight["state"], flight.get("phase"), does)
        return _join_once(who, does)

    @property
    def step(self) -> float:
        """Seconds of the next long poll: 0 while a person may be typing."""
        return 0.0 if self._prompt is not None else TICK

    @functools.cached_property
    def can_answer(self) -> bool:
        """Whether the person can answer in this terminal."""
        from scout.cli.waiting.decision_prompt import can_type_here

        return can_type_here()

    def tell(self, ref: str | None) -> None:
        """Show a needed decision once, above the line; prompt for it here if possible."""
        if self._prompt is not None and self._prompt.ref != ref:
            note(f"{self._prompt.ref} was decided elsewhere")
            self._prompt = None
        if ref is None or ref in self._told:
            return
        self._told.add(ref)
        ProgressLine.clear()
        try:
            self._ask(ref)
        except RefusalError:  # the caller may not see the item
            note(f"it waits for a person: {ref}")

    def _ask(self, ref: str) -> None:
        from scout.cli.output.attention import format_headline, format_wish, list_commands

        if self.can_answer:
            from scout.cli.waiting.decision_prompt import DecisionPrompt

            prompt = DecisionPrompt(self._line, ref)
            self._prompt = prompt if prompt.open else None
            return
        item = self._line.call(ROUTES["attention.show"], {"attentionId": ref})
        note(f"it waits for a person: {format_headline(item)}")
        for one in (*format_wish(item), *list_commands(item)):
            note(f"  {one}")

    def listens(self) -> bool:
        """Handle a typed line; whether the prompt is still open."""
        if self._prompt is not None:
            self._prompt.listen(TICK / 2)
            if not self._prompt.open:
                self._prompt = None
        return self._prompt is not None

    def _place(self, session_id: str | None) -> str:
        """Return the program and its folder; requested once."""
        if not session_id:
            return ""
        if session_id not in self._places:
            session = self._call_or_empty(ROUTES["session.inspect"], {"sessionId": session_id})
            where = f" in {_shorten_path(str(session['cwd']))}" if session.get("cwd") else ""
            self._places[session_id] = f"{session['harness']}{where}" if session else ""
        return self._places[session_id]

    def _call_or_empty(self, route: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Call the daemon; return an empty result if the caller may not see it."""
        try:
            return dict(self._line.call(route, parameters))
        except RefusalError:
            return {}


def _name_target(flight: dict[str, Any]) -> str:
    return add_node(str(flight.get("targetAddress") or ""), flight.get("targetNode"))


def _join_once(*parts: object) -> str:
    """Join the parts, leaving out those that another part contains."""
    said: list[str] = []
    for part in (str(part) for part in parts if part):
        said = [one for one in said if not _starts_with(part, one)]
        if not any(_starts_with(one, part) for one in said):
            said.append(part)
    return " · ".join(said)


def _starts_with(whole: str, part: str) -> bool:
    return whole == part or whole.startswith(f"{part} ")


def get_attention_id(flight: dict[str, Any]) -> str | None:
    """Return the attention item that a flight waits for."""
    on: dict[str, Any] = flight.get("waitingOn") or {}
    ref = str(on.get("ref") or "")
    return ref if flight["state"] == "waiting" and ref.startswith("att_") else None


def _shorten_path(path: str) -> str:
    """Return a path relative to the current directory, if that is shorter."""
    here = os.path.relpath(path)
    return here if len(here) < len(path) else path
