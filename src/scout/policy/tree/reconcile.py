"""Differences between the agents' folders, git, the directory and running programs, and their repairs.

A repair loses nothing: it writes what the directory or git knows already. Everything else is reported with
the command that a person can run.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.identity.path import Kind
from scout.identity.spelling import WORK_TREES
from scout.model.agent import Agent, Lifecycle, ToolRole


class Repair(StrEnum):
    """What `--fix` does, in words."""

    REGISTER = "register the agent again"
    REWRITE_IDENTITY = "write its identity file again"
    RESTORE_TREE = "check its branch out again"
    PRUNE = "remove git's entry of the missing work tree"
    END_SESSION = "end the session"
    RAISE_INDEX = "raise the number of the next child"


class TreeDifference(StrEnum):
    """The kinds of differences."""

    UNREGISTERED = "unregistered_agent"
    ORPHAN = "orphan_folder"
    FORGED = "forged_identity"
    NO_IDENTITY = "missing_identity"
    OTHER_IDENTITY = "identity_differs"
    MISSING = "missing_folder"
    MOVED = "moved_folder"
    LOST = "missing_branch"
    RENAMED = "other_branch"
    PRUNABLE = "prunable_tree"
    DUPLICATE = "duplicate_folder"
    NO_PARENT = "missing_parent"
    OTHER_PARENT = "parent_mismatch"
    INDEX = "child_number"
    DEAD = "dead_pane"


REPAIRS: Mapping[TreeDifference, Repair] = {
    TreeDifference.UNREGISTERED: Repair.REGISTER,
    TreeDifference.NO_IDENTITY: Repair.REWRITE_IDENTITY,
    TreeDifference.OTHER_IDENTITY: Repair.REWRITE_IDENTITY,
    TreeDifference.MISSING: Repair.RESTORE_TREE,
    TreeDifference.PRUNABLE: Repair.PRUNE,
    TreeDifference.INDEX: Repair.RAISE_INDEX,
    TreeDifference.DEAD: Repair.END_SESSION,
}


class SignedIdentity(Record):
    """The facts of an identity file with a valid signature."""

    id: str
    path: str
    birth_branch: str | None = None
    parent: str | None = None
    role: str = "dev"
    retired: bool = False


class SeenFolder(Record):
    """A folder in `.scout`. `claimed`: it has an identity file, which is not trusted unless it is signed.

    `blocked`: why its signed identity cannot be registered. `adopt`: how a person can make it an agent.
    """

    folder: str
    kind: str = "worktree"
    identity: SignedIdentity | None = None
    claimed_id: str | None = None
    claimed: bool = False
    problem: str | None = None
    blocked: str = ""
    adopt: Remedy | None = None


class SeenTree(Record):
    """A work tree as git lists it."""

    path: str
    branch: str | None = None
    missing: bool = False


class DeadSession(Record):
    """A session that has no program any more and cannot be resumed."""

    agent_id: str
    session_id: str
    reason: str


class TreeSources(Record):
    """Everything that is compared, for one project. `names`: the address of each agent, by id.

    `branches`: branches of git that exist, among those that agents were born on. `parents`: agents of
    other projects that are parents here.
    """

    root: str
    agents: tuple[Agent, ...] = ()
    parents: tuple[Agent, ...] = ()
    names: dict[str, str] = {}
    folders: tuple[SeenFolder, ...] = ()
    trees: tuple[SeenTree, ...] = ()
    branches: frozenset[str] = frozenset()
    dead: tuple[DeadSession, ...] = ()


class DifferenceFound(Record):
    """One difference. Its repair needs the agent, folder or session that it names."""

    kind: TreeDifference
    subject: str
    words: str
    repair: Repair | None = None
    remedy: Remedy | None = None
    agent_id: str | None = None
    folder: str | None = None
    session_id: str | None = None


class OngoingChanges(Record):
    """The agents and folders that a running spawn or finish is changing."""

    agents: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()

    def touch(self, found: DifferenceFound) -> bool:
        """Whether a difference is about one of them."""
        return found.agent_id in self.agents or bool({found.folder, found.subject} & self.folders)


def get_difference_key(found: DifferenceFound) -> tuple[TreeDifference, str, str | None]:
    """Return what makes two differences the same one."""
    return found.kind, found.subject, found.session_id


def confirm_differences(
    first: Iterable[DifferenceFound], second: Iterable[DifferenceFound]
) -> tuple[DifferenceFound, ...]:
    """Return the differences that a second look finds too.

    Disk, git and the directory are read one after the other. A change between two reads looks like a
    difference, but only once.
    """
    known = {get_difference_key(one) for one in first}
    return tuple(one for one in second if get_difference_key(one) in known)


def find_differences(seen: TreeSources) -> tuple[DifferenceFound, ...]:
    """Return every difference, in the order in which they are repaired."""
    compared = _Comparison(seen)
    return (
        *compared.compare_folders(),
        *compared.compare_agents(),
        *compared.compare_families(),
        *compared.compare_git(),
        *compared.find_dead(),
    )


class _Comparison:
    """The sources of one project, by the keys that they are compared with."""

    def __init__(self, seen: TreeSources) -> None:
        self.seen = seen
        self.by_id = {one.id: one for one in (*seen.parents, *seen.agents)}
        self.live = [one for one in seen.agents if one.lifecycle is not Lifecycle.RETIRED]
        self.by_folder: dict[str, list[Agent]] = {}
        for agent in self.live:
            if agent.birth_branch and agent.working_dir:
                self.by_folder.setdefault(agent.working_dir, []).append(agent)
        self.trees = {one.path: one for one in seen.trees}
        present = {one.path for one in seen.trees if not one.missing}
        self.present = present | {one.folder for one in seen.folders if one.kind == "worktree"}
        self.signed = {one.identity.id for one in seen.folders if one.identity is not None}

    # -- folders ---------------------------------------------------------------------------------

    def compare_folders(self) -> Iterator[DifferenceFound]:
        for folder in sorted(self.seen.folders, key=_get_depth):
            if folder.identity is not None:
                yield from self._compare_identity(folder, folder.identity)
            else:
                yield self._explain_unsigned(folder)

    def _compare_identity(self, folder: SeenFolder, identity: SignedIdentity) -> Iterator[DifferenceFound]:
        agent = self.by_id.get(identity.id)
        if agent is None:
            yield self._explain_unregistered(folder, identity)
        elif differs := _list_differences(agent, identity):
            words = f"its identity file has another {', '.join(differs)} than the directory"
            yield self._of_agent(TreeDifference.OTHER_IDENTITY, agent, words, folder=folder.folder)
        elif folder.kind == "worktree" and agent.working_dir != folder.folder and not identity.retired:
            words = f"it works in {agent.working_dir}, and its work tree is {folder.folder}"
            yield self._of_agent(TreeDifference.MOVED, agent, words, remedy=self._move(agent, folder.folder))

    def _explain_unregistered(self, folder: SeenFolder, identity: SignedIdentity) -> DifferenceFound:
        if folder.blocked:
            words = f"its agent cannot be registered again: {folder.blocked}"
            return _build_folder_difference(TreeDifference.UNREGISTERED, folder, words, remedy=folder.adopt)
        words = f"its agent {identity.path} is not in the directory"
        return _build_folder_difference(TreeDifference.UNREGISTERED, folder, words, repair=Repair.REGISTER)

    def _explain_unsigned(self, folder: SeenFolder) -> DifferenceFound:
        owner = self._find_owner(folder)
        why = folder.problem or "its identity file was not written by this Scout"
        if owner is not None:
            kind = TreeDifference.FORGED if folder.claimed else TreeDifference.NO_IDENTITY
            return self._of_agent(kind, owner, why, folder=folder.folder, repair=Repair.REWRITE_IDENTITY)
        if folder.claimed:
            return _build_folder_difference(
                TreeDifference.FORGED, folder, f"{why}; Scout does not trust it", folder.adopt
            )
        return _build_folder_difference(
            TreeDifference.ORPHAN, folder, f"no agent works in it: {why}", folder.adopt
        )

    def _find_owner(self, folder: SeenFolder) -> Agent | None:
        """Return the agent of the directory that a folder without a signed identity belongs to."""
        if folder.kind == "worker":
            named = [one for one in self.live if one.id == folder.claimed_id and one.id not in self.signed]
            return next((one for one in named if _is_worker(one)), None)
        return next(iter(self.by_folder.get(folder.folder, ())), None)

    # -- agents ----------------------------------------------------------------------------------

    def compare_agents(self) -> Iterator[DifferenceFound]:
        for agent in self.live:
            if agent.kind is Kind.SUB and agent.birth_branch and agent.working_dir:
                yield from self._compare_tree(agent, agent.birth_branch, agent.working_dir)
            elif _is_worker(agent) and not self._has_folder(agent):
                words = "the folder with its identity file is missing"
                yield self._of_agent(TreeDifference.NO_IDENTITY, agent, words)
        yield from self._compare_root()
        for folder, agents in self.by_folder.items():
            if len(agents) > 1:
                names = ", ".join(self._name(one) for one in agents)
                yield DifferenceFound(
                    kind=TreeDifference.DUPLICATE, subject=folder, words=f"several agents work in it: {names}"
                )

    def _compare_tree(self, agent: Agent, branch: str, folder: str) -> Iterator[DifferenceFound]:
        tree = self.trees.get(folder)
        if folder not in self.present:
            yield self._explain_missing(agent, branch, folder)
        elif tree is not None and tree.branch != branch:
            now = f"{tree.branch} is checked out" if tree.branch else "no branch is checked out"
            gone = "" if branch in self.seen.branches else f"; the branch {branch} was renamed or deleted"
            words = f"{now} in its work tree{gone}; the agent keeps its name"
            yield self._of_agent(TreeDifference.RENAMED, agent, words)

    def _explain_missing(self, agent: Agent, branch: str, folder: str) -> DifferenceFound:
        other = next((one for one in self.seen.trees if one.branch == branch and not one.missing), None)
        if other is not None:
            words = f"its work tree {folder} is missing; git has its branch at {other.path}"
            return self._of_agent(TreeDifference.MOVED, agent, words, remedy=self._move(agent, other.path))
        if branch in self.seen.branches:
            words = f"its work tree {folder} is missing; its branch is there"
            return self._of_agent(TreeDifference.MISSING, agent, words, folder=folder)
        words = f"its work tree {folder} and its branch {branch} are missing"
        retire = Remedy(operation="agent.retire", parameters={"address": self._name(agent)})
        return self._of_agent(TreeDifference.LOST, agent, words, remedy=retire)

    def _compare_root(self) -> Iterator[DifferenceFound]:
        """Find a parent at the top whose children could not find it again without the database."""
        roots = [one for one in self.live if one.working_dir == self.seen.root and one.parent_id is None]
        known = {one.folder for one in self.seen.folders if one.kind == "root"}
        for agent in roots:
            spawned = any(one.parent_id == agent.id and _has_identity(one) for one in self.live)
            if spawned and agent.birth_branch and self.seen.root not in known:
                words = "it has children and no identity file"
                yield self._of_agent(TreeDifference.NO_IDENTITY, agent, words, folder=self.seen.root)

    def _has_folder(self, agent: Agent) -> bool:
        claimed = {one.claimed_id for one in self.seen.folders if one.kind == "worker"}
        return agent.id in self.signed or agent.id in claimed

    # -- families --------------------------------------------------------------------------------

    def compare_families(self) -> Iterator[DifferenceFound]:
        highest: dict[str, int] = {}
        for agent in self.seen.agents:
            if agent.kind is not Kind.SUB:
                continue
            above, _, index = str(agent.path).rpartition("/")
            parent_path = above.rpartition("/")[0]
            highest[parent_path] = max(highest.get(parent_path, -1), int(index))
            yield from self._compare_parent(agent, parent_path)
        for parent in self.by_id.values():
            if parent.next_sub_index <= highest.get(str(parent.path), -1):
                words = "the number of its next child is taken already"
                yield self._of_agent(TreeDifference.INDEX, parent, words)

    def _compare_parent(self, agent: Agent, parent_path: str) -> Iterator[DifferenceFound]:
        parent = self.by_id.get(agent.parent_id or "")
        if agent.lifecycle is Lifecycle.RETIRED:
            return
        if parent is None:
            words = f"its parent {parent_path} is not in the directory"
            yield self._of_agent(TreeDifference.NO_PARENT, agent, words)
            return
        born = agent.birth_branch.rpartition(".")[0] if agent.birth_branch else parent.birth_branch
        if str(parent.path) != parent_path or (parent.birth_branch and born != parent.birth_branch):
            words = f"its parent is {self._name(parent)}, which its path or its branch does not say"
            yield self._of_agent(TreeDifference.OTHER_PARENT, agent, words)

    # -- git and programs ------------------------------------------------------------------------

    def compare_git(self) -> Iterator[DifferenceFound]:
        inside = self.seen.root + WORK_TREES
        for tree in self.seen.trees:
            if tree.missing and tree.path.startswith(inside) and tree.path not in self.by_folder:
                yield DifferenceFound(
                    kind=TreeDifference.PRUNABLE,
                    subject=tree.path,
                    words="git lists this work tree, and its folder is missing",
                    repair=Repair.PRUNE,
                    folder=tree.path,
                )

    def find_dead(self) -> Iterator[DifferenceFound]:
        for one in self.seen.dead:
            agent = self.by_id.get(one.agent_id)
            if agent is not None:
                words = f"its session {one.session_id} has no program any more: {one.reason}"
                yield self._of_agent(TreeDifference.DEAD, agent, words, session_id=one.session_id)

    # -- words -----------------------------------------------------------------------------------

    def _name(self, agent: Agent) -> str:
        return self.seen.names.get(agent.id, str(agent.path))

    def _of_agent(
        self,
        kind: TreeDifference,
        agent: Agent,
        words: str,
        *,
        folder: str | None = None,
        repair: Repair | None = None,
        remedy: Remedy | None = None,
        session_id: str | None = None,
    ) -> DifferenceFound:
        return DifferenceFound(
            kind=kind,
            subject=self._name(agent),
            words=words,
            repair=repair or REPAIRS.get(kind),
            remedy=remedy,
            agent_id=agent.id,
            folder=folder,
            session_id=session_id,
        )

    def _move(self, agent: Agent, folder: str) -> Remedy:
        given = {"address": self._name(agent), "workingDir": folder}
        return Remedy(operation="agent.config", parameters=given, why="if it is the same work")


def _build_folder_difference(
    kind: TreeDifference,
    folder: SeenFolder,
    words: str,
    remedy: Remedy | None = None,
    repair: Repair | None = None,
) -> DifferenceFound:
    return DifferenceFound(
        kind=kind, subject=folder.folder, words=words, repair=repair, remedy=remedy, folder=folder.folder
    )


def _list_differences(agent: Agent, identity: SignedIdentity) -> list[str]:
    """Return the names of the facts in which a signed identity and the directory differ."""
    pairs = {
        "path": (str(agent.path), identity.path),
        "birth branch": (agent.birth_branch, identity.birth_branch),
        "parent": (agent.parent_id, identity.parent),
        "role": (agent.tool_role.value, identity.role),
        "lifecycle": (agent.lifecycle is Lifecycle.RETIRED, identity.retired),
    }
    return [name for name, (one, other) in pairs.items() if one != other]


def _is_worker(agent: Agent) -> bool:
    spawned = agent.kind is Kind.SUB and agent.project_root is not None
    return spawned and agent.birth_branch is None and agent.tool_role is ToolRole.WORKER


def _has_identity(agent: Agent) -> bool:
    return agent.birth_branch is not None or _is_worker(agent)


def _get_depth(folder: SeenFolder) -> tuple[int, str]:
    path = folder.identity.path if folder.identity is not None else ""
    return path.count("/"), folder.folder
