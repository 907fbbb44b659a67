"""Names of agents of other nodes, as the resolver sees them."""

import pytest

from scout.base.ids import derive_id
from scout.base.refusal import Refused
from scout.model.agent import Agent, Lifecycle
from scout.model.node import Node
from scout.policy.directory import Instance, Viewpoint, Wanted
from scout.policy.resolver.fleet import Fleet
from scout.policy.resolver.handle import format_agent_address
from scout.policy.resolver.resolve import resolve
from tests.policy.fleets import NOW, agent

BOOK = Node(id=derive_id("nod", "book"), created_at=NOW, updated_at=NOW, name="book")
HERE = Viewpoint(node="mini", user="me")


def remote(name: str, **more: object) -> Agent:
    ident = derive_id("agt", "remote", name)
    return agent(name, id=ident, path=f"/me/agent/{name}", node="book", created_by=BOOK.id, **more)


def fleet(*agents: Agent) -> Fleet:
    made = Fleet(NOW)
    made.add_node(BOOK)
    for one in agents:
        made.add(one)
    return made


def test_an_agent_that_its_node_no_longer_lists_is_unknown_not_retired() -> None:
    gone = remote("arc", lifecycle=Lifecycle.RETIRED)
    with pytest.raises(Refused, match="book no longer lists it") as refused:
        resolve(gone.id, fleet(gone), HERE, NOW)
    assert refused.value.diagnostic.code == "unknown_target"
    assert format_agent_address(gone, fleet(gone), "mini") == "@arc"


def test_a_remote_agent_is_shown_by_its_handle_or_its_id_and_never_by_a_path() -> None:
    own = agent("arc", id=derive_id("agt", "own"), path="/me/agent/own", node="mini")
    twin = remote("arc")
    assert format_agent_address(twin, fleet(own, twin), "mini") == "@arc.node:book"
    unseen = remote("bow")
    assert format_agent_address(unseen, fleet(own), "mini") == "@bow.node:book"
    nameless = agent(
        "x", id=derive_id("agt", "n"), path="/me/direct", node="book", created_by=BOOK.id, definition_id=None
    )
    assert Instance(agent=nameless).canonical == nameless.id
    assert format_agent_address(nameless, fleet(), "mini") == nameless.id


def test_an_unknown_node_names_the_nearest_and_without_any_the_siblings() -> None:
    with pytest.raises(Refused, match="no node is called boo") as refused:
        resolve("@arc.node:boo", fleet(remote("arc")), HERE, NOW)
    assert [one.address for one in refused.value.diagnostic.candidates] == ["@arc.node:book"]
    with pytest.raises(Refused, match="exists, but not with node 'zzz'"):
        resolve("@arc.node:zzz", fleet(remote("arc")), HERE, NOW)


class _Forwarding(Fleet):
    """A directory in which an agent left its old address behind."""

    def retired(self, wanted: Wanted) -> Agent | None:
        return remote("arc", moved_to=BOOK.id)


def test_an_agent_that_moved_keeps_its_old_address_on_the_node_that_it_left() -> None:
    found = resolve("@arc.node:mini", _Forwarding(NOW), HERE, NOW)
    assert (found.agent.id, found.rule) == (remote("arc").id, "moved")
    with pytest.raises(Refused):
        resolve("@arc.node:book", _Forwarding(NOW), HERE, NOW)
