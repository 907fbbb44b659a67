"""What was answered is there after kill -9, and what is there is whole."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scout.store.database import connect
from scout.store.integrity.verify import verify
from scout.store.log import read_last_seq
from tests import seeds
from tests.soak import Soaked

ROOT = Path(__file__).parents[2]

# Four writers at once; the number of each fact is printed when its answer has come.
PROGRAM = """
import asyncio, sys
from pathlib import Path
from scout.store.database import Database
from tests.store.facts import post_message

async def main():
    database = Database(Path(sys.argv[1]))
    async def sender(name):
        for index in range(100_000):
            print(await database.write(post_message(f"{sys.argv[2]}.{name}.{index}")), flush=True)
    await asyncio.gather(*(sender(name) for name in range(4)))

asyncio.run(main())
"""


@pytest.mark.slow
def test_every_answered_write_survives_kill_9(tmp_path: Path) -> None:
    assert kill_repeatedly(tmp_path / "scout.db", 5) > 100


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_every_answered_write_survives_kill_9_a_hundred_times(tmp_path: Path, soaked: Soaked) -> None:
    soaked(kills=100, writes=kill_repeatedly(tmp_path / "scout.db", 100))


def kill_repeatedly(path: Path, lives: int) -> int:
    """The writes that were answered by processes that were killed in the middle of writing."""
    chance = random.Random(seeds.run_seed())
    answered = 0
    for life in range(lives):
        words = [sys.executable, "-c", PROGRAM, str(path), str(life)]
        with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 400)):
                answered = max(answered, int(process.stdout.readline()))
            process.send_signal(signal.SIGKILL)
            rest = [line for line in process.stdout if line.endswith("\n")]
        answered = max([answered, *(int(line) for line in rest)])
        store = connect(path, readonly=True)
        assert read_last_seq(store) >= answered
        store.close()
    report = verify(path)
    assert report.clean
    assert report.events >= answered
    return answered
