"""A router that is a program: it reads a message and the candidates, and prints its choice."""

import asyncio
import os
import shlex
import signal
from asyncio.subprocess import PIPE, Process
from contextlib import suppress

from scout.base.codec import encode
from scout.settings.environment import build_environment

_PATIENCE = 20.0  # seconds
_LONGEST = 4096  # bytes of an answer
_KILL_WAIT = 5.0


class ProgramRouter:
    """Runs a command line without a shell: JSON with text and candidates on stdin, one address on stdout."""

    def __init__(self, command: str, seconds: float = _PATIENCE) -> None:
        self._words = shlex.split(command)
        self._seconds = seconds

    async def suggest(self, text: str, candidates: tuple[str, ...]) -> str | None:
        """Return the first line that the program prints; none if it is empty."""
        program = await asyncio.create_subprocess_exec(
            *self._words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=build_environment({}),
            start_new_session=True,
            limit=_LONGEST,
        )
        try:
            async with asyncio.timeout(self._seconds):
                answer = await _ask(program, encode({"text": text, "candidates": candidates}))
                code = await _wait_for_exit(program)
        except BaseException:
            await _kill(program)
            raise
        if code != 0:
            raise OSError(f"{self._words[0]} exited with {code}")
        return answer or None


async def _ask(program: Process, question: bytes) -> str:
    assert program.stdin is not None  # both are pipes
    assert program.stdout is not None
    with suppress(ConnectionError):  # a program may answer without reading its input
        program.stdin.write(question)
        await program.stdin.drain()
    program.stdin.close()
    try:
        line = await program.stdout.readline()
    except ValueError as error:
        raise OSError(f"the router's answer is longer than {_LONGEST} bytes") from error
    return line.decode("utf-8", "replace").strip()


async def _wait_for_exit(program: Process) -> int:
    """Wait until the program has ended and both pipes are closed; return the exit code."""
    assert program.stdin is not None
    assert program.stdout is not None
    while await program.stdout.read(_LONGEST):
        pass
    code = await program.wait()
    program.stdin.close()
    with suppress(ConnectionError):  # it ended without reading everything
        await program.stdin.wait_closed()
    return code


async def _kill(program: Process) -> None:
    """Kill the program and its child processes."""
    if program.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(_KILL_WAIT):
            await _wait_for_exit(program)
