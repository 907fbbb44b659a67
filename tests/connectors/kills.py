"""kill -9 of a real daemon while people chat: no message is lost, and none is answered twice in silence."""

import asyncio
import contextlib
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from pathlib import Path

from scout.daemon import start
from scout.store.integrity.verify import verify
from tests import seeds
from tests.broker.rig import SECRET, open_rig
from tests.connectors.chatting import Chat, store_setup
from tests.connectors.stage import Stage
from tests.daemon.daemons import Daemon, environment, eventually

__all__ = ["play_kills"]

_LIMITS = {
    "SCOUT_LIMITS_OPEN_FLIGHTS": "100000",
    "SCOUT_LIMITS_ASKS_PER_MINUTE": "1000000",
    "SCOUT_LIMITS_WAKES_PER_HOUR": "1000000",
    "SCOUT_PERIODS_BACK_OFF_FIRST": "0.05",
    "SCOUT_PERIODS_BACK_OFF_MOST": "1",
}
_SHOWN = re.compile(r"text-(\d+)-end")
_REPEAT = "may be a repeat"
_MOST_OPEN = 40  # texts that wait for an answer; a busy machine must not be a failure
_LOOK = 20  # texts between two looks


class _Talker(threading.Thread):
    """A person who types one text after another, and pauses while too many are unanswered."""

    def __init__(self, stage: Stage, person: str, chat: str) -> None:
        super().__init__(daemon=True)
        self._stage = stage
        self._person = person
        self._chat = chat
        self.said = 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            if self.said % _LOOK == 0 and self.said - self._count_answered() > _MOST_OPEN:
                self.over.wait(0.5)
                continue
            self._stage.say(self._person, self._chat, f">> arc !say text-{self.said}-end")
            self.said += 1

    def _count_answered(self) -> int:
        return len({number for number, _ in _answers(self._stage, self._chat)})


async def _prepare(stage: Stage, home: Path) -> tuple[str, str]:
    """A person whose account is linked, and an agent that answers."""
    async with open_rig(home, kits=store_setup(home, stage)) as rig:
        chat = Chat(rig, stage)
        await chat.wait_for_state("running")
        await chat.agent("arc")
        ada = await chat.link("ada")
        await chat.settle()
        return ada, await chat.private(ada)


def _start(home: Path) -> Daemon:
    running, _ = start.start(str(home), environ=environment(home) | _LIMITS, timeout=60)
    return Daemon(home, running)


def play_kills(stage: Stage, home: Path, kills: int) -> dict[str, int]:
    """Kill the daemon so often, at random moments; what was counted."""
    chance = random.Random(seeds.run_seed())
    home.mkdir(mode=0o700)
    (home / "token").write_text(f"{SECRET}\n")
    (home / "token").chmod(0o600)
    ada, chat = asyncio.run(_prepare(stage, home))
    talker = _Talker(stage, ada, chat)
    daemon = _start(home)
    talker.start()
    try:
        for _ in range(kills):
            time.sleep(chance.uniform(0.05, 0.6))  # the moment of the kill is what is random here
            os.kill(daemon.running.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(daemon.running.pid, 0)
            daemon = _start(home)
        talker.over.set()
        talker.join(60)
        eventually(lambda: _is_complete(stage, chat, talker.said), 900)
    finally:
        talker.over.set()
        start.stop(str(home), timeout=60)
    return {"kills": kills, "texts": talker.said, "repeats": _check(stage, chat, home, talker.said)}


def _answers(stage: Stage, chat: str) -> list[tuple[int, bool]]:
    """The number of each answer that is shown, and whether it says that it may be a repeat."""
    found = [(_SHOWN.search(one.text), one.text) for one in stage.shown(chat)]
    return [(int(match[1]), _REPEAT in text) for match, text in found if match is not None]


def _is_complete(stage: Stage, chat: str, said: int) -> bool:
    return {number for number, _ in _answers(stage, chat)} >= set(range(said))


def _check(stage: Stage, chat: str, home: Path, said: int) -> int:
    """Every text was answered, once; a second answer says what it is. The number of those."""
    answers = _answers(stage, chat)
    assert {number for number, _ in answers} == set(range(said))
    sure = Counter(number for number, repeats in answers if not repeats)
    assert [number for number, count in sure.items() if count > 1] == []
    assert verify(home / "scout.db").clean
    assert stage.problems() == []
    return len(answers) - said
