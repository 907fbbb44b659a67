"""Agents of other systems, running for a test."""

import contextlib
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

_PROGRAM = Path(__file__).parent / "other_agent.py"
_PATIENCE = 60  # seconds: a busy machine is no failure


@contextlib.contextmanager
def other_agent(*arguments: str) -> Generator[str]:
    """The URL of an agent of another system, which is gone at the end."""
    command = [sys.executable, str(_PROGRAM), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()
            process.wait(_PATIENCE)
