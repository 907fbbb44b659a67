"""Watches a screen: whether it is unchanged, asks a question, or shows the end of a turn."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from scout.adapters.tmux.pane import Shown
from scout.adapters.tmux.screen import ScreenWish, find_question, is_ready
from scout.model.permission import PermissionRequest, build_observed_request
from scout.ports import Asked, HarnessEvent, NeedsHuman, RequestSettled, TurnProgress


class Pace(NamedTuple):
    """Seconds: unchanged until a turn has ended, between looks, until ready, per turn, for stopping."""

    quiet: float = 2.0
    look: float = 0.1
    ready: float = 60.0
    turn: float = 3600.0
    grace: float = 2.0


class PaneWatch:
    """Looks at a screen until it stops changing and the program waits for input again."""

    def __init__(self, pace: Pace, before: tuple[str, ...], delivery_id: str) -> None:
        self._before = before
        self.is_over = False
        self._pace = pace
        self._delivery_id = delivery_id
        self._last: Shown | None = None
        self._since = 0.0
        self._request = ""

    def read_screen(self, shown: Shown, now: float) -> Iterator[HarnessEvent]:
        """Yield the events of one look."""
        still = now - self._since
        if shown != self._last:
            if self._last is not None and shown.lines:
                yield TurnProgress(text=shown.lines[-1].strip())
            self._last, self._since = shown, now
        elif wish := find_question(shown.lines):
            if still >= self._pace.quiet / 2:
                yield from self._needs(wish, shown)
        else:
            if self._request:
                yield RequestSettled(request=self._request)
                self._request = ""
            self.is_over = still >= self._pace.quiet and is_ready(self._before, shown.lines)

    def _needs(self, wish: ScreenWish, shown: Shown) -> Iterator[HarnessEvent]:
        """Yield each question once."""
        request = build_request_id(self._delivery_id, shown)
        if request != self._request:
            self._request = request
            yield NeedsHuman(
                request=request,
                question=wish.question,
                kind=wish.kind,
                detail=wish.detail,
                options=wish.options,
                observed=True,
                wish=_build_request(wish) if wish.kind is Asked.PERMISSION else None,
            )


def _build_request(wish: ScreenWish) -> PermissionRequest:
    return build_observed_request("\n".join(filter(None, (wish.detail, wish.question))), wish.question)


def build_request_id(delivery_id: str, shown: Shown) -> str:
    """Return the id of a question: a hash of the whole screen that shows it."""
    screen = "\n".join(shown.lines).encode()
    return f"{delivery_id}-{hashlib.sha256(screen).hexdigest()[:16]}"
