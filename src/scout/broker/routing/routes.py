"""Routes: the endpoint through which an agent is reachable now, or the harness that would start it."""

from collections.abc import Sequence

from msgspec.structs import replace

from scout.base.record import Record
from scout.base.refusal import Candidate, Refused, Remedy
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import Kind, ModelRole
from scout.model.access.token import TokenKind
from scout.model.agent import Agent, AgentMove, Lifecycle, PermissionProfile, move_agent
from scout.model.ask import Ask
from scout.model.endpoint import (
    ACTIVE,
    ENDPOINT,
    Endpoint,
    EndpointMove,
    EndpointState,
    Transport,
    get_permission_profile,
    is_online,
    move_endpoint,
)
from scout.model.events.presence import ENDPOINT_EVENTS, AgentOffline, AgentOnline, AgentWoken, Reached
from scout.model.problems.session import HarnessUnavailable, Missing
from scout.model.problems.target import AmbiguousEndpoint, RetiredTarget
from scout.policy.choose import Choice, Demand, choose, choose_default_harness
from scout.policy.directory import Viewpoint
from scout.policy.nearest import rank_names
from scout.policy.permit import Actor, check_directory
from scout.policy.roles import HarnessModel, choose_runtime, find_runtime
from scout.policy.wake import Reach, build_reach

_LONGEST_NAME = 60  # of an unknown harness, in a refusal
_DEFAULT = "harness"  # the setting of the default harness
# Agents that never connect by themselves: Scout runs them by their model role.
_RUN_BY_SCOUT = frozenset({Kind.CONNECTOR, Kind.MEMORY, Kind.SEARCH, Kind.SUBUSER, Kind.TASK})


class AgentRoute(Record):
    """`runs`: the dispatcher runs turns with `harness`; otherwise the agent pulls from its inbox.

    `remote`: the name of the node that runs the agent, if it is another one.
    """

    reach: Reach
    endpoint: Endpoint | None = None
    harness: str | None = None
    runs: bool = False
    remote: str | None = None


def list_shared_endpoints(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    """Return the endpoints that are not isolated for one ask."""
    return [one for one in endpoints if one.isolated_for is None]


def choose_endpoint(tx: Transaction, agent: Agent, wish: Demand) -> Choice:
    """Choose the endpoint for a demand; isolated endpoints count only if the demand names a session."""
    endpoints = tx.endpoints(agent.id) if wish.session_id else list_shared_endpoints(tx.endpoints(agent.id))
    if wish.harness is not None:
        wish = replace(wish, may_start=may_start(tx, agent, wish, wish.harness))
    return choose(agent, lambda: tx.address(agent.id), endpoints, wish, now=tx.now)


def may_start(tx: Transaction, agent: Agent, wish: Demand, harness: str) -> bool:
    """Whether Scout can start the demanded harness for the agent on this node."""
    here = wish.node in (None, tx.services.node)
    return here and is_startable(tx, agent) and not _explain_missing_harness(tx, agent, harness)


def is_startable(tx: Transaction, agent: Agent) -> bool:
    """Whether Scout starts programs for an agent: by its kind, its harness, its directory or an endpoint."""
    if agent.is_person:
        return False
    given = agent.config.harness or agent.project_root or agent.working_dir or agent.kind in _RUN_BY_SCOUT
    return bool(given) or any(one.held for one in tx.endpoints(agent.id))


def check_harness(tx: Transaction, agent: Agent, wish: Demand) -> None:
    """Refuse a demanded harness that no endpoint of the agent uses and that cannot be started here."""
    attached = {one.harness for one in tx.endpoints(agent.id)}
    if wish.harness is None or wish.harness in attached or wish.session_id is not None:
        return
    known = wish.harness in tx.services.harnesses
    if not known or (is_startable(tx, agent) and _explain_missing_harness(tx, agent, wish.harness)):
        raise Refused(build_harness_refusal(tx, wish.harness, agent))


def build_demand(tx: Transaction, ask: Ask) -> Demand:
    """Return the demand of a stored ask."""
    return Demand(
        session_id=ask.target_session_id,
        harness=ask.harness,
        model=ask.model,
        node=ask.node,
        caller=Viewpoint(agent_id=ask.sender, session_id=ask.sender_session_id, node=tx.services.node),
    )


def choose_route(
    tx: Transaction,
    agent: Agent,
    choice: Choice | None = None,
    *,
    harness: str | None = None,
    strict: bool = False,
) -> AgentRoute:
    """Return the route to an agent. `harness`: only this one; `strict`: refuse if no harness can run it."""
    if agent.is_remote:
        reach = _build_reach(tx, agent, tx.endpoints(agent.id), "")
        return AgentRoute(reach=replace(reach, unreachable=False), remote=agent.node)
    endpoints = list_shared_endpoints(tx.endpoints(agent.id))
    endpoint = choice.endpoint if choice else _find_usable_endpoint(tx, endpoints)
    if endpoint is not None and endpoint.transport is Transport.PULL:
        if is_online(endpoint, tx.now, tx.rules.periods.online_within):
            return AgentRoute(reach=_build_reach(tx, agent, [endpoint], ""), endpoint=endpoint)
        endpoint = choice = None  # an offline pull endpoint does not limit what Scout may start
    named = harness or (endpoint.harness if endpoint else choice.harness if choice else None)
    runner, why_not = _choose_harness(tx, agent, named, strict)
    reach = _build_reach(tx, agent, [endpoint] if endpoint else endpoints, why_not)
    return AgentRoute(reach=reach, endpoint=endpoint, harness=runner, runs=not why_not)


def _find_usable_endpoint(tx: Transaction, endpoints: Sequence[Endpoint]) -> Endpoint | None:
    """Return the endpoint that is online, else the one that was released last."""
    if not endpoints:
        return None
    return _find_online_endpoint(tx, endpoints) or _find_released_endpoint(endpoints)


def _find_online_endpoint(tx: Transaction, endpoints: Sequence[Endpoint]) -> Endpoint | None:
    within = tx.rules.periods.online_within
    return next((one for one in endpoints if is_online(one, tx.now, within)), None)


def is_released_endpoint(endpoint: Endpoint) -> bool:
    """Whether the endpoint is held by Scout, and its session was released while the agent slept."""
    return endpoint.held and endpoint.state is EndpointState.STALE


def _find_released_endpoint(endpoints: Sequence[Endpoint]) -> Endpoint | None:
    return next((one for one in reversed(endpoints) if is_released_endpoint(one)), None)


def is_live(tx: Transaction, agent: Agent) -> bool:
    """Whether an endpoint of the agent is online."""
    return _find_online_endpoint(tx, tx.endpoints(agent.id)) is not None


def _build_reach(tx: Transaction, agent: Agent, endpoints: Sequence[Endpoint], why_not: str) -> Reach:
    return build_reach(
        agent,
        tx.address(agent.id),
        endpoints,
        tx.now,
        tx.rules.periods,
        wakeable=not why_not,
        person=agent.is_person,
        why_not=why_not,
    )


# -- harnesses ---------------------------------------------------------------------------------------


def choose_runner(tx: Transaction, agent: Agent) -> str:
    """Return the harness that would run an agent; refuse if none or several are ready."""
    harness, _ = _choose_harness(tx, agent, None, strict=True)
    assert harness is not None  # a strict choice without one is refused
    return harness


def _choose_harness(tx: Transaction, agent: Agent, named: str | None, strict: bool) -> tuple[str | None, str]:
    """Return the harness that would run the agent, and the reason if it cannot."""
    if agent.is_person:
        return None, "a person is not started"
    harness = named or find_set_harness(tx, agent) or tx.services.default_harness
    if harness is None:
        offered = [name for name, one in tx.services.harnesses.items() if not one.capabilities.hidden]
        ready = [name for name in offered if not _explain_missing_harness(tx, agent, name)]
        if not ready:
            if strict and is_startable(tx, agent):
                raise Refused(_build_none_ready_refusal(tx, agent))
            return None, "no live session, and no harness is set for it"
        try:
            harness = choose_default_harness(None, None, None, ready, tx.address(agent.id))
        except Refused as refusal:
            if strict:
                raise
            return None, f"no live session, and {refusal.diagnostic.message}"
    lacks = _explain_missing_harness(tx, agent, harness)
    if lacks and strict:
        raise Refused(build_harness_refusal(tx, harness, agent))
    try:
        if not lacks:
            _check_folder(tx, agent, harness)
    except Refused as refusal:
        if strict:
            raise
        lacks = refusal.diagnostic.message
    return harness, lacks


def find_set_harness(tx: Transaction, agent: Agent) -> str | None:
    """Return the harness that is set for an agent: in its config, else for its role."""
    if agent.config.harness:
        return agent.config.harness
    role = find_runtime(tx.rules.roles, agent.model_role)
    return role.harness if role is not None else None


def choose_agent_runtime(tx: Transaction, agent: Agent, harness: str) -> HarnessModel:
    """Return the model and effort with which a harness runs an agent, unless an ask names another model."""
    return choose_runtime(agent.config, find_runtime(tx.rules.roles, agent.model_role), harness)


def _explain_missing_harness(tx: Transaction, agent: Agent, harness: str) -> str:
    """Return why a harness cannot run an agent; empty if it can."""
    services = tx.services
    if harness not in services.harnesses:
        return f"this Scout has no harness {harness}"
    if not agent.config.command and services.harnesses[harness].capabilities.needs_command:
        return "no command is set for it"
    probe = services.ready.get(harness)
    return "" if probe is None or probe.ready else probe.hint or f"{harness} is not ready"


def get_folder(agent: Agent) -> str | None:
    """Return the folder in which an agent's programs run: the one in its settings comes first."""
    return agent.config.workspace_dir or agent.working_dir or agent.project_root


def describe_folder(tx: Transaction, agent: Agent) -> tuple[str, ...]:
    """Return a note if an agent's programs run in an empty folder, because it has none."""
    harness = tx.services.harnesses.get(agent.config.harness or "")
    if harness is None or not harness.capabilities.starts_programs or get_folder(agent) is not None:
        return ()
    set_folder = f"scout agent config {tx.address(agent.id)} --working-dir DIR"
    return (f"it has no project folder, so its program runs in an empty one; to set a folder: {set_folder}",)


def describe_profile(tx: Transaction, agent: Agent, route: AgentRoute) -> tuple[str, ...]:
    """Return a note if the program that runs an agent does not enforce the profile that was set for it."""
    profile = get_permission_profile(agent, route.endpoint)
    harness = tx.services.harnesses.get(route.harness or "") if route.runs else None
    if harness is None or not harness.capabilities.starts_programs:
        return ()
    if profile in (PermissionProfile.WORKSPACE_WRITE, *harness.capabilities.native_profiles):
        return ()
    probe = tx.services.ready.get(harness.name)
    known = [note for note in (probe.notes if probe else ()) if note.startswith(f"{profile}:")]
    return (known[0] if known else f"{harness.name} does not enforce the permission profile {profile}",)


def _check_folder(tx: Transaction, agent: Agent, harness: str) -> None:
    """Refuse an agent whose directory is outside the allowed roots."""
    folder = get_folder(agent)
    if folder is None:
        return
    repository = tx.place.repository if tx.place and tx.place.directory == folder else agent.project_root
    check_folder(tx, folder, harness, repository)


def check_folder(tx: Transaction, folder: str, harness: str, repository: str | None) -> None:
    """Refuse a directory outside the allowed roots; the operator's own repository becomes a root."""
    if not tx.services.harnesses[harness].capabilities.starts_programs:
        return
    allowed = check_directory(
        folder, tx.services.roots, _get_root_owner(tx), tx.services.places.home, repository
    )
    if allowed.adds_root:
        tx.new_roots.append(allowed.root)


def _get_root_owner(tx: Transaction) -> Actor:
    """Return the actor for the root check. The broker itself has no token and cannot add a root."""
    actor = tx.actor
    return actor if actor.token_id else replace(actor, kind=TokenKind.AGENT)


def can_wake_live(services: Services, harness: str | None) -> bool:
    """Whether the harness can wake sessions that a person has open."""
    found = services.harnesses.get(harness or "")
    return found is not None and found.capabilities.live_wake


def build_unknown_harness_refusal(
    services: Services, harness: str, *remedies: Remedy, hint: str = ""
) -> HarnessUnavailable:
    """Return the refusal of an unknown harness, with the nearest names."""
    near = rank_names(harness, services.harnesses, 3)
    key = _find_setting(services, harness) if not hint else None
    if key is not None:
        hint = "it is the default in the settings" if key == _DEFAULT else f"it is set in {key}"
        right = ({"key": key, "value": name} for name in near[:1])
        remedies = (*(Remedy(operation="config.set", parameters=one) for one in right), *remedies)
    return HarnessUnavailable(
        harness=harness[:_LONGEST_NAME],
        missing=Missing.BINARY,
        hint=hint,
        known=tuple(services.harnesses),
        candidates=tuple(Candidate(address=name) for name in near),
        remedies=remedies,
    )


def _find_setting(services: Services, harness: str) -> str | None:
    """Return the setting that names a harness: the default, or a role."""
    if harness == services.default_harness:
        return _DEFAULT
    named = {role: find_runtime(services.rules.roles, role) for role in ModelRole}
    return next((f"roles.{role}" for role, one in named.items() if one and one.harness == harness), None)


def build_harness_refusal(tx: Transaction, harness: str, agent: Agent | None = None) -> HarnessUnavailable:
    """Return the refusal of a harness that cannot run here."""
    services = tx.services
    look = Remedy(operation="runtimes", parameters={}, why="see which harnesses are ready")
    if harness not in services.harnesses:
        return build_unknown_harness_refusal(services, harness, look)
    needs = services.harnesses[harness].capabilities.needs_command
    if agent is not None and needs and not agent.config.command:
        address = tx.address(agent.id)
        wish = {"address": address, "config": ["command=PROGRAM"]}
        remedy = Remedy(operation="agent.config", parameters=wish, why="set its program")
        hint = "no command is set for it"
        return HarnessUnavailable(harness=harness, missing=Missing.BINARY, hint=hint, remedies=(remedy,))
    probe = services.ready.get(harness)
    missing = (probe.missing if probe else None) or Missing.BINARY
    hint, program = (probe.hint, probe.program) if probe else ("", "")
    return HarnessUnavailable(harness=harness, missing=missing, hint=hint, program=program, remedies=(look,))


def _build_none_ready_refusal(tx: Transaction, agent: Agent) -> AmbiguousEndpoint:
    """Return the refusal if no harness is ready to run an agent."""
    address = tx.address(agent.id)
    queue = {"to": address, "body": "…", "ifUnreachable": "queue"}
    remedies = (
        Remedy(operation="runtimes", parameters={}, why="see what each harness lacks"),
        Remedy(operation="config.set", parameters={"key": "harness", "value": "claude"}, why="the default"),
        Remedy(operation="ask", parameters=queue, why="it waits until one is ready"),
    )
    return AmbiguousEndpoint(address=address, harnesses=(), agent_id=agent.id, remedies=remedies)


# -- endpoints ---------------------------------------------------------------------------------------


def find_endpoint(tx: Transaction, session_id: str | None) -> Endpoint | None:
    """Return the current endpoint of a session."""
    if session_id is None:
        return None
    found = tx.ledger.many(Endpoint, "endpoints_of_session", session=session_id)
    return next((one for one in reversed(found) if one.state not in ENDPOINT.terminal), None)


def record_endpoint_move(
    tx: Transaction, endpoint: Endpoint, step: EndpointMove, reason: str = ""
) -> Endpoint:
    """Record a move of an endpoint, and its agent's presence if that changes."""
    moved = move_endpoint(endpoint, step, tx.now, reason=reason)
    tx.record(ENDPOINT_EVENTS[step], moved, move=step, reason=reason)
    announce_presence(tx, endpoint, moved, reason)
    return moved


def announce_presence(tx: Transaction, before: Endpoint, after: Endpoint, reason: str = "") -> None:
    """Record that an agent is online with its first active endpoint, or offline with its last one gone.

    Only states count: a silent endpoint keeps its agent online until it is marked stale.
    """
    if (before.state in ACTIVE) is (after.state in ACTIVE):
        return
    if after.state in ACTIVE:
        wake_agent(tx, after.agent_id, "it has a live session")
    others = tx.endpoints(after.agent_id)
    if not any(one.state in ACTIVE for one in others if one.id != after.id):
        record_presence(tx, after, AgentOnline if after.state in ACTIVE else AgentOffline, reason)


def record_presence(
    tx: Transaction, endpoint: Endpoint, kind: type[AgentOnline | AgentOffline], reason: str = ""
) -> None:
    """Record that an agent is online or offline."""
    seen = Reached(
        agent_id=endpoint.agent_id, endpoint_id=endpoint.id, last_seen=endpoint.last_seen, reason=reason
    )
    tx.append(kind, endpoint.agent_id, seen)


def build_retired_refusal(tx: Transaction, agent: Agent) -> RetiredTarget:
    """Return the refusal of a request to a retired agent."""
    revive = Remedy(operation="agent.revive", parameters={"address": str(agent.path)})
    return RetiredTarget(address=tx.address(agent.id), agent_id=agent.id, remedies=(revive,))


def wake_agent(tx: Transaction, agent_id: str | None, reason: str) -> Agent | None:
    """Record that a sleeping agent is awake; return the agent."""
    agent = tx.agent(agent_id)
    if agent is None or agent.is_remote or agent.lifecycle is not Lifecycle.SLEEPING:
        return agent
    return tx.record(AgentWoken, move_agent(agent, AgentMove.WAKE, tx.now), move="wake", reason=reason)
