"""The queue of a Codex thread that a person has open: an idle terminal runs what is put there at once.

That the session reads it is told by its own prompt hook.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from scout.adapters.codex.files import home_of, live_session

_WAIT = 20.0


async def knock(binary: str, native_id: str, text: str, environment: Mapping[str, str]) -> bool:
    """Queue something for the thread of this id, if a program has it open; whether Codex took it."""
    if await asyncio.to_thread(live_session, home_of(environment), native_id) is None:
        return False
    words = (binary, "queue", "--thread", native_id, f"--message={text}")
    null = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *words, env=dict(environment), stdin=null, stdout=null, stderr=null
        )
    except (OSError, ValueError):  # among others: a text too long for a command line
        return False
    try:
        async with asyncio.timeout(_WAIT):
            return await process.wait() == 0
    except TimeoutError:
        return False
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
