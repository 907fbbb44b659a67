"""`python -m bench.traced FILE MODULE [ARGS]`: run a module and store the calls of Scout's functions in order.

If FILE ends in `.marked`, only calls between two SIGUSR1 are stored, so that a daemon can start and warm up first.
"""

import dis
import inspect
import json
import runpy
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import scout

_SOURCE = str(Path(scout.__file__).parent) + "/"
_RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_RESUME = dis.opmap[
    "RESUME"
]  # its argument is 0 where a function starts, and not 0 after a yield or an await


class Trace:
    """Each call of a function of Scout: its thread, its file below `scout` and its name.

    Neither running the body of a module or a class (an import) nor resuming a coroutine or a generator is a call.
    """

    def __init__(self) -> None:
        self.is_recording = False
        self._calls: list[tuple[int, str, str]] = []

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not self.is_recording:
            return
        code = frame.f_code
        if not code.co_filename.startswith(_SOURCE) or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        if code.co_flags & _RESUMABLE and _is_resumed(frame):
            return
        file = code.co_filename.removeprefix(_SOURCE)
        self._calls.append((threading.get_ident(), file, code.co_qualname))

    def store(self, file: str) -> None:
        """Write the calls since the last time; a reader never sees half a file."""
        new = Path(f"{file}.new")
        new.write_text(json.dumps(self._calls))
        new.replace(file)
        self._calls = []


def _is_resumed(frame: FrameType) -> bool:
    """Whether a coroutine or a generator continues after a yield or an await."""
    step, argument = frame.f_code.co_code[frame.f_lasti : frame.f_lasti + 2]
    return step == _RESUME and argument & 3 != 0


def main() -> None:
    file, module, *arguments = sys.argv[1:]
    trace, is_marked = Trace(), file.endswith(".marked")

    def mark(*_: object) -> None:
        if trace.is_recording:
            trace.store(file)
        trace.is_recording = not trace.is_recording

    signal.signal(signal.SIGUSR1, mark)
    trace.is_recording = not is_marked
    threading.setprofile(trace)
    sys.setprofile(trace)
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        sys.setprofile(None)
        if not is_marked:
            trace.store(file)


if __name__ == "__main__":
    main()
