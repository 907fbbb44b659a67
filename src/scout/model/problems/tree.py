"""Refusals of agent trees: repositories, work trees, setup commands and merges."""

from typing import ClassVar

from scout.base.refusal import Diagnostic, Family

_SHOWN = 5  # files named in a message
_MIB = 1024 * 1024


class NotARepository(Diagnostic, tag="not_a_repository"):
    """The directory is in no git repository, so no branch can be made in it.

    An agent with a separate branch needs a repository with a commit:
    `git init && git add --all && git commit --message 'First commit'`. A worker needs none, because it
    shares the directory of its parent.
    """

    family: ClassVar[Family] = Family.CONFLICT

    directory: str

    @property
    def message(self) -> str:
        return f"{self.directory} is in no git repository"


class NoCommit(Diagnostic, tag="no_commit"):
    """The revision that the new branch would start from does not exist.

    A repository without a commit has nothing to start from:
    `git commit --allow-empty --message 'First commit'`. With `--base`, the revision must
    be a branch, tag or commit of this repository.
    """

    family: ClassVar[Family] = Family.CONFLICT

    root: str
    revision: str | None = None

    @property
    def message(self) -> str:
        if self.revision is None:
            return f"the repository {self.root} has no commit yet"
        return f"the repository {self.root} has no commit '{self.revision}'"


class BareRepository(Diagnostic, tag="bare_repository"):
    """The repository has no work tree, so agents have no directory beside which theirs could be made.

    Make one with `git worktree add ../main main`, or clone the repository, and spawn there.
    """

    family: ClassVar[Family] = Family.CONFLICT

    root: str

    @property
    def message(self) -> str:
        return f"the repository {self.root} is bare: it has no work tree"


class UncommittedChanges(Diagnostic, tag="uncommitted_changes"):
    """A work tree holds changes that are not committed.

    A new branch starts from a commit, so a spawned agent would not see them. A merge into a work tree with
    changes could overwrite them. Commit or stash the files, or, for a spawn, leave them behind with
    `--allow-dirty`. `more` counts the files that `files` does not name.
    """

    family: ClassVar[Family] = Family.CONFLICT

    directory: str
    files: tuple[str, ...]
    more: int = 0

    @property
    def message(self) -> str:
        return f"{self.directory} has changes that are not committed: {_list(self.files, self.more)}"


class BranchExists(Diagnostic, tag="branch_exists"):
    """The branch of the new agent already exists in git, and no agent was born on it.

    Scout never takes over a branch that it did not make. Choose another slug, or rename the branch:
    `git branch -m OLD NEW`.
    """

    family: ClassVar[Family] = Family.CONFLICT

    branch: str
    root: str

    @property
    def message(self) -> str:
        return f"the branch {self.branch} already exists in {self.root}"


class DiskSpace(Diagnostic, tag="disk_space"):
    """The disk has too little free space for another work tree.

    `needed` is an estimate: the files of the commit, and a reserve. Free space on that disk, or finish
    agents that are done. A worker needs no work tree, because it shares the directory of its parent.
    """

    family: ClassVar[Family] = Family.FAILURE
    status: ClassVar[int | None] = 507

    path: str
    free: int
    needed: int

    @property
    def message(self) -> str:
        return f"{self.path} has {self.free // _MIB} MiB free; a work tree needs {self.needed // _MIB} MiB"


class SetupFailed(Diagnostic, tag="setup_failed"):
    """The setup command of the project failed in the new work tree. The work tree was removed again.

    The operator sets the command with `scout project set worktree.setup`; the repository cannot set it.
    `output` is the last part of its output. `--no-setup` spawns without it.
    """

    family: ClassVar[Family] = Family.FAILURE

    command: str
    exit_code: int
    seconds: float
    output: str = ""
    timed_out: bool = False

    @property
    def message(self) -> str:
        last = self.output.rstrip().rpartition("\n")[2]
        return f"the setup command {_describe_end(self)}" + (f": {last[:200]}" if last else "")


class MergeConflict(Diagnostic, tag="merge_conflict"):
    """The branch and the branch that it should be merged into change the same lines.

    Nothing was changed. The agent of the branch, or another one, can resolve the conflict on the branch.
    """

    family: ClassVar[Family] = Family.CONFLICT

    branch: str
    into: str
    files: tuple[str, ...]
    more: int = 0

    @property
    def message(self) -> str:
        return f"{self.branch} conflicts with {self.into} in {_list(self.files, self.more)}"


class CheckFailed(Diagnostic, tag="check_failed"):
    """The check command of the project failed on the merged files. Nothing was merged.

    The operator sets the command with `scout project set worktree.check`; the repository cannot set it.
    `output` is the last part of its output.
    """

    family: ClassVar[Family] = Family.CONFLICT

    command: str
    exit_code: int
    seconds: float
    output: str = ""
    timed_out: bool = False

    @property
    def message(self) -> str:
        return f"the check command {_describe_end(self)}"


class WorkWouldBeLost(Diagnostic, tag="work_would_be_lost"):
    """The work tree holds files or commits that exist nowhere else.

    Nothing was removed. Merge or keep the work, or discard it with a reason, which is recorded.
    """

    family: ClassVar[Family] = Family.CONFLICT

    address: str
    path: str
    files: tuple[str, ...] = ()
    more: int = 0
    commits: int = 0

    @property
    def message(self) -> str:
        files = len(self.files) + self.more
        counts = (_count(files, "uncommitted file"), _count(self.commits, "commit"))
        held = " and ".join(one for one in counts if one)
        return f"{self.address} has {held} that would be lost in {self.path}"


class UnfinishedWork(Diagnostic, tag="unfinished_work"):
    """The agent still has live children, open flights or owed work, so it cannot be finished.

    Finish the agents below it first, leaves before their parents: `scout finish --all-done`. Wait for its
    flights, or cancel them.
    """

    family: ClassVar[Family] = Family.CONFLICT

    address: str
    children: tuple[str, ...] = ()
    flights: tuple[str, ...] = ()
    owes: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        facts = {"has live children": self.children, "works on": self.flights, "owes": self.owes}
        parts = [f"{verb} {_list(names, 0)}" for verb, names in facts.items() if names]
        return f"{self.address} {' and '.join(parts)}"


class GitProblem(Diagnostic, tag="git_failed"):
    """A git command failed. What it had begun was undone, or is completed at the next start.

    The message is git's own. If it names a lock file, another git process works in the repository: wait
    until it is finished. If none runs, the lock was left behind by a crash and can be removed.
    """

    family: ClassVar[Family] = Family.FAILURE

    root: str
    problem: str

    @property
    def message(self) -> str:
        return f"git failed in {self.root}: {self.problem}"


def _list(files: tuple[str, ...], more: int) -> str:
    shown = files[:_SHOWN]
    left = len(files) - len(shown) + more
    return ", ".join(shown) + (f" and {left} more" if left else "")


def _count(number: int, noun: str) -> str:
    if not number:
        return ""
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def _describe_end(failed: SetupFailed | CheckFailed) -> str:
    how = (
        f"did not end within {failed.seconds:.0f} s" if failed.timed_out else f"ended with {failed.exit_code}"
    )
    return f"`{failed.command}` {how}"
