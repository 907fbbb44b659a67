"""Agents: register, find, configure, retire and revive them."""

import heapq
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from scout.base.codec import render, to_plain
from scout.base.refusal import BadRequest, Refused, Remedy
from scout.broker.routing import registration, routes
from scout.broker.routing.registration import check_config, check_own_folder
from scout.broker.routing.routes import wake_agent
from scout.broker.routing.views import build_agent_detail, build_agent_view
from scout.broker.transaction import admission
from scout.broker.transaction.admission import find_project
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.paging import build_page, decode_bound, get_page_size
from scout.broker.transaction.transaction import (
    Transaction,
    build_subject,
    find_session_alias,
    require_local,
)
from scout.identity.address import fold, fold_segment
from scout.identity.describe import describe, describe_mentions
from scout.identity.path import Kind
from scout.model.agent import (
    Agent,
    AgentConfig,
    Lifecycle,
    ToolRole,
    is_self_connected,
    read_config,
    update_agent,
)
from scout.model.endpoint import Transport
from scout.model.events.presence import AgentUpdated
from scout.model.problems.target import NameTaken
from scout.policy.directory import Instance, Viewpoint, get_instance
from scout.policy.permit import Deed, Subject
from scout.policy.registration import RegistrationWish, decide_registration
from scout.policy.resolver.resolve import resolve
from scout.ports import Surroundings
from scout.protocol.agents import (
    AgentDetail,
    AgentView,
    ConfigureAgent,
    Identity,
    Moved,
    MoveProject,
    Parse,
    Parsed,
    RegisterAgent,
    Registered,
    Resolve,
    Resolved,
    ShowAgent,
    Who,
    WhoAmI,
)
from scout.protocol.request import Page
from scout.store import mirror
from scout.store.ledger import LAST

_NAMES = 20
_LOOKED_AT = 500  # agents whose descriptions are searched per query
_COUNTED = 1000
_PAGE = 50
_IDENTITIES = 10_000  # kept in memory


async def identify(call: CallContext[CallBroker], request: WhoAmI) -> Identity:
    """Return the caller's identity from a cache, because MCP asks with every message; a rename clears it."""
    who, known = call.who, call.broker.identities
    key = (who.actor.token_id, who.actor.agent_id, who.caller.project_root)
    if key not in known:
        if len(known) >= _IDENTITIES:
            known.clear()
        known[key] = show_identity(call.glance(), request)
    return known[key]


def show_identity(tx: Transaction, request: WhoAmI) -> Identity:
    """Return the identity behind the caller's credential."""
    actor, services = tx.actor, tx.services
    agent = tx.get(Agent, actor.agent_id)
    own = tx.instance(agent, actor.session_id) if agent else None
    return Identity(
        kind=actor.kind,
        token_id=actor.token_id,
        sender=tx.address(agent.id) if agent else None,
        agent_id=actor.agent_id,
        address=tx.address(agent.id) if agent else None,
        alias=find_session_alias(tx, actor.session_id) or (tx.alias(agent) if agent else None),
        canonical=(own if actor.session_id else Instance(agent=own.agent)).canonical if own else None,
        minimal=tx.minimal(own) if own else None,
        path=str(agent.path) if agent else None,
        birth_branch=agent.birth_branch if agent else None,
        role=agent.tool_role if agent else None,
        session_id=actor.session_id,
        user=actor.user,
        project=tx.caller.project_root,
        node=services.node,
        url=services.status.url,
        version=services.version,
    )


# -- finding -----------------------------------------------------------------------------------------


def find(tx: Transaction, address: str, deed: Deed = Deed.SEE) -> Agent:
    """Return the agent at an address, live or retired, through any harness, if `deed` is permitted."""
    try:
        agent = tx.resolve(address).agent
    except Refused as refusal:
        agent_id = getattr(refusal.diagnostic, "agent_id", None)
        agent = tx.directory.agent(agent_id) if agent_id else None
        if agent is None:
            raise
    if deed is Deed.CONTROL:
        require_local(tx, agent)
    tx.permit(deed, build_subject(agent))
    return tx.agent(agent.id) or agent  # it may have moved from here


def list_agents(tx: Transaction, request: Who) -> Page[AgentView]:
    """List the agents that the caller may see, newest first."""
    wanted = get_page_size(request.limit, tx.rules.limits)
    bound, limit = decode_bound(request.cursor), wanted + 1
    found: list[Agent] = []
    # Filtering may leave a page short, so read more rows until it is full.
    while len(found) < limit:
        rows = read_candidates(tx, request, bound, limit)
        agents = [_follow_forward(tx, agent) for agent in rows]
        found += [agent for agent in agents if _is_listed(tx, request, agent)]
        if len(rows) < limit:
            break
        bound = rows[-1].id
    shown = build_page(found[:limit], wanted, lambda agent: agent.id)
    return Page(items=tuple(build_agent_view(tx, agent) for agent in shown.items), next=shown.next)


def _follow_forward(tx: Transaction, agent: Agent) -> Agent:
    """Return an agent that moved to another node as it is there; any other as it is."""
    return tx.agent(agent.id) or agent if agent.moved_to is not None else agent


def _find_described(tx: Transaction, query: str, bound: str) -> list[Agent]:
    """Return those of the next agents whose description contains every word of the query."""
    words = query.casefold().split()
    some = tx.ledger.many(Agent, "agents_all", before=bound, limit=_LOOKED_AT)
    return [one for one in some if all(word in (one.config.description or "").casefold() for word in words)]


def read_candidates(tx: Transaction, request: Who, bound: str, limit: int) -> list[Agent]:
    """Return the next agents that a list may show, with those of other nodes if they are wanted."""
    here = _read_own_candidates(tx, request, bound, limit)
    remote = tx.services.meshed and request.at is None and request.project_root is None
    if not remote or not (request.all_nodes or request.query):
        return here
    there = _read_remote_candidates(tx, request, bound, limit)
    merged = heapq.merge(here, there, key=lambda agent: agent.id, reverse=True)
    first: dict[str, Agent] = {}
    for agent in merged:  # an agent that moved from here is in both lists
        first.setdefault(agent.id, agent)
    return list(first.values())[:limit]


def _read_remote_candidates(tx: Transaction, request: Who, bound: str, limit: int) -> list[Agent]:
    ledger = tx.ledger
    if request.query:
        prefix = fold(request.query.lstrip("@"))
        names = dict.fromkeys((prefix, *tx.directory.prefixed(prefix, _NAMES)))
        found = [one for name in names for one in ledger.remote_agents(mirror.NAMED, name, bound, limit)]
    else:
        found = ledger.remote_agents(mirror.ALL, bound, limit)
    return sorted((one.agent for one in found), key=lambda agent: agent.id, reverse=True)[:limit]


def _read_own_candidates(tx: Transaction, request: Who, bound: str, limit: int) -> list[Agent]:
    ledger = tx.ledger
    if request.query:
        prefix = fold(request.query.lstrip("@"))
        # Only names in use are found by their beginning; a retired agent is found by its full name.
        find_names = tx.directory.prefixed if request.at is None else tx.directory.ever_prefixed
        names = dict.fromkeys((prefix, *find_names(prefix, _NAMES)))
        lists = [ledger.many(Agent, "agents_named", name=name, before=bound, limit=limit) for name in names]
        lists.append(_find_described(tx, request.query, bound))
        merged = heapq.merge(*lists, key=lambda agent: agent.id, reverse=True)
        return list({agent.id: agent for agent in merged}.values())[:limit]
    if request.project_root:
        root = tx.place.project_root if tx.place else request.project_root
        return ledger.many(Agent, "agents_of_root", root=root, before=bound, limit=limit)
    if request.online:
        return ledger.many(Agent, "agents_reachable", before=bound, limit=limit)
    return ledger.many(Agent, "agents_all", before=bound, limit=limit)


def _is_listed(tx: Transaction, request: Who, agent: Agent) -> bool:
    if not is_kind_listed(request, agent):
        return False
    if request.online and not routes.is_live(tx, agent):
        return False
    return tx.view.shows(agent)


def is_kind_listed(request: Who, agent: Agent) -> bool:
    """Whether a list shows agents in this state and of this kind."""
    retired = agent.lifecycle is Lifecycle.RETIRED and not request.retired
    return not retired and (request.all or is_agent(agent))


def is_agent(agent: Agent) -> bool:
    """Whether this is an agent proper: neither a person nor a part of Scout."""
    return agent.kind is not Kind.SYSTEM and not agent.is_person


def list_live(tx: Transaction, limit: int) -> list[Agent]:
    """Return the newest agents that are online and that the caller sees."""
    found: list[Agent] = []
    bound = LAST
    while rows := tx.ledger.many(Agent, "agents_reachable", before=bound, limit=_PAGE):
        found += [one for one in rows if tx.view.shows(one) and routes.is_live(tx, one)]
        bound = rows[-1].id
        if len(found) >= limit or len(rows) < _PAGE:
            break
    return found[:limit]


def count_agents(tx: Transaction) -> int:
    """Count the agents that `who` lists for the caller, among the newest thousand."""
    if tx.is_operator or tx.view.paths or tx.view.projects:
        known = tx.ledger.many(Agent, "agents_all", before=LAST, limit=_COUNTED)
    else:  # the newest agents of all may be those of others
        known = [
            one
            for user in dict.fromkeys(tx.view.users)
            for one in tx.ledger.many(Agent, "agents_of_owner", owner=user, before=LAST, limit=_COUNTED)
        ]
    return sum(_is_listed(tx, Who(), one) for one in known)


def show(tx: Transaction, request: ShowAgent) -> AgentDetail:
    """Return one agent with its details."""
    return build_agent_detail(tx, find(tx, request.address))


def resolve_address(tx: Transaction, request: Resolve) -> Resolved:
    """Resolve an address from the caller's viewpoint, or from the agent or directory in `from`."""
    caller = _choose_viewpoint(tx, request.from_) if request.from_ else tx.caller
    found = resolve(request.address, tx.directory, caller, tx.now)
    agent, choice = found.agent, found.choice
    endpoint = choice.endpoint
    return Resolved(
        agent_id=agent.id,
        endpoint_id=found.endpoint_id,
        session_id=endpoint.session_id if endpoint else None,
        harness=choice.harness,
        address=tx.address(agent.id),
        canonical=found.canonical,
        minimal=tx.minimal(get_instance(agent, endpoint)),
        path=str(agent.path),
        birth_branch=agent.birth_branch,
        rule=found.rule,
        action=choice.action,
        steps=tuple(f"{step.rule}: {('none', 'one', 'several')[min(step.left, 2)]}" for step in found.steps),
        passed_over=tuple(f"{one.endpoint_id}: {one.why}" for one in choice.passed_over),
        alias_id=found.alias_id,
        alias_revision=found.alias_revision,
        description=agent.config.description,
    )


def _choose_viewpoint(tx: Transaction, place: str) -> Viewpoint:
    """Return the viewpoint of a visible agent or of a directory."""
    try:
        agent = tx.resolve(place).agent
    except Refused:
        if tx.actor.user != tx.services.operator:
            raise  # the folders of this machine are the operator's
        at = tx.services.places.locate(place, tx.caller.project_root)
        root, branch = find_project(tx.ledger, None, at)
        return replace(tx.caller, project_root=root, root_branch=branch)
    root, branch = find_project(tx.ledger, agent)
    return replace(
        tx.caller,
        agent_id=agent.id,
        session_id=None,
        path=agent.path,
        project_root=root,
        root_branch=branch,
    )


# -- changing ----------------------------------------------------------------------------------------


def configure(tx: Transaction, request: ConfigureAgent) -> AgentDetail:
    """Change an agent's config, tool role or working directory."""
    agent = find(tx, request.address, Deed.CONTROL)
    changes: dict[str, Any] = {}
    if request.config:
        changes["config"] = check_config(tx, read_config(request.config, agent.config), agent.config)
    if request.tool_role is not None:
        tx.permit(Deed.ADMINISTER, build_subject(agent))
        changes["tool_role"] = request.tool_role
    if request.working_dir is not None:
        folder = tx.place.directory if tx.place else request.working_dir
        check_own_folder(tx, folder)
        changes["working_dir"] = folder
    if not changes:
        raise Refused(BadRequest(problem="nothing to change: give config, toolRole or workingDir"))
    changed = update_agent(agent, tx.now, seen=request.revision, **changes)
    return build_agent_detail(tx, tx.record(AgentUpdated, changed, move="config"))


def build_name_taken(noun: str, name: str, holder: Agent) -> NameTaken:
    look = Remedy(operation="show", parameters={"address": str(holder.path)}, why="see which agent has it")
    state = str(holder.lifecycle)
    return NameTaken(noun=noun, name=name, holder_id=holder.id, holder_state=state, remedies=(look,))


def _check_branch(tx: Transaction, agent: Agent, root: str) -> None:
    """Refuse if another agent of the project has the same birth branch."""
    branch = agent.birth_branch
    holder = tx.ledger.one(Agent, "agent_born", root=root, branch=branch) if branch else None
    if holder is not None and holder.id != agent.id:
        raise Refused(build_name_taken("branch", f"{root}: {branch}", holder))


def move_project(tx: Transaction, request: MoveProject) -> Moved:
    """Point the agents of a moved project at its new directory."""
    tx.permit(Deed.ADMINISTER, Subject(name=request.old))
    assert tx.place is not None  # the request names it
    new, old = tx.place.project_root, request.old.rstrip("/")
    moved: list[str] = []
    agents = tx.ledger.many(Agent, "agents_of_root", root=old, before=LAST, limit=1_000_000)
    for agent in agents:
        _check_branch(tx, agent, new)
        inside = agent.working_dir is not None and agent.working_dir.startswith(f"{old}/")
        working = f"{new}{agent.working_dir[len(old) :]}" if inside and agent.working_dir else new
        changed = update_agent(agent, tx.now, project_root=new, working_dir=working)
        tx.record(AgentUpdated, changed, move="move", reason=f"the project moved from {old}")
        moved.append(agent.id)
    if not moved:
        raise tx.missing("project", request.old)
    return Moved(agents=tuple(moved), at=tx.now)


# -- registration ------------------------------------------------------------------------------------


def register(tx: Transaction, request: RegisterAgent) -> Registered:
    """Register an agent, or return the existing one."""
    _may_register(tx)
    place = tx.place or tx.here
    config = _read_requested_config(tx, request)
    wish = RegistrationWish(
        owner=tx.actor.user or tx.services.operator,
        definition=request.definition_id,
        workspace=request.workspace or (place.workspace if place and tx.place else None),
        profile=request.profile,
        node=tx.services.node,
        project_root=place.project_root if place else None,
        branch=(place.branch if place else None) or "main",
        root_branch=_find_root_branch(place, request),
        tool_role=request.tool_role,
    )
    decided = decide_registration(wish, tx.everybody)
    if decided.existing is not None:
        _check_holder(tx, decided.existing, wish.owner)
        awake = wake_agent(tx, decided.existing.id, "it was registered again") or decided.existing
        agent = _reconfigure(tx, awake, config)
        return _build_registered(tx, agent, decided.elsewhere, created=False)
    agent = registration.register_agent(tx, decided, config, place)
    token = admission.create_agent_token(tx, agent) if is_self_connected(config) else None
    return _build_registered(tx, agent, decided.elsewhere, created=True, token=token)


def _check_holder(tx: Transaction, holder: Agent, owner: str) -> None:
    """Refuse a handle that another user's agent has; handles are unique per node."""
    if holder.owner == owner:
        return
    look = Remedy(operation="show", parameters={"address": str(holder.path)}, why="see which agent has it")
    name, state = tx.address(holder.id), str(holder.lifecycle)
    raise Refused(
        NameTaken(noun="agent", name=name, holder_id=holder.id, holder_state=state, remedies=(look,))
    )


def _may_register(tx: Transaction) -> None:
    agent = tx.get(Agent, tx.actor.agent_id)
    hosts = agent is not None and agent.tool_role is ToolRole.HOST
    if not hosts:
        tx.permit(Deed.ADMINISTER, Subject(name="the directory", user=tx.actor.user))


def _find_root_branch(place: Surroundings | None, request: RegisterAgent) -> str | None:
    """Return the branch of the project's root agent: named like the project, in its main work tree."""
    if place is None or place.branch is None or place.workspace or request.workspace or request.profile:
        return None
    return place.branch if fold_segment(request.definition_id) == place.definition else None


def _read_requested_config(tx: Transaction, request: RegisterAgent) -> AgentConfig:
    shortcuts: dict[str, Any] = {
        "harness": request.harness,
        "model": request.model,
        "wakePolicy": request.wake_policy,
        "permissionProfile": request.permission_profile,
        "command": request.command,
        "url": request.url,
        "credentialFile": request.credential_file,
    }
    given = {**request.config, **{key: value for key, value in shortcuts.items() if value is not None}}
    if request.command and "harness" not in given:
        given["harness"] = "command"
    if request.transport is not None or request.url is not None:
        given["harness"] = _check_remote(request, given)
    return check_config(tx, read_config(given))


def _check_remote(request: RegisterAgent, given: Mapping[str, Any]) -> str:
    """Return the harness of an agent of another system; refuse one without a URL, or with another way."""
    again = {
        "definitionId": request.definition_id,
        "transport": str(Transport.A2A),
        "url": "https://HOST/PATH",
    }
    remedy = Remedy(operation="agent.register", parameters=again, why="with the URL above its card")
    if request.transport not in (None, Transport.A2A):
        problem = (
            f"an agent is registered with the transport {Transport.A2A} or none, not {request.transport}"
        )
        raise Refused(BadRequest(problem=problem, field="transport", remedies=(remedy,)))
    if given.get("harness", Transport.A2A) != Transport.A2A or request.command:
        problem = "an agent of another system runs there: it has neither harness nor command here"
        raise Refused(BadRequest(problem=problem, field="harness", remedies=(remedy,)))
    if not given.get("url"):
        raise Refused(
            BadRequest(problem="an agent of another system needs its URL", field="url", remedies=(remedy,))
        )
    return str(Transport.A2A)


def _reconfigure(tx: Transaction, agent: Agent, config: AgentConfig) -> Agent:
    """Apply the settings that a repeated registration gives; omitted settings stay."""
    said = {key: value for key, value in to_plain(config).items() if value != to_plain(AgentConfig())[key]}
    merged = check_config(tx, read_config(said, agent.config), agent.config)
    if merged == agent.config:
        return agent
    return tx.record(AgentUpdated, update_agent(agent, tx.now, config=merged), move="config")


def _build_registered(
    tx: Transaction, agent: Agent, elsewhere: Agent | None, *, created: bool, token: str | None = None
) -> Registered:
    view = build_agent_view(tx, agent)
    notes = (_explain_second_clone(tx, agent, elsewhere),) if elsewhere is not None else ()
    notes = (*notes, *routes.describe_folder(tx, agent))
    return Registered(
        agent=view,
        address=view.address,
        canonical=view.canonical,
        minimal=view.minimal,
        path=str(agent.path),
        created=created,
        token=token,
        notes=notes,
    )


def _explain_second_clone(tx: Transaction, agent: Agent, elsewhere: Agent) -> str:
    """Explain why the agent got a longer name than requested, and how to get a shorter one."""
    own, other = tx.address(agent.id), tx.address(elsewhere.id)
    return (
        f"{other} is the agent of {elsewhere.project_root}, so the agent of this folder is {own}; "
        f"for a shorter name: scout alias set my-{agent.definition_id} {own}"
    )


def parse_addresses(tx: Transaction, request: Parse) -> Parsed:
    """Parse addresses; one result per text, in order."""
    return Parsed(items=tuple(_parse_one(text, mentions=request.mentions) for text in request.texts))


def _parse_one(text: str, *, mentions: bool) -> dict[str, Any]:
    try:
        return describe_mentions(text) if mentions else describe(text)
    except Refused as refusal:
        return {"input": text, "error": render(refusal.diagnostic)}
