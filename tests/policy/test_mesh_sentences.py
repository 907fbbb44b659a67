"""The mesh in words."""

from typing import Any

import pytest

from scout.policy import sentences


def test_an_agent_of_another_node_is_named_with_it() -> None:
    assert sentences.add_node("@arc", "mini") == "@arc on mini"
    assert sentences.add_node("@arc.node:mini", "mini") == "@arc.node:mini"
    assert sentences.add_node("@arc", None) == "@arc"
    assert sentences.find_node({"node": "mini", "createdBy": "nod_1"}) == "mini"
    assert sentences.find_node({"node": "here", "createdBy": "agt_1"}) is None


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("queued", "waits to be sent to node mini"),
        ("forwarded", "was forwarded to the server of the mesh, and node mini has not confirmed it"),
        ("accepted", "was accepted by node mini"),
        ("delivered", "was delivered on node mini"),
        ("refused", "was refused by node mini: no grant"),
        ("expired", "was given up before node mini confirmed it: it is away"),
    ],
)
def test_a_receipt_says_how_far_it_has_come(state: str, said: str) -> None:
    receipt: dict[str, Any] = {"node": "mini"} if state == "queued" else {"node": "mini", "state": state}
    problem = said.rpartition(": ")[2] if ": " in said else None
    assert (
        sentences.describe_receipt({**receipt, "problem": {"message": problem}} if problem else receipt)
        == said
    )
    assert sentences.describe_receipt(None) == ""


def test_nodes_and_their_queues() -> None:
    assert sentences.describe_node_state("unreachable", "08:14") == "unreachable since 08:14"
    assert sentences.describe_node_state("online", "08:14") == "online"
    assert sentences.format_since("2026-11-18T08:14:03.000Z") == "08:14 UTC"
    assert sentences.format_since(None) == ""
    assert sentences.describe_queue({}) == "nothing waits"
    assert sentences.describe_queue({"queued": 2}) == "2 not confirmed"
    assert sentences.describe_queue({"queued": 2}, "1m ago") == "2 not confirmed, the oldest 1m ago"


def test_the_roles_of_a_node() -> None:
    assert sentences.list_roles({"here": True, "founder": True}) == ["here", "founder"]
    assert sentences.list_roles({"relation": "guest"}) == ["guest"]
    assert sentences.list_roles({}) == []


def test_the_mesh_of_a_machine() -> None:
    alone = {"member": False, "node": "desk"}
    assert sentences.describe_mesh(alone) == "desk belongs to no mesh"
    view = {
        "member": True,
        "node": "desk",
        "url": "tls://desk:1",
        "nodes": 1,
        "founder": True,
        "connected": True,
    }
    assert sentences.describe_mesh(view) == "founded at tls://desk:1, connected, 1 machine"
    away = {
        **view,
        "founder": False,
        "connected": False,
        "nodes": 2,
        "unreachable": ["mini"],
        "problem": "no route",
    }
    assert sentences.describe_mesh(away) == (
        "joined at tls://desk:1, not connected (no route), 2 machines, not reachable: mini"
    )
    assert sentences.describe_link({"stopped": True}) == "stopped; `scout mesh up` starts it again"
    assert sentences.describe_link({}) == "not connected (no answer)"


def test_the_server_of_a_machine() -> None:
    assert sentences.describe_server({"running": False}) == "not running (stopped)"
    running = {"running": True, "version": "2.15.1", "connections": 1}
    assert sentences.describe_server(running) == "nats-server 2.15.1, 1 other machine connected"


def test_a_program_that_works_says_more_than_online() -> None:
    shown = [
        sentences.describe_presence(*one)
        for one in (("online", "working"), ("online", "idle"), ("online", None))
    ]
    assert shown == ["working", "online", "online"]
    assert sentences.describe_presence("needs_attention", "working") == "needs attention"
