"""Making the work tree of a child, whole or not at all. The functions block, so call them from a thread.

The journal entry is written before anything exists and removed when the child is complete. After a crash in
between, `recovery` reads it and completes or undoes the change.
"""

import logging
from pathlib import Path
from typing import NamedTuple

from scout.base.refusal import Refused
from scout.base.time import Time
from scout.broker.tree.spawn_plan import Child, SpawnPlan
from scout.identity.spelling import name_worktree_folder
from scout.model.agent import Agent
from scout.model.problems.tree import GitProblem
from scout.policy.tree.projects import WorkTreeRules
from scout.policy.tree.spawn import build_setup_failed_refusal
from scout.ports import GitFailed, IdentityFile, JournalEntry, TreePorts
from scout.protocol.tree.spawn import SetupRun

_LOG = logging.getLogger("scout.tree")
_TREES, _WORKERS = ".scout/worktrees", ".scout/agents"


class MadeTree(NamedTuple):
    """The folder of a new child. `working_dir` is its work tree; a worker has its parent's."""

    entry: JournalEntry
    working_dir: str
    base: str | None = None
    notes: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    setup: SetupRun | None = None


def begin_child(trees: TreePorts, plan: SpawnPlan, child: Child, entry_id: str, now: Time) -> JournalEntry:
    """Choose the folder of a child and write the journal entry. One child of a repository at a time."""
    root = plan.ground.root
    try:
        entry = _build_entry(trees, plan, child, entry_id, now)
        trees.journal.begin(entry)
    except (GitFailed, OSError) as error:
        raise Refused(GitProblem(root=root, problem=str(error))) from None
    return entry


def _build_entry(trees: TreePorts, plan: SpawnPlan, child: Child, entry_id: str, now: Time) -> JournalEntry:
    root = plan.ground.root
    trees.folders.prepare(root)
    if child.branch is not None:
        name = name_worktree_folder(child.branch, lambda one: trees.folders.taken(root, one))
        folder = f"{root}/{_TREES}/{name}"
    else:
        folder = f"{root}/{_WORKERS}/{_choose_worker_folder(trees, root, child.slug)}"
    return JournalEntry(
        id=entry_id,
        what="spawn",
        root=root,
        branch=child.branch.text if child.branch else None,
        folder=folder,
        base=plan.ground.base,
        agent_id=entry_id,
        facts={"slug": child.slug, "parent": plan.parent.id},
        begun_at=now,
    )


def _choose_worker_folder(trees: TreePorts, root: str, slug: str) -> str:
    """Return a free folder name for a worker: workers of two parents may have one slug."""
    names = (slug, *(f"{slug}-{number}" for number in range(2, 10_000)))
    return next(name for name in names if not trees.folders.taken(root, name, worker=True))


def add_tree(trees: TreePorts, plan: SpawnPlan, entry: JournalEntry) -> MadeTree:
    """Add the branch and the work tree of a child."""
    assert entry.folder is not None  # every spawn has one
    if entry.branch is None:
        parent = plan.parent
        return MadeTree(entry, parent.working_dir or parent.project_root or entry.root)
    assert entry.base is not None  # checked with the repository
    try:
        added = trees.work_trees.add(entry.root, entry.branch, Path(entry.folder).name, entry.base)
    except GitFailed as error:
        raise Refused(GitProblem(root=entry.root, problem=str(error))) from None
    return MadeTree(entry, added.path, added.commit, added.notes)


def prepare_tree(trees: TreePorts, made: MadeTree, rules: WorkTreeRules) -> MadeTree:
    """Copy the files and run the setup command that the operator has set for the project."""
    if made.entry.branch is None:
        return made
    try:
        if rules.copy:
            copied = trees.work_trees.copy_files(made.entry.root, made.working_dir, rules.copy)
            made = made._replace(copied=copied)
        if rules.setup is None:
            return made
        run = trees.work_trees.run_command(made.working_dir, rules.setup, rules.setup_seconds)
    except GitFailed as error:
        raise Refused(GitProblem(root=made.entry.root, problem=str(error))) from None
    if run.exit_code or run.timed_out:
        raise Refused(
            build_setup_failed_refusal(
                rules.setup,
                exit_code=run.exit_code,
                seconds=rules.setup_seconds if run.timed_out else run.seconds,
                output=run.output,
                timed_out=run.timed_out,
                directory=made.entry.root,
            )
        )
    return made._replace(setup=SetupRun(command=rules.setup, seconds=run.seconds, output=run.output))


def restore_tree(trees: TreePorts, plan: SpawnPlan, agent: Agent) -> str:
    """Check out the work tree of an existing child again if its folder is missing; return a note."""
    if agent.birth_branch is None or agent.working_dir is None or Path(agent.working_dir).exists():
        return ""
    try:
        trees.work_trees.restore_missing(agent.working_dir, agent.birth_branch, plan.ground.root)
        trees.folders.write_identity(agent.working_dir, build_identity(agent, plan.parent))
    except (GitFailed, OSError) as error:
        return f"its work tree is missing and cannot be restored: {error}"
    return "its work tree was missing, and was checked out again"


def undo_child(trees: TreePorts, entry: JournalEntry) -> None:
    """Remove what a failed spawn has made. What cannot be removed now is removed at the next start."""
    assert entry.folder is not None  # every spawn has one
    try:
        if entry.branch is None:
            trees.folders.remove_worker(entry.root, Path(entry.folder).name)
        else:
            remove_tree(trees, entry)
        trees.journal.end(entry.id)
    except (GitFailed, OSError) as error:
        _LOG.warning("a failed spawn in %s is undone at the next start: %s", entry.root, error)


def remove_tree(trees: TreePorts, entry: JournalEntry) -> None:
    """Remove the work tree of an entry, and its branch if it is still at its base."""
    assert entry.folder is not None and entry.branch is not None and entry.base is not None
    if Path(entry.folder).exists() or _is_listed(trees, entry):
        trees.work_trees.remove(entry.folder)
    if trees.work_trees.find_commit(entry.root, f"refs/heads/{entry.branch}") is not None:
        trees.work_trees.delete_branch(entry.root, entry.branch, entry.base)


def _is_listed(trees: TreePorts, entry: JournalEntry) -> bool:
    return any(one.path == entry.folder for one in trees.work_trees.list_trees(entry.root))


# -- identity files ----------------------------------------------------------------------------------


def build_identity(agent: Agent, parent: Agent | None) -> IdentityFile:
    """Return the facts about an agent that its folder carries."""
    return IdentityFile(
        id=agent.id,
        path=str(agent.path),
        definition=agent.definition_id,
        workspace=agent.workspace,
        name=agent.config.name,
        birth_branch=agent.birth_branch,
        parent=parent.id if parent else None,
        parent_path=str(parent.path) if parent else None,
        role=str(agent.tool_role),
        harness=agent.config.harness,
        model=agent.config.model,
        project_root=agent.project_root or "",
        created_at=agent.created_at,
    )


def complete_child(trees: TreePorts, entry: JournalEntry, agent: Agent, parent: Agent | None) -> str:
    """Write the identity file of a registered child and end its journal entry; return why it failed."""
    assert entry.folder is not None  # every spawn has one
    try:
        trees.folders.write_identity(entry.folder, build_identity(agent, parent))
        trees.journal.end(entry.id)
    except (GitFailed, OSError) as error:
        _LOG.warning("the identity file of %s is written at the next start: %s", agent.path, error)
        return f"its identity file is written at the next start of Scout: {error}"
    return ""


def write_root_identity(trees: TreePorts, agent: Agent) -> None:
    """Write the identity file of a project's root agent: its children find it without the database."""
    if agent.parent_id is not None or agent.birth_branch is None or agent.project_root is None:
        return
    try:
        trees.folders.prepare(agent.project_root)
        trees.folders.write_identity(agent.project_root, build_identity(agent, None))
    except (GitFailed, OSError) as error:
        raise Refused(GitProblem(root=agent.project_root, problem=str(error))) from None
