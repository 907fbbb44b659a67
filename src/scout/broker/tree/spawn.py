"""Spawning agents: all preconditions first, then each child whole or not at all."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from scout.base.codec import render
from scout.base.refusal import BadRequest, Diagnostic, Refused
from scout.broker.routing import registration
from scout.broker.routing.views import build_agent_view
from scout.broker.sessions.control import SessionBroker
from scout.broker.transaction.call import CallContext, find_answer
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.broker.tree import new_trees, spawn_plan
from scout.broker.tree.new_trees import MadeTree
from scout.broker.tree.spawn_plan import Child, SpawnPlan
from scout.model.agent import Agent, Lifecycle, create_agent, take_sub_index
from scout.model.conversation import check_body
from scout.model.events.presence import AgentRegistered, AgentUpdated
from scout.policy.tree.projects import ProjectRules
from scout.policy.tree.spawn import check_room, name_children
from scout.ports import TreePorts
from scout.protocol.agents import AgentView
from scout.protocol.asks import MakeAsk
from scout.protocol.correction import correct_remedies
from scout.protocol.tree.spawn import FailedSpawn, SpawnAgents, Spawned, SpawnedAgent

T = TypeVar("T")
_LOG = logging.getLogger("scout.tree")
_CLOSING = 5.0  # seconds for git to end when Scout stops
_AT_ONCE = 4  # children of one request that are prepared at the same time


class TreeBroker(SessionBroker, Protocol):
    """The broker as trees of agents need it."""

    spawns: "Spawns"


class SpawnOutcome(NamedTuple):
    """How the spawn of one child ended: the agent, or why there is none."""

    slug: str
    agent: SpawnedAgent | None = None
    problem: Diagnostic | None = None


class Spawns:
    """The spawns that are running. A caller that leaves does not stop them."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._tasks = set[asyncio.Task[Any]]()
        self._locks = dict[str, asyncio.Lock]()
        self._waiting = dict[str, int]()

    @property
    def is_running(self) -> bool:
        return bool(self._tasks)

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work to its end, even if the caller is cancelled."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    @asynccontextmanager
    async def one_at_a_time(self, key: str) -> AsyncGenerator[None]:
        """Wait for other work with the same key."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._waiting[key] = self._waiting.get(key, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key], self._locks[key]

    async def close(self) -> None:
        """Stop what runs. What cannot end in time, the next start completes or undoes by the journal."""
        if self._services.trees is None or not self._tasks:
            return
        await asyncio.to_thread(self._services.trees.work_trees.stop_commands)
        _, late = await asyncio.wait(tuple(self._tasks), timeout=_CLOSING)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


async def spawn_agents(call: CallContext[TreeBroker], request: SpawnAgents) -> Spawned:
    """Spawn the agents of a request, and give each its task."""
    known = await call.read(lambda tx: find_answer(tx, request))
    if known is not None:
        return known
    if request.task is not None:
        check_body(request.task)
    trees = require_trees(call.services)
    plan = await _plan(call, trees, request)
    await _make_known(call.services, trees, plan)
    outcomes = await call.broker.spawns.finish(_spawn_all(call, trees, plan, request))
    spawned = await call.read(lambda tx: _answer(tx, plan, request, outcomes))
    if not spawned.agents:
        problem = next(one.problem for one in outcomes if one.problem is not None)
        raise Refused(problem)
    return await call.write_once(request, lambda _, __: spawned)


def require_trees(services: Services) -> TreePorts:
    """Return the ports of agent trees; refuse where there are none."""
    if services.trees is None:
        raise Refused(BadRequest(problem="this Scout runs without work trees"))
    return services.trees


async def _plan(call: CallContext[TreeBroker], trees: TreePorts, request: SpawnAgents) -> SpawnPlan:
    """Check every precondition. The records are checked last, so that a refusal leaves nothing behind."""
    names = name_children(request.slugs, request.count)
    found = await call.read(lambda tx: spawn_plan.find_parent(tx, request))
    settled = await asyncio.to_thread(spawn_plan.settle_place, call.services, found)
    parent = await call.read(lambda tx: spawn_plan.expect_branches(tx, settled, names))
    ground = await asyncio.to_thread(spawn_plan.survey_ground, trees, parent, request)
    return await call.write(lambda tx: spawn_plan.plan_spawn(tx, request, parent, ground))


async def _make_known(services: Services, trees: TreePorts, plan: SpawnPlan) -> None:
    """Write down the project and its root agent where they survive the database."""
    await asyncio.to_thread(new_trees.write_root_identity, trees, plan.parent)
    roots = dict.fromkeys(one for one in (plan.ground.root, plan.parent.project_root) if one)
    for root in roots:
        if root not in services.projects:
            await asyncio.to_thread(services.add_project, root)
            services.projects = {**services.projects, root: ProjectRules()}


# -- the children ------------------------------------------------------------------------------------


async def _spawn_all(
    call: CallContext[TreeBroker], trees: TreePorts, plan: SpawnPlan, request: SpawnAgents
) -> list[SpawnOutcome]:
    few = asyncio.Semaphore(_AT_ONCE)
    settled = [asyncio.Event() for _ in plan.children]

    async def spawn_child(number: int, child: Child) -> SpawnOutcome:
        """Spawn one child. It is registered after those before it, so that indexes follow the slugs."""
        before = settled[number - 1] if number else None
        async with few:
            try:
                made = await _spawn_one(call, trees, plan, child, request, before=before)
            except Refused as refusal:
                return SpawnOutcome(child.slug, problem=refusal.diagnostic)
            finally:
                settled[number].set()
            return SpawnOutcome(child.slug, await _give_task(call, made, request))

    spawning = (spawn_child(number, child) for number, child in enumerate(plan.children))
    return list(await asyncio.gather(*spawning))


async def _spawn_one(
    call: CallContext[TreeBroker],
    trees: TreePorts,
    plan: SpawnPlan,
    child: Child,
    request: SpawnAgents,
    *,
    before: asyncio.Event | None,
) -> SpawnedAgent:
    """Make one child, or return the live one of this name. `before`: the one before it is settled."""
    async with call.broker.spawns.one_at_a_time(f"{plan.parent.id} {child.slug}"):
        view = await call.read(lambda tx: _find_existing(tx, plan, child))
        if view is not None:
            note = await asyncio.to_thread(new_trees.restore_tree, trees, plan, view)
            return replace(_build_result(child, view, created=False), notes=(note,) if note else ())
        made = await _make_tree(call, trees, plan, child, request)
        if before is not None:
            await before.wait()
        try:
            view = await call.write(lambda tx: _enter_child(tx, plan, child, made))
        except Refused:
            await asyncio.to_thread(new_trees.undo_child, trees, made.entry)
            raise
        problem = await asyncio.to_thread(new_trees.complete_child, trees, made.entry, view, plan.parent)
    done = _build_result(child, view, created=True)
    return replace(
        done,
        base=made.base,
        copied=made.copied,
        setup=made.setup,
        notes=(*made.notes, *((problem,) if problem else ())),
    )


def _find_existing(tx: Transaction, plan: SpawnPlan, child: Child) -> AgentView | None:
    found = spawn_plan.find_child(tx, plan.parent, child.slug, child.branch)
    return build_agent_view(tx, found) if found is not None else None


async def _make_tree(
    call: CallContext[TreeBroker], trees: TreePorts, plan: SpawnPlan, child: Child, request: SpawnAgents
) -> MadeTree:
    """Make the folder and the work tree of a child. Only the setup of several may run at the same time."""
    services = call.services
    ident = f"agt_{next(services.ids.series())}"
    async with call.broker.spawns.one_at_a_time(plan.ground.root):
        entry = await asyncio.to_thread(
            new_trees.begin_child, trees, plan, child, ident, services.clock.now()
        )
        try:
            made = await asyncio.to_thread(new_trees.add_tree, trees, plan, entry)
        except Refused:
            await asyncio.to_thread(new_trees.undo_child, trees, entry)
            raise
    rules = services.projects.get(plan.ground.root, ProjectRules()).worktree
    if request.no_setup:
        rules = replace(rules, setup=None)
    try:
        return await asyncio.to_thread(new_trees.prepare_tree, trees, made, rules)
    except Refused:
        await asyncio.to_thread(new_trees.undo_child, trees, entry)
        raise


def _enter_child(tx: Transaction, plan: SpawnPlan, child: Child, made: MadeTree) -> AgentView:
    """Register a child under its parent's next index."""
    parent = tx.need(Agent, "agent", plan.parent.id)
    if parent.lifecycle is Lifecycle.RETIRED:
        raise Refused(BadRequest(problem=f"{tx.address(parent.id)} was retired meanwhile", field="from"))
    check_room(tx.address(parent.id), spawn_plan.count_children(tx, parent), 1, tx.rules.limits)
    counted, index = take_sub_index(parent, tx.now)
    spelling = spawn_plan.spell_child(tx, parent, child, index)
    tx.record(AgentUpdated, counted, move="child")
    assert made.entry.agent_id is not None  # chosen with the entry
    agent = create_agent(
        made.entry.agent_id,
        spelling.path,
        tx.now,
        node=tx.services.node,
        by=tx.sender,
        parent_id=parent.id,
        definition_id=spelling.address.definition_id,
        workspace=spelling.address.workspace_qualifier,
        profile=spelling.address.profile,
        birth_branch=spelling.birth_branch,
        project_root=parent.project_root,
        working_dir=made.working_dir,
        tool_role=plan.role,
        config=plan.config if child.branch is not None else replace(plan.config, name=child.slug),
    )
    tx.record(AgentRegistered, agent, move="register", reason=f"spawned by {tx.address(parent.id)}")
    registration.break_alias_named(tx, agent)
    return build_agent_view(tx, agent)


# -- the task and the answer -------------------------------------------------------------------------


async def _give_task(call: CallContext[TreeBroker], made: SpawnedAgent, request: SpawnAgents) -> SpawnedAgent:
    """Ask a child to do its task, in the caller's name. A refused ask is a note: the child is there."""
    if request.task is None:
        return made
    key = request.idempotency_key
    ask = MakeAsk(
        to=made.agent.id,
        body=request.task,
        within=request.within,
        idempotency_key=f"{key[:120]} {made.slug}" if key else None,
    )
    try:
        receipt = await call.perform(ask)
    except Refused as refusal:
        return replace(made, notes=(*made.notes, f"its task was not asked: {refusal.diagnostic.message}"))
    return replace(made, flight_id=receipt.flight_id, notes=(*made.notes, *receipt.notes))


def _build_result(child: Child, view: AgentView, *, created: bool) -> SpawnedAgent:
    return SpawnedAgent(
        slug=child.slug,
        agent=view,
        address=view.address,
        path=str(view.path),
        birth_branch=view.birth_branch,
        working_dir=view.working_dir,
        created=created,
    )


def _answer(tx: Transaction, plan: SpawnPlan, request: SpawnAgents, outcomes: list[SpawnOutcome]) -> Spawned:
    return Spawned(
        parent=tx.address(plan.parent.id),
        agents=tuple(one.agent for one in outcomes if one.agent is not None),
        failed=tuple(
            _build_failure(request, one.slug, one.problem) for one in outcomes if one.problem is not None
        ),
        notes=plan.ground.notes,
    )


def _build_failure(request: SpawnAgents, slug: str, problem: Diagnostic) -> FailedSpawn:
    """Return the refusal of one child, with the caller's request for this child alone as remedies."""
    alone = replace(request, slugs=(slug,), count=None)
    return FailedSpawn(slug=slug, error=render(correct_remedies(alone, problem)))
