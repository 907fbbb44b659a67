"""An agent of another node as a record, from what its node lists, and the other way round."""

import pytest

from scout.base.ids import derive_id
from scout.identity.path import AgentPath
from scout.model.agent import Lifecycle
from scout.model.endpoint import EndpointState, Transport
from scout.model.mesh.entry import AgentEntry, RemoteInstance
from scout.model.node import NodeState
from scout.model.remote_agent import build_entry, build_remote_agent, scope_user
from scout.model.status import AgentStatus
from tests.policy.fleets import NOW, agent, endpoint

NODE_ID = derive_id("nod", "book")


def build(
    state: NodeState = NodeState.ONLINE, *, listed: bool = True, path: str = "/dewi/agent/arc", **more: object
):
    facts: dict[str, object] = {
        "id": derive_id("agt", "arc"),
        "node_id": NODE_ID,
        "path": AgentPath.parse(path),
        "definition_id": "arc",
        "status": AgentStatus.ONLINE,
        "updated_at": NOW,
        "instances": (
            RemoteInstance(endpoint_id=derive_id("ept", "a"), harness="codex", online=True),
            RemoteInstance(endpoint_id=derive_id("ept", "b"), harness="claude"),
        ),
        **more,
    }
    entry = AgentEntry(**facts)  # pyright: ignore[reportArgumentType] (facts of a test)
    return build_remote_agent(entry, node="book", owner="me", listed=listed, state=state)


def test_an_entry_becomes_an_agent_with_endpoints() -> None:
    found = build()
    assert (found.agent.owner, str(found.agent.path), found.agent.node) == ("me", "/me/agent/arc", "book")
    assert found.agent.is_remote
    assert [one.state for one in found.endpoints] == [EndpointState.IDLE, EndpointState.REGISTERED]
    assert {one.transport for one in found.endpoints} == {Transport.MESH}
    assert (found.status, found.listed) == (AgentStatus.ONLINE, True)
    assert str(build(path="/system/broker").agent.path) == "/system/broker"


@pytest.mark.parametrize("state", [NodeState.UNREACHABLE, NodeState.LEFT])
def test_a_silent_node_makes_everything_unreachable(state: NodeState) -> None:
    found = build(state)
    assert found.status is AgentStatus.UNREACHABLE
    assert {one.state for one in found.endpoints} == {EndpointState.UNREACHABLE}


def test_an_agent_that_is_listed_no_longer_counts_as_retired() -> None:
    for found in (build(listed=False), build(lifecycle=Lifecycle.RETIRED)):
        assert (found.agent.lifecycle, found.endpoints, found.status) == (
            Lifecycle.RETIRED,
            (),
            AgentStatus.OFFLINE,
        )


def test_an_entry_tells_no_folder_and_only_usable_instances() -> None:
    own = agent("arc", id=derive_id("agt", "arc"), path="/me/agent/arc", project_root="/src/secret")
    ways = [
        endpoint(own, "codex", id=derive_id("ept", "1"), state=EndpointState.IDLE),
        endpoint(own, "claude", id=derive_id("ept", "2"), state=EndpointState.STOPPED),
    ]
    entry = build_entry(own, ways, AgentStatus.ONLINE, node_id=NODE_ID, revision=3, now=NOW, within=90)
    assert [(one.harness, one.online) for one in entry.instances] == [("codex", True)]
    assert (entry.revision, entry.node_id) == (3, NODE_ID)
    assert "/src/secret" not in str(entry)


def test_a_guest_user_is_named_by_its_key() -> None:
    assert scope_user("1a2b3c4d5e6f") == "~1a2b3c4d"
