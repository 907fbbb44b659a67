"""Names: reading them, resolving them in fleets of growing size, and finding the shortest."""

import contextlib
import hashlib
from collections.abc import Iterator
from functools import partial

from bench.figure import Figure, microseconds
from scout.base.ids import derive_id
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.identity.lexer import lex
from scout.identity.mention import find_mentions
from scout.identity.path import AgentPath
from scout.model.agent import Agent
from scout.model.endpoint import Endpoint, EndpointState, Transport
from scout.policy.directory import OUTSIDE, Directory, Instance
from scout.policy.resolver.fleet import Fleet
from scout.policy.resolver.handle import minimize_address
from scout.policy.resolver.resolve import resolve

NOW = Time(1_700_000_000_000_000)
SIZES = (10, 100, 1_000, 10_000, 100_000)
FLAT = 1.5

TEXTS = (
    "@arc",
    "@arc.main#claude?sonnet",
    "@arc.model:gpt-5.5.node:Mini.local",
    "/u1/agent/arc/sub/0",
    "session:claude:0f",
)
BODY = "please ask @hudson and @arc.main, thanks; see `@code` and mail a@b.com. " * 28


def figures() -> Iterator[Figure]:
    yield from _reading()
    yield from _resolving()


def _reading() -> Iterator[Figure]:
    for text in TEXTS:
        yield Figure(name=f"parse {text}", result=microseconds(partial(lex, text)), unit="us")
    yield Figure(name="mentions in 2 kB", result=microseconds(partial(find_mentions, BODY)), unit="us")
    ten, hundred = (microseconds(partial(find_mentions, "@a " * size), 5) for size in (3_334, 33_340))
    yield Figure(name="mentions, 100 kB against 10 kB", result=hundred / ten, unit="x", goal=20)


def _resolving() -> Iterator[Figure]:
    times: dict[str, list[float]] = {}
    for size in SIZES:
        for name, result in _at(size):
            times.setdefault(name, []).append(result)
    for name, found in times.items():
        for size, result in zip(SIZES, found, strict=True):
            yield Figure(name=f"{name}, {size:,} agents", result=result, unit="us")
        # From 100 on: a fleet of ten has fewer than twenty candidates to show.
        yield Figure(name=f"{name}: 100,000 against 100", result=found[-1] / found[1], unit="x", goal=FLAT)


def _at(size: int) -> Iterator[tuple[str, float]]:
    directory, someone = fleet(size)
    middle = name_of(size // 2)
    for name, text, calls in (
        ("resolve hit", f"@{middle}", 200),
        ("resolve one of many worktrees", f"@shared.w{size // 4}", 200),
        ("resolve ambiguous, 20 candidates", "@shared#codex", 10),
        ("resolve typo", f"@{middle[1]}{middle[0]}{middle[2:]}", 200),
        ("resolve miss", "@zzzzzz", 200),
    ):
        yield name, microseconds(partial(try_resolve, text, directory), calls)
    yield "minimal address", microseconds(partial(minimize_address, someone, directory, NOW), 100)


def name_of(number: int) -> str:
    """Names that look alike by accident only, as people's projects do."""
    return "p" + hashlib.sha256(str(number).encode()).hexdigest()[:12]


def try_resolve(text: str, directory: Directory) -> None:
    with contextlib.suppress(Refused):
        resolve(text, directory, OUTSIDE, NOW)


def fleet(size: int) -> tuple[Fleet, Instance]:
    """Half the agents have names of their own, half are worktrees of one definition."""
    directory = Fleet(NOW)
    for number in range(size):
        own = number < size // 2 + 1
        one = agent_number(number) if own else _agent("shared", f"w{number - size // 2}", number)
        directory.add(one, [endpoint_of(one)])
    found = resolve(f"@shared.w{size // 4}", directory, OUTSIDE, NOW)
    return directory, Instance(
        agent=found.agent, harness="codex", endpoints=tuple(directory.endpoints(found.agent.id))
    )


def agent_number(number: int) -> Agent:
    """An agent with a name of its own."""
    return _agent(name_of(number), None, number)


def _agent(definition: str, workspace: str | None, number: int) -> Agent:
    path = AgentPath(f"/me/agent/a{number}")
    return Agent(
        id=derive_id("agt", str(number)),
        created_at=NOW,
        updated_at=NOW,
        owner="me",
        path=path,
        kind=path.kind,
        definition_id=definition,
        workspace=workspace,
        node="mini",
        created_by="bench",
    )


def endpoint_of(one: Agent) -> Endpoint:
    return Endpoint(
        id=derive_id("ept", one.id),
        created_at=NOW,
        updated_at=NOW,
        agent_id=one.id,
        node=one.node,
        harness="codex",
        transport=Transport.PULL,
        state=EndpointState.IDLE,
        held=True,
    )
