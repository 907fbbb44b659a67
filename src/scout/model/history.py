"""The past of records: which kinds are followed through their states, and whom each record concerns."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from scout.base.record import Record
from scout.model.agent import Agent
from scout.model.attention import Attention
from scout.model.endpoint import ACTIVE, Endpoint
from scout.model.flight import Flight
from scout.model.node import Node
from scout.model.question import Question
from scout.model.session import Session
from scout.model.work_item import WorkItem

ONLINE = "online"
PAUSED = "paused"


class FollowedKind(NamedTuple):
    """A kind of record: how its state is named, and the fields with the agents and users it concerns."""

    name: str
    get_state: Callable[[Any], str]
    parties: tuple[str, ...] = ()


def _get_state(record: Any) -> str:
    return str(record.state)


def _get_lifecycle(agent: Agent) -> str:
    return str(agent.lifecycle)


def _get_pause(node: Node) -> str:
    return PAUSED if node.paused else "running"


def _get_reach(endpoint: Endpoint) -> str:
    """Return `online` while it is idle or working: each turn claims and releases it."""
    return ONLINE if endpoint.state in ACTIVE else str(endpoint.state)


FOLLOWED: Mapping[type[Record], FollowedKind] = {
    Agent: FollowedKind("agent", _get_lifecycle, ("owner",)),
    Endpoint: FollowedKind("endpoint", _get_reach, ("agent_id",)),
    Session: FollowedKind("session", _get_state, ("agent_id",)),
    Flight: FollowedKind("flight", _get_state, ("target", "requester_id")),
    WorkItem: FollowedKind(
        "work_item", _get_state, ("owner_id", "requester_id", "next_move_owner_id", "reviewer_id")
    ),
    Attention: FollowedKind("attention", _get_state, ("user", "agent_id")),
    Question: FollowedKind("question", _get_state, ("asker_id", "responder_id")),
    Node: FollowedKind("node", _get_pause),
}


def list_parties(record: Record) -> tuple[str, ...]:
    """Return the agents and users that a followed record concerns, each once."""
    found = (getattr(record, name) for name in FOLLOWED[type(record)].parties)
    return tuple(dict.fromkeys(one for one in found if one))
