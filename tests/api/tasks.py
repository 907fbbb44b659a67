"""Counting the tasks that are made meanwhile."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast


@contextmanager
def count_tasks() -> Generator[list[str]]:
    """The names of the coroutines for which tasks are made."""
    made: list[str] = []

    def make_task(loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> Any:
        made.append(work.__qualname__)
        return asyncio.Task(work, loop=loop, **more)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(cast("Any", make_task))
    try:
        yield made
    finally:
        loop.set_task_factory(None)
