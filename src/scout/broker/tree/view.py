"""The tree of agents as a person or an agent sees it: state, work, and what the work trees hold."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from scout.base.refusal import PLACEHOLDER, Remedy
from scout.broker.effects.reminders import get_record_title
from scout.broker.operations.agents import is_agent
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.broker.tree.disk_reads import compare_trees, scan_folders
from scout.broker.tree.found_folders import list_offers
from scout.model.agent import Agent, Lifecycle
from scout.model.attention import Attention
from scout.model.flight import Flight, FlightState
from scout.model.status import AgentStatus, get_status
from scout.model.work_item import WorkItem, WorkState
from scout.policy.permit import Deed
from scout.ports import TreePorts, TreeState, TreeToCompare
from scout.protocol.tree.view import AgentTree, CurrentWork, OfferedFolder, ShowTree, TreeAgent, TreeFacts
from scout.store.directory import find_work_tree_agent
from scout.store.ledger import LAST

_MOST = 2000  # agents of one answer
_PAGE = 1000
_FEW = 20
_SECONDS = 5.0  # for the facts of all work trees
_NUMBERS = re.compile(r"(\d+)", re.ASCII)


class _Draft(NamedTuple):
    """The tree without the facts from disk. `wanted`: the work trees to read, by agent."""

    tree: AgentTree
    wanted: Mapping[str, TreeToCompare]
    sees_folders: bool


async def show_tree(call: CallContext[CallBroker], request: ShowTree) -> AgentTree:
    """Return the agents in the order of their tree, each with its work and the state of its work tree."""
    draft = await call.read(lambda tx: _draft(tx, request))
    trees = call.services.trees
    if trees is None:
        return draft.tree
    return await _add_disk_facts(call, draft, trees)


async def _add_disk_facts(call: CallContext[CallBroker], draft: _Draft, trees: TreePorts) -> AgentTree:
    clock, wanted = call.services.clock, draft.wanted
    states = await compare_trees(trees, clock, tuple(wanted.values()), _SECONDS)
    tree = replace(
        draft.tree,
        agents=tuple(_add_facts(one, wanted, states) for one in draft.tree.agents),
        unread=sum(one.path not in states for one in wanted.values()),
    )
    if not draft.sees_folders:
        return tree
    found, notes = await scan_folders(trees, clock, tree.projects, _SECONDS)
    orphans: tuple[OfferedFolder, ...] = await call.read(lambda tx: list_offers(tx, found))
    return replace(tree, orphans=orphans, notes=(*tree.notes, *notes))


def _add_facts(
    agent: TreeAgent, wanted: Mapping[str, TreeToCompare], states: Mapping[str, TreeState]
) -> TreeAgent:
    state = states.get(wanted[agent.id].path) if agent.id in wanted else None
    return agent if state is None else replace(agent, facts=_read_state(state))


def _read_state(state: TreeState) -> TreeFacts:
    return TreeFacts(
        branch=state.branch,
        commit=state.commit,
        ahead=state.ahead,
        behind=state.behind,
        uncommitted=len(state.uncommitted) + state.more_uncommitted,
        unpushed=state.unpushed,
        operation=state.operation,
        problem=state.problem,
    )


# -- the directory -----------------------------------------------------------------------------------


def _draft(tx: Transaction, request: ShowTree) -> _Draft:
    found = [one for one in find_agents(tx, request) if is_shown(tx, one, retired=request.retired)]
    ordered = list(order_agents(list_related(found) if request.related else found))
    shown = ordered[:_MOST]
    here = _find_here(tx)
    rows = tuple(_show_agent(tx, agent, depth, here) for agent, depth in shown)
    projects = tuple(dict.fromkeys(one.project_root for one, _ in shown if one.project_root))
    more = len(ordered) - len(shown)
    notes = (f"{more} more agents are not shown; name the top of a smaller tree",) if more else ()
    tree = AgentTree(agents=rows, projects=projects, notes=notes, next=() if rows else _FIRST_STEPS)
    sees_folders = tx.is_operator and request.address is None
    return _Draft(tree, _list_work_trees(tx, [one for one, _ in shown]), sees_folders)


_FIRST_STEPS = (
    Remedy(operation="spawn", parameters={"slugs": [PLACEHOLDER]}, why="an agent with its own work tree"),
)


def find_agents(tx: Transaction, request: ShowTree) -> Iterable[Agent]:
    """Return the agents below an address, of a project, or all; by default, those of the caller's project."""
    if request.address is not None:
        top = tx.resolve(request.address).agent
        tx.permit(Deed.SEE, build_subject(top))
        return _find_below(tx, top)
    root = _find_root(tx)
    if request.all or (root is None and tx.is_operator):
        return _page_all(tx, "agents_all")
    if root is not None:
        return _find_in_project(tx, root)
    own = tx.agent(tx.actor.agent_id)
    return _find_below(tx, _find_top(tx, own)) if own is not None else ()


def _find_root(tx: Transaction) -> str | None:
    """Return the project that the request names, else the caller's."""
    if tx.place is None:
        return tx.caller.project_root
    spawned = find_work_tree_agent(tx.ledger, tx.place.project_root)
    return spawned.project_root if spawned is not None else tx.place.project_root


def _find_below(tx: Transaction, top: Agent) -> list[Agent]:
    return [top, *tx.ledger.many(Agent, "agents_below", path=str(top.path), limit=_MOST + _PAGE)]


def _find_top(tx: Transaction, agent: Agent) -> Agent:
    above = tx.agent(agent.parent_id)
    return agent if above is None else _find_top(tx, above)


def _find_in_project(tx: Transaction, root: str) -> Iterable[Agent]:
    """Return the agents of a project, and those below them that belong to no project."""
    found = {one.id: one for one in _page_all(tx, "agents_of_root", root=root)}
    tops = [one for one in found.values() if one.parent_id not in found]
    for top in tops:
        found.update((one.id, one) for one in _find_below(tx, top))
    return found.values()


def _page_all(tx: Transaction, query: str, **values: Any) -> Iterator[Agent]:
    before, count = LAST, 0
    while count <= _MOST:
        page = tx.ledger.many(Agent, query, before=before, limit=_PAGE, **values)
        yield from page
        if len(page) < _PAGE:
            return
        before, count = page[-1].id, count + len(page)


def is_shown(tx: Transaction, agent: Agent, *, retired: bool) -> bool:
    """Whether the caller sees an agent in a tree."""
    gone = agent.lifecycle is Lifecycle.RETIRED and not retired
    return not gone and is_agent(agent) and tx.view.shows(agent)


def list_related(agents: Sequence[Agent]) -> list[Agent]:
    """Return the agents that belong to a tree: those with a branch, a parent or a child."""
    parents = {one.parent_id for one in agents}
    return [one for one in agents if one.birth_branch or one.parent_id or one.id in parents]


def order_agents(agents: Sequence[Agent]) -> Iterator[tuple[Agent, int]]:
    """Yield each agent after its parent, with its depth. An agent whose parent is not shown is at the top."""
    known = {one.id for one in agents}
    children: dict[str | None, list[Agent]] = {}
    for agent in agents:
        above = agent.parent_id if agent.parent_id in known else None
        children.setdefault(above, []).append(agent)
    stack = [(one, 0) for one in _sort(children.get(None, ()))]
    while stack:
        agent, depth = stack.pop()
        yield agent, depth
        stack += [(one, depth + 1) for one in _sort(children.get(agent.id, ()))]


def _sort(agents: Iterable[Agent]) -> list[Agent]:
    """Return siblings in reverse order, for a stack."""
    return sorted(agents, key=_rank, reverse=True)


def _rank(agent: Agent) -> tuple[str, bool, list[tuple[int, str]]]:
    """Order by project, then by branch, then those without a branch by path; numbers in names are numbers."""
    parts = _NUMBERS.split(agent.birth_branch or str(agent.path))
    natural = [(int(part), "") if part.isdecimal() else (0, part) for part in parts]
    return agent.project_root or "", agent.birth_branch is None, natural


def _find_here(tx: Transaction) -> str | None:
    """Return the caller, or for a person the agent of the directory that the request comes from."""
    if not tx.is_operator or tx.here is None:
        return tx.actor.agent_id
    agent = tx.directory.of_project(tx.here.project_root)
    return agent.id if agent is not None else None


# -- one agent ---------------------------------------------------------------------------------------


def _show_agent(tx: Transaction, agent: Agent, depth: int, here: str | None) -> TreeAgent:
    flights = tx.ledger.many(Flight, "flights_open_to", agent=agent.id, before=LAST, limit=_FEW)
    waits = tx.ledger.many(Attention, "attention_by_open", agent=agent.id, before=LAST, limit=_FEW)
    needs = [one for one in waits if one.source.id == agent.id]
    within = tx.rules.periods.online_within
    endpoints = tx.endpoints(agent.id)
    status = get_status(agent, endpoints, tx.now, flights=flights, attention=needs, within=within)
    row = build_row(tx, agent, depth, status, _find_work(tx, agent, flights))
    return replace(row, here=agent.id == here)


def build_row(
    tx: Transaction, agent: Agent, depth: int, status: AgentStatus, work: Sequence[CurrentWork]
) -> TreeAgent:
    """Return an agent of a tree, without the facts of its work tree."""
    return TreeAgent(
        id=agent.id,
        address=tx.address(agent.id),
        path=str(agent.path),
        name=agent.config.name,
        parent_id=agent.parent_id,
        depth=depth,
        role=agent.tool_role,
        harness=agent.config.harness,
        lifecycle=agent.lifecycle,
        status=status,
        birth_branch=agent.birth_branch,
        project_root=agent.project_root,
        working_dir=agent.working_dir,
        work=work[0] if work else None,
        more_work=max(0, len(work) - 1),
    )


def _find_work(tx: Transaction, agent: Agent, flights: Sequence[Flight]) -> list[CurrentWork]:
    """Return the open flights of an agent, running ones first, and its work items that no flight covers."""
    if not tx.allows(Deed.READ, build_subject(agent)):
        flights = [one for one in flights if one.requester_id == tx.actor.agent_id]
        return show_flights(tx, flights)
    covered = {one.work_item_id for one in flights}
    items = tx.ledger.many(WorkItem, "work_owned_open", agent=agent.id, before=LAST, limit=_FEW)
    begun = [one for one in items if one.state is not WorkState.OPEN and one.id not in covered]
    return [
        *show_flights(tx, flights),
        *(CurrentWork(id=one.id, title=get_record_title(tx, one), state=one.state) for one in begun),
    ]


def show_flights(tx: Transaction, flights: Iterable[Flight]) -> list[CurrentWork]:
    """Return flights as the work of an agent, running ones first."""
    ranked = sorted(flights, key=lambda one: (one.state is not FlightState.RUNNING, one.id))
    return [_show_flight(tx, one) for one in ranked]


def _show_flight(tx: Transaction, flight: Flight) -> CurrentWork:
    on = flight.waiting_on.kind if flight.waiting_on is not None else None
    return CurrentWork(id=flight.id, title=get_record_title(tx, flight), state=flight.state, waiting_on=on)


def _list_work_trees(tx: Transaction, agents: Sequence[Agent]) -> dict[str, TreeToCompare]:
    """Return the work trees of agents with a branch on this machine, each with its parent's branch."""
    mine = [one for one in agents if one.birth_branch and one.working_dir and one.node == tx.services.node]
    live = [one for one in mine if one.lifecycle is not Lifecycle.RETIRED]
    live.sort(key=lambda one: one.lifecycle is Lifecycle.SLEEPING)  # if time is short, others matter more
    return {one.id: _get_tree(tx, one) for one in live}


def _get_tree(tx: Transaction, agent: Agent) -> TreeToCompare:
    parent = tx.agent(agent.parent_id)
    assert agent.working_dir is not None  # only such agents are listed
    return TreeToCompare(agent.working_dir, agent.birth_branch, parent.birth_branch if parent else None)
