"""Compare folders, git, the directory and running programs; repair what loses nothing.

What differs is decided in `policy.tree.reconcile`. This module collects the facts and carries out repairs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.effects import session_end
from scout.broker.sessions.after_restart import explain_loss
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.transaction import Transaction
from scout.broker.tree.disk_reads import read_disk, scan_folders
from scout.broker.tree.found_folders import adopt_remedy, explain_conflict
from scout.broker.tree.merges import Merges
from scout.broker.tree.new_trees import build_identity
from scout.broker.tree.scan import choose_projects, raise_indexes, scan_projects
from scout.broker.tree.spawn import Spawns
from scout.identity.address import fold
from scout.model.agent import Agent, Lifecycle
from scout.model.endpoint import EndpointState
from scout.model.session import Session, SessionClass, SessionState
from scout.policy.tree.reconcile import (
    DeadSession,
    DifferenceFound,
    OngoingChanges,
    Repair,
    SeenFolder,
    SeenTree,
    SignedIdentity,
    TreeSources,
    confirm_differences,
    find_differences,
    get_difference_key,
)
from scout.ports import FoundFolder, GitFailed, GitTree, IdentityFile, TreePorts
from scout.protocol.tree.view import ReconcileTree, Reconciliation, TreeFinding
from scout.store.ledger import LAST

_SECONDS = 30.0
_PAGE = 1000
_MOST = 10_000


class ReconcileBroker(CallBroker, Protocol):
    """The broker with the spawns and finishes that run now."""

    spawns: Spawns
    merges: Merges


class _Comparison(NamedTuple):
    """The differences of one project, and those that were left out because their subject is changing."""

    agents: int
    found: tuple[DifferenceFound, ...]
    left_out: tuple[str, ...]
    notes: list[str]


class _Facts(NamedTuple):
    """What the directory knows of one project. `sessions`: those whose program may be gone."""

    agents: tuple[Agent, ...]
    parents: tuple[Agent, ...]
    names: dict[str, str]
    folders: tuple[SeenFolder, ...]
    sessions: tuple[Session, ...]


class _Job(NamedTuple):
    """One repair: the request, the project, and the difference."""

    call: CallContext[ReconcileBroker]
    trees: TreePorts
    root: str
    found: DifferenceFound


async def reconcile_tree(call: CallContext[ReconcileBroker], request: ReconcileTree) -> Reconciliation:
    """Report the differences of the known projects; with `fix`, repair them and report what is left."""
    projects = await call.read(lambda tx: choose_projects(tx, request.project_root))
    findings: list[TreeFinding] = []
    left_out: list[str] = []
    notes: list[str] = []
    agents = 0
    trees = call.services.trees
    for root in projects if trees is not None else ():
        assert trees is not None  # checked before the loop
        compared = await _compare(call, trees, root)
        notes += compared.notes
        left_out += compared.left_out
        agents += compared.agents
        if request.fix:
            findings += await _fix(call, trees, root, compared.found)
        else:
            findings += [_show(root, one) for one in compared.found]
    answer = Reconciliation(
        projects=projects,
        agents=agents,
        findings=tuple(findings),
        clean=all(one.fixed for one in findings) and not notes,
        notes=tuple(notes),
        left_out=tuple(left_out),
    )
    return await call.write_once(request, lambda _, __: answer)


def _show(root: str, found: DifferenceFound, *, fixed: bool = False, problem: str = "") -> TreeFinding:
    return TreeFinding(
        kind=found.kind,
        subject=found.subject,
        words=found.words,
        project=root,
        repair=found.repair,
        remedy=found.remedy,
        fixed=fixed,
        problem=problem or None,
    )


# -- facts -------------------------------------------------------------------------------------------


async def _compare(call: CallContext[ReconcileBroker], trees: TreePorts, root: str) -> _Comparison:
    """Compare the sources. A difference counts if a second look finds it and no running work changes it."""
    ongoing = await _find_ongoing(call, trees, root)
    sources, notes = await _collect(call, trees, root)
    found = find_differences(sources)
    if found and not all(ongoing.touch(one) for one in found):
        again, _ = await _collect(call, trees, root)
        found = confirm_differences(found, find_differences(again))
    later = await _find_ongoing(call, trees, root) if found else ongoing
    touched = [one for one in found if ongoing.touch(one) or later.touch(one)]
    return _Comparison(
        agents=len(sources.agents),
        found=tuple(one for one in found if one not in touched),
        left_out=tuple(dict.fromkeys(one.subject for one in touched)),
        notes=notes,
    )


async def _find_ongoing(call: CallContext[ReconcileBroker], trees: TreePorts, root: str) -> OngoingChanges:
    """Return what running spawns and finishes change. A journal entry without such a run changes nothing."""
    finishing = call.broker.merges.list_running()
    finished = await call.read(lambda tx: [tx.agent(one) for one in finishing])
    folders = {
        one.working_dir for one in finished if one is not None and one.birth_branch and one.working_dir
    }
    if call.broker.spawns.is_running:
        for entry in await asyncio.to_thread(trees.journal.unfinished):
            if entry.what == "spawn" and entry.root == root and entry.folder is not None:
                folders.add(entry.folder)
    return OngoingChanges(agents=frozenset(finishing), folders=frozenset(folders))


async def _collect(
    call: CallContext[ReconcileBroker], trees: TreePorts, root: str
) -> tuple[TreeSources, list[str]]:
    found, notes = await scan_folders(trees, call.services.clock, (root,), _SECONDS)
    problems = list(notes)
    try:
        listed = await read_disk(partial(trees.work_trees.list_trees, root), _SECONDS)
    except (GitFailed, TimeoutError) as failure:
        listed = tuple[GitTree, ...]()
        problems.append(f"git cannot be read in {root}: {failure}")
    facts = await call.read(lambda tx: _read_directory(tx, root, found.get(root, ())))
    branches = await read_disk(partial(_find_branches, trees, root, facts.agents, listed), _SECONDS)
    sources = TreeSources(
        root=root,
        agents=facts.agents,
        parents=facts.parents,
        names=facts.names,
        folders=facts.folders,
        trees=tuple(SeenTree(path=one.path, branch=one.branch, missing=one.missing) for one in listed),
        branches=branches,
        dead=tuple(await _find_dead(call, facts.sessions)),
    )
    return sources, problems


def _find_branches(
    trees: TreePorts, root: str, agents: Iterable[Agent], listed: Iterable[GitTree]
) -> frozenset[str]:
    """Return the birth branches that exist in git; those that are checked out need no look."""
    checked_out = {one.branch for one in listed if one.branch and not one.missing}
    born = {one.birth_branch for one in agents if one.birth_branch is not None}
    others = {one for one in born - checked_out if _has_branch(trees, root, one)}
    return frozenset((born & checked_out) | others)


def _has_branch(trees: TreePorts, root: str, branch: str) -> bool:
    try:
        return trees.work_trees.find_commit(root, f"refs/heads/{branch}") is not None
    except GitFailed:
        return False


def _read_directory(tx: Transaction, root: str, found: Iterable[FoundFolder]) -> _Facts:
    agents = tuple(one for one in _page_agents(tx, root) if one.node == tx.services.node)
    known = {one.id for one in agents}
    above = [tx.agent(one.parent_id) for one in agents if one.parent_id and one.parent_id not in known]
    return _Facts(
        agents=agents,
        parents=tuple({one.id: one for one in above if one is not None}.values()),
        names={one.id: tx.address(one.id) for one in agents},
        folders=tuple(_see_folder(tx, root, one) for one in found if one.system == "scout"),
        sessions=tuple(one for agent in agents for one in _find_sessions(tx, agent)),
    )


def _page_agents(tx: Transaction, root: str) -> list[Agent]:
    found: list[Agent] = []
    before = LAST
    while len(found) < _MOST:
        page = tx.ledger.many(Agent, "agents_of_root", root=root, before=before, limit=_PAGE)
        found += page
        if len(page) < _PAGE:
            break
        before = page[-1].id
    return found


def _see_folder(tx: Transaction, root: str, folder: FoundFolder) -> SeenFolder:
    identity = folder.identity
    unknown = identity is not None and tx.ledger.get(Agent, identity.id) is None
    return SeenFolder(
        folder=folder.folder,
        kind=folder.kind,
        identity=_read_identity(identity) if identity is not None else None,
        claimed_id=folder.claims.get("id"),
        claimed=bool(folder.claims),
        problem=folder.problem,
        blocked=explain_conflict(tx, root, identity) if unknown and identity is not None else "",
        adopt=adopt_remedy(root, folder),
    )


def _read_identity(identity: IdentityFile) -> SignedIdentity:
    return SignedIdentity(
        id=identity.id,
        path=identity.path,
        birth_branch=identity.birth_branch,
        parent=identity.parent,
        role=identity.role,
        retired=identity.retired_at is not None,
    )


def _find_sessions(tx: Transaction, agent: Agent) -> Iterable[Session]:
    """Return the live sessions that Scout holds for an agent, without those that work or are open now."""
    for endpoint in tx.endpoints(agent.id):
        idle = endpoint.held and endpoint.state in (EndpointState.IDLE, EndpointState.UNREACHABLE)
        session = tx.get(Session, endpoint.session_id) if idle else None
        if session is not None and session.state is SessionState.LIVE and session.terminal is None:
            yield session


async def _find_dead(call: CallContext[ReconcileBroker], sessions: Iterable[Session]) -> list[DeadSession]:
    found: list[DeadSession] = []
    for session in sessions:
        reason = await explain_loss(call.services.harnesses.get(session.harness), session)
        if reason:
            found.append(DeadSession(agent_id=session.agent_id, session_id=session.id, reason=reason))
    return found


# -- repairs -----------------------------------------------------------------------------------------


async def _fix(
    call: CallContext[ReconcileBroker], trees: TreePorts, root: str, found: Iterable[DifferenceFound]
) -> list[TreeFinding]:
    """Repair what can be repaired, compare again, and return what was found with what is left."""
    problems: dict[object, str] = {}
    if any(one.repair is Repair.REGISTER for one in found):
        await scan_projects(call.broker, (root,))
    for one in found:
        if one.repair in _REPAIRS:
            problems[get_difference_key(one)] = await _repair(_Job(call, trees, root, one))
    left = {get_difference_key(one): one for one in (await _compare(call, trees, root)).found}
    known = {get_difference_key(one): one for one in found}
    shown = [
        _show(root, one, fixed=key not in left, problem=problems.get(key, "")) for key, one in known.items()
    ]
    return [*shown, *(_show(root, one) for key, one in left.items() if key not in known)]


async def _repair(job: _Job) -> str:
    """Carry out one repair; return why it failed."""
    assert job.found.repair is not None  # only such differences are repaired
    try:
        await _REPAIRS[job.found.repair](job)
    except (GitFailed, OSError, Refused) as failure:
        return str(failure)
    return ""


async def _rewrite_identity(job: _Job) -> None:
    agent, parent = await _find_family(job)
    folder = job.found.folder or _name_worker_folder(job.root, agent)
    await asyncio.to_thread(job.trees.folders.write_identity, folder, _build_current_identity(agent, parent))


async def _restore_tree(job: _Job) -> None:
    agent, parent = await _find_family(job)
    assert agent.working_dir is not None and agent.birth_branch is not None  # it has a work tree
    restore = partial(job.trees.work_trees.restore_missing, agent.working_dir, agent.birth_branch, job.root)
    await asyncio.to_thread(restore)
    write = partial(job.trees.folders.write_identity, agent.working_dir, build_identity(agent, parent))
    await asyncio.to_thread(write)


async def _prune(job: _Job) -> None:
    assert job.found.folder is not None  # git lists it
    if not await asyncio.to_thread(Path(job.found.folder).exists):
        await asyncio.to_thread(job.trees.work_trees.remove, job.found.folder)


async def _end_session(job: _Job) -> None:
    ident, reason = job.found.session_id or "", job.found.words

    def end(tx: Transaction) -> None:
        session = tx.need(Session, "session", ident)
        session_end.record_session_end(tx, session, reason, SessionClass.NOT_ATTACHABLE)

    await job.call.broker.as_system(end)


async def _raise_index(job: _Job) -> None:
    def raise_it(tx: Transaction) -> None:
        children = tx.ledger.many(Agent, "children_of", parent=job.found.agent_id, limit=_MOST)
        raise_indexes(tx, [one.path for one in children])

    await job.call.broker.as_system(raise_it)


async def _find_family(job: _Job) -> tuple[Agent, Agent | None]:
    def find(tx: Transaction) -> tuple[Agent, Agent | None]:
        agent = tx.need(Agent, "agent", job.found.agent_id or "")
        return agent, tx.agent(agent.parent_id)

    return await job.call.read(find)


def _build_current_identity(agent: Agent, parent: Agent | None) -> IdentityFile:
    identity = build_identity(agent, parent)
    retired = agent.lifecycle is Lifecycle.RETIRED
    return replace(identity, retired_at=agent.updated_at) if retired else identity


def _name_worker_folder(root: str, agent: Agent) -> str:
    return f"{root}/.scout/agents/{fold(agent.config.name or '') or agent.id}"


_REPAIRS: Mapping[Repair, Callable[[_Job], Awaitable[None]]] = {
    Repair.REWRITE_IDENTITY: _rewrite_identity,
    Repair.RESTORE_TREE: _restore_tree,
    Repair.PRUNE: _prune,
    Repair.END_SESSION: _end_session,
    Repair.RAISE_INDEX: _raise_index,
}
