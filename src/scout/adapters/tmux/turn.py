"""One turn in a pane: wait until the program is ready, type the prompt, follow the turn to its end."""

import asyncio
import re
from collections.abc import AsyncIterator

from scout.adapters.harness import INTERRUPTED
from scout.adapters.tmux.hooks import HookReport
from scout.adapters.tmux.kept import Held, Kept, PaneTurn
from scout.adapters.tmux.observer import Observer, PaneLook
from scout.adapters.tmux.pane import Shown
from scout.adapters.tmux.programs import is_input_empty, is_working, read_answer, read_draft, read_progress
from scout.adapters.tmux.screen import find_new_lines, is_line_prompt, is_ready
from scout.adapters.tmux.watch import Pace, QuestionWatch
from scout.model.endpoint import ProgramState
from scout.model.problems.session import Layer
from scout.ports import Completed, Failed, HarnessEvent, Identified, SessionSpec, TurnProgress

_BLINK = 0.3  # seconds until a screen shows a pasted text
_BLANK = 4  # factor on the usual wait while a program shows no prompt
_ENTERS = 3  # how often Enter is pressed: a list of suggestions may take the first one
_PASTED = re.compile(r"\[Pasted (?:text|Content)\b")


class PaneTurnRun:
    """The turn of one delivery in the pane of a session."""

    def __init__(self, observer: Observer, pace: Pace, kept: Kept, held: Held, delivery_id: str) -> None:
        self._observer, self._pace = observer, pace
        self._kept, self._held, self._delivery_id = kept, held, delivery_id
        self._questions = QuestionWatch(pace, delivery_id)
        self._now = asyncio.get_running_loop().time

    async def _look(self) -> PaneLook | None:
        return await self._observer.look(self._kept, self._held)

    # -- typing ----------------------------------------------------------------------------------

    async def type_prompt(self, words: str) -> AsyncIterator[HarnessEvent]:
        """Type a prompt once the program waits for input. Yields its questions before, or the failure."""
        ready: PaneLook | None = None
        async for one in self._wait_until_ready():
            if isinstance(one, PaneLook):
                ready = one
            else:
                yield one
        if ready is None:
            return  # the failure was reported
        self._kept.hooks.trim()
        begun = PaneTurn(before=ready.shown.lines, mark=self._kept.hooks.size)
        self._kept.note(self._delivery_id, begun)
        await self._held.server.paste(self._held.pane, words)
        pasted = await self._wait_until_shown(ready.shown)
        problem = await self._press_enter(ready, pasted, begun.mark)
        if problem is not None:
            yield problem
            return
        self._observer.expect_work(self._kept, self._held)
        self._kept.note(self._delivery_id, PaneTurn(before=begun.before, mark=begun.mark, sent=True))

    async def _wait_until_ready(self) -> AsyncIterator[HarnessEvent | PaneLook]:
        """Yield what the program asks before it is ready, then the look at which it is, or the failure."""
        deadline = self._now() + self._pace.ready
        while (look := await self._look()) is not None:
            for event in self._questions.read(look):
                yield event
            if look.state is ProgramState.WAITING:
                deadline = self._now() + self._pace.ready  # a person may take any time
            elif self._is_ready(look):
                yield look
                return
            elif self._now() > deadline:
                yield _refuse_typing(look)
                return
            await asyncio.sleep(self._pace.look)
        yield build_failure(self._kept, await self._held.server.look(self._held.pane))

    def _is_ready(self, look: PaneLook) -> bool:
        """Whether the program waits for input, and nothing has been typed there."""
        if look.program is not None:
            empty = is_input_empty(look.program, look.shown)
            return look.state is ProgramState.IDLE and empty is True and look.still >= self._pace.quiet / 2
        prompted = look.shown.lines and is_line_prompt(look.shown.lines)
        return look.still >= self._pace.quiet * (1 if prompted else _BLANK)

    async def _wait_until_shown(self, before: Shown) -> Shown | None:
        """Wait until the screen shows what was pasted and stops changing, at most for a moment."""
        deadline, last, since = self._now() + self._pace.grace, before, self._now()
        blink = min(self._pace.quiet, _BLINK)
        while (look := await self._look()) is not None:
            if look.shown != last:
                last, since = look.shown, self._now()
            if self._now() > deadline or (last != before and self._now() - since >= blink):
                return look.shown
            await asyncio.sleep(self._pace.look)
        return None

    async def _press_enter(self, ready: PaneLook, pasted: Shown | None, mark: int) -> Failed | None:
        """Press Enter until the program has taken the prompt; return the failure if it does not."""
        for _ in range(_ENTERS if ready.program is not None else 1):
            await self._held.server.press(self._held.pane, "Enter")
            deadline = self._now() + self._pace.grace
            while (look := await self._look()) is not None:
                if self._has_taken(look, ready, pasted, mark):
                    return None
                if self._now() > deadline:
                    break
                await asyncio.sleep(self._pace.look)
            if look is None:
                return None  # it ended, perhaps because of the prompt; the turn says how
        if ready.program is not None:
            await self._held.server.press(self._held.pane, ready.program.clear)
        return Failed(layer=Layer.HARNESS, reason="the prompt was typed, and the program did not take it")

    def _has_taken(self, look: PaneLook, ready: PaneLook, pasted: Shown | None, mark: int) -> bool:
        if any(one.event == "prompt_submit" for one in _since(look, mark)):
            return True
        if look.program is None:
            return look.shown not in (pasted, ready.shown)
        emptied = is_input_empty(look.program, look.shown) is not False
        return is_working(look.program, look.shown) or (emptied and look.shown != pasted)

    # -- following -------------------------------------------------------------------------------

    async def follow(self, spec: SessionSpec, words: str) -> AsyncIterator[HarnessEvent]:
        """Yield the events of a turn whose prompt was typed, and its end."""
        deadline, progress, named = self._now() + self._pace.turn, "", False
        while True:
            look = await self._look()
            turn = self._kept.turn(self._delivery_id) or PaneTurn()
            if turn.interrupted:
                await self._clear_restored_prompt(words)
                yield Failed(layer=Layer.SESSION, reason=INTERRUPTED)
                return
            if look is None or self._kept.run.stopped:
                yield build_failure(self._kept, await self._held.server.look(self._held.pane))
                return
            if not named and look.reports and look.reports[-1].native:
                named = True
                if spec.native_ids.get("session") != look.reports[-1].native:
                    yield Identified(native_ids={"session": look.reports[-1].native})
            for event in self._questions.read(look):
                yield event
            if (sign := read_progress(look.program, look.shown)) and sign != progress:
                progress = sign
                yield TurnProgress(text=sign)
            if self._is_over(look, turn):
                yield _build_end(look, turn, words)
                return
            if self._now() > deadline:
                yield Failed(layer=Layer.SESSION, reason=f"it took longer than {self._pace.turn:g} s")
                return
            await asyncio.sleep(self._pace.look)

    def _is_over(self, look: PaneLook, turn: PaneTurn) -> bool:
        if look.program is not None:
            return look.state is ProgramState.IDLE
        asks = look.state is ProgramState.WAITING
        return not asks and look.still >= self._pace.quiet and is_ready(turn.before, look.shown.lines)

    async def _clear_restored_prompt(self, words: str) -> None:
        """Empty the input line if the program put the interrupted prompt back there."""
        deadline = self._now() + self._pace.grace
        while (look := await self._look()) is not None and look.program is not None:
            if not is_working(look.program, look.shown):
                draft = read_draft(look.program, look.shown)
                if draft and (words.startswith(draft) or _PASTED.match(draft)):
                    await self._held.server.press(self._held.pane, look.program.clear)
                    return
            if self._now() > deadline:
                return
            await asyncio.sleep(self._pace.look)


def _since(look: PaneLook, mark: int) -> list[HookReport]:
    return [one for one in look.reports if one.number > mark]


def _build_end(look: PaneLook, turn: PaneTurn, words: str) -> Completed | Failed:
    """Return the answer as the program reported it; without reports, as its screen shows it."""
    reports = _since(look, turn.mark)
    ends = [one for one in reports if one.event == "stop"]
    if reports and not ends:
        last = read_answer(look.program, look.shown) if look.program is not None else ""
        reason = f"the program ended its turn without an answer: {' '.join(last.split())[-300:]}"
        return Failed(layer=Layer.HARNESS, reason=reason.rstrip(": "))
    if ends and ends[-1].text:
        return Completed(text=ends[-1].text)
    if look.program is not None:
        said = read_answer(look.program, look.shown)
        failed = look.program.failed.match(said) is not None
        return Failed(layer=Layer.HARNESS, reason=said) if failed else Completed(text=said)
    return Completed(text=find_new_lines(turn.before, look.shown.lines, words))


def _refuse_typing(look: PaneLook) -> Failed:
    """Return why nothing was typed; a later attempt may succeed."""
    if look.program is not None and is_input_empty(look.program, look.shown) is False:
        why = "its input line holds text that was not sent"
    elif look.state is ProgramState.WORKING:
        why = "it works on something else"
    else:
        why = f"it does not show that it waits for input; its last line: {get_last_words(look.shown)}"
    return Failed(layer=Layer.SESSION, reason=f"nothing was typed: {why}", again=True)


def get_last_words(shown: Shown) -> str:
    """Return the last line with words in it."""
    return next((line.strip() for line in reversed(shown.lines) if line.strip()), "")[:200]


def build_failure(kept: Kept, shown: Shown | None) -> Failed:
    """Return why the program has ended, with the last line of its screen."""
    run = kept.run
    if run.stopped:
        return Failed(layer=Layer.SESSION, reason=run.stopped)
    words = get_last_words(shown) if shown else ""
    how = "its pane is gone" if run.exit_code is None else f"exit {run.exit_code}"
    return Failed(layer=Layer.PROCESS, reason=": ".join(filter(None, (how, words))))
