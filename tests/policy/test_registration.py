"""Which record a registration means, and which names an alias may have."""

from typing import Any

import pytest

from scout.base.refusal import Refused
from scout.identity.problem import ReservedName
from scout.model.agent import Lifecycle, ToolRole
from scout.model.problems.target import AliasShadows, NameTaken
from scout.policy.registration import Registration, RegistrationWish, check_alias, decide_registration
from tests.policy.fleets import agent, fleet


def decide(*agents: Any, **fields: Any) -> Registration:
    wish: dict[str, Any] = {"owner": "me", "definition": "arc", "node": "mini", "project_root": "/src/arc"}
    wish |= fields
    return decide_registration(RegistrationWish(**wish), fleet(*agents))


def refusal(*agents: Any, **fields: Any):
    with pytest.raises(Refused) as caught:
        decide(*agents, **fields)
    return caught.value.diagnostic


@pytest.mark.rows("R1.1-37", "R1.1-38", "R1.1-20", "R1.1-1", "R1.6-26")
def test_a_new_agent_gets_its_spellings_and_a_role() -> None:
    made = decide(root_branch="main")
    assert (made.rule, made.tool_role) == ("new", ToolRole.TL)
    assert made.spelling is not None
    assert (made.spelling.path, made.spelling.birth_branch) == ("/me/agent/arc", "main")
    plain = decide(workspace="Fix It", profile="Dev")
    assert plain.spelling is not None
    assert plain.tool_role is ToolRole.DEV
    assert plain.spelling.path == "/me/agent/arc.fix-it.dev"
    assert plain.spelling.address.canonical == "@arc.fix-it.profile:dev"
    assert decide(tool_role=ToolRole.WORKER).tool_role is ToolRole.WORKER


@pytest.mark.rows("R1.1-49")
def test_the_same_identity_from_the_same_project_is_the_same_record() -> None:
    known = agent("arc", project_root="/src/arc", tool_role=ToolRole.HOST)
    made = decide(known)
    assert made == Registration(rule="same identity", existing=known, tool_role=ToolRole.HOST)


@pytest.mark.rows("R1.1-48", "R1.1-12")
def test_another_folder_is_a_second_clone_with_a_workspace_of_its_own() -> None:
    first = agent("arc", project_root="/src/arc")
    made = decide(first, project_root="/tmp/arc", branch="Main", root_branch="main")
    assert made.spelling is not None
    assert made.spelling.address.canonical == "@arc.arc-main-6dbf4b"
    assert made.spelling.birth_branch is None
    assert made.tool_role is ToolRole.DEV
    second = agent("arc.arc-main-6dbf4b", project_root="/tmp/arc")
    assert made.elsewhere == first
    again = decide(first, second, project_root="/tmp/arc")
    assert (again.existing, again.elsewhere) == (second, first)


@pytest.mark.rows("R1.1-13")
def test_another_node_is_another_agent() -> None:
    made = decide(agent("arc", node="book", project_root="/src/arc"))
    assert made.rule == "new"


@pytest.mark.rows("R1.1-7", "R1.1-24")
def test_a_retired_name_is_revived_and_never_reused() -> None:
    told = refusal((agent("arc", path="/me/agent/arc", lifecycle=Lifecycle.RETIRED), []))
    assert isinstance(told, NameTaken)
    assert (told.noun, told.name, told.holder_state) == ("agent", "/me/agent/arc", "retired")
    assert told.holder_id == "arc@mini"
    assert [(one.operation, one.parameters) for one in told.remedies] == [
        ("agent.revive", {"address": "/me/agent/arc"})
    ]


@pytest.mark.rows("R1.1-7")
def test_a_path_held_by_another_live_agent_is_taken() -> None:
    told = refusal(agent("other", path="/me/agent/arc"))
    assert isinstance(told, NameTaken)
    assert told.holder_state == "active"
    assert told.remedies[0].operation == "show"


def test_a_reserved_word_is_no_name() -> None:
    assert isinstance(refusal(definition="codex"), ReservedName)
    assert isinstance(refusal(definition="memory"), ReservedName)


@pytest.mark.rows("R1.3-8", "R3.5-14")
def test_an_alias_may_not_shadow_a_live_definition() -> None:
    directory = fleet(agent("hudson"))
    assert check_alias("Huddy B", directory) == "huddy-b"
    with pytest.raises(Refused) as caught:
        check_alias("Hudson", directory)
    told = caught.value.diagnostic
    assert isinstance(told, AliasShadows)
    assert (told.alias, told.definition) == ("hudson", "hudson")
    assert told.remedies[0].parameters == {"name": "my-hudson", "target": "@hudson"}
    with pytest.raises(Refused) as caught:
        check_alias("root", directory)
    assert isinstance(caught.value.diagnostic, ReservedName)
