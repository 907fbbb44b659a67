"""What a name means, rule by rule, and the laws that hold in every fleet."""

import contextlib
import json
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from scout.base.refusal import Diagnostic, Refused
from scout.identity.path import AgentPath
from scout.model.agent import Agent, Lifecycle
from scout.model.alias import AliasState, AliasTarget
from scout.model.endpoint import Endpoint, EndpointState
from scout.model.node import Node, NodeState
from scout.model.problems.session import NoSession
from scout.model.problems.target import (
    AliasBroken,
    AmbiguousEndpoint,
    AmbiguousTarget,
    HarnessMismatch,
    ModelMismatch,
    PeerUnreachable,
    RetiredTarget,
    UnknownTarget,
)
from scout.policy.choose import ChoiceAction
from scout.policy.directory import OUTSIDE, Viewpoint, Wanted, list_instances
from scout.policy.resolver.fleet import Fleet
from scout.policy.resolver.fleet_file import read_fleet
from scout.policy.resolver.handle import Resolution, minimize_address
from scout.policy.resolver.resolve import resolve
from scout.protocol.operations import check_remedy
from tests.policy.fleets import NOW, agent, alias, endpoint, fleet, session

CASES = json.loads((Path(__file__).parents[2] / "data/cases/resolution.json").read_text())
FILE = read_fleet(CASES)

HERE = Viewpoint(agent_id="arc@mini", user="me", project_root="/src/arc", root_branch="main", node="mini")


def found(text: str, directory: Fleet, caller: Viewpoint = OUTSIDE) -> Resolution:
    return resolve(text, directory, caller, NOW)


def means(text: str, directory: Fleet, caller: Viewpoint = OUTSIDE) -> tuple[str, str]:
    """The agent and the rule that decided."""
    resolution = found(text, directory, caller)
    return resolution.agent.id, resolution.rule


def refusal(text: str, directory: Fleet, caller: Viewpoint = OUTSIDE):
    with pytest.raises(Refused) as caught:
        found(text, directory, caller)
    told = caught.value.diagnostic
    assert told.remedies, "every refusal says what to do next"
    assert [fault for remedy in told.remedies for fault in check_remedy(remedy)] == []
    return told


def addresses(told: object) -> list[str]:
    assert isinstance(told, Diagnostic)
    return [candidate.address for candidate in told.candidates]


# -- the shared cases ---------------------------------------------------------------------------


@pytest.mark.rows("R1.3-12", "R1.3-13", "R1.3-36")
@pytest.mark.parametrize(("text", "expected"), CASES["resolve"].items())
def test_the_cases_resolve(text: str, expected: str) -> None:
    try:
        answer = FILE.key_of(resolve(text, FILE.fleet, FILE.caller, FILE.now).endpoint_id or "")
    except Refused as refused:
        answer = refused.diagnostic.code
    assert answer == expected


@pytest.mark.rows("R1.3-39", "R1.3-40", "R1.3-42")
@pytest.mark.parametrize(("key", "expected"), CASES["minimal"].items())
def test_the_cases_have_their_minimal_address(key: str, expected: str) -> None:
    assert minimize_address(FILE.instances[key], FILE.fleet, FILE.now) == expected


# -- the one agent ------------------------------------------------------------------------------


@pytest.mark.rows("R1.3-14", "R1.3-15")
def test_the_base_agent_answers_to_its_bare_name() -> None:
    roster = fleet(agent("talkie"), agent("talkie.fix"), agent("talkie.x"))
    assert means("@talkie", roster) == ("talkie@mini", "exact")
    assert means("@talkie.fix", roster) == ("talkie.fix@mini", "only match")


@pytest.mark.rows("R1.3-14", "R1.1-13")
def test_exact_means_workspace_and_profile_on_any_node() -> None:
    dev = agent("arc", id="dev", profile="dev")
    roster = fleet(agent("arc.main"), (dev, []), agent("arc", node="book"))
    assert means("@arc", roster) == ("arc@book", "exact")
    assert means("@arc.profile:dev", roster) == ("dev", "only match")


def test_an_agent_without_a_node_is_the_exact_one_for_a_text_without_a_node() -> None:
    homeless = agent("arc", id="homeless", node="", path="/me/agent/arc")
    roster = fleet(homeless, agent("arc"), agent("arc", node="book"))
    assert means("@arc", roster) == ("homeless", "exact")
    assert means("@arc.node:mini", roster) == ("arc@mini", "only match")


@pytest.mark.rows("R1.3-16", "R1.3-41")
def test_the_only_one_online_wins() -> None:
    asleep = agent("arc.a")
    roster = fleet((asleep, []), agent("arc.b"), (agent("arc.c"), []))
    assert means("@arc", roster) == ("arc.b@mini", "only one online")


@pytest.mark.rows("R1.3-17")
def test_the_only_one_in_the_callers_project_wins() -> None:
    special = agent("arc.a", project_root="/src/arc", profile="dev")
    roster = fleet(special, agent("arc.b"), agent("arc.c", node="book"))
    assert means("@arc", roster, Viewpoint(project_root="/src/arc")) == ("arc.a@mini", "own project")
    assert isinstance(refusal("@arc", roster, Viewpoint(project_root="/src/other")), AmbiguousTarget)


@pytest.mark.rows("R1.3-18")
def test_the_only_one_on_the_callers_node_wins() -> None:
    roster = fleet(agent("arc.a"), agent("arc.b", node="book"), agent("arc.c", node="mini"))
    assert means("@arc", roster, Viewpoint(node="book")) == ("arc.b@book", "only match")
    assert isinstance(refusal("@arc", roster, Viewpoint(node="mini")), AmbiguousTarget)
    assert isinstance(refusal("@arc.node:mini", roster, Viewpoint(node="mini")), AmbiguousTarget)


def test_other_nodes_are_considered_only_if_none_of_the_callers_matches() -> None:
    roster = fleet(agent("arc"), agent("arc.fix", node="book"), agent("bow", node="book"))
    assert means("@arc", roster, Viewpoint(node="book")) == ("arc.fix@book", "only match")
    assert means("@arc.node:mini", roster, Viewpoint(node="book")) == ("arc@mini", "only match")
    assert means("@bow", roster, Viewpoint(node="mini")) == ("bow@book", "only match")
    steps = found("@bow", roster, Viewpoint(node="mini")).steps
    assert [(one.rule, one.left) for one in steps] == [("own node", 0), ("matching", 1)]


def test_inside_a_clone_its_own_agent_is_meant() -> None:
    first = agent("arc", project_root="/src/arc")
    clone = agent("arc.arc-main-8012ac", project_root="/clones/arc")
    other = agent("bow", project_root="/src/bow")
    roster = fleet(first, clone, agent("arc.fix"), other)
    inside = Viewpoint(project_root="/clones/arc", node="mini")
    assert means("@arc", roster, inside) == (clone.id, "own clone")
    assert means("@arc#claude", roster, inside) == (clone.id, "own clone")
    assert isinstance(refusal("@arc#codex", roster, inside), HarnessMismatch)
    assert means("@arc.fix", roster, inside) == ("arc.fix@mini", "only match")
    assert means("@bow", roster, inside) == ("bow@mini", "only match")
    for place in ("/src/arc", "/src/bow", "/src/nowhere"):
        assert means("@arc", roster, Viewpoint(project_root=place)) == ("arc@mini", RULES_OF_PLACES[place])


RULES_OF_PLACES = {"/src/arc": "own clone", "/src/bow": "exact", "/src/nowhere": "exact"}


@pytest.mark.rows("R1.3-19", "R1.3-20", "R1.3-33", "R3.5-16")
def test_a_harness_constrains_the_exact_agent_and_never_slides_to_a_sibling() -> None:
    fix = agent("talkie.fix")
    roster = fleet(agent("talkie"), (fix, [endpoint(fix, "codex")]))
    told = refusal("@talkie#codex", roster)
    assert isinstance(told, HarnessMismatch)
    assert (told.requested, told.attached) == ("codex", ("claude",))
    assert addresses(told) == ["@talkie.fix.harness:codex"]
    assert [(one.operation, one.parameters) for one in told.remedies] == [
        ("session.start", {"agent": "@talkie", "harness": "codex"})
    ]


@pytest.mark.rows("R1.3-21", "R1.3-29")
def test_without_an_exact_agent_harness_and_model_narrow() -> None:
    a, b = agent("arc.a"), agent("arc.b")
    roster = fleet((a, [endpoint(a, "codex", "gpt-5.5")]), (b, [endpoint(b, "codex", "gpt-5")]))
    assert means("@arc?5.5", roster) == ("arc.a@mini", "harness and model")
    assert means("@arc#codex?5", roster) == ("arc.b@mini", "harness and model")
    told = refusal("@arc#codex?6", roster)
    assert isinstance(told, ModelMismatch)
    assert (told.requested, told.attached) == ("6", ("gpt-5.5", "gpt-5"))
    assert addresses(told) == [
        "@arc.a.harness:codex.model:gpt-5-5",
        "@arc.b.harness:codex.model:gpt-5",
    ]
    assert isinstance(refusal("@arc#claude?6", roster), HarnessMismatch)
    assert isinstance(refusal("@arc?6", roster), ModelMismatch)
    other = refusal("@arc#claude", roster)
    assert isinstance(other, HarnessMismatch)
    assert other.attached == ("codex",)


def test_narrowed_agents_are_still_a_tie() -> None:
    roster = fleet(agent("arc.a"), agent("arc.b"), agent("arc.c", node="book"))
    assert isinstance(refusal("@arc#claude", roster), AmbiguousTarget)
    assert addresses(refusal("@arc#claude", roster)) == [
        "@arc.a.harness:claude",
        "@arc.b.harness:claude",
        "@arc.c.harness:claude",
    ]
    assert means("@arc#claude", roster, Viewpoint(node="book")) == ("arc.c@book", "only match")


def test_two_exact_agents_on_two_nodes_are_told_apart_by_harness_but_not_by_a_worktree() -> None:
    mini, book, fix = agent("hudson"), agent("hudson", node="book"), agent("hudson.fix")
    roster = fleet((mini, [endpoint(mini, "claude")]), (book, [endpoint(book, "codex")]), fix)
    assert means("@hudson#codex", roster) == ("hudson@book", "harness and model")
    told = refusal("@hudson", roster)
    assert isinstance(told, AmbiguousTarget)
    assert told.count == 2


@pytest.mark.rows("R1.3-22", "R1.3-23", "R1.3-24", "R3.5-12")
def test_several_are_ambiguous_with_at_most_twenty_candidates_and_the_whole_count() -> None:
    roster = fleet(*(agent(f"arc.w{number}") for number in range(30)))
    told = refusal("@arc", roster)
    assert isinstance(told, AmbiguousTarget)
    assert (told.count, len(told.candidates)) == (30, 20)
    assert told.candidates[0].address == "@arc.w0"
    assert told.retry == "@arc.w0.node:mini"
    for candidate in told.candidates:
        assert found(candidate.address, roster).agent.id == candidate.agent_id
        assert found(candidate.canonical, roster).agent.id == candidate.agent_id
    assert [one.parameters for one in told.remedies] == [
        {"address": "@arc.w0"},
        {"address": "@arc.w1"},
        {"address": "@arc.w2"},
    ]


@pytest.mark.rows("R1.3-25", "R3.5-10")
@pytest.mark.parametrize(
    ("typed", "nearest"),
    [
        ("@hudsn", ["@hudson"]),  # a letter missing
        ("@hudsson", ["@hudson"]),  # a letter too many
        ("@hudsan", ["@hudson"]),  # another letter
        ("@hudosn", ["@hudson"]),  # swapped letters
        ("@hud", ["@huddy", "@hudson"]),  # the beginning
        ("@fix", ["@talkie.fix"]),  # the qualifier without its definition
        ("@huddy.main", ["@huddy"]),
        ("@zzz", []),
    ],
)
def test_unknown_names_come_with_the_nearest(typed: str, nearest: list[str]) -> None:
    told = refusal(typed, FILE.fleet)
    assert isinstance(told, UnknownTarget)
    assert addresses(told) == nearest
    assert told.remedies[0].operation == ("resolve" if nearest else "who")


@pytest.mark.rows("R1.3-27")
@pytest.mark.parametrize("typed", ["@talkie.fxi", "@talkie.profile:dev", "@talkie.node:moon"])
def test_a_known_definition_with_another_qualifier_offers_its_siblings(typed: str) -> None:
    told = refusal(typed, FILE.fleet)
    assert isinstance(told, UnknownTarget)
    assert sorted(addresses(told)) == ["@talkie", "@talkie.fix"]
    assert "talkie exists, but not with" in told.reason
    assert len(told.remedies) == 2


def test_the_sibling_that_looks_most_like_it_comes_first() -> None:
    assert addresses(refusal("@talkie.fxi", FILE.fleet))[0] == "@talkie.fix"
    told = refusal("@talkie.dev.profile:x.node:y", FILE.fleet)
    assert isinstance(told, UnknownTarget)
    assert told.reason == "talkie exists, but not with workspace 'dev' and profile 'x' and node 'y'"


@pytest.mark.rows("R1.3-30", "R3.5-19")
def test_a_known_node_that_is_down_is_unreachable() -> None:
    roster = fleet(agent("arc"))
    for state in NodeState:
        roster.add_node(Node(id="n", created_at=NOW, updated_at=NOW, name="moon", state=state, last_seen=NOW))
        told = refusal("@arc.node:moon", roster)
        if state is NodeState.ONLINE:
            assert isinstance(told, UnknownTarget)
        else:
            assert isinstance(told, PeerUnreachable)
            assert (told.node, told.last_seen) == ("moon", NOW)
            assert told.remedies[0].operation == "mesh.status"


@pytest.mark.rows("R1.3-1", "R1.4-32", "R3.5-23")
def test_a_retired_agent_never_matches_but_is_remembered() -> None:
    gone = agent("arc", lifecycle=Lifecycle.RETIRED, path="/me/agent/arc")
    roster = fleet((gone, []), agent("bow"))
    for text in ("@arc", "/me/agent/arc"):
        told = refusal(text, roster)
        assert isinstance(told, RetiredTarget)
        assert (told.agent_id, told.retired_at, told.address) == ("arc@mini", NOW, text)
        assert told.remedies[0].parameters == {"address": "/me/agent/arc"}


# -- the instance -------------------------------------------------------------------------------


@pytest.mark.rows("R1.3-31", "R1.1-32")
def test_the_instance_that_the_text_spells_out_wins() -> None:
    arc = agent("arc")
    plain, sonnet = endpoint(arc), endpoint(arc, "claude", "claude-sonnet-4-6", preferred=True)
    roster = fleet((arc, [sonnet, plain, endpoint(arc, "codex", "gpt-5.5")]))
    assert found("@arc#claude", roster).endpoint_id == plain.id
    assert found("@arc#claude?sonnet", roster).endpoint_id == sonnet.id
    assert found("@arc", roster).endpoint_id == sonnet.id
    assert found("@arc#codex", roster).canonical == "@arc.harness:codex.model:gpt-5-5.node:mini"


@pytest.mark.rows("R1.3-32", "R3.5-13", "R3.2-10")
def test_endpoints_of_two_harnesses_are_ambiguous() -> None:
    arc = agent("arc")
    roster = fleet((arc, [endpoint(arc, "claude", "a"), endpoint(arc, "codex", "b")]))
    told = refusal("@arc", roster)
    assert isinstance(told, AmbiguousEndpoint)
    assert told.harnesses == ("claude", "codex")
    assert addresses(told) == ["@arc.harness:claude", "@arc.harness:codex"]
    assert told.retry == "@arc.harness:claude"


@pytest.mark.rows("R1.1-34")
def test_an_agent_without_endpoints_takes_any_harness_and_model() -> None:
    roster = fleet((agent("arc"), []))
    for text in ("@arc", "@arc#codex", "@arc#claude?sonnet", "@arc?5"):
        resolution = found(text, roster)
        assert (resolution.choice.action, resolution.endpoint_id) == (ChoiceAction.START, None)
        assert resolution.canonical == "@arc.node:mini"


@pytest.mark.rows("R1.1-33")
def test_endpoints_with_the_same_dimensions_are_one_instance() -> None:
    arc = agent("arc")
    pair = [endpoint(arc, id="one", model="GPT-5.5"), endpoint(arc, id="two", model="gpt-5-5")]
    (instance,) = list_instances(arc, pair)
    assert instance.canonical == "@arc.harness:claude.model:gpt-5-5.node:mini"
    assert [one.id for one in instance.endpoints] == ["one", "two"]


@pytest.mark.rows("R1.3-28")
def test_a_harness_that_is_not_attached_is_a_mismatch() -> None:
    told = refusal("@arc#codex", fleet(agent("arc")))
    assert isinstance(told, HarnessMismatch)
    assert addresses(told) == []
    assert isinstance(refusal("@arc?opus", fleet(agent("arc"))), ModelMismatch)


@pytest.mark.rows("R3.2-12")
def test_a_session_made_for_one_ask_is_no_route_for_a_name() -> None:
    arc = agent("arc")
    mine = endpoint(arc, "codex", isolated_for="bow@mini")
    roster = fleet((arc, [mine]))
    assert found("@arc", roster).choice.action is ChoiceAction.START
    assert found("@arc", roster, Viewpoint(agent_id="bow@mini")).choice.action is ChoiceAction.START


@pytest.mark.parametrize("text", ["@arc", "@arc#acp", "@arc?opus"])
def test_whoever_needs_no_endpoint_finds_the_agent_by_any_of_its_harnesses(text: str) -> None:
    arc = agent("arc")
    roster = fleet((arc, [endpoint(arc, "claude"), endpoint(arc, "codex")]))
    assert isinstance(refusal(text, roster), AmbiguousEndpoint | HarnessMismatch | ModelMismatch)
    answer = resolve(text, roster, OUTSIDE, NOW, needs_endpoint=False)
    assert (answer.agent.id, answer.endpoint_id) == (arc.id, None)
    with pytest.raises(Refused):
        resolve("@nobody", roster, OUTSIDE, NOW, needs_endpoint=False)


# -- aliases ------------------------------------------------------------------------------------


def with_alias(target: AliasTarget, **fields: object) -> Fleet:
    arc = agent("arc")
    endpoints = [
        endpoint(arc, "claude", session_id="ses_1"),
        endpoint(arc, "codex", "gpt-5.5"),
    ]
    roster = fleet((arc, endpoints), agent("bow"))
    roster.add_session(session(arc, "ses_1"))
    roster.add_alias(alias("a", target, revision=7, **fields))
    return roster


@pytest.mark.rows("R1.3-3", "R1.3-4")
@pytest.mark.parametrize(
    ("target", "harness"),
    [
        (AliasTarget(agent_id="arc@mini", harness="codex"), "codex"),
        (AliasTarget(agent_id="arc@mini", harness="codex", model="5-5", node="mini"), "codex"),
        (AliasTarget(session_id="ses_1"), "claude"),
    ],
)
def test_an_alias_decides_first(target: AliasTarget, harness: str) -> None:
    roster = with_alias(target)
    for text in ("@a", "a", "alias:a"):
        resolution = found(text, roster)
        assert (resolution.agent.id, resolution.rule) == ("arc@mini", "alias")
        assert resolution.choice.harness == harness
        assert (resolution.alias_id, resolution.alias_revision) == ("als_a", 7)
        assert resolution.steps[0].rule == "alias"


def test_an_alias_takes_no_qualifiers() -> None:
    told = refusal("@a.main", with_alias(AliasTarget(agent_id="arc@mini")))
    assert isinstance(told, UnknownTarget)
    assert addresses(told) == ["@a", "@arc"]


@pytest.mark.rows("R1.3-10", "R1.3-11", "R3.5-14")
@pytest.mark.parametrize(
    ("target", "fields", "reason", "readings"),
    [
        (AliasTarget(agent_id="nobody"), {}, "its agent is gone", []),
        (AliasTarget(session_id="ses_9"), {}, "its session is gone", []),
        (AliasTarget(agent_id="bow@mini", node="moon"), {}, "its agent lives on mini, not on moon", ["@bow"]),
        (
            AliasTarget(agent_id="bow@mini"),
            {"state": AliasState.BROKEN, "reason": "two of them"},
            "two of them",
            ["@bow"],
        ),
        (AliasTarget(agent_id="bow@mini"), {"state": AliasState.BROKEN}, "it is marked as broken", ["@bow"]),
    ],
)
def test_a_broken_alias_shows_its_readings(
    target: AliasTarget, fields: dict[str, object], reason: str, readings: list[str]
) -> None:
    told = refusal("@a", with_alias(target, **fields))
    assert isinstance(told, AliasBroken)
    assert (told.alias, told.reason, addresses(told)) == ("a", reason, readings)
    assert told.remedies[-1].parameters == {"name": "a"}
    assert [one.parameters["target"] for one in told.remedies[:-1]] == readings


def test_an_alias_whose_agent_was_retired_is_broken_without_a_reading() -> None:
    roster = fleet((agent("arc", lifecycle=Lifecycle.RETIRED), []))
    roster.add_alias(alias("a", AliasTarget(agent_id="arc@mini")))
    told = refusal("@a", roster)
    assert isinstance(told, AliasBroken)
    assert (told.reason, told.candidates) == ("its agent is retired", ())


@pytest.mark.rows("R1.3-9")
def test_a_definition_registered_later_breaks_the_alias() -> None:
    roster = with_alias(AliasTarget(agent_id="arc@mini", harness="codex"))
    roster.add(agent("a", path="/me/agent/a"), [])
    told = refusal("@a", roster)
    assert isinstance(told, AliasBroken)
    assert told.reason == "an agent of this name was registered later"
    assert addresses(told) == ["@a.node:mini", "@arc"]


def test_a_name_that_a_broken_alias_hides_is_reached_by_its_path() -> None:
    homeless = agent("arc", id="h", node="", path="/me/agent/arc")
    roster = fleet((homeless, []), agent("bow"))
    roster.add_alias(alias("arc", AliasTarget(agent_id="bow@mini")))
    (instance,) = list_instances(homeless, [])
    assert minimize_address(instance, roster, NOW) == "/me/agent/arc"
    assert means("/me/agent/arc", roster) == ("h", "path")
    assert isinstance(refusal("@arc", roster), AliasBroken)


def test_a_removed_alias_is_no_alias() -> None:
    assert isinstance(
        refusal("@a", with_alias(AliasTarget(agent_id="arc@mini"), state=AliasState.REMOVED)), UnknownTarget
    )
    assert isinstance(refusal("alias:x", with_alias(AliasTarget(agent_id="arc@mini"))), UnknownTarget)


@pytest.mark.rows("R1.1-47")
def test_an_alias_may_name_an_agent_without_a_handle() -> None:
    chat = agent("x", id="chat", path="/me/telegram", definition_id=None)
    roster = fleet((chat, []))
    roster.add_alias(alias("phone", AliasTarget(agent_id="chat")))
    assert means("@phone", roster) == ("chat", "alias")
    (instance,) = list_instances(chat, [])
    assert minimize_address(instance, roster, NOW) == "@phone"


@pytest.mark.rows("R1.1-46")
def test_an_agent_without_a_handle_is_known_by_its_path() -> None:
    chat = agent("x", id="chat", path="/me/telegram", definition_id=None)
    roster = fleet((chat, []))
    assert found("/me/telegram", roster).canonical == "/me/telegram"
    (instance,) = list_instances(chat, [])
    assert minimize_address(instance, roster, NOW) == "/me/telegram"


# -- the other forms ----------------------------------------------------------------------------


def family() -> Fleet:
    """A project with its root agent, a child on a branch and a sub-agent of that child."""
    root = agent("arc", path="/me/agent/arc", project_root="/src/arc", birth_branch="main")
    child = agent(
        "arc.x",
        id="x",
        path="/me/agent/arc/sub/0",
        parent_id=root.id,
        project_root="/src/arc",
        birth_branch="main.x",
    )
    grandchild = agent(
        "arc.y", id="y", path="/me/agent/arc/sub/0/sub/1", parent_id="x", project_root="/src/arc"
    )
    person = agent("p", id="person", path="/me/direct", definition_id=None)
    roster = fleet(root, child, (grandchild, [endpoint(grandchild, session_id="ses_7")]), (person, []))
    roster.add_session(session(grandchild, "ses_7", native_ids={"session": "0f-aa"}))
    return roster


@pytest.mark.rows("R1.6-9", "R1.6-10", "R1.6-12", "R1.6-13", "R1.6-15", "R0-58", "R3.2-5")
@pytest.mark.parametrize(
    ("text", "caller", "expected", "rule", "form"),
    [
        ("/me/agent/arc/sub/0", OUTSIDE, "x", "path", "path"),
        (".", HERE, "arc@mini", "relative to the caller", "relative"),
        ("self", HERE, "arc@mini", "relative to the caller", "relative"),
        ("./sub/0", HERE, "x", "path", "relative"),
        ("..", Viewpoint(agent_id="x"), "arc@mini", "relative to the caller", "relative"),
        ("parent", Viewpoint(agent_id="y"), "x", "relative to the caller", "relative"),
        ("../sub/0", Viewpoint(agent_id="x"), "x", "path", "relative"),
        ("root", HERE, "arc@mini", "root of the project", "root"),
        ("root", Viewpoint(project_root="/src/arc"), "arc@mini", "root of the project", "root"),
        ("operator", HERE, "person", "path", "operator"),
        ("branch:main.x", HERE, "x", "birth branch", "branch"),
        ("main.x", HERE, "x", "birth branch", "branch"),
        ("main", HERE, "arc@mini", "root branch", "handle"),
        ("agt_1", OUTSIDE, "", "", ""),
        ("session:ses_7", OUTSIDE, "y", "session", "session"),
        ("ses_7", OUTSIDE, "y", "session", "id"),
        ("session:claude:0f-aa", OUTSIDE, "y", "session", "session"),
        ("project:/src/arc", OUTSIDE, "arc@mini", "base agent of the project", "project"),
        ("arc", OUTSIDE, "arc@mini", "exact", "handle"),
        ("arc.x", HERE, "x", "only match", "handle"),
    ],
)
def test_every_form_finds_its_agent(
    text: str, caller: Viewpoint, expected: str, rule: str, form: str
) -> None:
    if not expected:
        assert isinstance(refusal(text, family(), caller), UnknownTarget)
        return
    resolution = found(text, family(), caller)
    assert (resolution.agent.id, resolution.rule, resolution.form) == (expected, rule, form)


def test_an_agent_and_an_endpoint_are_found_by_their_ids() -> None:
    arc = agent("arc", id="agt_1")
    pair = [endpoint(arc, id="ept_1"), endpoint(arc, "codex", id="ept_2")]
    roster = fleet((arc, pair))
    assert found("ept_2", roster).endpoint_id == "ept_2"
    assert isinstance(refusal("agt_1", roster), AmbiguousEndpoint)
    assert isinstance(refusal("ept_3", roster), UnknownTarget)


@pytest.mark.rows("R1.6-16", "R1.6-17", "R1.6-18")
def test_bare_texts_try_the_branch_first_and_refuse_two_readings() -> None:
    roster = family()
    roster.add(agent("main.x", id="other", path="/me/agent/other"), [])
    told = refusal("main.x", roster, HERE)
    assert isinstance(told, AmbiguousTarget)
    assert (told.count, told.retry, addresses(told)) == (2, "branch:main.x", ["branch:main.x", "@main.x"])
    assert means("main.x", roster) == ("other", "only match")
    assert means("@main.x", roster, HERE) == ("other", "only match")


def test_a_deep_branch_is_found_although_it_is_no_handle() -> None:
    roster = family()
    deep = agent(
        "arc.z", id="z", path="/me/agent/arc/sub/9", project_root="/src/arc", birth_branch="main.x.z"
    )
    roster.add(deep, [])
    assert means("main.x.z", roster, HERE) == ("z", "birth branch")


def test_the_word_of_the_root_branch_may_be_free() -> None:
    roster = fleet(agent("main"))
    assert means("main", roster, HERE) == ("main@mini", "only match")
    roster.add_alias(alias("m", AliasTarget(agent_id="main@mini")))
    assert means("m", roster, replace(HERE, root_branch="m")) == ("main@mini", "alias")


@pytest.mark.rows("R1.4-31", "R3.5-15")
@pytest.mark.parametrize(
    ("text", "caller", "reason", "operation"),
    [
        ("/me/agent/arc/sub/7", OUTSIDE, "no agent has this path", "ask"),
        ("/me/agent/nobody/sub/7", OUTSIDE, "no agent has this path", "ask"),
        ("..", HERE, "you have no parent", "notify"),
        (".", OUTSIDE, "relative addresses work only for agents", "who"),
        ("root", OUTSIDE, "you are not in a project", "who"),
        ("root", Viewpoint(project_root="/else"), "it has no agent yet", "who"),
        ("operator", OUTSIDE, "the caller has no user", "who"),
        ("branch:main.q", HERE, "no agent of your project has this birth branch", "who"),
        ("branch:main.x", OUTSIDE, "no agent of your project has this birth branch", "who"),
        ("agt_9", OUTSIDE, "no agent has this id", "who"),
        ("flt_9", OUTSIDE, "it is the id of a flight, not of an agent", "who"),
        ("channel:dev", OUTSIDE, "a channel is not an agent", "send"),
        ("project:/nowhere", OUTSIDE, "this project has no agent yet; asking it creates one", "ask"),
        ("alias:zz", OUTSIDE, "no alias has this name", "who"),
    ],
)
def test_a_form_that_finds_nothing_says_why(
    text: str, caller: Viewpoint, reason: str, operation: str
) -> None:
    told = refusal(text, family(), caller)
    assert isinstance(told, UnknownTarget)
    assert (told.address, told.reason, told.remedies[0].operation) == (text, reason, operation)


def test_a_parent_that_is_not_in_the_directory_is_not_called_absent() -> None:
    roster = family()
    roster.add(agent("arc.lost", id="lost", path="/me/agent/arc/sub/8", parent_id="gone"), [])
    told = refusal("parent", roster, Viewpoint(agent_id="lost"))
    assert isinstance(told, UnknownTarget)
    assert (told.reason, told.remedies[0].operation) == ("your parent is not in the directory", "notify")


def test_a_missing_path_offers_the_nearest_ancestor() -> None:
    told = refusal("/me/agent/arc/sub/0/sub/5/memory", family())
    assert addresses(told) == ["/me/agent/arc/sub/0"]


@pytest.mark.parametrize("text", ["session:ses_9", "ses_9", "session:codex:0f-aa"])
def test_an_unknown_session_offers_to_attach_one(text: str) -> None:
    told = refusal(text, family())
    assert isinstance(told, NoSession)
    assert told.message == f"Scout knows no session {text}: start or attach one"
    assert [remedy.operation for remedy in told.remedies] == ["session.list", "session.attach"]


def test_a_session_that_lost_its_endpoint_cannot_be_reached() -> None:
    roster = family()
    roster.add_session(session(agent("arc.x", id="x"), "ses_8"))
    told = refusal("ses_8", roster)
    assert isinstance(told, NoSession)
    assert [remedy.operation for remedy in told.remedies] == ["session.attach", "session.start"]
    roster.add_session(session(agent("gone"), "ses_6"))
    assert isinstance(refusal("ses_6", roster), UnknownTarget)


# -- laws ---------------------------------------------------------------------------------------

NAMES = st.sampled_from(["arc", "bow", "cat"])
PLACES = st.sampled_from([None, "main", "fix"])
HARNESSES = st.sampled_from([None, "claude", "codex"])
MODELS = st.sampled_from([None, "gpt-5.5", "gpt-5", "claude-sonnet-4-6", "sonnet"])
NODES = st.sampled_from([None, "mini", "book"])


@st.composite
def rows(draw: st.DrawFn) -> dict[str, object]:
    row: dict[str, object] = {"definitionId": draw(NAMES)}
    for name, values in (
        ("workspaceQualifier", PLACES),
        ("profile", st.sampled_from([None, "dev"])),
        ("harness", HARNESSES),
        ("model", MODELS),
        ("node", NODES),
    ):
        value = draw(values)
        if value is not None:
            row[name] = value
    return {**row, "online": draw(st.booleans()), "preferred": draw(st.booleans())}


@st.composite
def files(draw: st.DrawFn) -> dict[str, object]:
    instances = {f"k{index}": row for index, row in enumerate(draw(st.lists(rows(), min_size=1, max_size=8)))}
    names = st.sampled_from(["al", "x", "huddy", "long-alias-name"])
    aliases = draw(st.dictionaries(names, st.sampled_from(sorted(instances)), max_size=2))
    return {"instances": instances, "aliases": aliases}


@pytest.mark.rows("R1.3-43")
@given(files())
def test_law_the_minimal_address_resolves_to_its_instance(data: dict[str, object]) -> None:
    file = read_fleet(data)
    for instance in file.instances.values():
        shortest = minimize_address(instance, file.fleet, file.now)
        resolution = resolve(shortest, file.fleet, OUTSIDE, file.now)
        assert resolution.agent.id == instance.agent.id
        assert resolution.canonical == instance.canonical
        assert len(shortest) <= len(instance.canonical)


@pytest.mark.rows("R1.3-44")
@given(files(), rows())
def test_law_an_unrelated_agent_changes_no_canonical_resolution(
    data: dict[str, dict[str, object]], other: dict[str, object]
) -> None:
    before = read_fleet(data)
    bases = [one.agent for one in before.instances.values()]
    names = ("definitionId", "workspaceQualifier", "profile", "node")
    told = (other["definitionId"], *(other.get(name) for name in names[1:]))
    related = [(one.definition_id, one.workspace, one.profile, one.node or None) == told for one in bases]
    if any(related):
        return  # another endpoint of the same agent is not unrelated
    after = read_fleet({**data, "instances": {**data["instances"], "new": other}})
    for instance in before.instances.values():
        answers = [resolve(instance.canonical, file.fleet, OUTSIDE, file.now) for file in (before, after)]
        assert answers[0].agent.id == answers[1].agent.id == instance.agent.id
        assert answers[0].canonical == answers[1].canonical == instance.canonical


@pytest.mark.rows("R1.3-34", "R3-3")
@given(files(), st.sampled_from(["@arc", "@bow#codex", "@cat?5", "@al", "arc.main", "@arc.node:mini?sonnet"]))
def test_law_resolving_twice_gives_the_same_answer(data: dict[str, object], text: str) -> None:
    file = read_fleet(data)
    answers: list[object] = []
    for _ in range(2):
        try:
            answers.append(resolve(text, file.fleet, file.caller, file.now))
        except Refused as refused:
            answers.append(refused.diagnostic)
            assert refused.diagnostic.remedies
    assert answers[0] == answers[1]


# -- cost ---------------------------------------------------------------------------------------


class Counting(Fleet):
    """A fleet that counts what the resolver looks at."""

    looked = 0

    def find(self, wanted: Wanted, limit: int) -> tuple[Agent, ...]:
        answer = super().find(wanted, limit)
        self.looked += 1 + len(answer)
        return answer

    def endpoints(self, agent_id: str) -> list[Endpoint]:
        answer = list(super().endpoints(agent_id))
        self.looked += 1 + len(answer)
        return answer

    def near(self, keys: Collection[str], limit: int) -> list[str]:
        answer = list(super().near(keys, limit))
        self.looked += len(answer)
        return answer


def cost(size: int, text: str) -> int:
    roster = Counting(NOW)
    for number in range(size):
        one = agent(f"bulk{number}", path=f"/me/agent/b{number}")
        roster.add(one, [endpoint(one)])
    for number in range(40):
        roster.add(agent(f"arc.w{number}"), [])
    with contextlib.suppress(Refused):
        resolve(text, roster, OUTSIDE, NOW)
    return roster.looked


@pytest.mark.rows("R1.3-37", "R1.3-26")
@pytest.mark.parametrize("text", ["@bulk7", "@arc", "@bluk7", "@nothing-like-it", "@arc.w3"])
def test_the_lookups_do_not_grow_with_the_fleet(text: str) -> None:
    small, large = cost(10, text), cost(1000, text)
    assert large <= small + 60  # only nearest names may differ, and they are bounded


def test_offline_endpoints_are_woken() -> None:
    arc = agent("arc")
    roster = fleet((arc, [endpoint(arc, state=EndpointState.STALE)]))
    assert found("@arc", roster).choice.action is ChoiceAction.WAKE


def test_a_path_is_kept_as_typed() -> None:
    who: Agent = agent("Arc", path="/Me/agent/Arc", definition_id=None)
    assert found("/Me/agent/Arc", fleet((who, []))).agent.path == AgentPath("/Me/agent/Arc")
