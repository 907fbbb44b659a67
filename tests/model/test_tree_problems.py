"""The words of refusals about agent trees."""

from typing import Any

import pytest

from scout.base.refusal import Diagnostic
from scout.model.problems.tree import (
    BareRepository,
    BranchExists,
    CheckFailed,
    DiskSpace,
    GitProblem,
    MergeConflict,
    NoCommit,
    NotARepository,
    SetupFailed,
    UncommittedChanges,
    WorkWouldBeLost,
)

SIX = ("a", "b", "c", "d", "e", "f")
MANY: dict[str, Any] = {"exit_code": 2, "seconds": 1.5}


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (NotARepository(directory="/w"), "/w is in no git repository"),
        (NoCommit(root="/w"), "the repository /w has no commit yet"),
        (NoCommit(root="/w", revision="v9"), "the repository /w has no commit 'v9'"),
        (BareRepository(root="/w"), "the repository /w is bare: it has no work tree"),
        (
            UncommittedChanges(directory="/w", files=("a", "b")),
            "/w has changes that are not committed: a, b",
        ),
        (
            UncommittedChanges(directory="/w", files=SIX, more=2),
            "/w has changes that are not committed: a, b, c, d, e and 3 more",
        ),
        (BranchExists(branch="main.a", root="/w"), "the branch main.a already exists in /w"),
        (DiskSpace(path="/w", free=1 << 20, needed=9 << 20), "/w has 1 MiB free; a work tree needs 9 MiB"),
        (SetupFailed(command="x", **MANY), "the setup command `x` ended with 2"),
        (
            SetupFailed(command="x", output="one\ntwo\n", timed_out=True, **MANY),
            "the setup command `x` did not end within 2 s: two",
        ),
        (MergeConflict(branch="m.a", into="m", files=("a",)), "m.a conflicts with m in a"),
        (CheckFailed(command="x", **MANY), "the check command `x` ended with 2"),
        (CheckFailed(command="x", timed_out=True, **MANY), "the check command `x` did not end within 2 s"),
        (
            WorkWouldBeLost(address="@a", path="/w", files=("a",), commits=2),
            "@a has 1 uncommitted file and 2 commits that would be lost in /w",
        ),
        (
            WorkWouldBeLost(address="@a", path="/w", commits=1),
            "@a has 1 commit that would be lost in /w",
        ),
        (GitProblem(root="/w", problem="no"), "git failed in /w: no"),
    ],
)
def test_the_message_is_made_from_the_facts(problem: Diagnostic, message: str) -> None:
    assert problem.message == message
