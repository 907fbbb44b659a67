"""Decides an item in the waiting terminal: it is shown whole, then one typed line decides it."""

from __future__ import annotations

import os
import select
import sys
import termios

from scout.cli.connection.call import ROUTES
from scout.cli.connection.refusal import RefusalError
from scout.cli.connection.text import note
from scout.cli.output.attention import format_headline, format_wish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from scout.cli.connection.call import DaemonCall

_YES, _NO, _ALWAYS = ("y", "yes"), ("n", "no"), ("a", "always")
_LONGEST = 65536  # maximum bytes of a typed line


def can_type_here() -> bool:
    """Whether a person can type here: stdin and stderr are a terminal, with this process in front."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False


class DecisionPrompt:
    """One item or question that is decided here, unless it is decided elsewhere first.

    Input typed before the item was shown whole is discarded: it was not meant for this item.
    """

    def __init__(self, line: DaemonCall, ref: str) -> None:
        self._line = line
        self.ref = ref
        self.open = True
        self._moves: list[str] = []
        self._options: list[str] = []
        self._show()
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    def _show(self) -> None:
        if self.ref.startswith("qst_"):
            question = self._line.call(ROUTES["question.show"], {"questionId": self.ref})
            self._moves, self._options = ["answer"], list(question.get("options") or ())
            note(f"it asks you ({self.ref}):")
            _note_lines(format_wish({"title": str(question["body"]), "body": ""}))
        else:
            item = self._line.call(ROUTES["attention.show"], {"attentionId": self.ref})
            moves = [str(one["move"]) for one in item.get("actions") or ()] if item.get("mayDecide") else []
            self._moves = list(dict.fromkeys(moves))
            self._options = [str(one["value"]) for one in item.get("actions") or () if one.get("value")]
            note(f"it needs you: {format_headline(item)}")
            _note_lines(format_wish(item))
            self._may_last = bool(item.get("permission")) and not item["permission"].get("observed")
        self.open = bool({"approve", "answer"} & set(self._moves))
        if self.open:
            self._offer()

    _may_last = False

    def _offer(self) -> None:
        for number, option in enumerate(self._options, 1):
            note(f"  {number}. {option}")
        offers = ["y approves", "n denies"] if "approve" in self._moves else []
        offers += ["a approves this from now on"] if self._may_last and "approve" in self._moves else []
        offers += (
            ["any other text is the answer" if offers else "type the answer"]
            if "answer" in self._moves
            else []
        )
        note(f"{', '.join(offers)}; then Enter. Ctrl-C stops the wait, not the work.")

    def listen(self, seconds: float) -> None:
        """Wait this long for a typed line, and handle it."""
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        if not ready:
            return
        typed = os.read(sys.stdin.fileno(), _LONGEST)
        if not typed:
            self.open = False
            return
        text = typed.decode("utf-8", "replace").strip()
        if text and text.isprintable():
            self._take(text)
        elif text:
            note("That contains control characters. Type it again.")

    def _take(self, text: str) -> None:
        first, _, rest = text.partition(" ")
        word = first.lower().rstrip(",:;")
        yes = (*_YES, *(_ALWAYS if self._may_last else ()))
        if "approve" in self._moves and word in yes and not rest:
            self._decide("approve", {"always": True} if word in _ALWAYS else {})
        elif "approve" in self._moves and word in _NO:
            self._decide("deny", {"reason": rest} if rest else {})
        elif "answer" in self._moves:
            self._decide("answer", {"answer": self._chosen(text)})
        else:
            self._offer()

    def _chosen(self, text: str) -> str:
        """Return the option with this number, else the text itself."""
        number = int(text) if text.isdecimal() and len(text) < 4 else 0
        return self._options[number - 1] if 0 < number <= len(self._options) else text

    def _decide(self, move: str, more: dict[str, Any]) -> None:
        name, field = (
            ("question", "questionId") if self.ref.startswith("qst_") else ("attention", "attentionId")
        )
        try:
            done = self._line.call(ROUTES[f"{name}.{move}"], {field: self.ref, **more})
        except RefusalError as problem:
            note(str(problem))
        else:
            said = {"approve": "approved", "deny": "denied", "answer": "answered"}[move]
            note(f"{said} {self.ref}")
            if done.get("allowanceId"):
                note(f"allowed from now on; undo: scout allow revoke {done['allowanceId']}")
        self.open = False


def _note_lines(lines: list[str]) -> None:
    for line in lines:
        note(f"  {line}")
