"""Turns for tests: a session, a prompt, the loop they run on, and the processes there are."""

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import uvloop

from scout.ports import Harness, HarnessEvent, Prompt, SessionSpec

__all__ = ["LOOPS", "Turn", "begin", "collect", "first", "list_left_over", "run_on", "turn", "until"]

T = TypeVar("T")
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
_numbers = itertools.count(1)


class Turn(NamedTuple):
    """What is delivered, and to whom."""

    spec: SessionSpec
    prompt: Prompt


def turn(body: str = "", *command: str, cwd: Path | None = None, **prompt: Any) -> Turn:
    """A turn of its own session; `session` names another."""
    number = next(_numbers)
    session = prompt.pop("session", f"ses_{number}")
    delivery = prompt.pop("delivery", f"dlv_{number}")
    spec = SessionSpec(
        session_id=session,
        agent_id="agt_1",
        address="@tester",
        cwd=str(cwd) if cwd else None,
        command=command,
    )
    return Turn(spec, Prompt(delivery_id=delivery, text=prompt.pop("text", body), body=body, **prompt))


def run_on(loop: str, work: Coroutine[Any, Any, T], seconds: float = 20) -> T:
    """Run on a loop of this kind; a turn that does not end is a failure."""
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(asyncio.wait_for(work, seconds))


async def collect(harness: Harness, one: Turn) -> list[HarnessEvent]:
    """All that it tells."""
    return [event async for event in harness.deliver(one.spec, one.prompt)]


async def first(harness: Harness, one: Turn) -> tuple[HarnessEvent, Awaitable[list[HarnessEvent]]]:
    """The first event, and the rest as it comes."""
    stream = harness.deliver(one.spec, one.prompt)
    event = await anext(stream)

    async def rest() -> list[HarnessEvent]:
        return [event async for event in stream]

    return event, asyncio.create_task(rest())


async def until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait for something that the world does by itself."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 (a file gives no event)
            await asyncio.sleep(0.005)


_OTHERS = set[str]()  # children that nobody had reaped before the test began: not its own


def begin(folder: Path) -> None:
    """A test begins; what is left over from here on is its own."""
    _OTHERS.clear()
    _OTHERS.update(list_left_over(folder))


def list_left_over(folder: Path) -> list[str]:
    """Processes that work below a folder or were told of it, and children that nobody reaped."""
    found = [line for entry in Path("/proc").glob("[0-9]*") if (line := _belongs(entry, str(folder)))]
    return [line for line in found if line not in _OTHERS]


def _belongs(entry: Path, folder: str) -> str:
    try:
        state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        where = str((entry / "cwd").readlink()) if state != "Z" else ""
    except OSError:
        return ""
    if int(entry.name) == os.getpid():
        return ""
    zombie = state == "Z" and int(parent) == os.getpid()
    ours = state != "Z" and (where.startswith(folder) or any(folder in word for word in words))
    return f"{entry.name} {state} {words}" if zombie or ours else ""
