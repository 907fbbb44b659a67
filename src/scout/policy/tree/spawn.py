"""Deciding a spawn: the names of the children, and every precondition before anything is made."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from scout.base.record import Record
from scout.base.refusal import BadRequest, Diagnostic, Refused, Remedy
from scout.identity.branch import MAX_SLUG, BirthBranch, check_slug
from scout.identity.problem import DepthCap
from scout.model.agent import AgentConfig
from scout.model.problems.target import AmbiguousEndpoint
from scout.model.problems.tree import (
    BareRepository,
    BranchExists,
    DiskSpace,
    NoCommit,
    NotARepository,
    SetupFailed,
    UncommittedChanges,
)
from scout.policy.limits import Limits, check_fan_out

RESERVE = 256 * 1024 * 1024  # bytes that a disk must have free before a work tree is added
_WORKER = "a worker needs no branch: it shares the directory of its parent"


class BaseFacts(Record):
    """The repository of the parent's directory, as far as a spawn depends on it.

    `commit`: the one that the branches start from; None if `revision`, or the first commit, does not exist.
    `uncommitted`: changed files of the parent's work tree, which the base does not have.
    """

    directory: str
    root: str
    commit: str | None = None
    revision: str | None = None
    bare: bool = False
    uncommitted: tuple[str, ...] = ()
    more: int = 0
    free_bytes: int = RESERVE


class SpawnNames(Record):
    """The slugs that a caller gave, and how many children each stands for."""

    slugs: tuple[str, ...]
    count: int | None = None


def name_children(slugs: Sequence[str], count: int | None) -> tuple[str, ...]:
    """Return the slug of each child, once: as given, or with the numbers 1 to `count`."""
    names = [check_slug(slug) for slug in slugs]
    if count is not None:
        names = [check_slug(f"{name}-{number}") for name in names for number in range(1, count + 1)]
    return tuple(dict.fromkeys(names))


def check_repository(facts: BaseFacts | None, directory: str, *, dirty: bool) -> str:
    """Return the commit that the branches start from, or refuse. `dirty`: uncommitted changes are ignored."""
    worker = (_suggest_again(_WORKER, role="worker"),)
    if facts is None:
        raise Refused(NotARepository(directory=directory, remedies=worker))
    if facts.bare:
        raise Refused(BareRepository(root=facts.root, remedies=worker))
    if facts.commit is None:
        remedies = (_suggest_again("from the branch that is checked out", base="HEAD"),)
        raise Refused(
            NoCommit(
                root=facts.root, revision=facts.revision, remedies=remedies if facts.revision else worker
            )
        )
    if facts.uncommitted and not dirty:
        leave = _suggest_again("leave them behind", allowDirty=True)
        raise Refused(
            UncommittedChanges(
                directory=facts.directory, files=facts.uncommitted, more=facts.more, remedies=(leave,)
            )
        )
    if facts.free_bytes < RESERVE:
        raise Refused(DiskSpace(path=facts.root, free=facts.free_bytes, needed=RESERVE, remedies=worker))
    return facts.commit


def check_depth(
    parent: BirthBranch, names: Sequence[str], cap: int, *, address: str, above: str | None
) -> tuple[BirthBranch, ...]:
    """Return the branch of each child. `above`: the address of the lowest agent that may have children."""
    try:
        return tuple(parent.child(name, cap) for name in names)
    except Refused as refusal:
        if not isinstance(refusal.diagnostic, DepthCap):
            raise
        worker = _suggest_again(_WORKER, role="worker", **{"from": address})
        higher = (_suggest_again("the lowest agent that may", **{"from": above}),) if above else ()
        raise Refused(replace(refusal.diagnostic, remedies=(worker, *higher))) from None


def check_room(address: str, children: int, new: int, limits: Limits) -> None:
    """Refuse if the agent may not have this many more live children."""
    if new:
        check_fan_out(address, children + new - 1, limits)


def build_branch_exists_refusal(
    branch: BirthBranch, root: str, wish: SpawnNames, is_free: Callable[[str], bool]
) -> BranchExists:
    """Return the refusal of a branch that git has already, with the first free slug like it."""
    parent = branch.parent
    assert parent is not None  # the branch of a child
    name = branch.slugs[-1]
    given = next(one for one in wish.slugs if name in name_children([one], wish.count))

    def is_all_free(slug: str) -> bool:
        return all(is_free(f"{parent.text}.{one}") for one in name_children([slug], wish.count))

    others = (f"{given[: MAX_SLUG - 8].rstrip('-')}-{number}" for number in range(2, 100))
    free = next((one for one in others if one not in wish.slugs and is_all_free(one)), None)
    slugs = [free if one == given else one for one in wish.slugs]
    again = Remedy(operation="spawn", parameters={"slugs": slugs}, why="a free slug")
    return BranchExists(branch=branch.text, root=root, remedies=(again,) if free else ())


def build_no_branch_refusal(address: str, root: str | None) -> BadRequest:
    """Return the refusal of a parent that was born on no branch. `root`: its project's root agent."""
    worker = _suggest_again(_WORKER, role="worker", **{"from": address})
    higher = (_suggest_again("the root agent of its project", **{"from": root}),) if root else ()
    problem = f"{address} has no branch, so its children cannot have one below it"
    return BadRequest(problem=problem, field="from", remedies=(*higher, worker))


def build_setup_failed_refusal(
    command: str,
    *,
    exit_code: int,
    seconds: float,
    output: str,
    timed_out: bool,
    directory: str,
) -> SetupFailed:
    """Return the refusal after a failed setup command, with the ways to go without it or to give it time."""
    remedies = [_suggest_again("without the setup command", noSetup=True)]
    if timed_out:
        longer = {
            "setting": "worktree.setupSeconds",
            "value": f"{seconds * 3:.0f}",
            "projectPath": directory,
        }
        remedies.append(Remedy(operation="project.set", parameters=longer, why="give it more time"))
    return SetupFailed(
        command=command,
        exit_code=exit_code,
        seconds=seconds,
        output=output,
        timed_out=timed_out,
        remedies=tuple(remedies),
    )


def offer_harnesses(problem: Diagnostic) -> Diagnostic:
    """Return the refusal with the spawn repeated for each harness that is ready, or the nearest name."""
    if isinstance(problem, AmbiguousEndpoint):
        ready: Sequence[str] = problem.harnesses
    else:
        ready = [one.address for one in problem.candidates[:1]]
    again = tuple(_suggest_again("", harness=harness) for harness in ready)
    others = tuple(one for one in problem.remedies if one.operation != "ask")
    return replace(problem, remedies=(*again, *others)) if again else replace(problem, remedies=others)


def build_child_config(
    parent: AgentConfig, harness: str | None, model: str | None, *, name: str | None
) -> AgentConfig:
    """Return the settings of a child: its harness and model, else its parent's; never more access than it."""
    own = harness is not None and harness != parent.harness
    return AgentConfig(
        name=name,
        harness=harness or parent.harness,
        model=model or (None if own else parent.model),
        command=() if own else parent.command,
        permission_profile=parent.permission_profile,
    )


def _suggest_again(why: str, **options: Any) -> Remedy:
    """Return the caller's own spawn with other options; its slugs are filled in where it is refused."""
    return Remedy(operation="spawn", parameters=options, why=why)
