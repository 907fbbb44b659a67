"""Sessions and their endpoints as records: created, resumed, and described for the harness."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from scout.broker.routing import children, routes
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent, PermissionProfile, WakePolicy
from scout.model.endpoint import (
    Endpoint,
    EndpointMove,
    ProgramState,
    get_permission_profile,
    get_wake_policy,
)
from scout.model.events.presence import EndpointRegistered, SessionResumed, SessionStarted
from scout.model.session import Session, get_native_id, resume_session
from scout.ports import Prompt, SessionSpec

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(kw_only=True)
class SessionOpening:
    """A session about to be used. `fresh`: it still has to be started."""

    harness: str
    spec: SessionSpec
    endpoint_id: str
    fresh: bool = False


@dataclass(kw_only=True)
class PreparedTurn(SessionOpening):
    """One running turn. `also`: other deliveries in its prompt. `unwanted`: its flight has ended.

    `isolated`: nobody but its asker uses the session.
    """

    prompt: Prompt
    delivery_id: str
    flight_id: str | None
    also: tuple[str, ...] = ()
    token_id: str | None = None
    isolated: bool = False
    accepted: bool = False
    unwanted: bool = False
    done: bool = False


def create_session(
    tx: Transaction,
    agent: Agent,
    harness: str,
    *,
    model: str | None = None,
    permission: PermissionProfile | None = None,
    isolated_for: str | None = None,
    more: Mapping[str, Any] = _NOTHING,
) -> Endpoint:
    """Create a session that has no program yet. `model`: the one that was asked for, else the agent's.

    `more`: further fields of its record.
    """
    runtime = routes.choose_agent_runtime(tx, agent, harness)
    facts: dict[str, Any] = {"cwd": routes.get_folder(agent), **more}
    session = Session(
        id=tx.mint("ses"),
        created_at=tx.now,
        updated_at=tx.now,
        agent_id=agent.id,
        node=tx.services.node,
        harness=harness,
        model_requested=model or runtime.model,
        effort=runtime.effort,
        permission_profile=permission or get_permission_profile(agent),
        isolated_for=isolated_for,
        created_by=tx.sender,
        **facts,
    )
    tx.record(SessionStarted, session, move="start")
    return create_endpoint(tx, session, permission)


def create_endpoint(
    tx: Transaction, session: Session, permission: PermissionProfile | None = None
) -> Endpoint:
    """Create an endpoint for a session that is about to be started or resumed."""
    endpoint = Endpoint(
        id=tx.mint("ept"),
        created_at=tx.now,
        updated_at=tx.now,
        agent_id=session.agent_id,
        node=session.node,
        harness=session.harness,
        model=session.model_requested,
        transport=tx.services.harnesses[session.harness].capabilities.transport,
        session_id=session.id,
        permission_profile=permission,
        held=True,
        isolated_for=session.isolated_for,
        last_seen=tx.now,
        program_state=ProgramState.UNKNOWN if _reads_screen(tx, session.harness) else None,
    )
    tx.record(EndpointRegistered, endpoint, move="register")
    return routes.record_endpoint_move(tx, endpoint, EndpointMove.WAKE)


def _reads_screen(tx: Transaction, harness: str) -> bool:
    known = tx.services.harnesses.get(harness)
    return known is not None and known.capabilities.reads_screen


def resume_session_record(tx: Transaction, endpoint: Endpoint) -> Endpoint:
    """Resume a session and its endpoint that were released while the agent slept."""
    session = tx.need(Session, "session", endpoint.session_id or "")
    tx.record(SessionResumed, resume_session(session, tx.now), move="resume")
    found = routes.record_endpoint_move(tx, endpoint, EndpointMove.RECOVER, "its agent is needed")
    return routes.record_endpoint_move(tx, found, EndpointMove.WAKE)


def build_session_spec(tx: Transaction, agent: Agent, endpoint: Endpoint) -> SessionSpec:
    """Describe a session to the harness, with its native ids or those of the session it copies."""
    can = tx.services.harnesses[endpoint.harness or ""].capabilities
    session = tx.get(Session, endpoint.session_id) if can.starts_programs else None
    keeps = get_wake_policy(agent, endpoint) is WakePolicy.KEEP_WARM
    runtime = routes.choose_agent_runtime(tx, agent, endpoint.harness or "")
    files = children.find_parent_files(tx, agent) if agent.parent_id is not None else None
    cwd = (session.cwd if session else None) or routes.get_folder(agent)
    spawned = agent.parent_id is not None and agent.birth_branch is not None
    return SessionSpec(
        session_id=endpoint.session_id or "",
        agent_id=agent.id,
        address=tx.address(agent.id),
        cwd=cwd,
        repository=agent.project_root if spawned and cwd == agent.working_dir else None,
        model=endpoint.model or runtime.model,
        effort=session.effort if session else runtime.effort,
        permission=get_permission_profile(agent, endpoint),
        command=agent.config.command,
        native_ids=session.native_ids if session else {},
        fork_of=_get_fork_source(tx, session) if session else None,
        idle=None if keeps else tx.rules.periods.session_idle,
        readable=files.folders if files is not None else (),
        url=agent.config.url,
        credential_file=agent.config.credential_file,
    )


def _get_fork_source(tx: Transaction, session: Session) -> str | None:
    """Return the native id to copy from; None once the copy has its own."""
    if session.forked_from is None or session.native_ids:
        return None
    return get_native_id(tx.need(Session, "session", session.forked_from))


def build_opening(tx: Transaction, agent: Agent, endpoint: Endpoint) -> SessionOpening:
    """Return a session about to be started."""
    return SessionOpening(
        harness=endpoint.harness or "",
        spec=build_session_spec(tx, agent, endpoint),
        endpoint_id=endpoint.id,
        fresh=True,
    )
