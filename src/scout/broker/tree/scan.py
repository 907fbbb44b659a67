"""Discovery: agents are registered again from the signed identity files in their folders.

The folders are the registry of spawned agents. With the database deleted, the same agents are there
after a start, under the same ids, names, parents and branches.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from scout.broker.transaction.call import CallBroker, CallContext, Transactions
from scout.broker.transaction.transaction import Transaction
from scout.broker.tree.disk_reads import scan_folders
from scout.broker.tree.found_folders import Found, explain_offer, list_offers
from scout.identity.path import AgentPath
from scout.model.agent import Agent, AgentConfig, Lifecycle, ToolRole, create_agent, raise_sub_index
from scout.model.events.presence import AgentRegistered, AgentUpdated
from scout.policy.permit import Deed, Subject
from scout.ports import FoundFolder, IdentityFile
from scout.protocol.tree.view import FoundAgent, ScanTree, TreeScan
from scout.store.ledger import Ledger

_LOG = logging.getLogger("scout.tree")
_SECONDS = 20.0
_AT_START = 5.0  # seconds after which a start continues without waiting for the scan
_ROLES = {role.value for role in (ToolRole.TL, ToolRole.DEV, ToolRole.WORKER)}


# -- requests ----------------------------------------------------------------------------------------


async def scan_tree(call: CallContext[CallBroker], request: ScanTree) -> TreeScan:
    """Register agents that the directory lacks; folders that are not trusted are only listed."""
    projects = await call.read(lambda tx: choose_projects(tx, request.project_root))
    answer = await scan_projects(call.broker, projects)
    return await call.write_once(request, lambda _, __: answer)


def choose_projects(tx: Transaction, named: str | None) -> tuple[str, ...]:
    """Return the project that a request names, or all known projects; only for the operator."""
    tx.permit(Deed.ADMINISTER, Subject(name=tx.services.node))
    if named is not None and tx.place is not None:
        return (tx.place.project_root,)
    return tuple(tx.services.projects)


async def scan_projects(broker: Transactions, projects: tuple[str, ...]) -> TreeScan:
    """Read the folders of these projects, and register what is signed and unknown."""
    trees = broker.services.trees
    if trees is None or not projects:
        return TreeScan(projects=projects)
    found, notes = await scan_folders(trees, broker.services.clock, projects, _SECONDS)
    if not await broker.read(lambda ledger: _has_news(ledger, found)):
        return await broker.as_system(lambda tx: _report(tx, projects, found, (), notes))
    return await broker.as_system(lambda tx: _register_all(tx, projects, found, notes))


def _has_news(ledger: Ledger, found: Found) -> bool:
    signed = [one.identity for folders in found.values() for one in folders if one.identity is not None]
    return any(ledger.get(Agent, one.id) is None for one in signed)


def _report(
    tx: Transaction,
    projects: tuple[str, ...],
    found: Found,
    registered: tuple[FoundAgent, ...],
    notes: tuple[str, ...],
) -> TreeScan:
    known = [one for folders in found.values() for one in folders if one.identity is not None]
    offered = list_offers(tx, found)
    signed_offers = {one.folder for one in offered} & {one.folder for one in known}
    return TreeScan(
        projects=projects,
        registered=registered,
        known=len(known) - len(registered) - len(signed_offers),
        offered=offered,
        notes=notes,
    )


# -- the start ---------------------------------------------------------------------------------------


class TreeDiscovery:
    """The scan at a start. The start waits for it, but not for a disk that does not answer."""

    def __init__(self, broker: Transactions) -> None:
        self._broker = broker
        self._scan: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Scan the known projects."""
        if self._broker.services.trees is None or not self._broker.services.projects:
            return
        self._scan = asyncio.get_running_loop().create_task(self._run())
        await asyncio.wait({self._scan}, timeout=_AT_START)

    async def close(self) -> None:
        """End a scan that is still running."""
        if self._scan is not None:
            self._scan.cancel()
            await asyncio.gather(self._scan, return_exceptions=True)

    async def _run(self) -> None:
        try:
            scan = await scan_projects(self._broker, tuple(self._broker.services.projects))
        except Exception:  # noqa: BLE001 (a start must not fail because of a project's folders; it is logged)
            _LOG.exception("the scan of the projects failed")
            return
        for agent in scan.registered:
            _LOG.info("found %s again in %s", agent.address, agent.folder)
        for offer in scan.offered:
            _LOG.info("not registered: %s: %s", offer.folder, offer.reason)


# -- registering -------------------------------------------------------------------------------------


def _register_all(
    tx: Transaction, projects: tuple[str, ...], found: Found, notes: tuple[str, ...]
) -> TreeScan:
    registered = tuple(
        register_again(tx, folder, folder.identity)
        for root, folder in _sort_parents_first(found)
        if folder.identity is not None
        and tx.ledger.get(Agent, folder.identity.id) is None
        and not explain_offer(tx, root, folder)
    )
    raise_indexes(tx, [AgentPath.parse(one.path) for one in registered])
    return _report(tx, projects, found, registered, notes)


def _sort_parents_first(found: Found) -> Iterator[tuple[str, FoundFolder]]:
    for root, folders in found.items():
        for folder in sorted(folders, key=_get_depth):
            yield root, folder


def _get_depth(folder: FoundFolder) -> tuple[int, str]:
    path = folder.identity.path if folder.identity is not None else ""
    return path.count("/"), path


def register_again(tx: Transaction, folder: FoundFolder, identity: IdentityFile) -> FoundAgent:
    """Register an agent from its signed identity. Nothing else in the folder is trusted."""
    agent = create_agent(
        identity.id,
        AgentPath.parse(identity.path),
        tx.now,
        node=tx.services.node,
        by=tx.sender,
        **_read_identity(tx, folder, identity),
    )
    agent = replace(agent, created_at=identity.created_at)
    tx.record(AgentRegistered, agent, move="scan", reason=f"found in {folder.folder}")
    return FoundAgent(
        id=agent.id,
        address=tx.address(agent.id),
        path=str(agent.path),
        folder=folder.folder,
        birth_branch=agent.birth_branch,
        parent=agent.parent_id,
        lifecycle=agent.lifecycle,
    )


def _read_identity(tx: Transaction, folder: FoundFolder, identity: IdentityFile) -> Mapping[str, Any]:
    retired = identity.retired_at is not None
    known = identity.harness in tx.services.harnesses
    return {
        "parent_id": identity.parent,
        "definition_id": identity.definition,
        "workspace": identity.workspace,
        "birth_branch": identity.birth_branch,
        "project_root": identity.project_root,
        "working_dir": _find_working_dir(tx, folder, identity),
        "tool_role": ToolRole(identity.role) if identity.role in _ROLES else ToolRole.DEV,
        "lifecycle": Lifecycle.RETIRED if retired else Lifecycle.SLEEPING,
        "sleeping_since": None if retired else tx.now,
        "config": AgentConfig(
            name=identity.name,
            harness=identity.harness if known else None,
            model=identity.model if known else None,
        ),
    }


def _find_working_dir(tx: Transaction, folder: FoundFolder, identity: IdentityFile) -> str:
    """Return the folder of a work tree; a worker works where its parent works."""
    if folder.kind == "worktree":
        return folder.folder
    parent = tx.agent(identity.parent) if folder.kind == "worker" else None
    return (parent.working_dir if parent is not None else None) or identity.project_root


def raise_indexes(tx: Transaction, children: list[AgentPath]) -> None:
    """Raise the next child number of each parent above its highest child."""
    highest: dict[str, int] = {}
    for path in children:
        index = str(path).rpartition("/")[2]
        if path.parent is not None and index.isdecimal():
            above = str(path.parent)
            highest[above] = max(highest.get(above, -1), int(index))
    for above, index in highest.items():
        parent = tx.everybody.at_path(AgentPath.parse(above))
        if parent is not None and parent.next_sub_index <= index:
            tx.record(AgentUpdated, raise_sub_index(parent, index, tx.now), move="child")
