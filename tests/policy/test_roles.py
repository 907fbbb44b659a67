"""Which harness, model and effort a role names, and what of it an agent uses."""

import pytest

from scout.identity.path import AgentPath, ModelRole
from scout.model.agent import AgentConfig
from scout.policy.roles import HarnessModel, Roles, choose_runtime, find_runtime, read_role

ROLES = Roles(
    user="claude/sonnet", subagent="codex", memory="claude//low", memory_search="echo/m/e", task="acp"
)


@pytest.mark.parametrize(
    ("text", "runtime"),
    [
        ("claude", HarnessModel(harness="claude")),
        ("claude/sonnet", HarnessModel(harness="claude", model="sonnet")),
        ("codex/gpt-5.5/high", HarnessModel(harness="codex", model="gpt-5.5", effort="high")),
        ("codex//high", HarnessModel(harness="codex", effort="high")),
    ],
)
def test_a_role_names_a_harness_and_perhaps_a_model_and_an_effort(text: str, runtime: HarnessModel) -> None:
    assert read_role(text) == runtime


@pytest.mark.parametrize(
    ("path", "role", "harness"),
    [
        ("/u1/telegram", ModelRole.USER, "claude"),
        ("/u1/agent/arc", ModelRole.USER, "claude"),
        ("/u1/cron/c1", None, None),
        ("/u1/task/t1", ModelRole.TASK, "acp"),
        ("/u1/subuser/kid", ModelRole.USER, "claude"),
        ("/system/sweeper", None, None),
        ("/u1/agent/arc/sub/0", ModelRole.SUBAGENT, "codex"),
        ("/u1/agent/arc/memory", ModelRole.MEMORY, "claude"),
        ("/u1/agent/arc/search/0", ModelRole.MEMORY_SEARCH, "echo"),
    ],
)
def test_each_path_has_its_role(path: str, role: ModelRole | None, harness: str | None) -> None:
    found = AgentPath.parse(path).model_role
    assert found == role
    runtime = find_runtime(ROLES, found)
    assert (runtime.harness if runtime else None) == harness


def test_a_role_that_is_not_set_names_nothing() -> None:
    assert [find_runtime(Roles(), role) for role in ModelRole] == [None] * len(ModelRole)


@pytest.mark.parametrize(
    ("config", "harness", "model", "effort"),
    [
        (AgentConfig(), "claude", "sonnet", "high"),
        (AgentConfig(model="opus"), "claude", "opus", "high"),
        (AgentConfig(model="opus", effort="low"), "claude", "opus", "low"),
        (AgentConfig(), "codex", None, None),  # the model of another harness means nothing there
        (AgentConfig(model="gpt-5.5"), "codex", "gpt-5.5", None),
    ],
)
def test_an_agents_own_settings_come_before_those_of_its_role(
    config: AgentConfig, harness: str, model: str | None, effort: str | None
) -> None:
    role = HarnessModel(harness="claude", model="sonnet", effort="high")
    assert choose_runtime(config, role, harness) == HarnessModel(harness=harness, model=model, effort=effort)


def test_without_a_role_an_agent_has_its_own_settings() -> None:
    own = AgentConfig(model="opus", effort="max")
    assert choose_runtime(own, None, "claude") == HarnessModel(harness="claude", model="opus", effort="max")
