"""More is asked than the machine runs at once: everybody sees their place, and nothing stands still."""

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.daemons import Daemon, daemon, eventually

pytestmark = pytest.mark.slow

ORDINALS = [*["1st", "2nd", "3rd"], *(f"{number}th" for number in range(4, 19))]
SCOUT = f"{shlex.quote(sys.executable)} -m scout"


def ask(scout: Daemon, to: str, body: str = "go", token: str = "") -> str:
    reply = scout.call("POST", "/v1/asks", {"to": to, "body": body}, token=token)
    assert reply.status in (200, 201, 202), reply.body
    return str(reply.json["flightId"])


def flight(scout: Daemon, ident: str) -> Any:
    return scout.call("GET", f"/v1/flights/{ident}").json


def states(scout: Daemon, flights: list[str]) -> list[str]:
    return [flight(scout, one)["state"] for one in flights]


def all_are(scout: Daemon, flights: list[str], state: str) -> bool:
    return all(one == state for one in states(scout, flights))


def worker(tmp_path: Path, name: str) -> list[str]:
    """A program that says when it begins, works until the file `go` is there, and says when it ends."""
    script = f"echo begin >> {tmp_path}/log; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo end >> {tmp_path}/log; echo {name}"
    return ["sh", "-c", script]


def place(reason: str) -> int:
    return ORDINALS.index(reason.split(maxsplit=1)[0])


def most_at_once(log: str) -> int:
    running = most = 0
    for line in log.split():
        running += 1 if line == "begin" else -1
        most = max(most, running)
    return most


def test_twenty_asks_run_two_at_a_time_and_each_says_its_place(tmp_path: Path) -> None:
    with daemon(tmp_path / "home", SCOUT_LIMITS_RUNNING_TURNS="2", SCOUT_ROOTS=str(tmp_path)) as scout:
        names = [f"worker{number}" for number in range(20)]
        for name in names:
            scout.register(name, command=worker(tmp_path, name))
        flights = [ask(scout, f"@{name}") for name in names]
        eventually(lambda: states(scout, flights).count("running") == 2)
        reasons = [flight(scout, one)["reason"] for one in flights[2:]]
        waiting = [reason.partition(":")[0] for reason in reasons]
        assert sorted(waiting, key=place) == [f"{ordinal} in line" for ordinal in ORDINALS]
        assert "limits.runningTurns" in reasons[0]

        (tmp_path / "go").touch()
        eventually(lambda: all_are(scout, flights, "completed"))
        assert most_at_once((tmp_path / "log").read_text()) == 2


def test_what_a_person_asks_passes_what_agents_asked(tmp_path: Path) -> None:
    with daemon(tmp_path / "home", SCOUT_LIMITS_RUNNING_TURNS="1", SCOUT_ROOTS=str(tmp_path)) as scout:
        for name in ("busy", "first", "second", "mine"):
            scout.register(name, command=worker(tmp_path, name))
        peer = scout.register("peer")["token"]
        busy = ask(scout, "@busy")
        eventually(lambda: flight(scout, busy)["state"] == "running")
        theirs = [ask(scout, "@first", token=peer), ask(scout, "@second", token=peer)]
        mine = ask(scout, "@mine")
        eventually(lambda: flight(scout, mine)["reason"].startswith("1st in line"))
        eventually(lambda: flight(scout, theirs[1])["reason"].startswith("3rd in line"))
        assert flight(scout, theirs[0])["reason"].startswith("2nd in line")
        (tmp_path / "go").touch()
        eventually(lambda: all_are(scout, [busy, mine, *theirs], "completed"))


def test_a_chain_of_asks_longer_than_the_limit_still_ends(tmp_path: Path) -> None:
    """Each agent asks the next one and waits for its answer, and only one turn may run at once."""
    with daemon(tmp_path / "home", SCOUT_LIMITS_RUNNING_TURNS="1", SCOUT_ROOTS=str(tmp_path)) as scout:
        for number in range(1, 5):
            asks_on = f'echo "{number} $({SCOUT} ask @link{number + 1} go)"'
            scout.register(f"link{number}", command=["sh", "-c", asks_on])
        scout.register("link5", command=["echo", "the end"])
        first = ask(scout, "@link1")
        other = ask(scout, "@link5")  # somebody else's ask is in line all the while
        ended = eventually(lambda: flight(scout, first) if flight(scout, first)["finishedAt"] else None)
        assert ended["output"].strip() == "1 2 3 4 the end"
        eventually(lambda: all_are(scout, [other], "completed"))


@pytest.mark.rows("R5.2-2")
def test_two_asks_to_one_agent_say_that_it_is_busy(tmp_path: Path) -> None:
    with daemon(tmp_path / "home", SCOUT_ROOTS=str(tmp_path)) as scout:
        scout.register("one", command=worker(tmp_path, "one"))
        first, second = ask(scout, "@one"), ask(scout, "@one")
        eventually(lambda: flight(scout, first)["state"] == "running")
        eventually(lambda: flight(scout, second)["reason"] == "1st in line: its target works on another turn")
        (tmp_path / "go").touch()
        eventually(lambda: all_are(scout, [first, second], "completed"))
