"""Finishing an agent: which choice is possible, what it does, and what would be lost."""

from enum import StrEnum

from scout.base.record import Record
from scout.base.refusal import BadRequest, Diagnostic, Refused, Remedy
from scout.model.problems.tree import (
    GitProblem,
    MergeConflict,
    UncommittedChanges,
    UnfinishedWork,
    WorkWouldBeLost,
)

_COMMIT = "Commit the changes in your work tree, then report. You are about to be finished."
_COMMIT_TARGET = (
    "Commit or stash the changes in your work tree, then report: a branch is to be merged into it."
)


class FinishChoice(StrEnum):
    MERGE = "merge"
    KEEP = "keep"
    DISCARD = "discard"


class FinishFacts(Record):
    """An agent, its work tree, and the branch that its work is merged into.

    `branch` is the branch in its work tree, `born_on` the one it was spawned on. `commits` counts those
    that `into` does not have, `unreachable` those that no other branch and no remote has. `missing`: its
    folder is not there. `problem`: why git says nothing. `target`: the folder in which `into` is checked
    out, with its uncommitted files; `target_agent` works there.
    """

    address: str
    root: str = ""
    worker: bool = False
    is_project_root: bool = False
    born_on: str | None = None
    branch: str | None = None
    into: str | None = None
    folder: str = ""
    missing: bool = False
    problem: str | None = None
    children: tuple[str, ...] = ()
    flights: tuple[str, ...] = ()
    uncommitted: tuple[str, ...] = ()
    more_uncommitted: int = 0
    operation: str | None = None
    commits: int = 0
    unreachable: int = 0
    needs_merge: bool = False
    conflicts: tuple[str, ...] = ()
    target: str | None = None
    target_agent: str | None = None
    target_uncommitted: tuple[str, ...] = ()

    @property
    def uncommitted_count(self) -> int:
        return len(self.uncommitted) + self.more_uncommitted


class FinishPlan(Record):
    """The steps of a finish. `saves`: uncommitted files are stored as a commit without a branch first.

    `conflicts`: the merge needs somebody to resolve these files first.
    """

    choice: FinishChoice
    merges: bool = False
    saves: bool = False
    removes_folder: bool = False
    deletes_branch: bool = False
    conflicts: tuple[str, ...] = ()


def choose(address: str, *, merge: bool, keep: bool, discard: bool) -> FinishChoice | None:
    """Return the choice in a request, None for a preview; refuse more than one."""
    given = (merge, keep, discard)
    chosen = [choice for choice, wanted in zip(FinishChoice, given, strict=True) if wanted]
    if len(chosen) > 1:
        problem = f"choose one of {', '.join(f'--{one}' for one in chosen)}"
        raise Refused(BadRequest(problem=problem, field=str(chosen[1]), remedies=(_preview(address),)))
    return chosen[0] if chosen else None


def plan_finish(facts: FinishFacts, choice: FinishChoice, reason: str = "") -> FinishPlan:
    """Return the steps of a choice, or refuse it with what would help."""
    _check_agent(facts)
    if choice is FinishChoice.DISCARD and not reason.strip():
        raise Refused(_build_missing_reason_refusal(facts))
    if facts.worker:
        return FinishPlan(choice=choice, removes_folder=choice is not FinishChoice.KEEP)
    if choice is FinishChoice.KEEP:
        return FinishPlan(choice=choice)
    if facts.problem is not None and not facts.missing:
        keep = _finish(facts, "its work tree and branch stay", FinishChoice.KEEP)
        raise Refused(GitProblem(root=facts.root, problem=facts.problem, remedies=(keep,)))
    own = facts.branch is not None and facts.branch == facts.born_on
    if choice is FinishChoice.DISCARD:
        saves = facts.uncommitted_count > 0
        return FinishPlan(choice=choice, saves=saves, removes_folder=not facts.missing, deletes_branch=own)
    _check_merge(facts)
    return FinishPlan(
        choice=choice,
        merges=facts.needs_merge,
        removes_folder=not facts.missing,
        deletes_branch=own,
        conflicts=facts.conflicts,
    )


def describe_effect(facts: FinishFacts, choice: FinishChoice) -> str:
    """Return what a choice does, as a sentence."""
    name, commits = facts.address, count(facts.commits, "commit")
    if facts.worker:
        folder = "" if choice is FinishChoice.KEEP else " and removes its identity file"
        return f"retires {name}{folder}; it has no branch"
    if choice is FinishChoice.KEEP:
        return f"retires {name}; its work tree and branch stay"
    if choice is FinishChoice.MERGE:
        merged = f"merges {commits} into {facts.into}, " if facts.needs_merge else ""
        return f"{merged}retires {name}, removes its work tree and deletes its branch"
    files = count(facts.uncommitted_count, "uncommitted file")
    lost = " and ".join(one for one in (files, commits if facts.commits else "") if one)
    return f"retires {name}, removes its work tree and deletes its branch" + (f" with {lost}" if lost else "")


def merge_conflict(facts: FinishFacts) -> MergeConflict:
    """Return the refusal of a merge whose conflicts are not sent to anybody."""
    assert facts.into is not None  # a branch is merged into another
    wish = {"to": facts.address, "body": build_conflict_ask(facts)}
    return MergeConflict(
        branch=facts.branch or "",
        into=facts.into,
        files=facts.conflicts,
        remedies=(
            Remedy(operation="ask", parameters=wish, why="let it resolve the conflicts"),
            _finish(facts, "retire it; its work tree and branch stay", FinishChoice.KEEP),
        ),
    )


def build_conflict_ask(facts: FinishFacts, resolver: str | None = None) -> str:
    """Return the ask that sends conflicts to the agent of the branch, or to another one."""
    whose = "your branch" if resolver is None else f"{facts.address}'s branch"
    files = "\n".join(f"- {one}" for one in facts.conflicts)
    return (
        f"Merging {whose} `{facts.branch}` into `{facts.into}` has conflicts in these files:\n\n{files}\n\n"
        f"Nothing was merged. In the work tree {facts.folder}:\n\n"
        f"1. Run `git merge {facts.into}`.\n"
        "2. Resolve the conflicts in these files. Keep the intent of both sides.\n"
        "3. Run `git commit --all --no-edit`.\n\n"
        f"Then report what you decided. The merge into `{facts.into}` is tried again afterwards."
    )


def merge_message(branch: str, into: str, address: str, path: str) -> str:
    """Return the message of a merge commit."""
    return f"Merge branch '{branch}' into {into}\n\nScout finished {address} ({path}).\n"


# -- refusals ----------------------------------------------------------------------------------------


def _check_agent(facts: FinishFacts) -> None:
    """Refuse agents that were not spawned, and agents with children or open flights."""
    if facts.is_project_root:
        problem = f"{facts.address} is the root agent of its project; finish the agents below it"
        below = Remedy(
            operation="finish.done", parameters=_name_children_of(facts), why="those that are done"
        )
        raise Refused(BadRequest(problem=problem, field="address", remedies=(below, _retire(facts))))
    if facts.born_on is None and not facts.worker:
        problem = f"{facts.address} was not spawned, so there is nothing to merge or remove"
        raise Refused(BadRequest(problem=problem, field="address", remedies=(_retire(facts),)))
    if facts.children or facts.flights:
        raise Refused(_build_unfinished_refusal(facts))


def _check_merge(facts: FinishFacts) -> None:
    if facts.uncommitted_count:
        raise Refused(_build_uncommitted_refusal(facts))
    if facts.branch is None or facts.into is None:
        missing = "its work tree is on no branch" if facts.into else "the branch of its parent is not known"
        problem = f"{facts.address} cannot be merged: {missing}"
        raise Refused(BadRequest(problem=problem, field="merge", remedies=_suggest_without_merge(facts)))
    if facts.needs_merge and facts.target_uncommitted:
        raise Refused(_build_dirty_target_refusal(facts))


def _build_unfinished_refusal(facts: FinishFacts) -> UnfinishedWork:
    below = Remedy(operation="finish.done", parameters=_name_children_of(facts), why="finish those below it")
    cancels = [
        Remedy(operation="flight.cancel", parameters={"flightId": one}, why="or wait for it")
        for one in facts.flights[:3]
    ]
    remedies = (*((below,) if facts.children else ()), *cancels)
    return UnfinishedWork(
        address=facts.address, children=facts.children, flights=facts.flights, remedies=remedies
    )


def _build_uncommitted_refusal(facts: FinishFacts) -> UncommittedChanges:
    commit = Remedy(
        operation="ask", parameters={"to": facts.address, "body": _COMMIT}, why="let it commit them"
    )
    return UncommittedChanges(
        directory=facts.folder,
        files=facts.uncommitted,
        more=facts.more_uncommitted,
        remedies=(commit, *_suggest_without_merge(facts)),
    )


def _build_dirty_target_refusal(facts: FinishFacts) -> UncommittedChanges:
    """Return the refusal of a merge into a work tree with changes."""
    wish = {"to": facts.target_agent, "body": _COMMIT_TARGET}
    commit = Remedy(operation="ask", parameters=wish, why="let it commit or stash them")
    keep = _finish(facts, "its work tree and branch stay", FinishChoice.KEEP)
    return UncommittedChanges(
        directory=facts.target or "",
        files=facts.target_uncommitted,
        remedies=(*((commit,) if facts.target_agent else ()), keep),
    )


def _build_missing_reason_refusal(facts: FinishFacts) -> Diagnostic:
    """Return the refusal of a discard without a reason; it names what would be lost."""
    again = _finish(facts, "the reason is recorded", FinishChoice.DISCARD, reason="its work is not needed")
    if not facts.uncommitted_count and not facts.unreachable:
        problem = f"a reason is required to discard the work of {facts.address}"
        return BadRequest(problem=problem, field="reason", remedies=(again,))
    return WorkWouldBeLost(
        address=facts.address,
        path=facts.folder,
        files=facts.uncommitted,
        more=facts.more_uncommitted,
        commits=facts.unreachable,
        remedies=(_finish(facts, "its work tree and branch stay", FinishChoice.KEEP), again),
    )


def _suggest_without_merge(facts: FinishFacts) -> tuple[Remedy, ...]:
    return (
        _finish(facts, "its work tree and branch stay", FinishChoice.KEEP),
        _finish(facts, "the reason is recorded", FinishChoice.DISCARD, reason="its work is not needed"),
    )


def _finish(facts: FinishFacts, why: str, choice: FinishChoice, **more: object) -> Remedy:
    """Return a finish with this choice; the others are False, to replace the caller's choice."""
    chosen = {str(one): one is choice for one in FinishChoice}
    return Remedy(operation="finish", parameters={"address": facts.address, **chosen, **more}, why=why)


def _name_children_of(facts: FinishFacts) -> dict[str, object]:
    return {"allDone": True, "address": facts.address}


def _preview(address: str) -> Remedy:
    return Remedy(operation="finish", parameters={"address": address}, why="what each choice does")


def _retire(facts: FinishFacts) -> Remedy:
    return Remedy(operation="agent.retire", parameters={"address": facts.address}, why="retire it")


def count(number: int, noun: str) -> str:
    """Return a number with its noun; empty for none."""
    return "" if not number else f"1 {noun}" if number == 1 else f"{number} {noun}s"
