"""Folders that a scan found, compared with the directory: known, lost, or only offered to a person."""

from collections.abc import Iterable, Mapping
from pathlib import PurePath

from scout.base.ids import parse_prefix
from scout.base.refusal import Refused, Remedy
from scout.broker.transaction.transaction import Transaction
from scout.identity.address import fold
from scout.identity.path import AgentPath
from scout.model.agent import Agent
from scout.policy.directory import Wanted
from scout.ports import FoundFolder, IdentityFile
from scout.protocol.tree.view import OfferedFolder

Found = Mapping[str, tuple[FoundFolder, ...]]
_UNSIGNED = "its identity file was not written by this Scout for this folder"
_FOREIGN = "it is a tree of ExoMonad, which Scout did not make"
_SHOWN = 200  # characters of a claim


def list_offers(tx: Transaction, found: Found) -> tuple[OfferedFolder, ...]:
    """Return the folders that no agent of the directory works in, and that are not trusted."""
    return tuple(
        _offer(root, folder, reason)
        for root, folders in found.items()
        for folder in folders
        if (reason := explain_offer(tx, root, folder))
    )


def explain_offer(tx: Transaction, root: str, folder: FoundFolder) -> str:
    """Return why a folder is not registered; empty if its agent is known or can be registered."""
    if folder.identity is None:
        reason = folder.problem or (_FOREIGN if folder.system == "exo" else _UNSIGNED)
        return "" if _find_owner(tx, root, folder) else reason
    if tx.ledger.get(Agent, folder.identity.id) is not None:
        return ""
    return explain_conflict(tx, root, folder.identity)


def _find_owner(tx: Transaction, root: str, folder: FoundFolder) -> Agent | None:
    """Return the agent of the directory that a folder without a valid identity belongs to."""
    if folder.system == "exo":
        return None
    if folder.kind == "root":
        return tx.everybody.of_project(root)
    if folder.kind == "worktree":
        return tx.everybody.of_project(folder.folder)
    ident = folder.claims.get("id")
    claimed = tx.ledger.get(Agent, ident) if ident is not None else None
    return claimed if claimed is not None and claimed.project_root == root else None


def explain_conflict(tx: Transaction, root: str, identity: IdentityFile) -> str:
    """Return why a signed identity cannot be registered again; empty if it can."""
    path = _read_path(identity)
    if path is None or parse_prefix(identity.id) != "agt":
        return "its identity file names no agent"
    if path.user != tx.services.operator:
        return f"it belongs to the user {path.user}"
    if identity.project_root != root:
        return f"it belongs to the project {identity.project_root}"
    if tx.everybody.at_path(path) is not None:
        return f"another agent has the path {path}"
    if identity.birth_branch and tx.ledger.one(Agent, "agent_born", root=root, branch=identity.birth_branch):
        return f"another agent was born on {identity.birth_branch}"
    return _explain_name(tx, identity)


def _explain_name(tx: Transaction, identity: IdentityFile) -> str:
    if identity.definition is None or identity.retired_at is not None:
        return ""
    name = Wanted(
        definition_id=identity.definition, workspace=identity.workspace, node=tx.services.node, exact=True
    )
    holder = next(iter(tx.everybody.find(name, 1)), None)
    return f"another agent is called {tx.address(holder.id)}" if holder is not None else ""


def _read_path(identity: IdentityFile) -> AgentPath | None:
    try:
        return AgentPath.parse(identity.path)
    except Refused:
        return None


def _offer(root: str, folder: FoundFolder, reason: str) -> OfferedFolder:
    claims = {key: value[:_SHOWN] for key, value in _take_few(folder.claims.items())}
    return OfferedFolder(
        folder=folder.folder,
        kind=folder.kind,
        system=folder.system,
        branch=folder.branch,
        reason=reason,
        claims=claims,
        adopt=adopt_remedy(root, folder),
    )


def _take_few(claims: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    return [one for one, _ in zip(claims, range(20), strict=False)]


def adopt_remedy(root: str, folder: FoundFolder) -> Remedy | None:
    """Return the command that makes a folder the directory of a new agent; a person decides that."""
    name, workspace = fold(PurePath(root).name), fold(PurePath(folder.folder).name)
    if folder.branch is None or folder.kind == "worker" or not name or not workspace:
        return None  # only a work tree of git is the directory of an agent
    if folder.kind == "root":
        given = {"definitionId": name, "projectRoot": root}
    else:
        given = {"definitionId": name, "workspace": workspace, "projectRoot": folder.folder}
    return Remedy(operation="agent.register", parameters=given, why="make it an agent")
