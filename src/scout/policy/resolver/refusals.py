"""Refusals of the resolver: the facts, the nearest names and the next command."""

import difflib
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from scout.base.refusal import PLACEHOLDER, Candidate, Diagnostic, Remedy
from scout.identity.address import Address
from scout.model.agent import Agent, Lifecycle
from scout.model.alias import Alias
from scout.model.endpoint import Endpoint
from scout.model.node import Node
from scout.model.problems.session import NoSession
from scout.model.problems.target import (
    AliasBroken,
    AmbiguousTarget,
    HarnessMismatch,
    ModelMismatch,
    PeerUnreachable,
    RetiredTarget,
    UnknownTarget,
)
from scout.policy.directory import Directory
from scout.policy.nearest import build_keys, rank_names

_NEAREST = 5
_NODES = 200  # most nodes that are compared with a mistyped one


def build_unknown(text: str, reason: str, near: Sequence[str], *remedies: Remedy) -> Diagnostic:
    """Refuse an unknown address, with the nearest names and the commands to find or create an agent."""
    candidates = tuple(Candidate(address=address) for address in near)
    return UnknownTarget(
        address=text[:200],
        reason=reason,
        candidates=candidates,
        remedies=(*remedies, *_suggest_addresses(near[:3]))
        or (Remedy(operation="who", parameters={}, why="list agents"),),
    )


def build_no_such_qualifier(text: str, address: Address, siblings: tuple[Candidate, ...]) -> Diagnostic:
    """Refuse a known definition with an unknown workspace, profile or node."""
    asked = (("workspace", address.workspace_qualifier), ("profile", address.profile), ("node", address.node))
    named = " and ".join(f"{name} '{value}'" for name, value in asked if value)
    return UnknownTarget(
        address=text[:200],
        reason=f"{address.definition_id} exists, but not with {named}",
        candidates=siblings,
        remedies=_suggest_addresses([one.address for one in siblings[:3]]),
    )


def build_unknown_node(text: str, address: Address, near: Sequence[str]) -> Diagnostic:
    """Refuse a handle with an unknown node, with the same handle on the nearest nodes."""
    addresses = [replace(address, node=name).canonical for name in near]
    return UnknownTarget(
        address=text[:200],
        reason=f"no node is called {address.node}",
        candidates=tuple(Candidate(address=one) for one in addresses),
        remedies=(
            *_suggest_addresses(addresses[:3]),
            Remedy(operation="mesh.status", parameters={}, why="show the nodes"),
        ),
    )


def build_ambiguous(text: str, count: int, candidates: tuple[Candidate, ...]) -> Diagnostic:
    """Refuse an address that matches several agents, and list a unique address for each."""
    return AmbiguousTarget(
        address=text[:200],
        count=count,
        retry=candidates[0].canonical,
        candidates=candidates,
        remedies=_suggest_addresses([one.address for one in candidates[:3]]),
    )


def build_two_readings(text: str, readings: Sequence[str]) -> Diagnostic:
    """Refuse a text that is the birth branch of one agent and the handle of another."""
    return AmbiguousTarget(
        address=text[:200],
        count=len(readings),
        retry=readings[0],
        candidates=tuple(Candidate(address=reading) for reading in readings),
        remedies=_suggest_addresses(readings),
    )


def build_mismatch(
    text: str,
    address: Address,
    endpoints: Iterable[Endpoint],
    has_harness: bool,
    candidates: tuple[Candidate, ...],
) -> Diagnostic:
    """Refuse a name whose agents all lack the requested harness or model."""
    known = list(endpoints)
    remedies = _suggest_addresses([one.address for one in candidates[:3]])
    if address.harness and not (has_harness and address.model):
        attached = tuple(dict.fromkeys(one.harness for one in known if one.harness))
        return HarnessMismatch(
            address=text[:200],
            requested=address.harness,
            attached=attached,
            candidates=candidates,
            remedies=remedies,
        )
    attached = tuple(dict.fromkeys(one.model for one in known if one.model))
    return ModelMismatch(
        address=text[:200],
        requested=address.model or "",
        attached=attached,
        candidates=candidates,
        remedies=remedies,
    )


def build_retired(text: str, agent: Agent) -> Diagnostic:
    """Refuse the name of a retired agent."""
    revive = Remedy(operation="agent.revive", parameters={"address": str(agent.path)})
    return RetiredTarget(
        address=text[:200], agent_id=agent.id, retired_at=agent.updated_at, remedies=(revive,)
    )


def build_no_session(text: str) -> Diagnostic:
    return NoSession(
        address=text[:200],
        session=text[:200],
        remedies=(
            Remedy(operation="session.list", parameters={}, why="list sessions"),
            Remedy(operation="session.attach", parameters={"agent": PLACEHOLDER, "session": text[:200]}),
        ),
    )


def build_peer_unreachable(node: Node) -> Diagnostic:
    look = Remedy(operation="mesh.status", parameters={}, why="show the nodes")
    return PeerUnreachable(node=node.name, last_seen=node.last_seen, since=node.lost_at, remedies=(look,))


def build_alias_broken(
    alias: Alias, fault: str, readings: tuple[Candidate, ...], target: Agent | None, *, is_taken: bool
) -> Diagnostic:
    """Refuse a broken alias, with its possible targets and the commands that repair or remove it.

    `is_taken`: an agent holds the alias's name, so the alias cannot be repaired under it.
    """
    repairs = [
        Remedy(operation="alias.repair", parameters={"name": alias.name, "target": one.address})
        for one in readings[:3]
        if not is_taken
    ]
    if target is not None and target.lifecycle is Lifecycle.RETIRED and not is_taken:
        revive = {"address": str(target.path)}
        repairs.insert(0, Remedy(operation="agent.revive", parameters=revive, why="the agent it names"))
    remove = Remedy(operation="alias.remove", parameters={"name": alias.name})
    return AliasBroken(alias=alias.name, reason=fault, candidates=readings, remedies=(*repairs, remove))


def find_nearest_names(name: str, directory: Directory) -> list[str]:
    """Return the addresses of definitions and aliases similar to the name."""
    near = directory.near(build_keys(name), _NEAREST * 2)
    longer = directory.prefixed(name, _NEAREST)
    return [f"@{word}" for word in rank_names(name, {*near, *longer}, _NEAREST)]


def find_nearest_nodes(name: str, directory: Directory) -> tuple[str, ...]:
    """Return the names of nodes similar to the name; they share its first letter."""
    return rank_names(name, directory.nodes_like(name[:1], _NODES), _NEAREST)


def measure_distance(text: str, address: str) -> float:
    """Return the distance between an address and the typed text; 0 means equal."""
    return 1 - difflib.SequenceMatcher(None, text, address).ratio()


def _suggest_addresses(addresses: Sequence[str]) -> tuple[Remedy, ...]:
    return tuple(Remedy(operation="resolve", parameters={"address": address}) for address in addresses)
