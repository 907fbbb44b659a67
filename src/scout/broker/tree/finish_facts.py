"""What a finish depends on: the agent's record, its work tree, and the branch of its parent."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from scout.base.refusal import Refused
from scout.broker.operations import agents
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import Kind
from scout.model.access.token import TokenKind
from scout.model.agent import Agent, ToolRole
from scout.model.flight import Flight
from scout.model.problems.request import Forbidden
from scout.model.problems.tree import GitProblem
from scout.model.question import Question, QuestionState
from scout.model.work_item import WorkItem
from scout.policy.permit import Deed
from scout.policy.tree.finish import FinishFacts
from scout.ports import GitFailed, MergePreview, TreePorts, TreeState
from scout.store.ledger import LAST

T = TypeVar("T")
_SOME = 50
_FILES = 20  # files that are named


class FinishSubject(NamedTuple):
    """An agent to finish, as the directory has it. `owes`: questions and work items that wait for it."""

    agent: Agent
    address: str
    parent: Agent | None
    parent_address: str | None
    children: tuple[str, ...]
    flights: tuple[str, ...]
    work: tuple[str, ...]
    owes: tuple[str, ...]
    has_worked: bool

    @property
    def root(self) -> str:
        return self.agent.project_root or ""

    @property
    def folder(self) -> str:
        return self.agent.working_dir or ""

    @property
    def into(self) -> str | None:
        return self.parent.birth_branch if self.parent is not None else None

    @property
    def is_worker(self) -> bool:
        return is_worker(self.agent)


def is_worker(agent: Agent) -> bool:
    """Whether an agent was spawned without a branch."""
    spawned = agent.kind is Kind.SUB and agent.birth_branch is None
    return spawned and agent.tool_role is ToolRole.WORKER


class GitLook(NamedTuple):
    """What git says about an agent. `target`: where the branch of its parent is checked out."""

    state: TreeState
    missing: bool = False
    branch: str | None = None
    preview: MergePreview | None = None
    target: str | None = None
    target_uncommitted: tuple[str, ...] = ()


def find_finishable(tx: Transaction, address: str) -> Agent:
    """Return the agent to finish, live or retired; an agent finishes those below itself, never itself."""
    agent = agents.find(tx, address, Deed.CONTROL)
    if tx.actor.kind is TokenKind.AGENT and tx.actor.agent_id == agent.id:
        needs = ("the token of an agent above it", "the operator's token")
        raise Refused(Forbidden(action="finish", subject=tx.address(agent.id), needs=needs))
    return agent


def read_subject(tx: Transaction, agent_id: str) -> FinishSubject:
    """Read what the directory knows about an agent to finish."""
    agent, many = tx.need(Agent, "agent", agent_id), tx.ledger.many
    page = {"agent": agent_id, "before": LAST, "limit": _SOME}
    parent = tx.agent(agent.parent_id)
    questions = many(Question, "questions_owed", **page)
    work = many(WorkItem, "work_owed", **page)
    owes = (*(one for one in questions if one.state is QuestionState.OPEN), *work)
    return FinishSubject(
        agent=agent,
        address=tx.address(agent.id),
        parent=parent,
        parent_address=tx.address(parent.id) if parent else None,
        children=tuple(tx.address(one.id) for one in many(Agent, "children_live", parent=agent_id)),
        flights=tuple(one.id for one in many(Flight, "flights_open_to", **page)),
        work=tuple(one.id for one in many(WorkItem, "work_owned_open", **page)),
        owes=tuple(one.id for one in owes),
        has_worked=bool(many(Flight, "flights_to", agent=agent_id, before=LAST, limit=1)),
    )


async def run_git(root: str, work: Callable[..., T], *values: object) -> T:
    """Run a call of the git room in a thread; a failure is a refusal."""
    try:
        return await asyncio.to_thread(work, *values)
    except GitFailed as failure:
        raise Refused(GitProblem(root=root, problem=str(failure))) from None


def look_at_tree(trees: TreePorts, subject: FinishSubject) -> GitLook:
    """Ask git about an agent's work tree and a merge into the branch of its parent. Changes nothing."""
    git, root, folder, into = trees.work_trees, subject.root, subject.folder, subject.into
    listed = {tree.path: tree for tree in git.list_trees(root)}
    born = subject.agent.birth_branch
    state = git.state(folder, born, into, _FILES)
    tree = listed.get(folder)
    missing = tree is None or tree.missing
    branch = state.branch if not missing else born
    if branch is None or git.find_commit(root, f"refs/heads/{branch}") is None:
        return GitLook(state, missing)
    if into is None or git.find_commit(root, f"refs/heads/{into}") is None:
        return GitLook(state, missing, branch)
    preview = git.preview_merge(root, into, branch)
    target = next((one.path for one in listed.values() if one.branch == into and not one.missing), None)
    found = git.look(target, _FILES) if target is not None and preview.needed else None
    return GitLook(state, missing, branch, preview, target, found.changed if found else ())


def build_finish_facts(subject: FinishSubject, look: GitLook | None) -> FinishFacts:
    """Return the facts that a finish is decided from."""
    agent = subject.agent
    facts = FinishFacts(
        address=subject.address,
        root=subject.root,
        worker=subject.is_worker,
        is_project_root=agent.birth_branch is not None and agent.parent_id is None,
        born_on=agent.birth_branch,
        folder=subject.folder,
        children=subject.children,
        flights=subject.flights,
    )
    return facts if look is None else _add_look(facts, subject, look)


def _add_look(facts: FinishFacts, subject: FinishSubject, look: GitLook) -> FinishFacts:
    state, preview = look.state, look.preview
    return FinishFacts(
        address=facts.address,
        root=facts.root,
        born_on=facts.born_on,
        folder=facts.folder,
        children=facts.children,
        flights=facts.flights,
        branch=look.branch,
        into=subject.into if preview is not None else None,
        missing=look.missing,
        problem=state.problem,
        uncommitted=state.uncommitted,
        more_uncommitted=state.more_uncommitted,
        operation=state.operation,
        commits=max(state.ahead, len(state.unmerged)),
        unreachable=state.unpushed,
        needs_merge=preview is not None and preview.needed,
        conflicts=preview.conflicts if preview is not None else (),
        target=look.target,
        target_agent=subject.parent_address if _can_commit_in(subject.parent, look.target) else None,
        target_uncommitted=look.target_uncommitted,
    )


def _can_commit_in(agent: Agent | None, folder: str | None) -> bool:
    """Whether an agent could be asked to commit the files in a folder."""
    runs = agent is not None and (agent.config.harness is not None or bool(agent.config.command))
    return runs and folder is not None and agent is not None and agent.working_dir == folder
