"""Git work trees of agents, the identity files in them, and the journal of changes that must be whole."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

from scout.base.record import Record
from scout.base.time import Time


class GitFailed(Exception):  # noqa: N818 (named like the problem that a person reads)
    """A git command failed; the message is for a person."""


class RepositoryFacts(Record):
    """A repository as a spawn needs it. Paths are real and absolute.

    `root`: top level of the main work tree; `common`: its git folder. `commit` is None before the first one.
    `branch` is None on a detached HEAD. `uncommitted`: changed, staged and new files of the work tree that
    was looked at, as many as were asked for; `changed`: the same without the new files.
    """

    root: str
    top: str
    common: str
    branch: str | None = None
    commit: str | None = None
    bare: bool = False
    shallow: bool = False
    sparse: bool = False
    submodules: tuple[str, ...] = ()
    uncommitted: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    free_bytes: int = 0


class AddedTree(Record):
    """A new work tree, its branch, and the commit that both start from."""

    path: str
    branch: str
    commit: str
    notes: tuple[str, ...] = ()


class GitTree(Record):
    """One work tree as git lists it. `missing`: its folder is not there."""

    path: str
    branch: str | None = None
    commit: str | None = None
    missing: bool = False
    locked: str | None = None


class TreeState(Record):
    """What a work tree holds that its parent branch does not have.

    `uncommitted`: changed, staged and new files. `unmerged`: commits (id and subject) that the parent branch
    does not reach. `unpushed`: how many commits no other branch and no remote reaches. `ahead` and `behind`
    compare the branch with the parent's. `operation`: a merge or rebase in progress. `problem`: why nothing
    is known.
    """

    path: str
    branch: str | None = None
    commit: str | None = None
    uncommitted: tuple[str, ...] = ()
    more_uncommitted: int = 0
    unmerged: tuple[str, ...] = ()
    unpushed: int = 0
    ahead: int = 0
    behind: int = 0
    operation: str | None = None
    problem: str | None = None


class TreeToCompare(NamedTuple):
    """A work tree, the branch of its agent, and the branch of the agent's parent."""

    path: str
    branch: str | None
    parent_branch: str | None


class MergePreview(Record):
    """A merge that was tried without touching a work tree.

    `tree` is the result; with `conflicts` (paths) there is none. `needed` is False if `into` has everything.
    """

    into: str
    into_commit: str
    commit: str
    tree: str | None = None
    conflicts: tuple[str, ...] = ()
    needed: bool = True


class MergedBranch(Record):
    """A finished merge. `undo` is the command that takes it back."""

    commit: str
    before: str
    undo: tuple[str, ...]


class CommandResult(Record):
    """The end of a command of the operator. `output` is its last part; `seconds` how long it ran."""

    exit_code: int
    output: str
    seconds: float
    timed_out: bool = False


class IdentityFile(Record, omit_defaults=True):
    """The facts about an agent that its folder carries, so that they survive the loss of the database.

    They are trusted only with a valid `mac`, which covers them and the real path of the folder.
    """

    id: str
    path: str
    definition: str | None = None
    workspace: str | None = None
    name: str | None = None
    birth_branch: str | None = None
    parent: str | None = None
    parent_path: str | None = None
    role: str = "dev"
    harness: str | None = None
    model: str | None = None
    project_root: str = ""
    created_at: Time
    retired_at: Time | None = None
    mac: str = ""


class FoundFolder(Record):
    """A folder that a scan found. `identity` is set only if its MAC is valid.

    `claims` is what an unsigned or foreign file states; it is shown to a person and never trusted.
    `system`: `scout`, or `exo` for trees of ExoMonad, whose identity is the branch of the work tree.
    """

    folder: str
    system: Literal["scout", "exo"] = "scout"
    kind: Literal["root", "worktree", "worker"] = "worktree"
    identity: IdentityFile | None = None
    claims: dict[str, str] = {}
    branch: str | None = None
    problem: str | None = None


class JournalEntry(Record, omit_defaults=True):
    """A change that was begun. It stays in the journal until it is complete or undone."""

    id: str
    what: Literal["spawn", "finish"]
    root: str
    branch: str | None = None
    folder: str | None = None
    base: str | None = None
    agent_id: str | None = None
    facts: dict[str, str] = {}
    begun_at: Time


class WorkTrees(Protocol):
    """Git work trees. Every method blocks, so call it from a thread; none runs code of the repository.

    Changes of one repository are made one at a time, and locks that other git processes hold are waited for.
    A failure is a `GitFailed` with a message for a person.
    """

    def look(self, directory: str, most: int = 20) -> RepositoryFacts | None:
        """Describe the repository of a directory; None outside of every repository.

        The home folder and the folders for temporary files are no repositories, whatever they contain.
        """
        ...

    def find_commit(self, root: str, revision: str) -> str | None:
        """Return the commit that a branch, tag or id names."""
        ...

    def add(self, root: str, branch: str, folder: str, base: str) -> AddedTree:
        """Create `branch` at the commit `base`, and its work tree in `.scout/worktrees/<folder>`."""
        ...

    def remove(self, path: str) -> None:
        """Remove a work tree, whatever it holds. Its branch stays."""
        ...

    def delete_branch(self, root: str, branch: str, commit: str) -> None:
        """Delete a branch if it still is at `commit`."""
        ...

    def restore_missing(self, path: str, branch: str, root: str) -> None:
        """Check out a branch again at a path whose folder is missing."""
        ...

    def list_trees(self, root: str) -> tuple[GitTree, ...]:
        """List all work trees of a repository, the main one first."""
        ...

    def state(self, path: str, branch: str | None, parent_branch: str | None, most: int = 20) -> TreeState:
        """Compare a work tree with its parent branch."""
        ...

    def states(self, wanted: Sequence[TreeToCompare], most: int = 20) -> tuple[TreeState, ...]:
        """Compare many work trees with their parent branches; the branches are read once."""
        ...

    def preview_merge(self, root: str, into: str, branch: str) -> MergePreview:
        """Try to merge one branch into another, without touching a work tree."""
        ...

    def check_merge(self, root: str, preview: MergePreview, command: str, seconds: float) -> CommandResult:
        """Run a command in a temporary checkout of the merged tree."""
        ...

    def merge(
        self, root: str, preview: MergePreview, message: str, begun: Callable[[str], None]
    ) -> MergedBranch:
        """Move the branch to the merge commit, together with the work tree it is checked out in.

        `begun` is told the id of the merge commit before anything moves. It fails if that work tree holds
        changes, or if a branch has moved since the preview.
        """
        ...

    def finish_merge(self, root: str, into: str, before: str, commit: str) -> None:
        """Complete a merge that was interrupted after `begun`."""
        ...

    def save_uncommitted(self, path: str, message: str) -> str | None:
        """Store the uncommitted files of a work tree as a commit without a branch; None if there are none."""
        ...

    def copy_files(self, root: str, path: str, globs: Sequence[str]) -> tuple[str, ...]:
        """Copy untracked files of the main work tree, such as `.env*`, and return their names."""
        ...

    def run_command(self, path: str, command: str, seconds: float) -> CommandResult:
        """Run a command of the operator in a work tree. It ends when Scout ends."""
        ...

    def stop_commands(self) -> None:
        """End the commands that run, because Scout stops."""
        ...

    def remove_leftovers(self) -> None:
        """Remove what an interrupted call left in Scout's data folder. Call it once, at the start."""
        ...


class TreeFolders(Protocol):
    """The `.scout` and `.exo` folders of projects: the registry of agents that survives the database."""

    def prepare(self, root: str) -> None:
        """Make `.scout` with its `.gitignore`."""
        ...

    def taken(self, root: str, folder: str, *, worker: bool = False) -> bool:
        """Whether a folder of this name exists."""
        ...

    def write_identity(self, folder: str, identity: IdentityFile) -> None:
        """Write an identity file with its MAC; for the root agent, `folder` is the project root."""
        ...

    def remove_worker(self, root: str, folder: str) -> None:
        """Remove the folder of a worker; it holds nothing but its identity."""
        ...

    def scan(self, root: str) -> tuple[FoundFolder, ...]:
        """Read every identity of a project."""
        ...


class TreeJournal(Protocol):
    """Changes that were begun and not yet completed, stored outside of the database and of the repository."""

    def begin(self, entry: JournalEntry) -> None: ...
    def update(self, entry: JournalEntry) -> None: ...
    def end(self, entry_id: str) -> None: ...
    def unfinished(self) -> tuple[JournalEntry, ...]: ...


class TreePorts(NamedTuple):
    """The three ports of agent trees."""

    work_trees: WorkTrees
    folders: TreeFolders
    journal: TreeJournal
