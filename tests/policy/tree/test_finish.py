"""Which finish is possible, what it does, and what helps where it is not."""

from typing import Any

import pytest
from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.policy.tree.finish import (
    FinishChoice,
    FinishFacts,
    FinishPlan,
    build_conflict_ask,
    choose,
    count,
    describe_effect,
    merge_conflict,
    merge_message,
    plan_finish,
)
from scout.protocol.operations import build_command_line, check_remedy

MERGE, KEEP, DISCARD = FinishChoice
CHILD = FinishFacts(
    address="@wood.api",
    root="/wood",
    born_on="main.api",
    branch="main.api",
    into="main",
    folder="/wood/.scout/worktrees/api",
    commits=2,
    unreachable=2,
    needs_merge=True,
    target="/wood",
    target_agent="@wood",
)


def refusal(facts: FinishFacts, choice: FinishChoice, reason: str = "") -> Any:
    """The refusal of a choice. Each of its remedies can be typed."""
    with pytest.raises(Refused) as caught:
        plan_finish(facts, choice, reason)
    found = caught.value.diagnostic
    assert found.remedies
    assert not [problem for one in found.remedies for problem in check_remedy(one)]
    return found


def commands(found: Any) -> list[str]:
    return [build_command_line(one) for one in found.remedies]


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ((False, False, False), None),
        ((True, False, False), MERGE),
        ((False, True, False), KEEP),
        ((False, False, True), DISCARD),
    ],
)
def test_one_choice_or_a_preview(given: tuple[bool, bool, bool], chosen: FinishChoice | None) -> None:
    merge, keep, discard = given
    assert choose("@wood.api", merge=merge, keep=keep, discard=discard) is chosen


def test_two_choices_are_refused() -> None:
    with pytest.raises(Refused) as caught:
        choose("@wood.api", merge=True, keep=False, discard=True)
    assert caught.value.diagnostic.message == "choose one of --merge, --discard (at discard)"
    assert commands(caught.value.diagnostic) == ["scout finish @wood.api"]


def test_a_merge_removes_the_tree_and_its_branch() -> None:
    assert plan_finish(CHILD, MERGE) == FinishPlan(
        choice=MERGE, merges=True, removes_folder=True, deletes_branch=True
    )


def test_without_new_commits_nothing_is_merged() -> None:
    plan = plan_finish(replace(CHILD, needs_merge=False, target_uncommitted=("base.txt",)), MERGE)
    assert (plan.merges, plan.removes_folder, plan.deletes_branch) == (False, True, True)


def test_only_the_birth_branch_is_deleted() -> None:
    elsewhere = replace(CHILD, branch="topic")
    assert [plan_finish(elsewhere, one, "done").deletes_branch for one in (MERGE, DISCARD)] == [False, False]


def test_a_missing_folder_is_not_removed() -> None:
    gone = replace(CHILD, missing=True, problem="no such folder")
    assert [plan_finish(gone, one, "lost").removes_folder for one in (MERGE, DISCARD)] == [False, False]


def test_keep_changes_nothing_on_disk() -> None:
    dirty = replace(CHILD, uncommitted=("a",), problem="git is away", branch=None)
    assert plan_finish(dirty, KEEP) == FinishPlan(choice=KEEP)


def test_a_discard_stores_uncommitted_files_first() -> None:
    dirty = replace(CHILD, uncommitted=("a",), more_uncommitted=3)
    assert plan_finish(dirty, DISCARD, "It did not work.") == FinishPlan(
        choice=DISCARD, saves=True, removes_folder=True, deletes_branch=True
    )
    assert not plan_finish(CHILD, DISCARD, "It did not work.").saves


def test_a_discard_needs_a_reason() -> None:
    found = refusal(replace(CHILD, uncommitted=("a", "b"), more_uncommitted=1), DISCARD, "  ")
    assert found.code == "work_would_be_lost"
    assert found.message == (
        "@wood.api has 3 uncommitted files and 2 commits that would be lost in /wood/.scout/worktrees/api"
    )
    assert commands(found) == [
        "scout finish --keep @wood.api",
        "scout finish --discard --reason 'its work is not needed' @wood.api",
    ]


def test_a_discard_without_anything_to_lose_needs_a_reason_too() -> None:
    found = refusal(replace(CHILD, unreachable=0), DISCARD)
    assert (found.code, found.field) == ("bad_request", "reason")


def test_uncommitted_files_are_not_merged() -> None:
    found = refusal(replace(CHILD, uncommitted=("a.txt",), more_uncommitted=7), MERGE)
    assert (found.code, found.directory, found.files, found.more) == (
        "uncommitted_changes",
        CHILD.folder,
        ("a.txt",),
        7,
    )
    assert [one.operation for one in found.remedies] == ["ask", "finish", "finish"]
    # Choices that replace the caller's own say so.
    assert found.remedies[1].parameters == {
        "address": "@wood.api",
        "merge": False,
        "keep": True,
        "discard": False,
    }


def test_nothing_is_merged_into_a_work_tree_with_changes() -> None:
    found = refusal(replace(CHILD, target_uncommitted=("base.txt",)), MERGE)
    assert (found.code, found.directory, found.files) == ("uncommitted_changes", "/wood", ("base.txt",))
    assert [one.operation for one in found.remedies] == ["ask", "finish"]
    nobody = refusal(replace(CHILD, target_uncommitted=("base.txt",), target_agent=None), MERGE)
    assert commands(nobody) == ["scout finish --keep @wood.api"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"branch": None}, "its work tree is on no branch"),
        ({"into": None}, "the branch of its parent is not known"),
    ],
)
def test_a_merge_needs_two_branches(changes: dict[str, Any], words: str) -> None:
    assert words in refusal(replace(CHILD, **changes), MERGE).message


@pytest.mark.parametrize("choice", [MERGE, DISCARD])
def test_what_git_cannot_read_is_only_kept(choice: FinishChoice) -> None:
    found = refusal(replace(CHILD, problem="bad object"), choice, "why")
    assert (found.code, found.problem, commands(found)) == (
        "git_failed",
        "bad object",
        ["scout finish --keep @wood.api"],
    )


@pytest.mark.parametrize("choice", FinishChoice)
def test_a_root_agent_is_not_finished(choice: FinishChoice) -> None:
    found = refusal(replace(CHILD, is_project_root=True, born_on="main"), choice, "why")
    assert commands(found) == ["scout finish --all-done @wood.api", "scout agent retire @wood.api"]


@pytest.mark.parametrize("choice", FinishChoice)
def test_an_agent_that_was_not_spawned_is_retired(choice: FinishChoice) -> None:
    found = refusal(FinishFacts(address="@arc"), choice, "why")
    assert commands(found) == ["scout agent retire @arc"]


@pytest.mark.parametrize("choice", FinishChoice)
def test_children_and_flights_come_first(choice: FinishChoice) -> None:
    found = refusal(
        replace(CHILD, children=("@wood.api-a", "@wood.api-b"), flights=("flt_1",)), choice, "why"
    )
    assert found.code == "unfinished_work"
    assert found.message == "@wood.api has live children @wood.api-a, @wood.api-b and works on flt_1"
    assert commands(found) == ["scout finish --all-done @wood.api", "scout flight cancel flt_1"]
    alone = refusal(replace(CHILD, flights=("flt_1", "flt_2", "flt_3", "flt_4")), choice, "why")
    assert len(alone.remedies) == 3


@pytest.mark.parametrize("choice", FinishChoice)
def test_a_worker_is_retired_and_its_folder_removed(choice: FinishChoice) -> None:
    worker = FinishFacts(address="@wood.w-1", worker=True)
    plan = plan_finish(worker, choice, "done")
    assert plan == FinishPlan(choice=choice, removes_folder=choice is not KEEP)
    assert "it has no branch" in describe_effect(worker, choice)


def test_conflicts_are_part_of_the_plan() -> None:
    torn = replace(CHILD, conflicts=("base.txt", "src/b.py"))
    assert plan_finish(torn, MERGE).conflicts == ("base.txt", "src/b.py")
    found = merge_conflict(torn)
    assert found.message == "main.api conflicts with main in base.txt, src/b.py"
    assert [one.operation for one in found.remedies] == ["ask", "finish"]
    assert found.remedies[0].parameters == {"to": "@wood.api", "body": build_conflict_ask(torn)}


def test_a_conflict_is_asked_with_files_and_steps() -> None:
    torn = replace(CHILD, conflicts=("base.txt", "src/b.py"))
    own, other = build_conflict_ask(torn), build_conflict_ask(torn, "@wood.docs")
    for part in ("- base.txt\n- src/b.py", "git merge main", "git commit --all --no-edit", CHILD.folder):
        assert part in own
        assert part in other
    assert "your branch `main.api`" in own
    assert "@wood.api's branch `main.api`" in other


def test_the_merge_names_the_agent_and_its_branch() -> None:
    text = merge_message("main.api", "main", "@wood.api", "/ada/agent/wood/sub/0")
    assert text == "Merge branch 'main.api' into main\n\nScout finished @wood.api (/ada/agent/wood/sub/0).\n"


def test_each_choice_says_what_it_does() -> None:
    dirty = replace(CHILD, uncommitted=("a",), more_uncommitted=1)
    assert [describe_effect(dirty, one) for one in FinishChoice] == [
        "merges 2 commits into main, retires @wood.api, removes its work tree and deletes its branch",
        "retires @wood.api; its work tree and branch stay",
        "retires @wood.api, removes its work tree and deletes its branch with 2 uncommitted files and 2 commits",
    ]
    empty = replace(CHILD, commits=0, needs_merge=False)
    assert [describe_effect(empty, one) for one in (MERGE, DISCARD)] == [
        "retires @wood.api, removes its work tree and deletes its branch",
        "retires @wood.api, removes its work tree and deletes its branch",
    ]


def test_numbers_have_their_noun() -> None:
    assert [count(number, "file") for number in range(3)] == ["", "1 file", "2 files"]
