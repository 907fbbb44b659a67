"""What was answered is there after kill -9, and what is there is whole."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scout.store.database import connect
from scout.store.log import last_seq
from scout.store.verify import verify

ROOT = Path(__file__).parents[2]

# Four writers at once; the number of each fact is printed when its answer has come.
PROGRAM = """
import asyncio, sys
from pathlib import Path
from scout.store.database import Database
from tests.store.facts import said

async def main():
    database = Database(Path(sys.argv[1]))
    async def sender(name):
        for index in range(100_000):
            print(await database.write(said(f"{sys.argv[2]}.{name}.{index}")), flush=True)
    await asyncio.gather(*(sender(name) for name in range(4)))

asyncio.run(main())
"""


@pytest.mark.slow
def test_every_answered_write_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "scout.db"
    chance = random.Random(7)
    answered = 0
    for life in range(12):
        words = [sys.executable, "-c", PROGRAM, str(path), str(life)]
        with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 400)):
                answered = max(answered, int(process.stdout.readline()))
            process.send_signal(signal.SIGKILL)
            rest = [line for line in process.stdout if line.endswith("\n")]
        answered = max([answered, *(int(line) for line in rest)])
        store = connect(path, readonly=True)
        assert last_seq(store) >= answered
        store.close()
    report = verify(path)
    assert report.clean
    assert report.events >= answered > 1000
