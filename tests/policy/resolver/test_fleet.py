"""A fleet in memory answers what a plain scan would answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.identity.model_word import matches_model
from scout.identity.path import AgentPath
from scout.model.agent import Agent, Lifecycle
from scout.model.alias import AliasTarget
from scout.model.endpoint import Endpoint, EndpointState, is_online
from scout.policy.directory import Wanted
from scout.policy.nearest import build_keys
from scout.policy.resolver.fleet import Fleet
from tests.policy.fleets import NOW, agent, alias, endpoint, fleet

WORDS = st.sampled_from(["arc", "bow"])
PLACES = st.sampled_from([None, "main", "fix"])
NODES = st.sampled_from(["", "mini", "book"])
PROJECTS = st.sampled_from([None, "/src/a", "/src/b"])


@st.composite
def rosters(draw: st.DrawFn) -> list[tuple[Agent, list[Endpoint]]]:
    made: list[tuple[Agent, list[Endpoint]]] = []
    for index in range(draw(st.integers(1, 8))):
        one = agent(
            draw(WORDS),
            id=f"a{index}",
            path=f"/me/agent/a{index}",
            workspace=draw(PLACES),
            profile=draw(st.sampled_from([None, "dev"])),
            node=draw(NODES),
            project_root=draw(PROJECTS),
        )
        endpoints = [
            endpoint(
                one,
                draw(st.sampled_from([None, "claude", "codex"])),
                draw(st.sampled_from([None, "gpt-5.5", "sonnet"])),
                id=f"e{index}.{number}",
                state=draw(st.sampled_from([EndpointState.IDLE, EndpointState.STALE])),
            )
            for number in range(draw(st.integers(0, 2)))
        ]
        made.append((one, endpoints))
    return made


WISHES = st.builds(
    Wanted,
    definition_id=WORDS,
    workspace=PLACES,
    profile=st.sampled_from([None, "dev"]),
    node=st.sampled_from([None, "mini"]),
    exact=st.booleans(),
    homeless=st.just(False),
    harness=st.sampled_from([None, "claude"]),
    model=st.sampled_from([None, "5-5", "sonnet"]),
    online=st.booleans(),
    project_root=PROJECTS,
)


def fits(one: Agent, endpoints: list[Endpoint], wanted: Wanted) -> bool:
    """The meaning of `Wanted`, spelt out without an index."""
    for mine, asked in ((one.workspace, wanted.workspace), (one.profile, wanted.profile)):
        if mine != asked and (wanted.exact or asked is not None):
            return False
    open_to_all = all(made.harness is None and made.model is None for made in endpoints)
    runs = any(
        wanted.harness in (None, made.harness)
        and (wanted.model is None or (made.model is not None and matches_model(wanted.model, made.model)))
        for made in endpoints
    )
    asks = wanted.harness is not None or wanted.model is not None
    return (
        one.definition_id == wanted.definition_id
        and wanted.node in (None, one.node)
        and wanted.project_root in (None, one.project_root)
        and (not wanted.online or any(is_online(made, NOW) for made in endpoints))
        and (not asks or open_to_all or runs)
    )


@given(rosters(), WISHES)
def test_find_answers_as_a_scan_would(roster: list[tuple[Agent, list[Endpoint]]], wanted: Wanted) -> None:
    directory = fleet(*roster)
    expected = {one.id for one, endpoints in roster if fits(one, endpoints, wanted)}
    assert {one.id for one in directory.find(wanted, 20)} == expected
    assert directory.count(wanted) == len(expected)
    assert len(directory.find(wanted, 1)) == min(1, len(expected))


def test_a_homeless_wish_finds_agents_without_a_node() -> None:
    directory = fleet(agent("arc", id="h", node="", path="/me/agent/h"), agent("arc"))
    assert [one.id for one in directory.find(Wanted(definition_id="arc", homeless=True), 5)] == ["h"]


def test_agents_are_counted_up_to_a_thousand() -> None:
    directory = fleet(*(agent(f"arc.w{number}") for number in range(1100)))
    wanted = Wanted(definition_id="arc", node="mini", online=True)
    assert (len(directory.find(wanted, 2)), directory.count(wanted)) == (2, 1000)


def test_retired_agents_are_found_by_id_path_and_tombstone_only() -> None:
    gone = agent("arc.x", lifecycle=Lifecycle.RETIRED)
    directory = fleet((gone, []))
    assert directory.agent(gone.id) == directory.at_path(AgentPath(gone.path)) == gone
    assert directory.retired(Wanted(definition_id="arc", workspace="x")) == gone
    assert directory.retired(Wanted(definition_id="arc")) is None
    assert directory.find(Wanted(definition_id="arc"), 5) == ()
    assert directory.in_workspace("x", 5) == []
    assert directory.endpoints(gone.id) == ()


def test_the_base_agent_of_a_project_has_no_profile_and_no_parent() -> None:
    root = agent("arc", project_root="/src/arc")
    directory = fleet(
        agent("arc", id="dev", path="/me/agent/dev", profile="dev", project_root="/src/arc"),
        agent("arc.s", id="sub", path="/me/agent/dev/sub/0", parent_id="dev", project_root="/src/arc"),
        root,
        agent("arc.w", id="tree", path="/me/agent/w", project_root="/src/arc", working_dir="/src/arc-w"),
        agent("bow", id="second", path="/me/agent/second", project_root="/src/arc"),
    )
    assert directory.of_project("/src/arc") == root
    assert getattr(directory.of_project("/src/arc-w"), "id", None) == "tree"
    assert directory.of_project("/src/other") is None


def test_names_are_found_by_key_and_by_prefix() -> None:
    directory = fleet(agent("hudson"), agent("hugo"), agent("arc"))
    directory.add_alias(alias("huddy", AliasTarget(agent_id="arc@mini")))
    assert directory.near(build_keys("hudsn"), 5) == ["hudson"]
    assert directory.near(build_keys("zzz"), 5) == []
    assert directory.prefixed("hu", 5) == ["huddy", "hudson", "hugo"]
    assert directory.prefixed("hu", 2) == ["huddy", "hudson"]
    assert directory.prefixed("hua", 5) == []
    assert [one.name for one in directory.aliases_of("arc@mini", 5)] == ["huddy"]


def test_a_name_is_indexed_once() -> None:
    directory: Fleet = fleet(agent("arc"), agent("arc.x"), agent("arc.y"))
    assert directory.names == ["arc"]


@pytest.mark.parametrize("limit", [1, 2])
def test_near_keeps_to_its_limit(limit: int) -> None:
    directory = fleet(*(agent(f"arc{letter}") for letter in "abcdef"))
    assert len(directory.near(build_keys("arcx"), limit)) == limit
