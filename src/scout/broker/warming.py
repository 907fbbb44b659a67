"""Agents that are kept warm: a live session although nothing waits for one, and no restart without end."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.broker import alarm, preparing, reaching, turns
from scout.broker.carrying import failure_of
from scout.broker.dispatch import Dispatcher
from scout.broker.prepared import Opening
from scout.broker.turn import Turn
from scout.broker.world import World
from scout.identity.path import Kind
from scout.model.agent import Agent, AgentConfig
from scout.model.endpoint import Endpoint, update_endpoint
from scout.model.presence_event import EndpointUpdated
from scout.model.session_problem import Layer, WakeFailed
from scout.policy.directory import Instance
from scout.policy.limits import Periods, after_attempt
from scout.policy.reach import Reach, is_kept_warm, reach_of
from scout.ports import Failed
from scout.store.ledger import Ledger

__all__ = ["Warming"]

_MANY = 1000
_SHORT = Failed(layer=Layer.SESSION, reason="its session ended soon after it began")


@dataclass
class _Tries:
    """How often a session was started under a config. `due`: when the next try may be made, if any.

    `live_since`: when its session was first seen; one that lasts makes the tries before it count no more.
    """

    config: AgentConfig
    due: Time | None
    count: int = 0
    live_since: Time | None = None
    under_way: bool = False


class Warming:
    """Looks from time to time. The tries are kept in memory: a broker that starts tries again."""

    def __init__(
        self,
        world: World,
        write: Callable[[Callable[[Turn], Any]], Awaitable[Any]],
        read: Callable[[Callable[[Ledger], Any]], Awaitable[Any]],
        dispatcher: Dispatcher,
    ) -> None:
        self._world = world
        self._write = write
        self._read = read
        self._dispatcher = dispatcher
        self._tries: dict[str, _Tries] = {}

    async def check(self) -> None:
        """Start what should be there and is not, each in the lane of its agent."""
        now = self._world.clock.now()
        kept: list[tuple[Agent, Reach]] = await self._read(lambda ledger: _kept(ledger, self._world, now))
        for agent, reach in kept:
            tries = self._tries_of(agent, now)
            if reach.live:
                tries.live_since = tries.live_since or now
            elif is_kept_warm(reach) and not tries.under_way:
                await self._see_to(agent, tries, now)

    def _tries_of(self, agent: Agent, now: Time) -> _Tries:
        """What was tried under the config that it has now."""
        known = self._tries.get(agent.id)
        if known is None or known.config != agent.config:
            known = self._tries[agent.id] = _Tries(agent.config, due=now)
        return known

    async def _see_to(self, agent: Agent, tries: _Tries, now: Time) -> None:
        """It has no session: one that lasted is simply replaced, one that did not was a failed try."""
        lasted = self._world.rules.periods.back_off_most
        if tries.live_since is not None and now.since(tries.live_since) >= lasted:
            tries.count, tries.due, tries.live_since = 0, now, None
        elif tries.live_since is not None:
            await self._failed(agent, tries, _SHORT)
        if tries.due is not None and tries.due <= now:
            tries.under_way = True
            self._dispatcher.enqueue(agent.id, agent.id, self._try)

    async def _try(self, agent_id: str) -> None:
        """One start; counted before it is made."""
        tries = self._tries[agent_id]
        tries.count += 1
        try:
            problem = await self._opened(agent_id)
        except Exception as error:  # noqa: BLE001 (a fault is a failed try; it is logged)
            problem = failure_of(error, Layer.BROKER)
        finally:
            tries.under_way = False
        if problem is None:
            tries.live_since = self._world.clock.now()
        else:
            agent = await self._read(lambda ledger: ledger.get(Agent, agent_id))
            await self._failed(agent, tries, problem)

    async def _opened(self, agent_id: str) -> Failed | None:
        opening = await self._write(lambda turn: _opening(turn, agent_id))
        if not isinstance(opening, Opening):
            return opening
        harness = self._world.harnesses[opening.harness]
        problem = await self._dispatcher.carrier.begin(opening, harness, turns.session_ready)
        if problem is not None:
            await self._write(lambda turn: turns.free(turn, opening.endpoint_id, problem.reason))
        return problem

    async def _failed(self, agent: Agent, tries: _Tries, problem: Failed) -> None:
        """Again after a growing pause; once the tries are used up the operator is told instead."""
        tries.live_since = None
        told = _told(agent, tries.count, problem)
        following = after_attempt(told, self._world.rules, self._world.clock.now())
        tries.due = following.at
        if following.problem is not None:
            await self._write(lambda turn: alarm.raise_alarm(turn, told))


def _kept(ledger: Ledger, world: World, now: Time) -> list[tuple[Agent, Reach]]:
    """Who is kept warm by its own config or by an endpoint's, and how it can be reached."""
    agents = ledger.many(Agent, "agents_kept_warm", limit=_MANY)
    endpoints = ledger.many(Endpoint, "endpoints_kept_warm", limit=_MANY)
    named = [ledger.get(Agent, one.agent_id) for one in endpoints]
    known = {one.id: one for one in (*agents, *named) if one is not None}
    periods = world.rules.periods
    return [
        (one, _reach(one, ledger.many(Endpoint, "endpoints_of", agent=one.id), now, periods))
        for one in known.values()
    ]


def _reach(agent: Agent, endpoints: list[Endpoint], now: Time, periods: Periods) -> Reach:
    """By the records alone; that no harness can run it is found by trying."""
    person = agent.kind is Kind.CONNECTOR
    address = Instance(agent=agent).canonical
    return reach_of(agent, address, reaching.shared(endpoints), now, periods, person=person)


def _opening(turn: Turn, agent_id: str) -> Opening | Failed | None:
    """The session to start, if it is still wanted; an endpoint's own policy goes on to its successor."""
    agent = turn.need(Agent, "agent", agent_id)
    reach = _reach(agent, turn.endpoints(agent_id), turn.now, turn.rules.periods)
    opening = preparing.open_session(turn, agent) if is_kept_warm(reach) else None
    if isinstance(opening, Opening) and reach.policy is not agent.config.wake_policy:
        endpoint = turn.need(Endpoint, "endpoint", opening.endpoint_id)
        changed = update_endpoint(endpoint, turn.now, wake_policy=reach.policy)
        turn.record(EndpointUpdated, changed, move="update")
    return opening


def _told(agent: Agent, attempts: int, problem: Failed) -> WakeFailed:
    address = Instance(agent=agent).canonical
    leave = {"address": address, "config": ["wakePolicy=on_demand"]}
    remedies = (
        Remedy(operation="doctor", parameters={}, why="what is missing"),
        Remedy(operation="agent.config", parameters=leave, why="start it only when something is there"),
    )
    return WakeFailed(
        target=address,
        attempts=attempts,
        layer=problem.layer,
        reason=problem.reason,
        log=problem.log,
        remedies=remedies,
    )
