"""Watching a screen: whether it stands still, asks something, or has come to the end of a turn."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from scout.adapters.tmux.pane import Shown
from scout.adapters.tmux.screen import ScreenWish, asked, is_ready
from scout.model.permission import PermissionRequest, observed_request
from scout.ports import Asked, HarnessEvent, NeedsHuman, RequestSettled, TurnProgress


class Pace(NamedTuple):
    """Seconds: without change until a turn is over, between looks, until ready, of a turn, for an end."""

    quiet: float = 2.0
    look: float = 0.1
    ready: float = 60.0
    turn: float = 3600.0
    grace: float = 2.0


class PaneWatch:
    """Looks at a screen until it stands still and its program waits for input again."""

    def __init__(self, pace: Pace, before: tuple[str, ...], delivery_id: str) -> None:
        self._before = before
        self.is_over = False
        self._pace = pace
        self._delivery_id = delivery_id
        self._last: Shown | None = None
        self._since = 0.0
        self._request = ""

    def see(self, shown: Shown, now: float) -> Iterator[HarnessEvent]:
        """What one look tells."""
        still = now - self._since
        if shown != self._last:
            if self._last is not None and shown.lines:
                yield TurnProgress(text=shown.lines[-1].strip())
            self._last, self._since = shown, now
        elif wish := asked(shown.lines):
            if still >= self._pace.quiet / 2:
                yield from self._needs(wish, shown)
        else:
            if self._request:
                yield RequestSettled(request=self._request)
                self._request = ""
            self.is_over = still >= self._pace.quiet and is_ready(self._before, shown.lines)

    def _needs(self, wish: ScreenWish, shown: Shown) -> Iterator[HarnessEvent]:
        """Told once for each question."""
        request = request_of(self._delivery_id, shown)
        if request != self._request:
            self._request = request
            yield NeedsHuman(
                request=request,
                question=wish.question,
                kind=wish.kind,
                detail=wish.detail,
                options=wish.options,
                observed=True,
                wish=_wish(wish) if wish.kind is Asked.PERMISSION else None,
            )


def _wish(wish: ScreenWish) -> PermissionRequest:
    return observed_request("\n".join(filter(None, (wish.detail, wish.question))), wish.question)


def request_of(delivery_id: str, shown: Shown) -> str:
    """A question is known by the whole screen that it stands on."""
    screen = "\n".join(shown.lines).encode()
    return f"{delivery_id}-{hashlib.sha256(screen).hexdigest()[:16]}"
