"""Budgets of the hot path: what one operation may cost. They hold on every machine, under any load.

Each number is what the code reaches today, plus a small margin. One that is exceeded has a cause in the code:
`python -m tests.broker.test_budgets NAME` prints what was called and which statements ran.
"""

import asyncio
import json
import math
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from scout.broker.handlers import HANDLERS
from scout.broker.local import LocalScout
from scout.daemon.lazy_mcp import LazyMcp
from scout.model.agent import WakePolicy
from scout.model.endpoint import EndpointState, Transport
from scout.model.flight import FlightState
from scout.protocol.agents import Resolve
from scout.protocol.asks import MakeAsk
from scout.protocol.endpoints import RegisterEndpoint
from scout.protocol.inbox import ClaimInbox
from scout.protocol.talk import Send
from scout.store.search import index_events
from tests.broker.counted import Cost, Counting, count
from tests.broker.rig import Rig, open_rig, wait_until

BODY = "word " * 34 + "last"  # 174 bytes, as in the load of `./dev bench`
AGENTS = 16
_ROUNDS = 32

Work = Callable[[int], Awaitable[object]]


class Budget(NamedTuple):
    """The most that one operation may cost: calls and encodes with 16 callers, everything else with one."""

    calls: int
    encodes: int
    statements: int
    selects: int
    log_bytes: int
    wal_kib: int
    commits: float


async def _make_senders(rig: Rig, **target: Any) -> list[LocalScout]:
    """Agents that send, and as many that receive: `@peer0` and so on."""
    for number in range(AGENTS):
        await rig.register(f"peer{number}", **target)
    return [await rig.agent(f"sender{number}") for number in range(AGENTS)]


async def _send(rig: Rig) -> Work:
    senders = await _make_senders(rig)
    return lambda number: senders[number % AGENTS].call(Send(to=f"@peer{number % AGENTS}", body=BODY))


async def _ask(rig: Rig) -> Work:
    senders = await _make_senders(rig, harness="echo", wake_policy=WakePolicy.MANUAL)
    return lambda number: senders[number % AGENTS].call(MakeAsk(to=f"@peer{number % AGENTS}", body=BODY))


async def _echo_ask(rig: Rig) -> Work:
    senders = await _make_senders(rig, harness="echo")

    async def work(number: int) -> None:
        request = MakeAsk(to=f"@peer{number % AGENTS}", body=BODY, wait=60)
        assert (await senders[number % AGENTS].call(request)).state is FlightState.COMPLETED

    return work


async def _wake(rig: Rig) -> Work:
    """A message that wakes its recipient, which is offline and is started by Scout."""
    senders = await _make_senders(rig, harness="echo")

    async def work(number: int) -> None:
        await senders[number % AGENTS].call(Send(to=f"@peer{number % AGENTS}", body=BODY, wake=True))
        await wait_until(lambda: not rig.broker.dispatcher.lanes)

    return work


async def _mcp_ask(rig: Rig) -> Work:
    """An ask as an MCP client makes it, from the parsed HTTP request to its response."""
    senders = await _make_senders(rig, harness="echo", wake_policy=WakePolicy.MANUAL)
    mount = LazyMcp("0")

    async def work(number: int) -> None:
        scope, body = _build_mcp_request("ask", {"to": f"@peer{number % AGENTS}", "body": BODY})
        sent: list[Any] = []

        async def receive() -> Any:
            if not scope.pop("unread", None):
                await asyncio.Event().wait()  # the client stays
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await mount(senders[number % AGENTS], scope, receive, send)
        assert sent[0]["status"] == 200, sent
        assert b"flt_" in b"".join(one.get("body", b"") for one in sent), sent

    return work


def _build_mcp_request(tool: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "budget", "version": "1"},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {
        "host": "localhost",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
        "content-length": str(len(body)),
    }
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "http_version": "1.1",
        "scheme": "http",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "unread": True,
    }
    return scope, body


async def _claim(rig: Rig) -> Work:
    """Claim one message; each was sent before anything is counted."""
    senders = await _make_senders(rig)
    readers = [await rig.agent(f"reader{number}") for number in range(AGENTS)]
    for number, reader in enumerate(readers):
        await reader.call(RegisterEndpoint(transport=Transport.PULL, state=EndpointState.IDLE))
        for _ in range(12):
            await senders[number].call(Send(to=f"@reader{number}", body=BODY))

    async def work(number: int) -> None:
        assert len((await readers[number % AGENTS].call(ClaimInbox(limit=1))).items) == 1

    return work


async def _resolve(rig: Rig) -> Work:
    """Resolve a name as a request does: read from the store, on a reader's connection."""
    senders = await _make_senders(rig)

    async def work(number: int) -> None:
        tx = senders[number % AGENTS].open_call().glance()
        address = f"@peer{number % AGENTS}"
        assert HANDLERS[Resolve].function(tx, Resolve(address=address)).address == address

    return work


OPERATIONS: dict[str, Callable[[Rig], Awaitable[Work]]] = {
    "send": _send,
    "ask": _ask,
    "echo ask": _echo_ask,
    "MCP ask": _mcp_ask,
    "inbox claim": _claim,
    "resolve": _resolve,
}
BUDGETS = {
    "send": Budget(416, 2, 5, 0, 1_550, 50, 1),
    "ask": Budget(640, 2, 8, 0, 3_000, 130, 1),
    "echo ask": Budget(2_250, 4, 15, 0, 8_700, 280, 2),
    "MCP ask": Budget(2_010, 3, 8, 0, 3_000, 130, 1),
    "inbox claim": Budget(424, 2, 6, 2, 720, 25, 1),
    "resolve": Budget(368, 0, 0, 0, 0, 0, 0),
}
# Decisions that an operation makes once; what follows in the same transaction takes what was decided.
_ONCE = {"Transaction.resolve": 1, "choose_route": 1, "decide_wake": 1}
# The turn of a message is prepared in another transaction, when its recipient may have another route.
_ONCE_EACH = {**_ONCE, "choose_route": 2}


async def measure(rig: Rig, name: str) -> tuple[Cost, Counting, Counting]:
    """Calls and encodes with 16 callers, the rest with one."""
    work = await OPERATIONS[name](rig)
    busy, calls, _ = await count(rig, work, together=AGENTS, rounds=2, warm=2)
    await wait_until(lambda: not rig.broker.dispatcher.lanes)
    alone, _, statements = await count(rig, work, together=1, rounds=_ROUNDS // 2, warm=0)
    return alone._replace(calls=busy.calls, encodes=busy.encodes), calls, statements


@pytest.mark.parametrize("name", BUDGETS)
def test_an_operation_keeps_its_budget(name: str, tmp_path: Path) -> None:
    async def play() -> Cost:
        async with open_rig(tmp_path) as rig:
            return (await measure(rig, name))[0]

    cost, budget = asyncio.run(play()), BUDGETS[name]
    spent = cost._replace(wal_bytes=cost.wal_bytes / 1024)
    most = {"wal_bytes": budget.wal_kib, **budget._asdict()}
    over = {what: (value, most[what]) for what, value in spent._asdict().items() if value > most[what]}
    assert not over, spent


@pytest.mark.parametrize(
    ("name", "most"), [("send", _ONCE), ("ask", _ONCE), ("echo ask", _ONCE), ("wake", _ONCE_EACH)]
)
def test_what_is_decided_is_carried_along(name: str, most: dict[str, int], tmp_path: Path) -> None:
    async def play() -> Counting:
        async with open_rig(tmp_path) as rig:
            work = await {**OPERATIONS, "wake": _wake}[name](rig)
            return (await count(rig, work, together=1, rounds=_ROUNDS, warm=AGENTS))[1]

    functions = asyncio.run(play()).functions
    assert {what: functions[what] / _ROUNDS for what in most} == most


_MESSAGE = 3_900  # bytes of the file for one message: the log, its rows, the search index, the history


def test_a_message_takes_its_share_of_the_disk(tmp_path: Path) -> None:
    """The file grows by whole pages, so many messages are counted, after everything behind the log is written."""

    async def measure_file(rig: Rig) -> int:
        await rig.broker.history.catch_up()
        while await rig.broker._database.write(lambda unit: index_events(unit.connection, 1000)):
            pass
        return await rig.broker._database.read(
            lambda store: math.prod(store.execute(f"PRAGMA {name}").fetchone()[0] for name in _PAGES)
        )

    async def play() -> float:
        async with open_rig(tmp_path) as rig:
            work = await _send(rig)
            for number in range(AGENTS):
                await work(number)
            before = await measure_file(rig)
            for first in range(0, 640, AGENTS):
                await asyncio.gather(*(work(first + place) for place in range(AGENTS)))
            return (await measure_file(rig) - before) / 640

    assert asyncio.run(play()) <= _MESSAGE


_PAGES = ("page_count", "page_size")


def main(name: str) -> None:
    """Print what one operation costs, and where."""

    async def play() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with open_rig(Path(folder)) as rig:
                cost, calls, statements = await measure(rig, name)
        sys.stdout.write(f"{name}: {cost}\n")
        for counted in (statements.statements, calls.functions):
            for what, number in counted.most_common(40):
                sys.stdout.write(f"{number:8} {what}\n")

    asyncio.run(play())


if __name__ == "__main__":
    main(sys.argv[1])
