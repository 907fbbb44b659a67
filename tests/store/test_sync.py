"""As the operating system sees it: a request is answered only after its write was synced."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
STRACE = shutil.which("strace")

# Requests one after the other, then some at once; markers go straight to the file of standard output.
PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from scout.store.database import Database
from tests.store.facts import post_message

async def one(database, name):
    os.write(1, f"ask {name}\\n".encode())
    await database.write(post_message(name))
    os.write(1, f"ack {name}\\n".encode())

async def main():
    database = Database(Path(sys.argv[1]))
    if sys.argv[2] != "FULL":
        database._connection.execute(f"PRAGMA synchronous = {sys.argv[2]}")
    for number in range(20):
        await one(database, f"alone{number}")
    await asyncio.gather(*(one(database, f"together{number}") for number in range(20)))
    await database.close()

asyncio.run(main())
"""

_CALL = re.compile(r"^(\d+) +(\w+)\((\d+)<([^>]*)>(?:, \"([^\"]*)\")?")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>")


class Call(NamedTuple):
    """A completed system call, in the order of completion."""

    name: str
    path: str
    text: str
    result: str


def calls(trace: str) -> Iterator[Call]:
    begun: dict[str, Call] = {}
    for line in trace.splitlines():
        result = line.rpartition(" = ")[2]
        if found := _CALL.match(line):
            process, name, _, path, text = found.groups()
            call = Call(name, path, text or "", result)
            if line.endswith("<unfinished ...>"):
                begun[process] = call
            else:
                yield call
        elif (found := _RESUMED.match(line)) and found[1] in begun:
            yield begun.pop(found[1])._replace(result=result)


def trace_calls(folder: Path, setting: str) -> list[Call]:
    """What the program asked of the operating system."""
    if STRACE is None:
        pytest.skip("NOT PROVED HERE: strace is missing, so nothing was seen of what reaches the disk")
    trace = folder / "trace"
    words = [STRACE, "-f", "-y", "-s", "40", "-o", str(trace), "-e", "trace=fsync,fdatasync,write,pwrite64"]
    program = [sys.executable, "-c", PROGRAM, str(folder / "data" / "scout.db"), setting]
    subprocess.run([*words, *program], cwd=ROOT, check=True, timeout=50, capture_output=True)
    return list(calls(trace.read_text()))


def answers(found: list[Call]) -> Iterator[tuple[str, bool]]:
    """Each answered request, and whether its bytes were in the log and synced before the answer."""
    asked: set[str] = set()
    written = synced = False
    for call in found:
        if call.path.endswith("-wal"):
            if call.name.endswith("sync"):
                synced = call.result == "0"
            else:
                written, synced = True, False
        elif call.text.startswith("ask "):
            asked.add(call.text[4:])
            written = synced = False
        elif call.text.startswith("ack "):
            asked.remove(call.text[4:])
            yield call.text[4:], written and synced
    assert asked == set()


def test_a_completed_sync_lies_between_a_request_and_its_answer(tmp_path: Path) -> None:
    found = dict(answers(trace_calls(tmp_path, "FULL")))
    assert len(found) == 40
    assert all(found.values())


def test_a_store_that_does_not_sync_would_be_seen(tmp_path: Path) -> None:
    found = dict(answers(trace_calls(tmp_path, "OFF")))
    assert len(found) == 40
    assert not any(found.values())
