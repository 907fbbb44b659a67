"""Spawns that a crash interrupted: the next start completes or undoes each and notifies the operator."""

import asyncio
import logging
from pathlib import Path
from typing import NamedTuple

from scout.broker.routing import attention_items
from scout.broker.transaction.call import Transactions
from scout.broker.transaction.transaction import Transaction
from scout.broker.tree import new_trees
from scout.model.agent import Agent
from scout.model.attention import AttentionKind
from scout.ports import GitFailed, JournalEntry, TreePorts

_LOG = logging.getLogger("scout.tree")


class Recovered(NamedTuple):
    """What became of an interrupted spawn, in a title and a sentence."""

    entry: JournalEntry
    title: str
    body: str


async def recover_spawns(broker: Transactions) -> None:
    """Complete or undo each spawn in the journal."""
    trees = broker.services.trees
    if trees is None:
        return
    await asyncio.to_thread(trees.work_trees.remove_leftovers)
    entries = await asyncio.to_thread(trees.journal.unfinished)
    for entry in entries:
        if entry.what == "spawn":
            await _recover_spawn(broker, trees, entry)


async def _recover_spawn(broker: Transactions, trees: TreePorts, entry: JournalEntry) -> None:
    agent = await broker.read(lambda ledger: ledger.get(Agent, entry.agent_id))
    parent = await broker.read(lambda ledger: ledger.get(Agent, agent.parent_id if agent else None))
    try:
        if agent is not None:
            done = await asyncio.to_thread(_complete, trees, entry, agent, parent)
        else:
            done = await asyncio.to_thread(_undo, trees, entry)
    except (GitFailed, OSError) as error:
        done = Recovered(entry, f"The interrupted spawn of {_name_child(entry)} is not settled", f"{error}.")
        _LOG.warning("%s in %s: %s", done.title, entry.root, error)
    else:
        _LOG.warning("%s in %s: %s", done.title, entry.root, done.body)
    await broker.as_system(lambda tx: _tell_operator(tx, done))


def _complete(trees: TreePorts, entry: JournalEntry, agent: Agent, parent: Agent | None) -> Recovered:
    """Write the identity file of a registered child, and check out its work tree again if it is missing."""
    assert entry.folder is not None  # every spawn has one
    if entry.branch is not None and not Path(entry.folder).exists():
        trees.work_trees.restore_missing(entry.folder, entry.branch, entry.root)
    trees.folders.write_identity(entry.folder, new_trees.build_identity(agent, parent))
    trees.journal.end(entry.id)
    why = "Scout stopped after it was registered and before its identity file was written."
    return Recovered(entry, f"The spawn of {_name_child(entry)} was completed", why)


def _undo(trees: TreePorts, entry: JournalEntry) -> Recovered:
    """Remove the folder of a child that was never registered. Work in it is kept."""
    assert entry.folder is not None  # every spawn has one
    why = "Scout stopped before the agent was registered."
    if entry.branch is None:
        trees.folders.remove_worker(entry.root, Path(entry.folder).name)
    else:
        if _has_commits(trees, entry):
            trees.journal.end(entry.id)
            kept = f"{why} Its work tree {entry.folder} has commits, so it stays."
            return Recovered(entry, f"The spawn of {_name_child(entry)} was interrupted", kept)
        if (saved := _save(trees, entry)) is not None:
            why = f"{why} Its uncommitted files are in the commit {saved}."
        new_trees.remove_tree(trees, entry)
    trees.journal.end(entry.id)
    return Recovered(entry, f"The spawn of {_name_child(entry)} was undone", why)


def _has_commits(trees: TreePorts, entry: JournalEntry) -> bool:
    """Whether someone committed on the branch after the crash."""
    now = trees.work_trees.find_commit(entry.root, f"refs/heads/{entry.branch}")
    return now is not None and now != entry.base


def _save(trees: TreePorts, entry: JournalEntry) -> str | None:
    """Store the uncommitted files of the work tree as a commit; None if it has none or is not whole."""
    assert entry.folder is not None  # every spawn has one
    listed = [one for one in trees.work_trees.list_trees(entry.root) if one.path == entry.folder]
    if not listed or listed[0].missing or listed[0].locked is not None:  # locked while it is being made
        return None
    return trees.work_trees.save_uncommitted(entry.folder, f"Files of an interrupted spawn: {entry.branch}")


def _name_child(entry: JournalEntry) -> str:
    return entry.branch or entry.facts.get("slug", entry.id)


def _tell_operator(tx: Transaction, done: Recovered) -> None:
    attention_items.open_item(
        tx,
        AttentionKind.NOTIFY,
        user=tx.services.operator,
        source=tx.services.system_agent,
        agent_id=tx.services.system_agent,
        title=attention_items.shorten_title(done.title),
        body=f"{done.body}\n{done.entry.root}",
        dedupe=f"spawn {done.entry.id}",
    )
