"""Fleets for tests: agents and endpoints in a few words."""

from typing import Any

from scout.base.time import Time
from scout.identity.path import AgentPath
from scout.model.agent import Agent, AgentConfig
from scout.model.alias import Alias, AliasTarget
from scout.model.endpoint import Endpoint, EndpointState, Transport
from scout.model.session import Session
from scout.policy.resolver.fleet import Fleet

NOW = Time(1_700_000_000_000_000)


def agent(name: str, **fields: Any) -> Agent:
    """`agent("arc.main")` has the definition arc and the workspace main."""
    definition, _, workspace = name.partition(".")
    node = fields.pop("node", "mini")
    path = AgentPath.parse(fields.pop("path", f"/me/agent/{name}~{node}"))
    common: dict[str, Any] = {
        "id": f"{name}@{node}",
        "created_at": NOW,
        "updated_at": NOW,
        "owner": path.user,
        "path": path,
        "kind": path.kind,
        "definition_id": definition,
        "workspace": workspace or None,
        "node": node,
        "created_by": "test",
    }
    return Agent(**{**common, **fields})


def endpoint(of: Agent, harness: str | None = "claude", model: str | None = None, **fields: Any) -> Endpoint:
    """An idle endpoint seen now, unless the fields say otherwise."""
    common: dict[str, Any] = {
        "id": f"{of.id}#{harness}?{model}",
        "created_at": NOW,
        "updated_at": NOW,
        "agent_id": of.id,
        "node": of.node,
        "harness": harness,
        "model": model,
        "transport": Transport.PROCESS,
        "state": EndpointState.IDLE,
        "last_seen": NOW,
    }
    return Endpoint(**{**common, **fields})


def session(of: Agent, session_id: str, harness: str = "claude", **fields: Any) -> Session:
    common: dict[str, Any] = {
        "id": session_id,
        "created_at": NOW,
        "updated_at": NOW,
        "agent_id": of.id,
        "node": of.node,
        "harness": harness,
        "created_by": "test",
    }
    return Session(**{**common, **fields})


def alias(name: str, target: AliasTarget, **fields: Any) -> Alias:
    common: dict[str, Any] = {
        "id": f"als_{name}",
        "created_at": NOW,
        "updated_at": NOW,
        "owner": "me",
        "name": name,
        "target": target,
        "created_by": "me",
    }
    return Alias(**{**common, **fields})


def fleet(*agents: Agent | tuple[Agent, list[Endpoint]]) -> Fleet:
    """A fleet; an agent without a list of endpoints is online in Claude."""
    made = Fleet(NOW)
    for one in agents:
        who, endpoints = one if isinstance(one, tuple) else (one, [endpoint(one)])
        made.add(who, endpoints)
    return made


def config(**fields: Any) -> AgentConfig:
    return AgentConfig(**fields)
