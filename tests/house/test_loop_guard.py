"""The guard of the event loop notices what holds it up, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard import loop_guard

SERVER = """
import asyncio, hashlib, sys, threading, time, uvloop

def read(): open({file!r}).read()
def hash_much(): hashlib.sha256(bytes(1 << 20))
def work():
    until = time.thread_time() + 0.08
    while time.thread_time() < until: pass
def hash_little(): hashlib.sha256(b"a token")
def wait(): time.sleep(0.08)
def write(): open({file!r} + ".out", "w").close()
def ask_the_kernel(): open("/proc/self/stat").read()

async def later(deed): deed()

async def main(deed, when):
    loop = asyncio.get_running_loop()
    if when == "before it serves": deed()
    await asyncio.sleep(0)
    server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
    await asyncio.sleep(0)
    match when:
        case "in a task": await asyncio.create_task(later(deed))
        case "in a callback": loop.call_soon(deed)
        case "after a time": loop.call_later(0.01, deed)
        case "in a thread": await asyncio.to_thread(deed)
    await asyncio.sleep(0.03)
    server.close()

deed, when, loop = globals()[sys.argv[2]], sys.argv[3], {{"uvloop": uvloop.new_event_loop}}.get(sys.argv[4])
with asyncio.Runner(loop_factory=loop) as runner:
    runner.run(main(deed, when))
"""


def reports(folder: Path, deed: str, when: str, loop: str) -> list[str]:
    """What the guard says of a server that does this."""
    (folder / "stored").write_text("text")
    script = folder / "server.py"
    script.write_text(SERVER.format(file=str(folder / "stored")))
    guard = loop_guard.folder_for_children(folder / "guard")
    command = [sys.executable, str(script), "scout.daemon", deed, when, loop]
    subprocess.run(command, env={"PYTHONPATH": str(guard)}, check=True, timeout=60)
    return [file.read_text() for file in sorted(guard.glob("*.report"))]


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
@pytest.mark.parametrize("when", ["in a task", "in a callback", "after a time"])
@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("read", "stored was read on the thread of the event loop"),
        ("hash_much", "1048576 bytes were hashed on the thread of the event loop"),
        ("work", "ms of processor time"),
    ],
)
def test_what_holds_up_the_loop_is_reported(
    tmp_path: Path, deed: str, words: str, when: str, loop: str
) -> None:
    (told,) = reports(tmp_path, deed, when, loop)
    assert words in told
    assert deed == "work" or f"server.py:{SERVER[: SERVER.index(f'def {deed}')].count(chr(10)) + 1}" in told


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
@pytest.mark.parametrize(
    ("deed", "when"),
    [
        *(("read", when) for when in ("before it serves", "in a thread")),
        *(("work", when) for when in ("before it serves", "in a thread")),
        *((deed, "in a task") for deed in ("hash_little", "wait", "write", "ask_the_kernel")),
    ],
)
def test_what_holds_up_nobody_is_not_reported(tmp_path: Path, deed: str, when: str, loop: str) -> None:
    assert reports(tmp_path, deed, when, loop) == []
