"""Keep-warm agents: keep a live session without pending work, with a limited number of restarts."""

from dataclasses import dataclass
from typing import NamedTuple

from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.broker.delivery import preparation, session_records, turn_record
from scout.broker.delivery.dispatcher import Dispatcher
from scout.broker.delivery.runner import build_failure
from scout.broker.delivery.session_records import SessionOpening
from scout.broker.routing import attention_items, routes
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import ReadLedger, Transaction, WriteAsBroker
from scout.model.agent import Agent, AgentConfig
from scout.model.endpoint import Endpoint, EndpointState, update_endpoint
from scout.model.events.presence import EndpointUpdated
from scout.model.problems.session import Layer, WakeFailed
from scout.model.session import Session
from scout.policy.directory import Instance
from scout.policy.limits import Periods, plan_attempt
from scout.policy.wake import Reach, build_reach, is_kept_warm
from scout.ports import Failed
from scout.store.ledger import Ledger

_MANY = 1000
_SHORT = Failed(layer=Layer.SESSION, reason="its session ended soon after it began")


@dataclass
class _Tries:
    """Start attempts under one config. `due`: when the next attempt may be made, if any.

    `live_since`: when the session was first seen live; a session that lasts resets the count.
    """

    config: AgentConfig
    due: Time | None
    count: int = 0
    live_since: Time | None = None
    under_way: bool = False


class _Kept(NamedTuple):
    """A keep-warm agent, its reach, and the endpoint of its idle session."""

    agent: Agent
    reach: Reach
    rests: Endpoint | None


class WarmKeeper:
    """Checks periodically. Attempts are kept in memory only, so a restarted broker tries again."""

    def __init__(
        self,
        services: Services,
        write: WriteAsBroker,
        read: ReadLedger,
        dispatcher: Dispatcher,
    ) -> None:
        self._services = services
        self._write = write
        self._read = read
        self._dispatcher = dispatcher
        self._tries: dict[str, _Tries] = {}

    async def check(self) -> None:
        """Start missing sessions, each in its agent's lane; nothing is started during a pause."""
        if self._services.paused is not None:
            return
        now = self._services.clock.now()
        kept: list[_Kept] = await self._read(lambda ledger: _find_kept_warm(ledger, self._services, now))
        for one in kept:
            tries = self._get_tries(one.agent, now)
            if tries.under_way:
                continue
            if one.reach.live and not await self._is_cold(one):
                tries.live_since = tries.live_since or now
            elif one.reach.live or is_kept_warm(one.reach):
                await self._check_agent(one.agent, tries, now)

    async def _is_cold(self, kept: _Kept) -> bool:
        """Whether an idle session has no process, although its harness keeps one between turns."""
        if kept.rests is None:
            return False
        harness = self._services.harnesses.get(kept.rests.harness or "")
        if harness is None or not harness.capabilities.keeps_process:
            return False
        return not await harness.is_warm(kept.rests.session_id or "")

    def _get_tries(self, agent: Agent, now: Time) -> _Tries:
        """Return the attempts under the agent's current config."""
        known = self._tries.get(agent.id)
        if known is None or known.config != agent.config:
            known = self._tries[agent.id] = _Tries(agent.config, due=now)
        return known

    async def _check_agent(self, agent: Agent, tries: _Tries, now: Time) -> None:
        """Replace a missing session; one that lasted resets the count, a short one was a failed attempt."""
        lasted = self._services.rules.periods.back_off_most
        if tries.live_since is not None and now.since(tries.live_since) >= lasted:
            tries.count, tries.due, tries.live_since = 0, now, None
        elif tries.live_since is not None:
            await self._record_failure(agent, tries, _SHORT)
        if tries.due is not None and tries.due <= now:
            tries.under_way = True
            self._dispatcher.enqueue(agent.id, agent.id, self._try_to_start)

    async def _try_to_start(self, agent_id: str) -> None:
        """Make one start attempt, counted before it runs."""
        tries = self._tries[agent_id]
        tries.count += 1
        try:
            problem = await self._open_session(agent_id)
        except Exception as error:  # noqa: BLE001 (an error is a failed attempt; it is logged)
            problem = build_failure(error, Layer.BROKER)
        finally:
            tries.under_way = False
        if problem is None:
            tries.live_since = self._services.clock.now()
        else:
            agent = await self._read(lambda ledger: ledger.get(Agent, agent_id))
            await self._record_failure(agent, tries, problem)

    async def _open_session(self, agent_id: str) -> Failed | None:
        opening = await self._write(lambda tx: _build_opening(tx, agent_id))
        if not isinstance(opening, SessionOpening):
            return opening
        harness = self._services.harnesses[opening.harness]
        problem = await self._dispatcher.runner.begin(opening, harness, turn_record.record_session_ready)
        if problem is not None:
            await self._write(lambda tx: turn_record.free_endpoint(tx, opening.endpoint_id, problem.reason))
        return problem

    async def _record_failure(self, agent: Agent, tries: _Tries, problem: Failed) -> None:
        """Schedule the next attempt with back-off, or raise an alarm when no attempts are left."""
        tries.live_since = None
        told = _build_wake_failed(Instance(agent=agent).canonical, tries.count, problem)
        following = plan_attempt(told, self._services.rules, self._services.clock.now())
        tries.due = following.at
        if following.problem is not None:
            await self._write(lambda tx: _raise_alarm(tx, agent, tries.count, problem))


def _find_kept_warm(ledger: Ledger, services: Services, now: Time) -> list[_Kept]:
    """Return the agents kept warm by their config or by an endpoint's policy."""
    agents = ledger.many(Agent, "agents_kept_warm", limit=_MANY)
    endpoints = ledger.many(Endpoint, "endpoints_kept_warm", limit=_MANY)
    named = [ledger.get(Agent, one.agent_id) for one in endpoints]
    known = {one.id: one for one in (*agents, *named) if one is not None}
    periods = services.rules.periods
    found = list[_Kept]()
    for one in known.values():
        ways = ledger.many(Endpoint, "endpoints_of", agent=one.id)
        found.append(_Kept(one, _build_reach(one, ways, now, periods), _find_resting(ledger, ways)))
    return found


def _find_resting(ledger: Ledger, endpoints: list[Endpoint]) -> Endpoint | None:
    """Return the held, idle endpoint whose session no person has open in a terminal."""
    for endpoint in reversed(routes.list_shared_endpoints(endpoints)):
        if endpoint.held and endpoint.state is EndpointState.IDLE:
            session = ledger.get(Session, endpoint.session_id)
            if session is not None and session.terminal is None:
                return endpoint
    return None


def _build_reach(agent: Agent, endpoints: list[Endpoint], now: Time, periods: Periods) -> Reach:
    """Return the reach by records alone; whether a harness can run the agent shows when it is started."""
    address = Instance(agent=agent).canonical
    return build_reach(
        agent, address, routes.list_shared_endpoints(endpoints), now, periods, person=agent.is_person
    )


def _build_opening(tx: Transaction, agent_id: str) -> SessionOpening | Failed | None:
    """Return the session to start, if still needed; the new endpoint inherits the old one's wake policy."""
    agent = tx.need(Agent, "agent", agent_id)
    reach = _build_reach(agent, tx.endpoints(agent_id), tx.now, tx.rules.periods)
    if reach.live:
        rests = _find_resting(tx.ledger, tx.endpoints(agent_id))
        return _build_restart(tx, agent, rests) if rests is not None else None
    opening = preparation.open_session(tx, agent) if is_kept_warm(reach) else None
    if isinstance(opening, SessionOpening) and reach.policy is not agent.config.wake_policy:
        endpoint = tx.need(Endpoint, "endpoint", opening.endpoint_id)
        changed = update_endpoint(endpoint, tx.now, wake_policy=reach.policy)
        tx.record(EndpointUpdated, changed, move="update")
    return opening


def _build_restart(tx: Transaction, agent: Agent, endpoint: Endpoint) -> SessionOpening:
    """Return the opening that restarts the program of an existing session."""
    opening = session_records.build_opening(tx, agent, endpoint)
    opening.fresh = False
    return opening


def _raise_alarm(tx: Transaction, agent: Agent, attempts: int, problem: Failed) -> None:
    attention_items.raise_alarm(tx, _build_wake_failed(tx.address(agent.id), attempts, problem))


def _build_wake_failed(address: str, attempts: int, problem: Failed) -> WakeFailed:
    leave = {"address": address, "config": ["wakePolicy=on_demand"]}
    remedies = (
        Remedy(operation="doctor", parameters={}, why="see what is missing"),
        Remedy(operation="agent.config", parameters=leave, why="start it only when it has work"),
    )
    return WakeFailed(
        target=address,
        attempts=attempts,
        layer=problem.layer,
        reason=problem.reason,
        log=problem.log,
        remedies=remedies,
    )
