"""Harness checks: one running check per harness, which callers can follow and stop."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NamedTuple

from scout.broker.transaction.streams import Waiters
from scout.ports import Harness, Probe
from scout.protocol.sessions import CheckLine, CheckState, Verdict

_LOG = logging.getLogger("scout.runtimes")
TURNS = 5  # model turns of a full check


class CheckWish(NamedTuple):
    """The harness, its probe, whether model turns are allowed, and the program to run."""

    harness: Harness
    probe: Probe
    consent: bool
    program: tuple[str, ...] = ()


PlayCheck = Callable[[CheckWish], AsyncGenerator[CheckLine]]


class _Check:
    """One check and its verdicts so far."""

    def __init__(self) -> None:
        self.lines: list[CheckLine] = []
        self.state = CheckState.RUNNING
        self.task: asyncio.Task[None] | None = None


class HarnessChecks:
    """Holds the last check of each harness. `play` runs the checks in order."""

    def __init__(self, play: PlayCheck, waiters: Waiters) -> None:
        self._play = play
        self._waiters = waiters
        self._last: dict[str, _Check] = {}

    def start(self, wish: CheckWish) -> None:
        """Start a check, unless one is running for this harness."""
        last = self._last.get(wish.harness.name)
        if last is not None and last.state is CheckState.RUNNING:
            return
        check = self._last[wish.harness.name] = _Check()
        check.task = asyncio.get_running_loop().create_task(self._run(check, wish))

    async def stop(self, name: str) -> None:
        """Stop a running check; return when everything it started has ended."""
        task = self._last[name].task if name in self._last else None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        await asyncio.gather(*(self.stop(name) for name in self._last))

    def result(self, name: str) -> tuple[CheckState | None, tuple[CheckLine, ...]]:
        """Return the state and verdicts of the last check."""
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
        except Exception as error:  # noqa: BLE001 (reported as a failed verdict; it is logged)
            _LOG.exception("checking %s", name)
            because = f"the check itself failed: {type(error).__name__}: {error}"
            check.lines.append(CheckLine(line="the check", verdict=Verdict.FAILED, because=because))
            state = CheckState.FINISHED
        finally:
            check.state = state
            self._waiters.tell(check_key(name))


def check_key(name: str) -> str:
    """Return the waiter key of a harness's check."""
    return f"check of {name}"


def count_turns(harness: Harness) -> int:
    """Return the number of model turns in a full check."""
    return TURNS if harness.capabilities.calls_model else 0


async def play_nothing(_: CheckWish) -> AsyncGenerator[CheckLine]:
    """Answer a harness check in a broker that runs without a daemon."""
    reason = "it needs a running daemon"
    yield CheckLine(line="the check", verdict=Verdict.NOT_TRIED, because=reason)
