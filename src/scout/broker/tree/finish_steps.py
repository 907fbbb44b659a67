"""The steps of a finish. They are in the journal, so an interrupted finish continues at the next start.

Each step can be repeated: a merge is recorded before it moves a branch, an agent is retired once, and a work
tree or branch is removed only if it still holds what was merged or saved.
"""

import asyncio
import logging
import shlex
from enum import Enum, auto
from typing import Protocol

import msgspec
from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.effects import session_end
from scout.broker.operations import lifecycle
from scout.broker.routing import attention_items
from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.call import CallContext, run_once
from scout.broker.transaction.transaction import Transaction
from scout.broker.tree.finish_facts import FinishSubject, GitLook, is_worker, run_git
from scout.broker.tree.identity_files import remove_worker, write_lifecycle
from scout.broker.tree.merges import Merges
from scout.broker.tree.spawn import TreeBroker, require_trees
from scout.model.agent import Agent, Lifecycle
from scout.model.attention import AttentionKind
from scout.model.events.envelope import FinishedTree
from scout.model.session import SESSION, Session
from scout.policy.tree.finish import FinishChoice, FinishPlan, merge_message
from scout.ports import GitFailed, JournalEntry, MergePreview, TreePorts
from scout.protocol.tree.finish import FinishAgent, FinishReport, FinishState
from scout.store.ledger import LAST

_LOG = logging.getLogger("scout.tree")
_FILES = 20
_MANY = 1000
_STOPS_WITHIN = 30.0  # seconds for the programs of a finished agent to end
_SAVED = "Uncommitted files of {address}, discarded: {reason}"


class FinishBroker(TreeBroker, Protocol):
    """The broker with the finishes that run now."""

    merges: Merges


class FinishRecord(msgspec.Struct, omit_defaults=True):
    """What a finish must remember across a restart. It is stored in the journal entry."""

    choice: FinishChoice
    address: str
    reason: str
    by: str
    request: str
    merges: bool = False
    removes_folder: bool = False
    deletes_branch: bool = False
    into: str | None = None
    target: str | None = None
    branch: str | None = None
    commit: str | None = None
    before: str | None = None
    merged: str | None = None
    saved: str | None = None


class Finishing:
    """One finish that has begun: its journal entry, and the caller in whose name it runs."""

    def __init__(self, broker: FinishBroker, who: Admitted, entry: JournalEntry) -> None:
        self.broker = broker
        self.who = who
        self.entry = entry
        self.record = msgspec.json.decode(entry.facts["finish"], type=FinishRecord)
        self.notes: list[str] = []

    @property
    def trees(self) -> TreePorts:
        return require_trees(self.broker.services)

    @property
    def agent_id(self) -> str:
        return self.entry.agent_id or ""

    def note(self, **facts: str | None) -> None:
        """Write more facts to the journal. It blocks until they are on disk."""
        for name, value in facts.items():
            setattr(self.record, name, value)
        self.entry = replace(self.entry, facts={"finish": msgspec.json.encode(self.record).decode()})
        self.trees.journal.update(self.entry)

    # -- the steps ---------------------------------------------------------------------------------

    async def merge(self, preview: MergePreview, path: str) -> None:
        """Merge the branch. The commit is in the journal before anything moves."""
        record = self.record
        assert record.branch is not None and record.into is not None  # the plan merges
        message = merge_message(record.branch, record.into, record.address, path)

        def begun(commit: str) -> None:
            self.note(merged=commit, before=preview.into_commit)

        await run_git(self.entry.root, self.trees.work_trees.merge, self.entry.root, preview, message, begun)

    async def complete(self) -> FinishReport:
        """Take every step after the merge, and return the report."""
        await self._stop_programs()
        if self.record.choice is FinishChoice.DISCARD and self.record.removes_folder:
            await self._save_files()  # before the agent is retired: its retirement names the commit
        agent, parent = await self.broker.write(self.who, self._retire)
        await self._clear_folder(agent, parent)
        if self.record.deletes_branch:
            await self._delete_branch()
        report = self.report()
        await self._remember(report)
        await asyncio.to_thread(self.trees.journal.end, self.entry.id)
        return report

    async def _stop_programs(self) -> None:
        """End the agent's sessions and wait for their programs, so that nothing writes files any more."""
        ended = await self.broker.write(self.who, lambda tx: end_sessions(tx, self.agent_id))
        runner = self.broker.dispatcher.runner
        stops = [asyncio.ensure_future(runner.stop_program(one)) for one in ended]
        if stops:
            await asyncio.wait(stops, timeout=_STOPS_WITHIN)

    async def _save_files(self) -> None:
        """Store the uncommitted files as a commit without a branch, before they are removed."""
        root, folder = self.entry.root, self.entry.folder or ""
        if await run_git(root, find_tree, self.trees, root, folder) is not FolderState.PRESENT:
            return
        text = _SAVED.format(address=self.record.address, reason=self.record.reason)
        saved = await run_git(root, self.trees.work_trees.save_uncommitted, folder, text)
        if saved is not None:
            await asyncio.to_thread(self.note, saved=saved)

    def _retire(self, tx: Transaction) -> tuple[Agent, Agent | None]:
        agent = tx.need(Agent, "agent", self.agent_id)
        parent = tx.agent(agent.parent_id)
        if agent.lifecycle is Lifecycle.RETIRED:
            return agent, parent
        record = self.record
        left = FinishedTree(
            choice=record.choice,
            branch=record.branch,
            commit=record.commit,
            saved=record.saved,
            into=record.into,
            before=record.before,
            merged=record.merged,
        )
        return lifecycle.retire_agent(tx, agent, describe_finish(record), finished=left), parent

    async def _clear_folder(self, agent: Agent, parent: Agent | None) -> None:
        """Remove the work tree if nothing in it would be lost; else write its retirement to its identity."""
        root, folder, trees = self.entry.root, self.entry.folder or "", self.trees
        if self.record.removes_folder and is_worker(agent):
            await run_git(root, remove_worker, trees, agent)
        elif self.record.removes_folder and await self._may_remove(folder):
            await run_git(root, trees.work_trees.remove, folder)
        else:
            await run_git(root, write_lifecycle, trees, agent, parent)

    async def _may_remove(self, folder: str) -> bool:
        """Whether the files of a work tree were merged or saved."""
        root, git = self.entry.root, self.trees.work_trees
        found = await run_git(root, find_tree, self.trees, root, folder)
        if found is not FolderState.PRESENT:
            return found is FolderState.MISSING  # what git still knows about it is removed
        state = await run_git(root, git.state, folder, self.record.branch, self.record.into, _FILES)
        if state.problem is not None:
            self.notes.append(f"{folder} was left: {state.problem}")
            return False
        moved = state.commit != self.record.commit
        if self.record.choice is FinishChoice.MERGE and (state.uncommitted or moved):
            what = "a commit" if moved else ", ".join(state.uncommitted[:3])
            self.notes.append(f"{folder} was left, because it changed during the merge: {what}")
            return False
        if state.uncommitted and (self.record.saved is None or moved):
            await self._save_files()
        return True

    async def _delete_branch(self) -> None:
        record, root = self.record, self.entry.root
        assert record.branch is not None and record.commit is not None  # the plan deletes it
        git = self.trees.work_trees
        if await run_git(root, git.find_commit, root, f"refs/heads/{record.branch}") is None:
            return
        try:
            await asyncio.to_thread(git.delete_branch, root, record.branch, record.commit)
        except GitFailed as failure:
            self.notes.append(f"the branch {record.branch} was left: {failure}")

    # -- the report --------------------------------------------------------------------------------

    def report(self) -> FinishReport:
        """Return what was done, and the commands that take it back."""
        record, entry = self.record, self.entry
        return FinishReport(
            address=record.address,
            agent_id=self.agent_id,
            state=FinishState.FINISHED,
            choice=record.choice,
            branch=record.branch,
            into=record.into,
            folder=entry.folder,
            commit=record.commit,
            merged=record.merged,
            saved=record.saved,
            reason=record.reason,
            undo=undo_commands(entry, record),
            notes=tuple(self.notes),
        )

    async def _remember(self, report: FinishReport) -> None:
        """Store the report under the key of the request, so that a repeated request gets it."""
        request = msgspec.json.decode(self.record.request, type=FinishAgent)
        if request.idempotency_key is not None:
            await self.broker.write(self.who, lambda tx: run_once(tx, request, lambda _, __: report))


def begin_finish(
    call: CallContext[FinishBroker],
    request: FinishAgent,
    subject: FinishSubject,
    plan: FinishPlan,
    look: GitLook | None,
) -> Finishing:
    """Write the beginning of a finish to the journal. It blocks until that is on disk."""
    services, preview = call.services, look.preview if look else None
    record = FinishRecord(
        choice=plan.choice,
        address=subject.address,
        reason=request.reason,
        by=call.who.actor.agent_id or services.operator_agent,
        request=msgspec.json.encode(request).decode(),
        merges=plan.merges,
        removes_folder=plan.removes_folder,
        deletes_branch=plan.deletes_branch,
        into=subject.into if look else None,
        target=look.target if look else None,
        branch=look.branch if look else None,
        commit=(preview.commit if preview else look.state.commit) if look else None,
    )
    entry = JournalEntry(
        id=f"fin_{subject.agent.id}",
        what="finish",
        root=subject.root,
        branch=record.branch,
        folder=subject.folder,
        agent_id=subject.agent.id,
        facts={"finish": msgspec.json.encode(record).decode()},
        begun_at=services.clock.now(),
    )
    require_trees(services).journal.begin(entry)
    return Finishing(call.broker, call.who, entry)


def describe_finish(record: FinishRecord) -> str:
    """Return why the agent is retired, for the log and for its parent."""
    if record.choice is FinishChoice.MERGE and record.merged:
        done = f"finished: {record.branch} was merged into {record.into}"
    elif record.choice is FinishChoice.MERGE:
        done = "finished: it had nothing to merge"
    elif record.choice is FinishChoice.KEEP:
        done = "finished: its work tree and branch stay"
    else:
        done = "finished: its work was discarded"
    return f"{done}: {record.reason}" if record.reason else done


def undo_commands(entry: JournalEntry, record: FinishRecord) -> tuple[str, ...]:
    """Return the commands that take a finish back, in the order in which they work."""
    found: list[list[str]] = []
    root = ["git", "-C", entry.root]
    if record.merged and record.before and record.into and record.target:
        found.append(["git", "-C", record.target, "reset", "--keep", record.before])
    elif record.merged and record.before and record.into:
        found.append([*root, "update-ref", f"refs/heads/{record.into}", record.before, record.merged])
    if record.deletes_branch and record.branch and record.commit:
        found.append([*root, "branch", record.branch, record.commit])
    found.append(["scout", "agent", "revive", entry.agent_id or ""])
    if record.saved and entry.folder:
        found.append(["git", "-C", entry.folder, "restore", f"--source={record.saved}", "--", "."])
    return tuple(shlex.join(words) for words in found)


# -- parts ---------------------------------------------------------------------------------------------


def end_sessions(tx: Transaction, agent_id: str) -> list[Session]:
    """End the agent's live sessions, and return them."""
    live = tx.ledger.many(Session, "sessions_of", agent=agent_id, before=LAST, limit=_MANY)
    return [
        session_end.record_session_end(tx, one, "its agent is finished")
        for one in live
        if one.state not in SESSION.settled
    ]


class FolderState(Enum):
    """A work tree as git knows it: with its folder, without it, or not at all."""

    PRESENT = auto()
    MISSING = auto()
    UNKNOWN = auto()


def find_tree(trees: TreePorts, root: str, folder: str) -> FolderState:
    """Return whether git knows a work tree, and whether its folder is there."""
    found = next((tree for tree in trees.work_trees.list_trees(root) if tree.path == folder), None)
    if found is None:
        return FolderState.UNKNOWN
    return FolderState.MISSING if found.missing else FolderState.PRESENT


# -- after a restart -----------------------------------------------------------------------------------


async def resume_finish(finishing: Finishing) -> bool:
    """Continue an interrupted finish; False if it stopped before anything changed and must be made again."""
    record, entry = finishing.record, finishing.entry
    if record.merges and record.merged is None:
        await asyncio.to_thread(finishing.trees.journal.end, entry.id)
        return False
    if record.merged is not None and record.before is not None and record.into is not None:
        git = finishing.trees.work_trees
        await run_git(entry.root, git.finish_merge, entry.root, record.into, record.before, record.merged)
    await finishing.complete()
    _LOG.info("completed the interrupted finish of %s", record.address)
    return True


async def give_up(finishing: Finishing, problem: Refused) -> None:
    """Tell the operator about a finish that cannot be completed. Nothing of it is lost.

    If its agent is retired, only its folder or branch is left: the next start tries to remove them again.
    """
    record, agent_id = finishing.record, finishing.agent_id
    _LOG.warning("the interrupted finish of %s was not completed: %s", record.address, problem)

    def tell(tx: Transaction) -> bool:
        agent = tx.get(Agent, agent_id)
        attention_items.open_item(
            tx,
            AttentionKind.FAILURE,
            user=tx.services.operator,
            source=tx.services.system_agent,
            agent_id=agent_id,
            title=f"The interrupted finish of {record.address} was not completed",
            body=problem.diagnostic.message,
            dedupe=f"finish:{agent_id}",
        )
        return agent is not None and agent.lifecycle is Lifecycle.RETIRED

    if not await finishing.broker.as_system(tell):
        await asyncio.to_thread(finishing.trees.journal.end, finishing.entry.id)
