"""Planning a spawn: its parent, the names of the children, and all preconditions. Nothing is made here."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused
from scout.broker.operations import agents
from scout.broker.routing import registration, routes
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction, build_subject, require_local
from scout.broker.tree.projects import build_no_project_refusal, find_root
from scout.identity.address import Address
from scout.identity.branch import BirthBranch, check_ref
from scout.identity.path import ModelRole
from scout.identity.spelling import Spelling, name_spawned, name_worker
from scout.model.agent import Agent, AgentConfig, Lifecycle, ToolRole
from scout.model.endpoint import is_online
from scout.model.problems.session import HarnessUnavailable
from scout.model.problems.target import AmbiguousEndpoint
from scout.model.problems.tree import GitProblem
from scout.policy.directory import Wanted
from scout.policy.permit import Deed
from scout.policy.roles import find_runtime
from scout.policy.tree.spawn import (
    BaseFacts,
    SpawnNames,
    build_branch_exists_refusal,
    build_child_config,
    build_no_branch_refusal,
    check_depth,
    check_repository,
    check_room,
    name_children,
    offer_harnesses,
)
from scout.ports import GitFailed, RepositoryFacts, Surroundings, TreePorts
from scout.protocol.tree.spawn import SpawnAgents, SpawnRole

_MANY = 100_000
_NAMED = 20  # uncommitted files that a refusal names
_SHOWN = 5  # new files that a note names


class Parent(NamedTuple):
    """The parent of a spawn. `agent` is None if it is the root agent of `place` and has to be made.

    `branch`: its birth branch; None if it has none. `born`: the branches of children that exist already.
    """

    agent: Agent | None
    directory: str
    place: Surroundings | None = None
    branch: BirthBranch | None = None
    born: frozenset[str] = frozenset()


class Ground(NamedTuple):
    """Where the children live. `root`: the folder that holds `.scout`; `base`: the commit they start from."""

    root: str
    base: str | None = None
    notes: tuple[str, ...] = ()


class Child(NamedTuple):
    """One child. `branch` is None for a worker; `existing` is the live child of this name."""

    slug: str
    branch: BirthBranch | None = None
    existing: Agent | None = None


class SpawnPlan(NamedTuple):
    """Everything that was decided before anything is made."""

    parent: Agent
    ground: Ground
    config: AgentConfig
    role: ToolRole
    children: tuple[Child, ...]


# -- the parent --------------------------------------------------------------------------------------


def find_parent(tx: Transaction, request: SpawnAgents) -> Parent:
    """Return the parent: the named agent, the caller, or for a person the root agent of the project."""
    agent = _find_named_parent(tx, request)
    if agent is None:
        place = tx.place or tx.here
        if place is None:
            raise Refused(build_no_project_refusal())
        return Parent(None, place.directory, place)
    require_local(tx, agent)
    if agent.lifecycle is Lifecycle.RETIRED:
        raise Refused(routes.build_retired_refusal(tx, agent))
    tx.permit(Deed.SPAWN, build_subject(agent))
    directory = agent.working_dir or agent.project_root
    if directory is None or agent.definition_id is None:
        lacks = "no directory" if directory is None else "no handle"
        problem = f"{tx.address(agent.id)} has {lacks}, so nothing can be spawned below it"
        raise Refused(BadRequest(problem=problem, field="from"))
    return Parent(agent, directory)


def _find_named_parent(tx: Transaction, request: SpawnAgents) -> Agent | None:
    if request.from_ is not None:
        return agents.find(tx, request.from_)
    own = tx.agent(tx.actor.agent_id)
    if request.project_path is None and own is not None and agents.is_agent(own):
        return own
    return None


def find_branch(tx: Transaction, agent: Agent) -> BirthBranch | None:
    """Return an agent's birth branch with the root branch of its tree; None if it was born on none."""
    if agent.birth_branch is None:
        return None
    top = agent
    while (above := tx.agent(top.parent_id)) is not None and above.birth_branch is not None:
        top = above
    assert top.birth_branch is not None  # only agents with one are followed
    return BirthBranch(root=top.birth_branch, text=agent.birth_branch)


def settle_place(services: Services, parent: Parent) -> Parent:
    """Return the parent with the main work tree of its repository as its place. Blocks."""
    if parent.place is None:
        return parent
    root = find_root(services, parent.place)
    if parent.place.workspace is not None:
        parent = parent._replace(place=services.places.locate(root))
    assert parent.place is not None
    return parent._replace(directory=parent.place.project_root)


def expect_branches(tx: Transaction, parent: Parent, names: Sequence[str]) -> Parent:
    """Return the parent with the birth branch that it has or will have, and those of its children."""
    agent, place, branch = parent.agent, parent.place, None
    if place is not None:
        name = place.branch or registration.MAIN_BRANCH
        branch = BirthBranch(root=check_ref(name), text=name)
        agent = registration.find_root_agent(tx, place.project_root, name)
    if agent is not None:
        branch = find_branch(tx, agent)
    if agent is None or branch is None:
        return parent._replace(branch=branch)
    texts = [f"{branch.text}.{name}" for name in names]
    born = [one for one in texts if tx.ledger.one(Agent, "agent_born", root=agent.project_root, branch=one)]
    return parent._replace(branch=branch, born=frozenset(born))


# -- the repository ----------------------------------------------------------------------------------


def survey_ground(trees: TreePorts, parent: Parent, request: SpawnAgents) -> Ground:
    """Check the repository, and that git has none of the branches. Blocks."""
    try:
        facts = trees.work_trees.look(parent.directory, most=_NAMED + 1)
        if request.role is SpawnRole.WORKER:
            own = parent.agent.project_root if parent.agent else None
            root = facts.root if facts is not None and not facts.bare else own or parent.directory
            return Ground(root)
        ground = _check_base(trees, parent, request, facts)
        _check_branches(trees, parent, request, ground.root)
    except GitFailed as error:
        raise Refused(GitProblem(root=parent.directory, problem=str(error))) from None
    return ground


def _check_base(
    trees: TreePorts,
    parent: Parent,
    request: SpawnAgents,
    facts: RepositoryFacts | None,
) -> Ground:
    commit, notes = None, ()
    if facts is not None and not facts.bare:
        commit, notes = _find_base(trees, parent, request.base, facts)
    state = None
    if facts is not None:
        uncommitted = facts.changed if request.base in (None, "HEAD") else ()
        state = BaseFacts(
            directory=facts.top,
            root=facts.root,
            commit=commit,
            revision=request.base,
            bare=facts.bare,
            uncommitted=uncommitted[:_NAMED],
            more=len(uncommitted[_NAMED:]),
            free_bytes=facts.free_bytes,
        )
    base = check_repository(state, parent.directory, dirty=request.allow_dirty)
    assert facts is not None  # otherwise it was refused
    return Ground(facts.root, base, (*notes, *_note_new_files(facts)))


def _note_new_files(facts: RepositoryFacts) -> tuple[str, ...]:
    """Return a note about files that git does not know: the work trees do not have them."""
    new = [one for one in facts.uncommitted if one not in facts.changed]
    if not new:
        return ()
    more = " and others" if len(new) > _SHOWN else ""
    return (f"new files are not in git, so the work trees do not have them: {', '.join(new[:_SHOWN])}{more}",)


def _find_base(
    trees: TreePorts, parent: Parent, revision: str | None, facts: RepositoryFacts
) -> tuple[str | None, tuple[str, ...]]:
    """Return the commit to start from: the revision, the parent's branch, or what its work tree is at."""
    if revision is not None and revision != "HEAD":
        return trees.work_trees.find_commit(facts.root, revision), ()
    if revision is None and parent.branch is not None and parent.branch.text != facts.branch:
        own = trees.work_trees.find_commit(facts.root, f"refs/heads/{parent.branch.text}")
        here = facts.branch or "no branch"
        if own is not None:
            note = f"{facts.top} is on {here}; the new branches start from {parent.branch.text}"
            return own, (note,)
        return facts.commit, (f"git has no branch {parent.branch.text}; the new branches start from {here}",)
    return facts.commit, ()


def _check_branches(trees: TreePorts, parent: Parent, request: SpawnAgents, root: str) -> None:
    """Refuse a branch that git has already, unless a child was born on it or is being made now."""
    if parent.branch is None:
        return

    def is_free(branch: str) -> bool:
        return trees.work_trees.find_commit(root, f"refs/heads/{branch}") is None

    being_made = {entry.branch for entry in trees.journal.unfinished() if entry.root == root}
    for name in name_children(request.slugs, request.count):
        text = f"{parent.branch.text}.{name}"
        if text not in parent.born | being_made and not is_free(text):
            branch = BirthBranch(root=parent.branch.root, text=text)
            wish = SpawnNames(slugs=request.slugs, count=request.count)
            raise Refused(build_branch_exists_refusal(branch, root, wish, is_free))


# -- the plan ----------------------------------------------------------------------------------------


def plan_spawn(tx: Transaction, request: SpawnAgents, parent: Parent, ground: Ground) -> SpawnPlan:
    """Decide everything that the records decide. A refusal undoes the root agent that it may have made."""
    names = name_children(request.slugs, request.count)
    agent = _require_parent(tx, parent)
    role = ToolRole(request.role)
    config = _build_config(tx, request, agent, ground)
    branches = _plan_branches(tx, agent, names) if role is not ToolRole.WORKER else [None] * len(names)
    children = tuple(
        Child(name, branch, find_child(tx, agent, name, branch))
        for name, branch in zip(names, branches, strict=True)
    )
    new = sum(child.existing is None for child in children)
    check_room(tx.address(agent.id), count_children(tx, agent), new, tx.rules.limits)
    return SpawnPlan(agent, ground, config, role, children)


def _require_parent(tx: Transaction, parent: Parent) -> Agent:
    if parent.agent is not None:
        return tx.need(Agent, "agent", parent.agent.id)
    assert parent.place is not None  # a parent without an agent is the root of a place
    agent = registration.ensure_root_agent(tx, parent.place)
    tx.permit(Deed.SPAWN, build_subject(agent))
    return agent


def count_children(tx: Transaction, agent: Agent) -> int:
    """Count the live children of an agent."""
    return tx.ledger.value("children_count", parent=agent.id)


def find_child(tx: Transaction, parent: Agent, slug: str, branch: BirthBranch | None) -> Agent | None:
    """Return the live child of this name; refuse if it is retired."""
    if branch is not None:
        found = tx.ledger.one(Agent, "agent_born", root=parent.project_root, branch=branch.text)
    else:
        children = tx.ledger.many(Agent, "children_of", parent=parent.id, limit=_MANY)
        found = next((one for one in children if _is_worker(one, slug)), None)
    if found is not None and found.lifecycle is Lifecycle.RETIRED:
        raise Refused(routes.build_retired_refusal(tx, found))
    return found


def _is_worker(agent: Agent, slug: str) -> bool:
    return agent.birth_branch is None and agent.config.name == slug


def _plan_branches(tx: Transaction, parent: Agent, names: Sequence[str]) -> list[BirthBranch | None]:
    branch, cap = find_branch(tx, parent), tx.rules.limits.depth_cap
    if branch is None:
        raise Refused(_build_no_branch_refusal(tx, parent))
    above = parent
    while (depth := len(BirthBranch(root=branch.root, text=above.birth_branch or "").slugs)) >= max(cap, 1):
        higher = tx.agent(above.parent_id)
        assert higher is not None  # a birth branch below the root has a parent
        above = higher
    address = tx.address(parent.id)
    higher_up = tx.address(above.id) if cap >= 1 and depth < cap and above.id != parent.id else None
    return list(check_depth(branch, names, cap, address=address, above=higher_up))


def _build_no_branch_refusal(tx: Transaction, parent: Agent) -> BadRequest:
    found = registration.find_root_agent(tx, parent.project_root, registration.MAIN_BRANCH)
    root = tx.address(found.id) if found is not None else None
    return build_no_branch_refusal(tx.address(parent.id), root)


# -- settings of the children ------------------------------------------------------------------------


def _build_config(tx: Transaction, request: SpawnAgents, parent: Agent, ground: Ground) -> AgentConfig:
    """Return the settings of the children, with the harness that runs them. Refused if it is not ready."""
    config = _inherit_config(tx, request, parent.config)
    folder = parent.working_dir if request.role is SpawnRole.WORKER else ground.root
    candidate = replace(parent, config=config, working_dir=folder, model_role=ModelRole.SUBAGENT)
    try:
        return replace(config, harness=routes.choose_runner(tx, candidate))
    except Refused as refusal:
        problem = refusal.diagnostic
        if isinstance(problem, AmbiguousEndpoint):
            live = _list_live_harnesses(tx, parent) & set(problem.harnesses)
            if len(live) == 1:
                return replace(config, harness=live.pop())
        if isinstance(problem, AmbiguousEndpoint | HarnessUnavailable):
            raise Refused(offer_harnesses(problem)) from None
        raise


def _inherit_config(tx: Transaction, request: SpawnAgents, parent: AgentConfig) -> AgentConfig:
    """Return what a child has of its parent's settings. A harness that is set for subagents comes first."""
    role = find_runtime(tx.rules.roles, ModelRole.SUBAGENT)
    if role is None or request.harness is not None:
        return build_child_config(parent, request.harness, request.model, name=None)
    return build_child_config(replace(parent, model=None), role.harness, request.model, name=None)


def _list_live_harnesses(tx: Transaction, agent: Agent) -> set[str]:
    """Return the harnesses that an agent is working in now."""
    within = tx.rules.periods.online_within
    return {one.harness for one in tx.endpoints(agent.id) if one.harness and is_online(one, tx.now, within)}


# -- the names of one child ---------------------------------------------------------------------------


def spell_child(tx: Transaction, parent: Agent, child: Child, index: int) -> Spelling:
    """Return the three names of a child with this index."""
    assert parent.definition_id is not None  # checked with the parent
    address = Address(
        definition_id=parent.definition_id,
        workspace_qualifier=parent.workspace,
        profile=parent.profile,
    )
    own = Spelling(path=parent.path, address=address, birth_branch=parent.birth_branch)

    def taken(wanted: Address) -> bool:
        exact = Wanted(
            definition_id=wanted.definition_id,
            workspace=wanted.workspace_qualifier,
            node=tx.services.node,
            exact=True,
        )
        return bool(tx.everybody.find(exact, 1))

    if child.branch is None:
        return name_worker(own, index, taken=taken)
    cap = tx.rules.limits.depth_cap
    return name_spawned(own, child.branch.root, child.slug, index, taken=taken, cap=cap)
