"""Runs the NATS server of a mesh like a harness: it survives the daemon, and the next daemon finds it."""

import asyncio
import os
import shutil
from pathlib import Path

from scout.adapters.process.run import Launch, Run, RunState, reap, stop

_GRACE = 10.0  # seconds to write what it has in memory
_STARTED = 5.0
_MOST = 8192


class SupervisedServer:
    """A folder of numbered runs, of which the last one counts. Those before it are removed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._run = self._find_last()

    @property
    def pid(self) -> int | None:
        """The process of the server; None: it does not run."""
        reap()
        if self._run is None or self._run.state() is not RunState.RUNNING or self._run.process is None:
            return None
        return self._run.process.pid

    @property
    def words(self) -> str:
        """What it wrote to its standard streams."""
        files = (self._run.stdout, self._run.stderr) if self._run else ()
        return "".join(file.read_text("utf-8", "replace")[-_MOST:] for file in files if file.exists())

    async def start(self, command: tuple[str, ...]) -> None:
        """Start the program, in a new run."""
        last = int(self._run.folder.name) if self._run else 0
        await asyncio.to_thread(self._remove_runs)
        run = self._run = Run(self._folder / str(last + 1))
        run.prepare()
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        run.begin(Launch(command, str(self._folder), "", environment))
        await run.wait_for_process(_STARTED)

    async def stop(self) -> None:
        """Stop it: SIGTERM, then SIGKILL."""
        if self._run is not None:
            await stop(self._run, "stopped by the daemon", _GRACE)

    def _find_last(self) -> Run | None:
        numbers = [int(one.name) for one in self._folder.glob("[0-9]*") if one.name.isdecimal()]
        return Run(self._folder / str(max(numbers))) if numbers else None

    def _remove_runs(self) -> None:
        for one in self._folder.glob("[0-9]*"):
            shutil.rmtree(one, ignore_errors=True)
