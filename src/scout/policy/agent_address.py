"""The address shown for an agent. It depends on the live agents, never on their sessions."""

from collections.abc import Iterable
from itertools import combinations

from msgspec.structs import replace

from scout.identity.address import Address
from scout.model.agent import Agent
from scout.model.alias import AliasState
from scout.policy.directory import Directory, Instance, Wanted

_DIMENSIONS = ("workspace_qualifier", "profile", "node")
_ALIASES = 20


def format_agent_address(agent: Agent, directory: Directory, node: str | None = None) -> str:
    """Return the shortest handle that resolves to this agent for a caller outside every project, on `node`.

    The handle never contains a harness or model. An agent without a handle is shown by its path.
    """
    address = find_address(agent, directory, node)
    return address.canonical if address else str(agent.path)


def find_address(agent: Agent, directory: Directory, node: str | None = None) -> Address | None:
    """Return the same as an `Address`; None for an agent that is addressed only by its path."""
    canonical = Instance(agent=agent).address
    spellings = _list_spellings(canonical) if canonical else []
    return next((one for one in spellings if _resolves_to(one, agent, directory, node)), None)


def find_shorter_alias(agent: Agent, address: str, directory: Directory) -> str | None:
    """Return the agent's shortest active alias that is shorter than its address."""
    names = [
        f"@{alias.name}"
        for alias in directory.aliases_of(agent.id, _ALIASES)
        if alias.state is AliasState.ACTIVE
        and (alias.target.session_id, alias.target.harness, alias.target.model) == (None, None, None)
        and not directory.find(Wanted(definition_id=alias.name), 1)
    ]
    return min((name for name in names if len(name) < len(address)), key=len, default=None)


def build_wanted(address: Address) -> Wanted:
    """Return the query for the agents a handle matches, regardless of harness and model."""
    return Wanted(
        definition_id=address.definition_id,
        workspace=address.workspace_qualifier,
        profile=address.profile,
        node=address.node,
    )


def find_exact(wanted: Wanted, directory: Directory) -> tuple[Agent, ...]:
    """Return at most two agents with exactly this workspace and profile; prefer one without a node."""
    exact = directory.find(replace(wanted, exact=True), 2)
    if len(exact) > 1 and wanted.node is None:
        homeless = directory.find(replace(wanted, exact=True, homeless=True), 2)
        return homeless if len(homeless) == 1 else exact
    return exact


def find_closest(wanted: Wanted, agents: Iterable[Agent]) -> list[Agent]:
    """Return the agents with exactly this workspace and profile, or else all agents that match the query."""
    pool = [one for one in agents if _has_qualifiers(one, wanted)]
    exact = [one for one in pool if (one.workspace, one.profile) == (wanted.workspace, wanted.profile)]
    return exact or pool


def _has_qualifiers(agent: Agent, wanted: Wanted) -> bool:
    names = ("definition_id", "workspace", "profile", "node")
    return all(getattr(wanted, name) in (None, getattr(agent, name)) for name in names)


def _list_spellings(canonical: Address) -> list[Address]:
    """Return every combination of the agent's qualifiers, shortest text first."""
    given = [name for name in _DIMENSIONS if getattr(canonical, name)]
    chosen = [kept for count in range(len(given) + 1) for kept in combinations(given, count)]
    texts = [
        Address(definition_id=canonical.definition_id, **{name: getattr(canonical, name) for name in kept})
        for kept in chosen
    ]
    return sorted(texts, key=lambda one: len(one.canonical))


def _resolves_to(address: Address, agent: Agent, directory: Directory, node: str | None) -> bool:
    """Whether the handle resolves to this agent, judged by agent names alone."""
    alias = directory.alias(address.definition_id) if address.is_bare else None
    if alias is not None and alias.state is not AliasState.REMOVED:
        return False
    wanted = build_wanted(address)
    here = replace(wanted, node=node) if node and wanted.node is None else wanted
    pool = here if directory.find(here, 1) else wanted
    found = directory.find(pool, 2)
    if not found:
        tombstone = directory.retired(wanted)
        return tombstone is not None and tombstone.id == agent.id
    meant = found if len(found) == 1 else find_exact(pool, directory)
    return [one.id for one in meant] == [agent.id]
