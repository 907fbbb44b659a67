"""Requests about agent trees as they are: show them, find them on disk again, and compare all sources."""

from typing import Annotated, ClassVar

from msgspec import UNSET

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.model.agent import Lifecycle, ToolRole
from scout.model.status import AgentStatus
from scout.protocol.parameters import At, Words, describe
from scout.protocol.request import PastMoment, Request, Write


class TreeFacts(Record, omit_defaults=True):
    """A work tree now. `ahead` and `behind` count commits against the parent's branch.

    `uncommitted`: number of changed and new files. `operation`: a merge or rebase in progress.
    `problem`: why nothing is known.
    """

    branch: str | None = None
    commit: str | None = None
    ahead: int = 0
    behind: int = 0
    uncommitted: int = 0
    unpushed: int = 0
    operation: str | None = None
    problem: str | None = None


class CurrentWork(Record, omit_defaults=True):
    """The work of an agent: a flight or a work item, its title and its state."""

    id: str
    title: str
    state: str
    waiting_on: str | None = None


class TreeAgent(Record, omit_defaults=True):
    """One agent of a tree, after its parent and before its children. `here`: it is you.

    `birth_branch` is its identity; `facts.branch` is what is checked out now. An agent without a branch
    works in the directory of its parent.
    """

    id: str
    address: str
    path: str
    name: str | None = None
    parent_id: str | None = None
    depth: int = 0
    role: ToolRole
    harness: str | None = None
    lifecycle: Lifecycle
    status: AgentStatus
    birth_branch: str | None = None
    project_root: str | None = None
    working_dir: str | None = None
    facts: TreeFacts | None = None
    work: CurrentWork | None = None
    more_work: int = 0
    here: bool = False


class OfferedFolder(Record, omit_defaults=True):
    """A folder that looks like an agent's, but is not trusted. `claims` is what its file states.

    `adopt` is a command with which a person can make it an agent.
    """

    folder: str
    kind: str
    system: str = "scout"
    branch: str | None = None
    reason: str
    claims: dict[str, str] = {}
    adopt: Remedy | None = None


class AgentTree(Record, omit_defaults=True):
    """Agents in the order of the tree. `unread`: how many work trees could not be read in time.

    In the past, work trees and folders are not known.
    """

    agents: tuple[TreeAgent, ...] = ()
    orphans: tuple[OfferedFolder, ...] = ()
    projects: tuple[str, ...] = ()
    unread: int = 0
    notes: tuple[str, ...] = ()
    next: tuple[Remedy, ...] = ()
    moment: PastMoment = UNSET


class ShowTree(Request[AgentTree]):
    """Show an agent and those below it, with their work and their work trees."""

    operation: ClassVar[str] = "tree"
    route: ClassVar[str] = "GET /v1/tree"
    words: ClassVar[tuple[str, ...]] = ("address",)
    flags: ClassVar[dict[str, str]] = {"projectRoot": "project"}
    permission: ClassVar[str] = "only what you may see"
    folder_field: ClassVar[str] = "project_root"

    address: Annotated[Words | None, describe("the top of the tree; default: your project")] = None
    project_root: Annotated[Words | None, describe("the tree of this project")] = None
    all: Annotated[bool, describe("the trees of all projects")] = False
    retired: Annotated[bool, describe("include retired agents")] = False
    related: Annotated[bool, describe("only agents with a branch, a parent or a child")] = False
    at: At = None


class FoundAgent(Record, omit_defaults=True):
    """An agent that a scan registered again, under the same id, names and parent."""

    id: str
    address: str
    path: str
    folder: str
    birth_branch: str | None = None
    parent: str | None = None
    lifecycle: Lifecycle


class TreeScan(Record, omit_defaults=True):
    """What a scan found. `known`: folders whose agents are in the directory already."""

    projects: tuple[str, ...] = ()
    registered: tuple[FoundAgent, ...] = ()
    known: int = 0
    offered: tuple[OfferedFolder, ...] = ()
    notes: tuple[str, ...] = ()


class ScanTree(Write[TreeScan]):
    """Read the agents' folders of the known projects, and register agents that the directory lacks."""

    operation: ClassVar[str] = "tree.scan"
    typed: ClassVar[tuple[str, ...]] = ("tree", "--scan")
    route: ClassVar[str] = "POST /v1/tree/scan"
    flags: ClassVar[dict[str, str]] = {"projectRoot": "project"}
    permission: ClassVar[str] = "the operator"
    folder_field: ClassVar[str] = "project_root"

    project_root: Annotated[Words | None, describe("only this project; default: all known projects")] = None


class TreeFinding(Record, omit_defaults=True):
    """A difference between disk, git, directory and tmux. `subject`: an address, folder or branch.

    `repair`: what `fix` does about it; without one, `remedy` is what a person can run. `fixed` says
    whether the repair was made, `problem` why it was not.
    """

    kind: str
    subject: str
    words: str
    project: str = ""
    repair: str | None = None
    remedy: Remedy | None = None
    fixed: bool = False
    problem: str | None = None


class Reconciliation(Record, omit_defaults=True):
    """The differences that were found, and what was done about them. `clean`: nothing is left.

    `left_out`: agents and folders that a running spawn or finish is changing. Compare again afterwards.
    """

    projects: tuple[str, ...] = ()
    agents: int = 0
    findings: tuple[TreeFinding, ...] = ()
    clean: bool = True
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class ReconcileTree(Write[Reconciliation]):
    """Compare the agents' folders, git, the directory and tmux; `fix` repairs what loses nothing."""

    operation: ClassVar[str] = "tree.reconcile"
    typed: ClassVar[tuple[str, ...]] = ("tree", "--reconcile")
    route: ClassVar[str] = "POST /v1/tree/reconcile"
    flags: ClassVar[dict[str, str]] = {"projectRoot": "project"}
    permission: ClassVar[str] = "the operator"
    folder_field: ClassVar[str] = "project_root"

    fix: Annotated[bool, describe("repair what loses nothing")] = False
    project_root: Annotated[Words | None, describe("only this project; default: all known projects")] = None
