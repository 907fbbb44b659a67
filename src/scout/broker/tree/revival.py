"""Retiring and reviving agents with a work tree: their identity files and folders follow their records."""

import asyncio
import logging

from scout.broker.operations import lifecycle
from scout.broker.transaction.transaction import Transaction
from scout.broker.tree.finish import FinishCall
from scout.broker.tree.finish_facts import is_worker, run_git
from scout.broker.tree.identity_files import write_lifecycle
from scout.model.agent import Agent, Lifecycle
from scout.model.events.envelope import FinishedTree
from scout.model.events.presence import AgentRetired
from scout.ports import GitFailed, TreePorts
from scout.protocol.agents import AgentDetail, RetireAgent, ReviveAgent

_LOG = logging.getLogger("scout.tree")
_LATEST = 1 << 62
_SOME = 200


async def retire_agent(call: FinishCall, request: RetireAgent) -> AgentDetail:
    """Retire an agent. Its work tree and branch stay, and its identity file names the time."""
    detail = await call.write_once(request, lifecycle.retire)
    await _mark(call, detail)
    return detail


async def revive_agent(call: FinishCall, request: ReviveAgent) -> AgentDetail:
    """Bring a retired agent back. A work tree that was removed is checked out again first."""
    agent, left = await call.read(lambda tx: _find_left(tx, request))
    trees = call.services.trees
    if trees is not None and agent.birth_branch and agent.parent_id and agent.lifecycle is Lifecycle.RETIRED:
        await run_git(agent.project_root or "", restore_tree, trees, agent, left)
    detail = await call.write_once(request, lifecycle.revive)
    await _mark(call, detail)
    return detail


async def _mark(call: FinishCall, agent: Agent) -> None:
    """Write the change to the identity file. Agents without a place in a tree have none."""
    trees = call.services.trees
    if trees is None or (agent.birth_branch is None and not is_worker(agent)):
        return
    parent = await call.read(lambda tx: tx.agent(agent.parent_id))
    try:
        await asyncio.to_thread(write_lifecycle, trees, agent, parent)
    except (GitFailed, OSError) as problem:
        _LOG.warning("the identity file of %s was not written: %s", agent.path, problem)


def _find_left(tx: Transaction, request: ReviveAgent) -> tuple[Agent, FinishedTree | None]:
    """Return the agent to revive, and what its finish left in git."""
    agent = lifecycle.find_revivable(tx, request.address)
    facts = tx.ledger.log.list_concerning_back(agent.id, _LATEST, _SOME)
    retired = (one for one in facts if isinstance(one, AgentRetired) and one.target.id == agent.id)
    last = next(retired, None)
    return agent, last.metadata.finished if last is not None else None


def restore_tree(trees: TreePorts, agent: Agent, left: FinishedTree | None) -> None:
    """Check out the agent's branch again if its work tree is gone; make a deleted branch again."""
    git, root = trees.work_trees, agent.project_root or ""
    branch, folder = agent.birth_branch or "", agent.working_dir or ""
    if git.look(root) is None:
        return  # the project is gone: its agent can still be reached
    if any(tree.path == folder and not tree.missing for tree in git.list_trees(root)):
        return
    if git.find_commit(root, f"refs/heads/{branch}") is not None:
        git.restore_missing(folder, branch, root)
        return
    commit = git.find_commit(root, left.commit) if left is not None and left.commit else None
    if commit is not None:
        git.add(root, branch, folder.rpartition("/")[2], commit)
