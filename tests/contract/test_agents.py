"""The record behind every name (1.1): what it holds, and what of it never changes."""

from typing import Any

import msgspec
import pytest

from scout.base.codec import decode, encode, to_plain
from scout.base.ids import mint, parse_prefix
from scout.base.refusal import BadRequest, Refused
from scout.identity.path import AgentPath, Kind, ModelRole
from scout.identity.spelling import name_spawned
from scout.model.agent import (
    Agent,
    AgentMove,
    Lifecycle,
    ToolRole,
    WakePolicy,
    create_agent,
    move_agent,
    read_config,
    take_search_index,
    take_sub_index,
    update_agent,
)
from scout.model.ref import Ref
from scout.policy.directory import OUTSIDE, Viewpoint
from scout.policy.people.foreground import choose_foreground
from scout.policy.registration import RegistrationWish, decide_registration
from scout.policy.resolver.fleet import Fleet
from scout.policy.resolver.resolve import resolve
from tests.model.samples import ALICE, BOB, CAROL, OPERATOR, T0, T1, an_agent
from tests.policy.fleets import NOW, agent, fleet

ROLES = {"tl", "dev", "worker", "host"}
BY_ITS_PATH = """
connector  /u1/telegram
cron       /u1/cron/daily
task       /u1/task/7
subuser    /u1/subuser/kid
system     /system/sweeper
memory     /u1/agent/arc/memory
search     /u1/agent/arc/search/3
"""


def make_agent(path: str, **more: Any) -> Agent:
    return create_agent(ALICE, AgentPath.parse(path), T0, node="mini", by=OPERATOR, **more)


def expect_refusal(change: Any, *arguments: Any, **named: Any) -> BadRequest:
    with pytest.raises(Refused) as caught:
        change(*arguments, **named)
    told = caught.value.diagnostic
    assert isinstance(told, BadRequest)
    return told


@pytest.mark.rows("R1.1-3")
def test_an_agents_id_is_opaque_and_sorts_by_time() -> None:
    early, late = (mint("agt", moment, b"\xff" * 10) for moment in (1_000, 2_000))
    assert early < mint("agt", 2_000, b"\0" * 10) <= late
    assert {parse_prefix(one) for one in (early, late)} == {"agt"}
    assert early == "agt_00000000z8fzzvzzzzzzzzzzzz"  # the time and chance: no name goes into it
    assert Ref.to(early) == f"agent:{early}"


@pytest.mark.rows("R1.1-5")
@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("/u1/agent/arc", "u1"),
        ("/u1/telegram", "u1"),
        ("/u1/cron/daily", "u1"),
        ("/u1/agent/arc/sub/0", "u1"),
        ("/u1/agent/arc/memory", "u1"),
        ("/system/sweeper", None),
        ("/system/sweeper/sub/0", None),
    ],
)
def test_only_a_system_agent_has_no_owner(path: str, owner: str | None) -> None:
    assert make_agent(path).owner == owner


@pytest.mark.rows("R1.1-6")
@pytest.mark.parametrize("path", [None, "", "u1/agent/arc", "agent/arc", "@arc"])
def test_no_agent_is_without_an_absolute_path(path: str | None) -> None:
    stored = to_plain(make_agent("/u1/agent/arc"))
    assert decode(stored, Agent).path == "/u1/agent/arc"
    with pytest.raises(Refused):
        decode({**stored, "path": path}, Agent)
    with pytest.raises(Refused):
        decode({name: value for name, value in stored.items() if name != "path"}, Agent)


@pytest.mark.rows("R1.1-10", "R1.1-36")
def test_kind_is_stored_and_not_read_off_the_path_again() -> None:
    assert to_plain(make_agent("/u1/agent/arc/search/3"))["kind"] == "search"
    # A record that says otherwise than its path is believed: nothing looks at the path again.
    odd = msgspec.structs.replace(make_agent("/u1/cron/daily"), kind=Kind.AGENT)
    assert decode(encode(odd), Agent).kind is Kind.AGENT
    assert choose_foreground([odd]).agent_id == odd.id
    assert choose_foreground([make_agent("/u1/cron/daily")]).agent_id is None
    assert expect_refusal(update_agent, odd, T1, kind=Kind.CRON).field == "kind"


@pytest.mark.rows("R1.1-11", "R1.1-36")
def test_the_parent_is_the_one_in_the_record() -> None:
    arc, other = agent("arc", id=ALICE, path="/me/agent/arc"), agent("other", id=BOB)
    spawned_by_arc = agent("arc.fix", id=CAROL, path="/me/agent/arc/sub/0", parent_id=ALICE)
    derived_from_other = agent("arc.fix", id=CAROL, path="/me/agent/arc/sub/0", parent_id=BOB)
    for child, parent in ((spawned_by_arc, ALICE), (derived_from_other, BOB)):
        found = resolve("parent", fleet(arc, other, child), Viewpoint(agent_id=CAROL), NOW)
        assert found.agent.id == parent
        assert expect_refusal(update_agent, child, T1, parent_id=OPERATOR).field == "parent_id"


@pytest.mark.rows("R1.1-15")
def test_an_agent_works_in_its_worktree_or_in_its_project() -> None:
    assert make_agent("/u1/agent/arc", project_root="/src/arc").working_dir == "/src/arc"
    tree = make_agent("/u1/agent/arc.fix", project_root="/src/arc", working_dir="/src/arc-fix")
    assert (tree.project_root, tree.working_dir) == ("/src/arc", "/src/arc-fix")
    assert make_agent("/u1/telegram").working_dir is None


@pytest.mark.rows("R1.1-16", "R1.1-36")
@pytest.mark.parametrize(
    "name", ["birth_branch", "path", "definition_id", "workspace", "profile", "node", "owner"]
)
def test_no_spelling_changes_after_creation(name: str) -> None:
    before = make_agent("/u1/agent/arc", definition_id="arc", project_root="/p", birth_branch="main")
    value: dict[str, Any] = {name: "other"}
    assert expect_refusal(update_agent, before, T1, **value).field == name
    after = before
    for move in (AgentMove.SLEEP, AgentMove.WAKE, AgentMove.RETIRE, AgentMove.REVIVE):
        after = move_agent(after, move, T1)
        assert getattr(after, name) == getattr(before, name)
    moved = update_agent(after, T1, project_root="/q", working_dir="/q", tool_role=ToolRole.WORKER)
    assert getattr(moved, name) == getattr(before, name)


@pytest.mark.rows("R1.1-38")
def test_a_project_has_one_agent_on_its_root_branch() -> None:
    root = agent("arc", project_root="/src/arc", birth_branch="main")
    wish = RegistrationWish(
        owner="me", definition="qa", node="mini", project_root="/src/arc", root_branch="main"
    )
    second = decide_registration(wish, fleet(root))
    assert second.spelling is not None
    assert (second.spelling.birth_branch, second.tool_role) == (None, ToolRole.DEV)
    elsewhere = decide_registration(msgspec.structs.replace(wish, project_root="/src/qa"), fleet(root))
    assert elsewhere.spelling is not None
    assert (elsewhere.spelling.birth_branch, elsewhere.tool_role) == ("main", ToolRole.TL)
    child = name_spawned(elsewhere.spelling, "main", "fix", 0, taken=lambda _: False)
    assert child.birth_branch == "main.fix"


@pytest.mark.rows("R1.1-19")
def test_the_tool_roles() -> None:
    stored = to_plain(make_agent("/u1/agent/arc"))
    assert {decode({**stored, "toolRole": role}, Agent).tool_role.value for role in ROLES} == ROLES
    for other in ("user", "subagent", "lead", "", None):
        with pytest.raises(Refused):
            decode({**stored, "toolRole": other}, Agent)


@pytest.mark.rows("R1.1-22")
def test_one_role_leaves_the_other_alone() -> None:
    before = make_agent("/u1/agent/arc")
    assert (before.tool_role, before.model_role) == (ToolRole.DEV, ModelRole.USER)
    after = update_agent(before, T1, tool_role=ToolRole.HOST)
    assert (after.tool_role, after.model_role) == (ToolRole.HOST, ModelRole.USER)
    after = update_agent(after, T1, model_role=ModelRole.TASK)
    assert (after.tool_role, after.model_role) == (ToolRole.HOST, ModelRole.TASK)


@pytest.mark.rows("R1.1-23")
def test_the_older_word_for_retired_is_read() -> None:
    stored = to_plain(make_agent("/u1/agent/arc"))
    words = {"active": "active", "sleeping": "sleeping", "retired": "retired", "dead": "retired"}
    read = {word: to_plain(decode({**stored, "lifecycle": word}, Agent))["lifecycle"] for word in words}
    assert read == words
    with pytest.raises(Refused):
        decode({**stored, "lifecycle": "gone"}, Agent)


@pytest.mark.rows("R1.1-25")
def test_only_revive_brings_a_retired_agent_back() -> None:
    retired = move_agent(make_agent("/u1/agent/arc"), AgentMove.RETIRE, T1)
    for move in (AgentMove.SLEEP, AgentMove.WAKE, AgentMove.RETIRE):
        with pytest.raises(Refused, match="allowed: revive"):
            move_agent(retired, move, T1)
    assert expect_refusal(update_agent, retired, T1, lifecycle=Lifecycle.ACTIVE).field == "lifecycle"
    assert update_agent(retired, T1, working_dir="/x").lifecycle is Lifecycle.RETIRED
    assert take_sub_index(retired, T1)[0].lifecycle is Lifecycle.RETIRED
    assert move_agent(retired, AgentMove.REVIVE, T1).lifecycle is Lifecycle.ACTIVE


@pytest.mark.rows("R1.1-26", "R1.4-27")
def test_indexes_are_given_out_in_a_row_and_never_go_back() -> None:
    one, subs, searches = make_agent("/u1/agent/arc"), list[int](), list[int]()
    for _ in range(5):
        one, index = take_sub_index(one, T1)
        subs.append(index)
    for _ in range(3):
        one, index = take_search_index(one, T1)
        searches.append(index)
    assert (subs, searches) == ([0, 1, 2, 3, 4], [0, 1, 2])
    assert (one.next_sub_index, one.next_search_index) == (5, 3)
    for name in ("next_sub_index", "next_search_index"):
        value: dict[str, Any] = {name: 0}
        assert expect_refusal(update_agent, one, T1, **value).field == name
    back = move_agent(move_agent(one, AgentMove.RETIRE, T1), AgentMove.REVIVE, T1)
    assert (back.next_sub_index, back.next_search_index) == (5, 3)


CONFIG = {
    "name": "Arc",
    "username": "arc_bot",
    "description": "builds",
    "systemPrompt": "Be brief.",
    "workspaceDir": "/w",
    "appId": "app-1",
    "harness": "codex",
    "model": "gpt-5-5",
    "command": ("review", "--strict"),  # which program the harness `command` runs; the operator's to set
    "wakePolicy": "keep_warm",
    "permissionProfile": "review",
    "effort": "high",
    "url": "https://example.org/agent",  # where an agent of another system answers; the operator's to set
    "credentialFile": "/w/token",
}


@pytest.mark.rows("R1.1-28", "R1.1-29")
def test_a_config_holds_these_and_nothing_else() -> None:
    config = read_config(CONFIG)
    assert to_plain(config) == CONFIG
    assert to_plain(update_agent(an_agent(), T1, config=config))["config"] == CONFIG
    assert read_config({}).wake_policy is WakePolicy.ON_DEMAND
    assert expect_refusal(read_config, {**CONFIG, "mood": "good"}).field == "mood"


@pytest.mark.rows("R1.1-30")
def test_an_external_id_is_no_config() -> None:
    told = expect_refusal(read_config, {**CONFIG, "connectorUserId": "123456"})
    assert told.field == "connectorUserId"
    assert "connector key" in told.problem


@pytest.mark.rows("R1.1-31")
def test_harness_model_and_session_are_not_the_agents() -> None:
    assert not {"harness", "model", "session", "sessionId", "endpointId"} & set(to_plain(an_agent()))
    for name in ("harness", "model", "session_id"):
        value: dict[str, Any] = {name: "x"}
        assert expect_refusal(update_agent, an_agent(), T1, **value).field == name


@pytest.mark.rows("R1.1-45")
@pytest.mark.parametrize("line", BY_ITS_PATH.strip().splitlines())
def test_some_agents_are_known_by_their_path_alone(line: str) -> None:
    kind, path = line.split()
    one = make_agent(path)
    assert (one.kind, one.birth_branch, one.definition_id, one.workspace) == (kind, None, None, None)
    directory = Fleet(NOW)
    directory.add(one)
    assert resolve(path, directory, OUTSIDE, NOW).canonical == path
    with pytest.raises(Refused):
        resolve(f"@{path.rpartition('/')[2]}", directory, OUTSIDE, NOW)
