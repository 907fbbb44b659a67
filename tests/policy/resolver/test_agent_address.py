"""The name under which an agent is shown: it means that agent, and no session changes it."""

import pytest
from hypothesis import given
from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.model.agent import Agent, Lifecycle
from scout.model.alias import AliasState, AliasTarget
from scout.model.endpoint import EndpointState
from scout.policy.directory import Viewpoint
from scout.policy.resolver.fleet import Fleet
from scout.policy.resolver.fleet_file import read_fleet
from scout.policy.resolver.handle import find_address, find_shorter_alias, format_agent_address
from scout.policy.resolver.resolve import resolve
from tests.policy.fleets import NOW, agent, alias, endpoint, fleet
from tests.policy.resolver.test_resolve import Counting, files

HERE = Viewpoint(node="mini")


def format_shown(one: Agent, roster: Fleet, node: str = "mini") -> str:
    return format_agent_address(one, roster, node)


def test_the_shortest_of_its_names_that_means_the_agent() -> None:
    base, fix, dev = agent("talkie"), agent("talkie.fix"), agent("talkie", id="dev", profile="dev")
    roster = fleet(base, fix, (dev, []))
    assert [format_shown(one, roster) for one in (base, fix, dev)] == [
        "@talkie",
        "@talkie.fix",
        "@talkie.profile:dev",
    ]


def test_an_agent_alone_needs_no_workspace() -> None:
    solo = agent("solo.solo-main-8012ac")
    assert format_shown(solo, fleet(solo)) == "@solo"


def test_of_two_nodes_the_own_one_has_the_short_name() -> None:
    here, there = agent("hudson"), agent("hudson", node="book")
    roster = fleet(here, there)
    assert [format_shown(one, roster) for one in (here, there)] == ["@hudson", "@hudson.node:book"]
    assert [format_shown(one, roster, "book") for one in (here, there)] == ["@hudson.node:mini", "@hudson"]
    assert format_shown(there, roster, "") == "@hudson.node:book"


def test_an_agent_without_a_handle_is_shown_by_its_path() -> None:
    person = agent("x", definition_id=None, path="/me/direct")
    assert format_shown(person, fleet(person)) == "/me/direct"
    assert find_address(person, fleet(person)) is None


def test_a_name_that_an_alias_took_is_not_shown_without_its_node() -> None:
    arc, bow = agent("arc"), agent("bow")
    roster = fleet(arc, bow)
    roster.add_alias(alias("arc", AliasTarget(agent_id=bow.id), state=AliasState.BROKEN))
    assert format_shown(arc, roster) == "@arc.node:mini"
    homeless = agent("cat", node="", path="/me/agent/cat")
    roster.add(homeless, [])
    roster.add_alias(alias("cat", AliasTarget(agent_id=bow.id)))
    assert format_shown(homeless, roster) == "/me/agent/cat"


def test_a_retired_agent_keeps_its_name_until_another_has_it() -> None:
    old = agent("arc", lifecycle=Lifecycle.RETIRED)
    gone = fleet((old, []))
    assert format_shown(old, gone) == "@arc"
    reused = fleet((old, []), agent("arc.fix"))
    assert format_shown(old, reused) == "/me/agent/arc~mini"


def test_a_shorter_alias_stands_beside_it() -> None:
    hudson = agent("hudson")
    roster = fleet(hudson)
    assert find_shorter_alias(hudson, "@hudson", roster) is None
    for made in (
        alias("hu", AliasTarget(agent_id=hudson.id)),
        alias("hud", AliasTarget(agent_id=hudson.id)),
        alias("a-long-alias", AliasTarget(agent_id=hudson.id)),
        alias("c", AliasTarget(agent_id=hudson.id, harness="claude")),
        alias("b", AliasTarget(agent_id=hudson.id), state=AliasState.BROKEN),
    ):
        roster.add_alias(made)
    assert find_shorter_alias(hudson, "@hudson", roster) == "@hu"
    roster.add(agent("hu"), [])
    assert find_shorter_alias(hudson, "@hudson", roster) == "@hud"


@given(files())
def test_law_the_address_of_an_agent_resolves_to_it(data: dict[str, object]) -> None:
    """Which agent: that it may be reached in several ways is another question."""
    file = read_fleet(data)
    for instance in file.instances.values():
        text = format_agent_address(instance.agent, file.fleet, HERE.node)
        try:
            assert resolve(text, file.fleet, HERE, file.now).agent.id == instance.agent.id
        except Refused as refused:
            assert getattr(refused.diagnostic, "agent_id", "") == instance.agent.id


@given(files())
def test_law_no_session_changes_an_address(data: dict[str, object]) -> None:
    """Whatever the endpoints of the fleet do, each agent is shown as before."""
    file = read_fleet(data)
    agents = {one.agent.id: one.agent for one in file.instances.values()}
    quiet = Fleet(file.now)
    for one in agents.values():
        stopped = replace(endpoint(one), state=EndpointState.STOPPED)
        quiet.add(one, [stopped])
    for one in agents.values():
        aliases = file.fleet.aliases_of(one.id, 20)
        for held in aliases:
            quiet.add_alias(held)
    for one in agents.values():
        assert format_agent_address(one, quiet, "mini") == format_agent_address(one, file.fleet, "mini")


@pytest.mark.parametrize("name", ["bulk7", "arc.w3"])
def test_the_lookups_do_not_grow_with_the_fleet(name: str) -> None:
    costs: list[int] = []
    for size in (10, 1000):
        roster = Counting(NOW)
        for number in range(size):
            roster.add(agent(f"bulk{number}", path=f"/me/agent/b{number}"), [])
            roster.add(agent(f"arc.w{number}"), [])
        one = roster.agent(f"{name}@mini")
        assert one is not None
        assert format_shown(one, roster).startswith("@")
        costs.append(roster.looked)
    assert costs[0] == costs[1]
