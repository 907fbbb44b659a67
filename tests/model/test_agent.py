from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.codec import decode, encode
from scout.base.ids import parse_prefix
from scout.base.refusal import BadRequest, Refused, WrongRevision
from scout.identity.path import AgentPath, Kind, ModelRole
from scout.model.agent import (
    AGENT,
    Agent,
    AgentConfig,
    AgentMove,
    Lifecycle,
    PermissionProfile,
    ToolRole,
    WakePolicy,
    arrive_from_node,
    derive_project_id,
    is_self_connected,
    leave_for_node,
    mark_active,
    move_agent,
    publish_agent,
    raise_sub_index,
    read_config,
    return_from_move,
    take_search_index,
    take_sub_index,
    unpublish_agent,
    update_agent,
)
from tests.model.samples import T0, T1, an_agent
from tests.model.table import cells, check_cell

TABLE = """
            sleep     wake    retire   revive
active      sleeping  -       retired  -
sleeping    -         active  retired  -
retired     -         -       -        active
"""


def _change(name: str) -> dict[str, Any]:
    return {name: "x"}


@pytest.mark.parametrize(("state", "move", "after"), cells(AGENT, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(AGENT, state, move, after)


def test_a_new_agent_is_active_and_a_retired_one_owes_nothing() -> None:
    assert AGENT.initial is Lifecycle.ACTIVE
    assert AGENT.settled == {Lifecycle.RETIRED}


def test_a_retired_agent_comes_back_only_by_revive() -> None:
    retired = move_agent(an_agent(), AgentMove.RETIRE, T1)
    assert (retired.lifecycle, retired.revision) == (Lifecycle.RETIRED, 2)
    with pytest.raises(Refused, match="allowed: revive"):
        move_agent(retired, AgentMove.WAKE, T1)
    assert move_agent(retired, AgentMove.REVIVE, T1, seen=2).lifecycle is Lifecycle.ACTIVE


def test_the_older_word_for_retired_is_read() -> None:
    assert decode(b'"dead"', Lifecycle) is Lifecycle.RETIRED
    with pytest.raises(Refused, match="banana"):
        decode(b'"banana"', Lifecycle)


@pytest.mark.parametrize(
    ("path", "owner", "kind", "role"),
    [
        ("/u1/telegram", "u1", Kind.CONNECTOR, ModelRole.USER),
        ("/u1/agent/arc", "u1", Kind.AGENT, ModelRole.USER),
        ("/u1/cron/daily", "u1", Kind.CRON, None),
        ("/u1/task/7", "u1", Kind.TASK, ModelRole.TASK),
        ("/u1/subuser/kid", "u1", Kind.SUBUSER, ModelRole.USER),
        ("/system/sweeper", None, Kind.SYSTEM, None),
        ("/u1/agent/arc/sub/0", "u1", Kind.SUB, ModelRole.SUBAGENT),
        ("/u1/agent/arc/memory", "u1", Kind.MEMORY, ModelRole.MEMORY),
        ("/u1/agent/arc/search/3", "u1", Kind.SEARCH, ModelRole.MEMORY_SEARCH),
    ],
)
def test_a_new_agent_takes_owner_kind_and_role_from_its_path(
    path: str, owner: str | None, kind: Kind, role: ModelRole | None
) -> None:
    agent = an_agent(path)
    assert (agent.owner, agent.kind, agent.model_role) == (owner, kind, role)
    assert parse_prefix(agent.id) == "agt"


def test_the_defaults_of_a_new_agent() -> None:
    agent = an_agent()
    assert (agent.tool_role, agent.lifecycle, agent.revision) == (ToolRole.DEV, Lifecycle.ACTIVE, 1)
    assert agent.config == AgentConfig(
        wake_policy=WakePolicy.ON_DEMAND, permission_profile=PermissionProfile.WORKSPACE_WRITE
    )
    assert (agent.next_sub_index, agent.next_search_index, agent.birth_branch) == (0, 0, None)


def test_roles_are_separate() -> None:
    after = update_agent(an_agent(), T1, tool_role=ToolRole.TL)
    assert (after.tool_role, after.model_role) == (ToolRole.TL, ModelRole.USER)
    assert update_agent(after, T1, model_role=None).tool_role is ToolRole.TL


@pytest.mark.parametrize(
    "name",
    ["birth_branch", "path", "kind", "owner", "node", "definition_id", "id", "next_sub_index", "lifecycle"],
)
def test_what_an_agent_is_called_never_changes(name: str) -> None:
    with pytest.raises(Refused, match=f"an agent's {name} cannot be changed") as refused:
        update_agent(an_agent(), T1, **_change(name))
    assert refused.value.diagnostic.code == "bad_request"


def test_an_update_checks_the_revision() -> None:
    with pytest.raises(Refused) as refused:
        update_agent(an_agent(revision=3), T1, seen=2, working_dir="/x")
    assert isinstance(refused.value.diagnostic, WrongRevision)


@given(st.integers(0, 20), st.integers(0, 20))
def test_child_indexes_are_distinct_and_without_gaps(subs: int, searches: int) -> None:
    agent = an_agent()
    taken: dict[str, list[int]] = {"sub": [], "search": []}
    for _ in range(subs):
        agent, index = take_sub_index(agent, T1)
        taken["sub"].append(index)
    for _ in range(searches):
        agent, index = take_search_index(agent, T1)
        taken["search"].append(index)
    assert taken == {"sub": list(range(subs)), "search": list(range(searches))}
    assert agent.revision == 1 + subs + searches


def test_a_counter_is_raised_above_a_child_and_never_lowered() -> None:
    raised = raise_sub_index(an_agent(), 4, T1)
    assert (raised.next_sub_index, raised.revision) == (5, 2)
    assert raise_sub_index(raised, 1, T1).next_sub_index == 5


def test_a_sleeping_agent_says_since_when() -> None:
    asleep = move_agent(an_agent(), AgentMove.SLEEP, T0.plus(9))
    assert (asleep.lifecycle, asleep.sleeping_since) == (Lifecycle.SLEEPING, T0.plus(9))
    for move in (AgentMove.WAKE, AgentMove.RETIRE):
        assert move_agent(asleep, move, T0.plus(20)).sleeping_since is None


def test_activity_is_volatile() -> None:
    after = mark_active(an_agent(), T1)
    assert (after.last_active_at, after.revision, after.updated_at) == (T1, 1, T0)


def test_a_project_is_a_folder_on_a_machine() -> None:
    assert derive_project_id("mini", "/p") == derive_project_id("mini", "/p")
    assert (
        len(
            {
                derive_project_id("mini", "/p"),
                derive_project_id("mini", "/q"),
                derive_project_id("maxi", "/p"),
            }
        )
        == 3
    )
    assert parse_prefix(derive_project_id("mini", "/p")) == "prj"


def test_a_config_is_read_with_its_wire_names() -> None:
    config = read_config({"systemPrompt": "Be brief.", "wakePolicy": "manual", "appId": "a1"})
    assert (config.system_prompt, config.wake_policy, config.app_id) == ("Be brief.", WakePolicy.MANUAL, "a1")
    assert read_config(b'{"name": "Arc"}') == AgentConfig(name="Arc")


def test_a_config_is_read_over_another() -> None:
    base = AgentConfig(name="Arc", wake_policy=WakePolicy.MANUAL)
    assert read_config({"name": None, "model": "sonnet"}, base) == AgentConfig(
        model="sonnet", wake_policy=WakePolicy.MANUAL
    )


@pytest.mark.parametrize(
    ("data", "field", "problem"),
    [
        ({"connectorUserId": "5"}, "connectorUserId", "a connector key holds the external id"),
        ({"wakepolicy": "manual"}, "wakepolicy", "unknown config key 'wakepolicy'"),
        ({"wakePolicy": "sometimes"}, "wakePolicy", "sometimes"),
        ({"name": 5}, "name", "Expected `str | null`, got `int`"),
        ("[]", "", "Expected `object`, got `array`"),
        (None, "", "Expected `object`, got `null`"),
        ({5: "x"}, "", "Expected `str`"),
    ],
)
def test_a_bad_config_is_refused(data: object, field: str, problem: str) -> None:
    with pytest.raises(Refused) as refused:
        read_config(data)
    diagnostic = refused.value.diagnostic
    assert isinstance(diagnostic, BadRequest)
    assert problem in diagnostic.problem
    assert field in diagnostic.field


def test_an_unknown_key_is_refused_with_the_nearest() -> None:
    with pytest.raises(Refused) as refused:
        read_config({"wakepolicy": "manual"})
    assert [candidate.address for candidate in refused.value.diagnostic.candidates] == ["wakePolicy"]


def test_an_agent_is_stored_with_a_later_versions_fields_ignored() -> None:
    agent = an_agent()
    newer = encode(agent)[:-1] + b',"mood":"good"}'
    assert decode(newer, Agent) == agent


@pytest.mark.parametrize(
    ("config", "alone"),
    [
        (AgentConfig(), True),
        (AgentConfig(model="large"), True),
        (AgentConfig(harness="echo"), False),
        (AgentConfig(command=("cat",)), False),
    ],
)
def test_an_agent_without_a_harness_and_a_command_connects_by_itself(
    config: AgentConfig, alone: bool
) -> None:
    assert is_self_connected(config) is alone


def test_an_agent_that_moves_leaves_a_forward_and_may_come_back() -> None:
    agent = an_agent()
    assert not agent.is_remote
    forward = leave_for_node(agent, "nod_2", "two", T1)
    assert (forward.is_remote, forward.home_id, forward.node) == (True, "nod_2", "two")
    assert forward.lifecycle is Lifecycle.RETIRED
    back = return_from_move(forward, agent.node, T1)
    assert (back.is_remote, back.node, back.lifecycle) == (False, agent.node, Lifecycle.ACTIVE)


def test_an_agent_arrives_without_the_folders_of_the_other_machine() -> None:
    agent = an_agent(project_root="/a", working_dir="/a/b")
    path = AgentPath.parse("/ada/agent/arc")
    moved = arrive_from_node(agent, "nod_1", T1, node="two", path=path, known=None)
    assert (moved.id, moved.node, moved.owner, moved.moved_from) == (agent.id, "two", "ada", "nod_1")
    assert (moved.project_root, moved.working_dir, moved.revision) == (None, None, agent.revision + 1)
    forward = leave_for_node(agent, "nod_2", "two", T1)
    home = arrive_from_node(moved, "nod_2", T1, node=agent.node, path=agent.path, known=forward)
    assert (home.project_root, home.working_dir, home.moved_to) == ("/a", "/a/b", None)


def test_an_agent_is_published_since_the_first_time_until_it_is_withdrawn() -> None:
    published = publish_agent(an_agent(), T0)
    assert published.published_at == T0
    assert publish_agent(published, T1) is published
    withdrawn = unpublish_agent(published, T1)
    assert withdrawn.published_at is None
    assert unpublish_agent(withdrawn, T1) is withdrawn
