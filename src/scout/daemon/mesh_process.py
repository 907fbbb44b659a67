"""Runs the NATS server of a mesh like a harness: it survives the daemon, and the next daemon finds it."""

import asyncio
import os
import shutil
from pathlib import Path

from scout.adapters.process.run import Launch, Run, RunState, reap, stop

_GRACE = 10.0  # seconds to write what it has in memory
_STARTED = 5.0
_MOST = 8192
_PASSED = ("HOME", "PATH", "TMPDIR")


class SupervisedServer:
    """A folder of numbered runs, of which the last one counts. Those before it are removed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self) -> int | None:
        """Return the process of the server; None: it does not run."""
        reap()
        run = self._find_run()
        if run is None or run.state() is not RunState.RUNNING or run.process is None:
            return None
        shell = run.process
        return next((one.pid for one in run.members() if one != shell), shell.pid)

    def start(self, command: tuple[str, ...]) -> None:
        """Start the program, in a new run."""
        before = self._find_run()
        run = Run(self._folder / str(int(before.folder.name) + 1 if before else 1))
        run.prepare()
        environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
        run.begin(Launch(command, str(self._folder), "", environment))
        asyncio.run(run.wait_for_process(_STARTED))
        for old in self._folder.iterdir():
            if old != run.folder:
                shutil.rmtree(old, ignore_errors=True)

    def stop(self) -> None:
        """Stop it: SIGTERM, then SIGKILL."""
        if (run := self._find_run()) is not None:
            asyncio.run(stop(run, "stopped by the daemon", _GRACE))

    def read_words(self) -> str:
        """Return what it wrote to its standard streams."""
        run = self._find_run()
        files = (run.stdout, run.stderr) if run else ()
        return "".join(file.read_text("utf-8", "replace")[-_MOST:] for file in files if file.exists())

    def _find_run(self) -> Run | None:
        numbers = [int(one.name) for one in self._folder.glob("[0-9]*") if one.name.isdecimal()]
        return Run(self._folder / str(max(numbers))) if numbers else None
