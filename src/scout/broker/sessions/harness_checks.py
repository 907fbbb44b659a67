"""The checks of harnesses: one at a time for each, followed by whoever asks, stopped by whoever may."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NamedTuple

from scout.broker.transaction.streams import Waiters
from scout.ports import Harness, Probe
from scout.protocol.sessions import CheckLine, CheckState, Verdict

_LOG = logging.getLogger("scout.runtimes")
TURNS = 5  # of a model, in a whole check


class CheckWish(NamedTuple):
    """The harness, how it was found, whether turns of a model are allowed, and the program it is to run."""

    harness: Harness
    probe: Probe
    consent: bool
    program: tuple[str, ...] = ()


PlayCheck = Callable[[CheckWish], AsyncGenerator[CheckLine]]


class _Check:
    """One check: its verdicts so far."""

    def __init__(self) -> None:
        self.lines: list[CheckLine] = []
        self.state = CheckState.RUNNING
        self.task: asyncio.Task[None] | None = None


class HarnessChecks:
    """The last check of each harness. `play` tries the promises one after another."""

    def __init__(self, play: PlayCheck, waiters: Waiters) -> None:
        self._play = play
        self._waiters = waiters
        self._last: dict[str, _Check] = {}

    def start(self, wish: CheckWish) -> None:
        """Begin a check, unless one of this harness runs."""
        last = self._last.get(wish.harness.name)
        if last is not None and last.state is CheckState.RUNNING:
            return
        check = self._last[wish.harness.name] = _Check()
        check.task = asyncio.get_running_loop().create_task(self._run(check, wish))

    async def stop(self, name: str) -> None:
        """End a check that runs; returns once everything that it started is gone."""
        task = self._last[name].task if name in self._last else None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        await asyncio.gather(*(self.stop(name) for name in self._last))

    def result(self, name: str) -> tuple[CheckState | None, tuple[CheckLine, ...]]:
        """The state of the last check, and its verdicts."""
        last = self._last.get(name)
        return (last.state, tuple(last.lines)) if last is not None else (None, ())

    async def _run(self, check: _Check, wish: CheckWish) -> None:
        name, state = wish.harness.name, CheckState.STOPPED
        try:
            async with aclosing(self._play(wish)) as lines:
                async for line in lines:
                    check.lines.append(line)
                    self._waiters.tell(check_key(name))
            state = CheckState.FINISHED
        except Exception as error:  # noqa: BLE001 (whoever follows the check is told; it is logged)
            _LOG.exception("checking %s", name)
            because = f"the check itself failed: {type(error).__name__}: {error}"
            check.lines.append(CheckLine(line="the check", verdict=Verdict.FAILED, because=because))
            state = CheckState.FINISHED
        finally:
            check.state = state
            self._waiters.tell(check_key(name))


def check_key(name: str) -> str:
    """What those who follow a check listen for."""
    return f"check of {name}"


def turns_of(harness: Harness) -> int:
    """How many turns of a model a whole check takes."""
    return TURNS if harness.capabilities.calls_model else 0
