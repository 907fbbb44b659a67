"""The inbox of a Claude Code session that a person has open: a socket beside its entry in the registry.

Nothing comes back on it. That the session reads what was said is told by its own prompt hook.
"""

import asyncio
from contextlib import suppress
from pathlib import Path

from scout.adapters.claude.files import live_session
from scout.base.codec import encode

_WAIT = 5.0


async def knock(home: Path, native_id: str, text: str) -> bool:
    """Say something to the session of this name, if its process lives and is idle; whether it went in."""
    live = await asyncio.to_thread(live_session, home, native_id)
    if live is None or live.status != "idle" or not live.socket:
        return False
    said = {"type": "user", "from": "scout", "message": {"role": "user", "content": text}}
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_WAIT):
            await _write(live.socket, encode(said) + b"\n")
            return True
    return False


async def _write(socket: str, line: bytes) -> None:
    _, writer = await asyncio.open_unix_connection(socket)
    try:
        writer.write(line)
        await writer.drain()
    finally:
        writer.close()
        await writer.wait_closed()
