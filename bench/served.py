"""Everything that goes through the daemon: messages, asks, resolving, streams, start, memory, command line."""

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.daemon import Daemon, daemon, fresh, seeded
from bench.figure import Figure
from bench.load import Result, request, run
from bench.names import name_of
from bench.typed import installed_program

SECONDS = 8.0
SENDERS = 64
RECIPIENTS = 1000
BODY = " ".join(["word"] * 35)
HISTORY = 1_000_000
_GOALS = {"messages, 32 connections": 2000, "messages, one connection": 600, "asks, 32 connections": 1200}


def figures(_: float = 1.0) -> Iterator[Figure]:
    """With an empty store."""
    with fresh() as empty:
        yield from _accepted(_rates(empty))
        yield from _echoed(empty)
        yield from _streamed(empty)
        yield from _command_line(empty)


def floor_figures(_: float = 1.0) -> Iterator[Figure]:
    """Beside a route that stores the same facts and decides nothing."""
    with fresh() as empty:
        rates = _rates(empty)
    yield from _floors(rates)


def large_figures(scale: float = 1.0) -> Iterator[Figure]:
    """With a million messages and 100,000 agents stored, beside an empty store. `scale` makes them fewer."""
    history = round(HISTORY * scale)
    with seeded(messages=history, agents=round(100_000 * scale)) as home:
        with fresh() as empty:
            rates = _rates(empty)
            bare = _run([*installed_program()], empty)
        yield from _large(home, rates, history)
        with daemon(home) as running:
            taken = _run([*installed_program()], running)
            name = f"scout, {history:,} messages stored: against an empty store"
            yield Figure(name=name, result=taken / bare, unit="x", goal=1.2)


def resolving_figures(scale: float = 1.0) -> Iterator[Figure]:
    """Resolving among 10 to 1,000,000 agents."""
    yield from _resolving(scale)


def _agents(to: Daemon, count: int, prefix: str, **more: Any) -> list[dict[str, Any]]:
    wish = {"definitionId": "", **more}
    return [to.call("POST", "/v1/agents", {**wish, "definitionId": f"{prefix}{n}"}) for n in range(count)]


def _load(
    path: str, senders: list[dict[str, Any]], names: list[str], connections: int, *, fresh: bool = False
) -> list[list[bytes]]:
    """Each connection speaks for its share of the senders, each of them to its share of the recipients.

    `fresh`: to all of them instead, so that most messages are the first between two agents.
    """
    lists: list[list[bytes]] = [[] for _ in range(connections)]
    for number in range(len(names) * (8 if fresh else 1)):
        place = (number // 7 if fresh else number) % len(senders)
        body = json.dumps({"to": f"@{names[number % len(names)]}", "body": BODY}).encode()
        lists[place % connections].append(request("POST", path, senders[place]["token"], body))
    return lists


def _rates(to: Daemon) -> dict[str, Result]:
    senders = _agents(to, SENDERS, "sender")
    readers = [f"reader{n}" for n in range(RECIPIENTS)]
    held = [f"held{n}" for n in range(RECIPIENTS)]
    _agents(to, RECIPIENTS, "reader")
    _agents(to, RECIPIENTS, "held", wakePolicy="manual", harness="echo")
    plan = {
        "messages, 32 connections": ("/v1/messages", readers, 32),
        "messages, one connection": ("/v1/messages", readers, 1),
        "asks, 32 connections": ("/v1/asks", held, 32),
    }
    rates: dict[str, Result] = {}
    for name, (path, names, connections) in plan.items():
        requests = _load(path, senders, names, connections)
        asyncio.run(run(to.socket, requests, 2))  # conversations are made, caches are warm
        rates[name] = asyncio.run(run(to.socket, requests, SECONDS))
    strangers = _load("/v1/messages", senders, readers, 32, fresh=True)
    rates["first messages, 32 connections"] = asyncio.run(run(to.socket, strangers, SECONDS / 2))
    return rates


def _accepted(rates: dict[str, Result]) -> Iterator[Figure]:
    for name, goal in _GOALS.items():
        found = rates[name]
        yield Figure(name=f"{name}: accepted", result=found.rate, unit="/s", goal=goal, at_least=True)
        yield Figure(name=f"{name}: p99", result=found.p99, unit="ms")
        assert not found.failed, (name, found)
    first = rates["first messages, 32 connections"]
    yield Figure(name="first messages between two agents: accepted", result=first.rate, unit="/s")


def _floors(rates: dict[str, Result]) -> Iterator[Figure]:
    for name, kind, connections in (
        ("messages, 32 connections", "message", 32),
        ("messages, one connection", "message", 1),
        ("asks, 32 connections", "ask", 32),
    ):
        bare = _floor(kind, connections)
        share = 100 * rates[name].rate / bare.rate
        yield Figure(name=f"{name}: floor", result=bare.rate, unit="/s")
        yield Figure(name=f"{name}: share of the floor", result=share, unit="%", goal=70, at_least=True)


def _floor(kind: str, connections: int) -> Result:
    with tempfile.TemporaryDirectory(prefix="scout-floor-") as folder:
        socket = f"{folder}/floor.sock"
        process = subprocess.Popen([sys.executable, "-m", "bench.floor", socket, folder, kind])
        try:
            while not Path(socket).exists():
                assert process.poll() is None
                time.sleep(0.05)
            one = [request("POST", "/", "token", json.dumps({"to": "@reader1", "body": BODY}).encode())]
            asyncio.run(run(socket, [one] * connections, 1))
            found = asyncio.run(run(socket, [one] * connections, SECONDS / 2))
            assert not found.failed, found
            return found
        finally:
            process.terminate()
            process.wait(30)


# -- asks to the end ---------------------------------------------------------------------------------


def _echoed(to: Daemon) -> Iterator[Figure]:
    """From the ask to its answer, end to end."""
    senders = _agents(to, SENDERS, "asker")
    parrots = [f"parrot{n}" for n in range(64)]
    _agents(to, 64, "parrot", harness="echo")
    requests = [
        [
            request(
                "POST",
                "/v1/asks",
                senders[number]["token"],
                json.dumps({"to": f"@{parrots[(number + index) % 64]}", "body": BODY, "wait": 30}).encode(),
            )
            for index in range(64)
        ]
        for number in range(32)
    ]
    asyncio.run(run(to.socket, requests, 2))
    found = asyncio.run(run(to.socket, requests, SECONDS))
    yield Figure(name="ask to completed with echo", result=found.rate, unit="/s", goal=400, at_least=True)
    yield Figure(name="ask to completed with echo: p50", result=found.p50, unit="ms")


# -- streams -----------------------------------------------------------------------------------------


def _streamed(to: Daemon) -> Iterator[Figure]:
    times = sorted(asyncio.run(_latencies(to)))
    p50, p99 = (1000 * times[int(len(times) * part)] for part in (0.5, 0.99))
    yield Figure(name="posted to seen on a stream at 500/s: p50", result=p50, unit="ms", goal=5)
    yield Figure(name="posted to seen on a stream at 500/s: p99", result=p99, unit="ms", goal=20)


async def _latencies(to: Daemon, rate: int = 500, seconds: float = 5) -> list[float]:
    reader, writer = await asyncio.open_unix_connection(to.socket)
    writer.write(request("GET", "/v1/events?family=collab.message", to.token))
    await reader.readuntil(b"\r\n\r\n")
    seen: list[float] = []
    count = int(rate * seconds)

    async def listen() -> None:
        while len(seen) < count:
            line = await reader.readline()
            _, found, rest = line.partition(b"sent ")
            if found:
                seen.append(time.perf_counter() - float(rest.partition(b" ")[0]))

    listening = asyncio.create_task(listen())
    posters = [await asyncio.open_unix_connection(to.socket) for _ in range(8)]
    began = time.perf_counter()

    async def post(number: int) -> None:
        source, sink = posters[number]
        for index in range(number, count, len(posters)):
            await asyncio.sleep(max(0, began + index / rate - time.perf_counter()))
            body = json.dumps({"to": f"@reader{index % 100}", "body": f"sent {time.perf_counter()} ."})
            sink.write(request("POST", "/v1/messages", to.token, body.encode()))
            head = await source.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await source.readexactly(size)

    await asyncio.gather(*(post(number) for number in range(len(posters))))
    await asyncio.wait_for(listening, 30)
    for _, sink in [*posters, (None, writer)]:
        sink.close()
    return seen


# -- large stores ------------------------------------------------------------------------------------


def _large(home: Path, empty: dict[str, Result], history: int) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder:
        cold: list[float] = []
        idle = 0.0
        for place in (Path(folder), home):
            starts: list[float] = []
            for _ in range(3):
                with daemon(place) as running:
                    starts.append(running.started)
                    idle = running.memory()
            cold.append(min(starts))
            yield Figure(
                name=f"memory, {'empty' if place != home else 'large'}", result=idle, unit="MB", goal=120
            )
        yield Figure(name=f"cold start, {history:,} messages", result=cold[1], unit="s", goal=1)
        yield Figure(name="cold start: large against empty", result=cold[1] / cold[0], unit="x", goal=1.5)
    with daemon(home) as running:
        for name, found in _rates(running).items():
            if name not in _GOALS:
                continue
            share = 100 * found.rate / empty[name].rate
            label = f"{name}, {history:,} messages stored"
            yield Figure(name=f"{label}: of the empty rate", result=share, unit="%", goal=75, at_least=True)
            yield Figure(name=f"{label}: p99", result=found.p99, unit="ms", goal=50)


def _resolving(scale: float) -> Iterator[Figure]:
    found: dict[str, list[float]] = {"hit": [], "miss": []}
    memory: list[float] = []
    for size in (10, 1000, 100_000, 1_000_000):
        count = max(10, round(size * scale)) if size > 1000 else size
        with seeded(agents=count) as home, daemon(home) as running:
            for kind, address in (("hit", f"@{name_of(count // 2)}"), ("miss", "@zzzzzz")):
                p50 = _looked_up(running, address)
                found[kind].append(p50)
                yield Figure(name=f"resolve {kind} over HTTP, {count:,} agents: p50", result=p50, unit="ms")
            memory.append(running.memory())
    for kind, times in found.items():
        ratio = times[-1] / times[0]
        yield Figure(
            name=f"resolve {kind} over HTTP: most against fewest agents", result=ratio, unit="x", goal=1.5
        )
    yield Figure(name="memory: 100,000 agents against 10", result=memory[2] / memory[0], unit="x", goal=1.3)


def _looked_up(to: Daemon, address: str) -> float:
    """The median time of one lookup, on a connection of its own each time, found or not."""
    times: list[float] = []
    for _ in range(300):
        began = time.perf_counter()
        with contextlib.suppress(AssertionError):  # nobody answers to it, which is an answer too
            to.call("GET", f"/v1/resolve?address={address}")
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


# -- the command line --------------------------------------------------------------------------------


def _command_line(to: Daemon) -> Iterator[Figure]:
    bare = _run([sys.executable, "-c", "pass"], to)
    yield Figure(name="bare interpreter", result=bare, unit="ms")
    scout = str(Path(sys.executable).with_name("scout"))
    for words in (["send", "@reader1", "hello"], ["ask", "@parrot1", "hello"], ["inbox"]):
        taken = _run([scout, *words], to)
        yield Figure(name=f"scout {words[0]}", result=taken, unit="ms")
        yield Figure(name=f"scout {words[0]}: of the interpreter", result=taken / bare, unit="x", goal=4)


def _run(command: list[str], to: Daemon, times: int = 15) -> float:
    environ = {**os.environ, "SCOUT_HOME": str(to.home), "SCOUT_AUTOSTART": "0"}
    taken: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, env=environ, check=True, capture_output=True)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000
