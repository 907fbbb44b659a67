"""Watches the thread of an event loop: a long step, a file that is read there or a large hash is reported.

While that thread is busy, nobody is answered. A step may take 50 ms of the thread's own processor time; what
it waits for is not counted, so that a busy machine changes nothing. SQLite reads its file unseen from here:
its statements run on this thread on purpose, and their time counts.

Two places are watched: brokers inside the process of the tests (`watching`), where only Scout's own code
counts, and daemons (`watch_servers`), from the moment they serve on: what happens before delays nobody.
"""

import asyncio
import contextlib
import gc
import hashlib
import os
import re
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["collect", "folder_for_children", "install", "watch_servers", "watching"]

LIMIT = 0.05  # seconds of processor time in one step
LARGEST_HASH = 512 * 1024  # bytes: a request with the longest body fits; a file does not
_MOST = 20  # reports of one process
_DEPTH = 12

_OWN = str(Path(__file__).parent)
_CODE = (".py", ".pyc", ".so")
_DRAWN = "/.hypothesis/"  # what hypothesis keeps for itself, and reads whenever a test draws
_RUN_FILE = re.compile(r"/sessions/ses_\w+/")
_SMALL = 64 * 1024  # bytes of a run's file; docs/decisions/0030-small-run-files.md has the reason
_KERNEL = ("/dev/", "/proc/", "/sys/")
_PATHS = sysconfig.get_paths()
_LIBRARY = tuple({_PATHS["stdlib"], _PATHS["platstdlib"], _PATHS["purelib"], _PATHS["platlib"]})
_READS = (os.O_RDONLY, os.O_RDWR)

_watched = set[int]()
_reported = set[str]()
_reports = list[str]()
_tell: Callable[[str], None] = _reports.append
_only_scout = True


# -- what is watched -------------------------------------------------------------------------------


def install() -> None:
    """Be told of every step, open file and hash from now on; nothing is counted on a thread not watched."""
    if sys.gettrace() is None:  # with a tracer, a hook in Python races with threads that begin to be traced
        sys.addaudithook(_audit)
    for name in ("md5", "sha1", "sha256", "sha512", "blake2b"):
        setattr(hashlib, name, _checked_hash(getattr(hashlib, name)))
    gc.callbacks.append(_note_collection)
    asyncio.Handle._run = _measured_run  # type: ignore[method-assign] (there is no other place that sees each step)


@contextlib.contextmanager
def watching() -> Generator[None]:
    """Watch the calling thread, inside the process of the tests."""
    thread = threading.get_ident()
    _watched.add(thread)
    try:
        yield
    finally:
        _watched.discard(thread)


def watch_servers(folder: Path) -> None:
    """In a daemon: watch its loop from the moment it serves on; a report is a file in this folder."""
    global _tell, _only_scout  # noqa: PLW0603 (one process is either a daemon or the tests)
    _only_scout = False
    _tell = lambda text: _write_report(folder, text)  # noqa: E731 (it is replaced as a whole)
    install()
    with contextlib.suppress(ImportError):
        import uvloop

        _measure_steps(uvloop.Loop)
        _watch_from_serving(uvloop.Loop)
    _watch_from_serving(asyncio.BaseEventLoop)


def _watch_from_serving(loop: Any) -> None:
    create = loop.create_server

    async def create_server(self: Any, factory: Callable[[], Any], *args: Any, **options: Any) -> Any:
        _watched.add(threading.get_ident())
        return await create(self, lambda: _measured_protocol(factory()), *args, **options)

    loop.create_server = create_server


# -- processor time --------------------------------------------------------------------------------


_run = asyncio.Handle._run
_collecting = {"began": 0.0, "total": 0.0}  # seconds of garbage collection on a watched thread


def _note_collection(phase: str, _: object) -> None:
    """The tests hold ten thousand modules' objects: looking through those is no work of Scout."""
    if _only_scout and threading.get_ident() in _watched:
        if phase == "start":
            _collecting["began"] = time.thread_time()
        else:
            _collecting["total"] += time.thread_time() - _collecting["began"]


def _used() -> float:
    """The processor time of this thread so far."""
    return time.thread_time() - _collecting["total"]


def _measured_run(handle: asyncio.Handle) -> None:
    began = _used() if threading.get_ident() in _watched else float("inf")
    _run(handle)
    _check_time(_used() - began, getattr(handle, "_callback", None))


def _measure_steps(loop: Any) -> None:
    """The same for a loop whose handles are not Python's own: its callbacks are wrapped."""
    for name, place in {"call_soon": 0, "call_soon_threadsafe": 0, "call_later": 1, "call_at": 1}.items():
        setattr(loop, name, _wrapping(getattr(loop, name), place))


def _wrapping(schedule: Callable[..., Any], place: int) -> Callable[..., Any]:
    def scheduled(self: Any, *args: Any, **options: Any) -> Any:
        before, callback, after = args[:place], args[place], args[place + 1 :]
        return schedule(self, *before, _measured(callback), *after, **options)

    return scheduled


def _measured(callback: Callable[..., Any]) -> Callable[..., Any]:
    def step(*args: Any) -> Any:
        began = _used() if threading.get_ident() in _watched else float("inf")
        result = callback(*args)
        _check_time(_used() - began, callback)
        return result

    return step


def _measured_protocol(protocol: Any) -> Any:
    protocol.data_received = _measured(protocol.data_received)
    return protocol


def _check_time(spent: float, callback: object) -> None:
    if spent <= LIMIT or threading.get_ident() not in _watched:
        return
    task: Any = getattr(callback, "__self__", None)
    what = f"a step took {spent * 1000:.0f} ms of processor time: "
    if not isinstance(task, asyncio.Task):
        _report(what + repr(callback), [])
        return
    coroutine: Any = task.get_coro()  # pyright: ignore[reportUnknownVariableType] (of any task)
    lines = _lines(_awaiting(coroutine))
    starts_process = bool(lines) and lines[-1].endswith(
        "create_subprocess_exec"
    )  # the system's time, for the fork
    if not starts_process and not (_only_scout and _is_of_tests(coroutine)):
        _report(what + repr(coroutine), lines)


def _awaiting(coroutine: Any) -> list[FrameType]:
    """Where it stopped after the step, from the outermost call to the innermost."""
    frames = list[FrameType]()
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        frames.append(frame)
        coroutine = coroutine.cr_await
    return frames


def _is_of_tests(coroutine: Any) -> bool:
    """A scene of a test does its own work between its calls."""
    code = getattr(coroutine, "cr_code", None)
    return code is None or not code.co_filename.startswith(_scout())


# -- files and hashes ------------------------------------------------------------------------------


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if event == "open" and threading.get_ident() in _watched:
        _check_open(*args)


def _check_open(path: object, mode: str | None, flags: int) -> None:
    if not isinstance(path, str | bytes) or not _is_reading(mode, flags):
        return
    name = os.fsdecode(path)
    if name.startswith((*_KERNEL, *_LIBRARY)) or name.endswith(_CODE) or name == "/dev" or _DRAWN in name:
        return
    if _RUN_FILE.search(name) and _size(name) <= _SMALL:
        return
    if name == os.environ.get("SCOUT_TEST_CLOCK_FILE"):  # only a test moves the clock of a daemon by a file
        return
    _report_call(f"the file {name} was read on the thread of the event loop")


def _size(name: str) -> int:
    with contextlib.suppress(OSError):
        return os.stat(name).st_size  # noqa: PTH116 (pathlib asks the same)
    return 0


def _is_reading(mode: str | None, flags: int) -> bool:
    return ("r" in mode or "+" in mode) if mode is not None else flags & os.O_ACCMODE in _READS


def _checked_hash(make: Callable[..., Any]) -> Callable[..., Any]:
    def made(data: Any = b"", **options: Any) -> Any:
        if len(data) > LARGEST_HASH and threading.get_ident() in _watched:
            _report_call(f"{len(data)} bytes were hashed on the thread of the event loop")
        return make(data, **options)

    return made


def _report_call(what: str) -> None:
    """Whoever called the library did it; a test may read what it likes."""
    caller = _caller(sys._getframe(1))
    if caller is None or not (_only_scout and not caller.f_code.co_filename.startswith(_scout())):
        frames = [one for one, _ in traceback.walk_stack(caller) if not _is_library(one.f_code.co_filename)]
        _report(what, _lines(frames[::-1]))


def _caller(frame: FrameType | None) -> FrameType | None:
    """The nearest frame that is no library's."""
    while frame is not None and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _is_library(file: str) -> bool:
    return file.startswith(("<", _OWN)) or (file.startswith(_LIBRARY) and not file.startswith(_scout()))


def _scout() -> str:
    """The folder of the package."""
    package = sys.modules.get("scout")
    return str(Path(str(package.__file__)).parent) if package is not None else "no such folder"


# -- reports ---------------------------------------------------------------------------------------


def _lines(frames: list[FrameType]) -> list[str]:
    shown = [f"{one.f_code.co_filename}:{one.f_lineno} in {one.f_code.co_name}" for one in frames]
    return shown[-_DEPTH:]


def _report(what: str, lines: list[str]) -> None:
    """Each place once."""
    key = lines[-1] if lines else what
    if key not in _reported and len(_reported) < _MOST:
        _reported.add(key)
        _tell("\n".join([what, *(f"    {line}" for line in lines)]))


def _write_report(folder: Path, text: str) -> None:
    """Whole or not at all: another process looks for it."""
    draft = folder / f"{os.getpid()}-{len(_reported)}.draft"
    draft.write_text(f"daemon {os.getpid()}: {text}\n")
    draft.rename(draft.with_suffix(".report"))


def folder_for_children(folder: Path) -> Path:
    """A folder for PYTHONPATH in which every daemon finds this guard, and leaves its reports."""
    folder.mkdir()
    for file in ("sitecustomize.py", "loop_guard.py"):
        (folder / file).symlink_to(Path(__file__).with_name(file))
    return folder


def collect(folder: Path) -> list[str]:
    """The reports of this process and of the daemons since they were last collected."""
    found, _reports[:] = list(_reports), []
    for file in sorted(folder.glob("*.report")):
        found.append(file.read_text())
        file.unlink()
    _reported.clear()
    return found
