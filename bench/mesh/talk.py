"""Asks and messages between two nodes, beside the same on one node."""

import asyncio
import json
import statistics
import time
from collections.abc import Iterator
from typing import Any

from bench.daemon import Daemon
from bench.figure import Figure
from bench.load import request, run
from bench.mesh.nodes import count, knows, reading, two_nodes, wait_for

ASKS = 200
SECONDS = 5.0
CONNECTIONS, SENDERS, RECIPIENTS = 32, 64, 200
BODY = " ".join(["word"] * 35)
_FIRST = 10  # asks that are not counted: sessions are begun in them
_OPEN = "SELECT count(*) FROM outbox WHERE state IN ('queued', 'forwarded')"
_TAKEN = "SELECT count(*) FROM envelopes_received"


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """The same load on one node and across two, in one run."""
    with two_nodes() as (one, two):
        yield from _compare_asks(one, two, max(round(ASKS * scale), 30))
        yield from _compare_messages(one, two, max(SECONDS * scale, 1.0))


def _compare_asks(one: Daemon, two: Daemon, rounds: int) -> Iterator[Figure]:
    """One ask after the other, in turn to an agent here and to one there."""
    one.call("POST", "/v1/agents", {"definitionId": "near", "harness": "echo"})
    two.call("POST", "/v1/agents", {"definitionId": "far", "harness": "echo"})
    wait_for(lambda: knows(one, "@far"))
    times: dict[str, list[float]] = {"@near": [], "@far": []}
    for _ in range(_FIRST + rounds):
        for name, taken in times.items():
            taken.append(_ask(one, name))
    p50 = {name: statistics.median(taken[_FIRST:]) for name, taken in times.items()}
    yield Figure(name="ask to completed, one node: p50", result=p50["@near"], unit="ms")
    yield Figure(name="ask to completed, two nodes: p50", result=p50["@far"], unit="ms")
    ratio = p50["@far"] / p50["@near"]
    yield Figure(name="ask to completed: two nodes against one", result=ratio, unit="x", goal=3)


def _ask(to: Daemon, name: str) -> float:
    """Milliseconds from an ask to its answer."""
    began = time.perf_counter()
    flight = to.call("POST", "/v1/asks", {"to": name, "body": BODY, "wait": 60})
    assert flight["state"] == "completed", flight
    return 1000 * (time.perf_counter() - began)


def _compare_messages(one: Daemon, two: Daemon, seconds: float) -> Iterator[Figure]:
    """Messages over 32 connections. Across nodes, a message counts once the other node's receipt is stored."""
    tokens = [_register(one, f"sender{n}")["token"] for n in range(SENDERS)]
    for number in range(RECIPIENTS):
        _register(one, f"near{number}")
        _register(two, f"far{number}")
    wait_for(lambda: all(knows(one, f"@far{number}") for number in range(RECIPIENTS)))
    near, far = (_build_load(tokens, prefix) for prefix in ("near", "far"))
    asyncio.run(run(one.socket, near, 1))  # conversations are made, caches are warm
    local = asyncio.run(run(one.socket, near, seconds))
    assert not local.failed, local
    _send_across(one, two, far, 1)
    across, late = _send_across(one, two, far, seconds)
    yield Figure(name="messages, one node: accepted", result=local.rate, unit="/s")
    yield Figure(name="messages, two nodes: with receipt", result=across, unit="/s")
    yield Figure(name="messages, two nodes: last receipt after the last message", result=late, unit="s")
    share = 100 * across / local.rate
    name = "messages: two nodes, of the rate of one"
    yield Figure(name=name, result=share, unit="%", goal=50, at_least=True)


def _send_across(
    one: Daemon, two: Daemon, requests: list[list[bytes]], seconds: float
) -> tuple[float, float]:
    """Return the messages per second until the last receipt, and how much later that came."""
    with reading(one) as here, reading(two) as there:
        before = count(there, _TAKEN)
        began = time.perf_counter()
        sent = asyncio.run(run(one.socket, requests, seconds))
        assert not sent.failed, sent
        sending = time.perf_counter() - began
        wait_for(lambda: count(here, _OPEN) == 0)
        taken = count(there, _TAKEN) - before
        assert taken == round(sent.rate * seconds), (taken, sent)  # 0 lost, 0 doubled
        whole = time.perf_counter() - began
    return taken / whole, whole - sending


def _register(to: Daemon, name: str) -> Any:
    return to.call("POST", "/v1/agents", {"definitionId": name})


def _build_load(tokens: list[str], prefix: str) -> list[list[bytes]]:
    """Return the requests of each connection: its share of the senders, each to its share of the recipients."""
    lists: list[list[bytes]] = [[] for _ in range(CONNECTIONS)]
    for number in range(max(len(tokens), RECIPIENTS) * 4):
        body = json.dumps({"to": f"@{prefix}{number % RECIPIENTS}", "body": BODY}).encode()
        token = tokens[number % len(tokens)]
        lists[number % CONNECTIONS].append(request("POST", "/v1/messages", token, body))
    return lists
