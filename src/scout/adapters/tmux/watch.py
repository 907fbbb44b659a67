"""Questions on a screen, each reported once."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from scout.adapters.tmux.observer import PaneLook
from scout.adapters.tmux.pane import Shown
from scout.adapters.tmux.screen import ScreenWish, find_question, steady
from scout.model.access.permission import PermissionRequest, build_observed_request
from scout.model.endpoint import ProgramState
from scout.ports import Asked, HarnessEvent, NeedsHuman, RequestSettled

_ABOVE = 8  # lines of a screen that are shown with a question


class Pace(NamedTuple):
    """Seconds: unchanged until a turn has ended, between looks, until ready, per turn, for stopping."""

    quiet: float = 2.0
    look: float = 0.1
    ready: float = 60.0
    turn: float = 3600.0
    grace: float = 2.0


class QuestionWatch:
    """Reports each question on the screen once, and that it is gone."""

    def __init__(self, pace: Pace, delivery_id: str) -> None:
        self._pace = pace
        self._delivery_id = delivery_id
        self._request = ""

    def read(self, look: PaneLook) -> Iterator[HarnessEvent]:
        """Yield the events of one look."""
        if look.state is ProgramState.WAITING:
            if look.still >= self._pace.quiet / 2:
                yield from self._needs(find_question(look.shown.lines) or _build_unread(look), look.shown)
        elif self._request and look.still >= self._pace.look:
            yield RequestSettled(request=self._request)
            self._request = ""

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


def _build_unread(look: PaneLook) -> ScreenWish:
    """Return a question that the program reported and whose options Scout cannot read."""
    tool = look.reports[-1].tool if look.reports else ""
    question = f"It asks for a permission{f' ({tool})' if tool else ''}: answer it in its terminal"
    return ScreenWish(Asked.PERMISSION, question, "\n".join(look.shown.lines[-_ABOVE:]), (), (), ())


def build_request_id(delivery_id: str, shown: Shown) -> str:
    """Return the id of a question: a hash of the whole screen that shows it."""
    screen = "\n".join(steady(shown.lines)).encode()
    return f"{delivery_id}-{hashlib.sha256(screen).hexdigest()[:16]}"
