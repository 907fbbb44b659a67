"""`python -m bench.traced FILE MODULE [ARGS]`: run a module and store which of Scout's files its calls go through.

Only calls between two SIGUSR1 are counted where FILE ends in `.marked`, so that a daemon can start and warm up first.
"""

import json
import runpy
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import scout

_SOURCE = str(Path(scout.__file__).parent) + "/"


class Trace:
    """The files of Scout that were called, and how often a thread changed from one room to another."""

    def __init__(self) -> None:
        self.counting = False
        self.files: set[str] = set()
        self.changes = 0
        self._room: dict[int, str] = {}
        self._names: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not self.counting:
            return
        file = self._short(frame.f_code.co_filename)
        if file is None:
            return
        self.files.add(file)
        thread, room = threading.get_ident(), file.partition("/")[0]
        if self._room.get(thread, room) != room:
            self.changes += 1
        self._room[thread] = room

    def _short(self, name: str) -> str | None:
        if name not in self._names:
            self._names[name] = name.removeprefix(_SOURCE) if name.startswith(_SOURCE) else None
        return self._names[name]

    def store(self, file: str) -> None:
        Path(file).write_text(json.dumps({"files": sorted(self.files), "changes": self.changes}))


def main() -> None:
    file, module, *arguments = sys.argv[1:]
    trace, marked = Trace(), file.endswith(".marked")

    def mark(*_: object) -> None:
        if trace.counting:
            trace.store(file)
        trace.counting = not trace.counting

    signal.signal(signal.SIGUSR1, mark)
    trace.counting = not marked
    threading.setprofile(trace)
    sys.setprofile(trace)
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        sys.setprofile(None)
        if not marked:
            trace.store(file)


if __name__ == "__main__":
    main()
