"""A partition while both nodes send: how soon each notices it, and how soon they are whole again."""

import itertools
import json
import threading
import time
from collections.abc import Iterator

from bench.daemon import Daemon
from bench.figure import Figure
from bench.mesh.nodes import cable, count, find_port, founded, joined, knows, reading, sees, wait_for

ROUNDS = 3
_APART = 3.0  # seconds for which they stay apart after both have noticed it
_EVERY = 0.05  # seconds between two messages
_SOON = 5.0  # the goal, in seconds
_OPEN = "SELECT count(*) FROM outbox WHERE state IN ('queued', 'forwarded')"
_POSTED = "SELECT data FROM messages"


def figures(_: float = 1.0) -> Iterator[Figure]:
    """The worst of a few rounds, because a goal holds for each of them."""
    with founded() as one, cable(find_port(one)) as wire, joined(one, "two", wire.port) as two:
        name = one.call("GET", "/v1/mesh")["node"]
        one.call("POST", "/v1/agents", {"definitionId": "here"})
        two.call("POST", "/v1/agents", {"definitionId": "there"})
        wait_for(lambda: knows(one, "@there") and knows(two, "@here"))
        noticed: list[float] = []
        whole: list[float] = []
        with Talkers(one, two) as talkers:
            for _ in range(ROUNDS):
                began = time.perf_counter()
                wire.cut()
                wait_for(lambda: sees(one, "two", "unreachable"))
                wait_for(lambda: sees(two, name, "unreachable"))
                noticed.append(time.perf_counter() - began)
                time.sleep(_APART)
                waiting = [(node, _find_newest_open(node)) for node in (one, two)]
                began = time.perf_counter()
                wire.heal()
                wait_for(lambda: sees(one, "two", "online") and sees(two, name, "online"))
                wait_for(lambda found=waiting: all(_is_done(node, ident) for node, ident in found))
                whole.append(time.perf_counter() - began)
        lost, doubled = talkers.check()
    yield Figure(name="partition: noticed by both nodes", result=max(noticed), unit="s", goal=_SOON)
    yield Figure(name="partition: whole after it heals", result=max(whole), unit="s", goal=_SOON)
    yield Figure(name="partition: messages lost", result=lost, unit="", goal=0)
    yield Figure(name="partition: messages doubled", result=doubled, unit="", goal=0)


def _find_newest_open(node: Daemon) -> str:
    with reading(node) as store:
        return str(store.execute("SELECT max(id) FROM outbox").fetchone()[0])


def _is_done(node: Daemon, ident: str) -> bool:
    """Whether everything up to an envelope has its receipt."""
    with reading(node) as store:
        return count(store, f"{_OPEN} AND id <= '{ident}'") == 0


class Talkers:
    """One agent of each node sends to the other all the time."""

    def __init__(self, one: Daemon, two: Daemon) -> None:
        self._ways = ((one, two, "@there"), (two, one, "@here"))
        self._sent: list[list[str]] = [[], []]
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._talk, args=(number,)) for number in (0, 1)]

    def __enter__(self) -> "Talkers":
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for one in self._threads:
            one.join()

    def _talk(self, number: int) -> None:
        node, _, to = self._ways[number]
        for count_ in itertools.count():
            if self._over.wait(_EVERY):
                return
            body = f"{number}-{count_}"
            node.call("POST", "/v1/messages", {"to": to, "body": body})
            self._sent[number].append(body)

    def check(self) -> tuple[int, int]:
        """Return how many acknowledged messages the other node has not, and how many it has twice."""
        lost = doubled = 0
        for (sender, receiver, _), sent in zip(self._ways, self._sent, strict=True):
            with reading(sender) as here, reading(receiver) as there:
                wait_for(lambda store=here: count(store, _OPEN) == 0)
                found = [json.loads(data).get("body") for (data,) in there.execute(_POSTED)]
            lost += len(set(sent) - set(found))
            doubled += sum(found.count(body) > 1 for body in sent)
        return lost, doubled
