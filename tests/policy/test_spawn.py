"""Deciding a spawn: names, preconditions, and remedies that are the caller's own command corrected."""

from collections.abc import Callable
from typing import Any

import pytest

from scout.base.refusal import Candidate, Diagnostic, Refused, Remedy
from scout.identity.branch import BirthBranch
from scout.model.agent import AgentConfig, PermissionProfile
from scout.model.problems.session import HarnessUnavailable, Missing
from scout.model.problems.target import AmbiguousEndpoint
from scout.policy.limits import Limits
from scout.policy.tree.spawn import (
    RESERVE,
    BaseFacts,
    SpawnNames,
    build_branch_exists_refusal,
    build_child_config,
    build_no_branch_refusal,
    build_setup_failed_refusal,
    check_depth,
    check_repository,
    check_room,
    name_children,
    offer_harnesses,
)
from scout.protocol.correction import correct_remedies
from scout.protocol.operations import build_command_line
from scout.protocol.tree.spawn import SpawnAgents

GOOD: dict[str, Any] = {"directory": "/w/arc", "root": "/w/arc", "commit": "c1"}


def refusal(decide: Callable[..., object], *given: Any, **named: Any) -> Diagnostic:
    with pytest.raises(Refused) as caught:
        decide(*given, **named)
    return caught.value.diagnostic


def commands(problem: Diagnostic, *slugs: str, count: int | None = None) -> list[str]:
    """The remedies as the caller of this spawn sees them."""
    told = correct_remedies(SpawnAgents(slugs=slugs or ("api",), count=count), problem)
    return [build_command_line(one) for one in told.remedies]


# -- names -------------------------------------------------------------------------------------------


def test_each_slug_is_a_child_once_and_a_count_numbers_them() -> None:
    assert name_children(["api", "ui", "api"], None) == ("api", "ui")
    assert name_children(["api", "ui"], 2) == ("api-1", "api-2", "ui-1", "ui-2")
    assert name_children(["api"], 1) == ("api-1",)


@pytest.mark.parametrize(
    ("slug", "count", "code"),
    [("Api", None, "malformed_address"), ("root", None, "reserved_name"), ("x" * 50, 2, "malformed_address")],
)
def test_every_slug_is_checked(slug: str, count: int | None, code: str) -> None:
    assert refusal(name_children, ["ok", slug], count).code == code


def test_a_folded_slug_is_the_same_command() -> None:
    problem = refusal(name_children, ["Super Api"], None)
    assert commands(problem, "ui", "Super Api") == ["scout spawn ui super-api"]


# -- the repository ----------------------------------------------------------------------------------


def test_a_clean_repository_gives_the_base() -> None:
    assert check_repository(BaseFacts(**GOOD), "/w/arc", dirty=False) == "c1"
    facts = BaseFacts(**GOOD, uncommitted=("a.txt",))
    assert check_repository(facts, "/w/arc", dirty=True) == "c1"


@pytest.mark.parametrize(
    ("facts", "code", "command"),
    [
        (None, "not_a_repository", "scout spawn --role worker api"),
        ({"bare": True}, "bare_repository", "scout spawn --role worker api"),
        ({"commit": None}, "no_commit", "scout spawn --role worker api"),
        ({"commit": None, "revision": "v9"}, "no_commit", "scout spawn --base HEAD api"),
        ({"uncommitted": ("a.txt",)}, "uncommitted_changes", "scout spawn --allow-dirty api"),
        ({"free_bytes": RESERVE - 1}, "disk_space", "scout spawn --role worker api"),
    ],
)
def test_what_a_repository_lacks_is_refused(facts: dict[str, Any] | None, code: str, command: str) -> None:
    found = None if facts is None else BaseFacts(**{**GOOD, **facts})
    problem = refusal(check_repository, found, "/w/arc", dirty=False)
    assert (problem.code, commands(problem)) == (code, [command])


# -- caps --------------------------------------------------------------------------------------------


def test_the_depth_is_refused_with_a_worker_and_a_higher_parent() -> None:
    parent = BirthBranch(root="main", text="main.a.b")
    problem = refusal(check_depth, parent, ["c", "d"], 2, address="@arc.a-b", above="@arc.a")
    assert commands(problem, "c", "d") == [
        "scout spawn --from @arc.a-b --role worker c d",
        "scout spawn --from @arc.a c d",
    ]
    alone = refusal(check_depth, parent, ["c"], 0, address="@arc.a-b", above=None)
    assert len(alone.remedies) == 1


def test_the_depth_allows_what_is_above_it() -> None:
    parent = BirthBranch(root="release-1.2", text="release-1.2.a")
    found = check_depth(parent, ["b", "c"], 2, address="@arc.a", above=None)
    assert [one.text for one in found] == ["release-1.2.a.b", "release-1.2.a.c"]
    assert refusal(check_depth, parent, ["B"], 2, address="@arc.a", above=None).code == "malformed_address"


def test_room_is_counted_for_all_children_together() -> None:
    check_room("@arc", 8, 0, Limits())
    check_room("@arc", 6, 2, Limits())
    assert refusal(check_room, "@arc", 7, 2, Limits()).code == "rate_limited"


# -- branches ----------------------------------------------------------------------------------------


def exists(*branches: str, slugs: tuple[str, ...], count: int | None = None) -> Diagnostic:
    branch = BirthBranch(root="main", text=branches[0])
    wish = SpawnNames(slugs=slugs, count=count)
    return build_branch_exists_refusal(branch, "/w/arc", wish, lambda one: one not in branches)


def test_a_taken_branch_offers_the_first_free_slug() -> None:
    problem = exists("main.api", "main.api-2", slugs=("ui", "api"))
    assert commands(problem, "ui", "api") == ["scout spawn ui api-3"]
    problem = exists("main.api-2", "main.api-2-1", slugs=("api",), count=2)
    assert commands(problem, "api", count=2) == ["scout spawn --count 2 api-3"]
    problem = exists("main.api", slugs=("api", "api-2"))
    assert commands(problem, "api", "api-2") == ["scout spawn api-3 api-2"]


def test_if_no_slug_is_free_none_is_offered() -> None:
    branch = BirthBranch(root="main", text="main.api")
    problem = build_branch_exists_refusal(branch, "/w/arc", SpawnNames(slugs=("api",)), lambda _: False)
    assert problem.remedies == ()


def test_a_parent_without_a_branch() -> None:
    assert commands(build_no_branch_refusal("@bo", "@arc")) == [
        "scout spawn --from @arc api",
        "scout spawn --from @bo --role worker api",
    ]
    assert commands(build_no_branch_refusal("@bo", None)) == ["scout spawn --from @bo --role worker api"]


# -- setup and harness -------------------------------------------------------------------------------


def test_a_failed_setup_can_be_left_out_or_given_more_time() -> None:
    facts: dict[str, Any] = {"exit_code": 3, "seconds": 2.0, "output": "one\nno network\n"}
    failed = build_setup_failed_refusal("npm ci", **facts, timed_out=False, directory="/w/arc")
    assert failed.message == "the setup command `npm ci` ended with 3: no network"
    assert commands(failed) == ["scout spawn --no-setup api"]
    facts["seconds"] = 600.0
    late = build_setup_failed_refusal("npm ci", **facts, timed_out=True, directory="/w/arc")
    assert "did not end within 600 s" in late.message
    assert commands(late)[1] == "scout project set --project /w/arc worktree.setupSeconds 1800"


def test_the_harnesses_that_are_ready_are_offered() -> None:
    ask = Remedy(operation="ask", parameters={"to": "@arc", "harness": "claude"})
    look = Remedy(operation="runtimes", parameters={})
    several = AmbiguousEndpoint(address="@arc", harnesses=("claude", "codex"), remedies=(ask, look))
    assert commands(offer_harnesses(several)) == [
        "scout spawn --harness claude api",
        "scout spawn --harness codex api",
        "scout runtimes",
    ]
    near = (Candidate(address="codex"),)
    wrong = HarnessUnavailable(harness="codx", missing=Missing.BINARY, candidates=near, remedies=(look,))
    assert commands(offer_harnesses(wrong)) == ["scout spawn --harness codex api", "scout runtimes"]
    alone = HarnessUnavailable(harness="acp", missing=Missing.BINARY, remedies=(look,))
    assert commands(offer_harnesses(alone)) == ["scout runtimes"]


def test_a_child_has_its_parents_program_unless_it_gets_another() -> None:
    parent = AgentConfig(
        harness="command",
        command=("cat",),
        model="m1",
        description="the parent",
        permission_profile=PermissionProfile.REVIEW,
    )
    same = build_child_config(parent, None, None, name="lint")
    assert (same.name, same.harness, same.command, same.model) == ("lint", "command", ("cat",), "m1")
    assert (same.permission_profile, same.description) == (PermissionProfile.REVIEW, None)
    other = build_child_config(parent, "codex", None, name=None)
    assert (other.harness, other.command, other.model) == ("codex", (), None)
    assert build_child_config(parent, "command", "m2", name=None).model == "m2"
