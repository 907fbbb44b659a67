"""Entering agents: by registration, or because a project is asked that has none yet."""

from typing import Any

from scout.base.codec import plain
from scout.base.refusal import BadRequest, Refused, Remedy
from scout.broker.routing import credentials, routes
from scout.broker.routing.agent_wake import wake_agent
from scout.broker.routing.views import agent_view
from scout.broker.transaction.transaction import Transaction
from scout.identity.branch import check_ref
from scout.identity.path import AgentPath, Kind
from scout.identity.reserved import RESERVED
from scout.identity.segment import fold, segment
from scout.identity.spelling import directory_definition
from scout.model.agent import (
    Agent,
    AgentConfig,
    PermissionProfile,
    ToolRole,
    connects_by_itself,
    new_agent,
    read_config,
    take_search_index,
    take_sub_index,
    update_agent,
)
from scout.model.alias import Alias, AliasState, break_alias
from scout.model.events.directory import AliasBrokenEvent
from scout.model.events.presence import AgentRegistered, AgentUpdated
from scout.model.problems.request import Forbidden
from scout.model.problems.target import NameTaken
from scout.policy.directory import Wanted
from scout.policy.permit import Deed, Subject, check_directory
from scout.policy.registration import Registration, RegistrationWish, decide_registration
from scout.ports import Surroundings
from scout.protocol.agents import RegisterAgent, Registered


def register(tx: Transaction, request: RegisterAgent) -> Registered:
    """Enter an agent, or find the one that this already is."""
    _may_register(tx)
    place = tx.place or tx.here
    config = _config(tx, request)
    wish = RegistrationWish(
        owner=tx.actor.user or tx.services.operator,
        definition=request.definition_id,
        workspace=request.workspace or (place.workspace if place and tx.place else None),
        profile=request.profile,
        node=tx.services.node,
        project_root=place.project_root if place else None,
        branch=(place.branch if place else None) or "main",
        root_branch=_root_branch(place, request),
        tool_role=request.tool_role,
    )
    decided = decide_registration(wish, tx.everybody)
    if decided.existing is not None:
        _check_owner(tx, decided.existing, wish.owner)
        awake = wake_agent(tx, decided.existing.id, "it was registered again") or decided.existing
        agent = _reconfigured(tx, awake, config)
        return _registered(tx, agent, decided.elsewhere, created=False)
    agent = enter(tx, decided, config, place)
    token = credentials.for_agent(tx, agent) if connects_by_itself(config) else None
    return _registered(tx, agent, decided.elsewhere, created=True, token=token)


def _check_owner(tx: Transaction, holder: Agent, owner: str) -> None:
    """A handle is unique on its node: what another user's agent is called is taken."""
    if holder.owner == owner:
        return
    look = Remedy(operation="show", parameters={"address": str(holder.path)}, why="who has it")
    name, state = tx.address(holder.id), str(holder.lifecycle)
    raise Refused(
        NameTaken(noun="agent", name=name, holder_id=holder.id, holder_state=state, remedies=(look,))
    )


def _may_register(tx: Transaction) -> None:
    agent = tx.get(Agent, tx.actor.agent_id)
    hosts = agent is not None and agent.tool_role is ToolRole.HOST
    if not hosts:
        tx.permit(Deed.ADMINISTER, Subject(name="the directory", user=tx.actor.user))


def _root_branch(place: Surroundings | None, request: RegisterAgent) -> str | None:
    """The agent that bears its project's name, on its main work tree, is the project's root agent."""
    if place is None or place.branch is None or place.workspace or request.workspace or request.profile:
        return None
    return place.branch if segment(request.definition_id) == place.definition else None


def _config(tx: Transaction, request: RegisterAgent) -> AgentConfig:
    shortcuts: dict[str, Any] = {
        "harness": request.harness,
        "model": request.model,
        "wakePolicy": request.wake_policy,
        "permissionProfile": request.permission_profile,
        "command": request.command,
    }
    given = {**request.config, **{key: value for key, value in shortcuts.items() if value is not None}}
    if request.command and "harness" not in given:
        given["harness"] = "command"
    return checked_config(tx, read_config(given))


def checked_config(tx: Transaction, config: AgentConfig, was: AgentConfig | None = None) -> AgentConfig:
    """Which program is started is the operator's to say: nobody else could be allowed to."""
    if config.command != (was.command if was else ()) and not tx.is_operator:
        needs = ("the operator's token",)
        raise Refused(Forbidden(action="set the command", subject="an agent's config", needs=needs))
    check_profile(tx, config.permission_profile, was.permission_profile if was else None)
    if config.workspace_dir is not None and config.workspace_dir != (was.workspace_dir if was else None):
        check_own_folder(tx, config.workspace_dir)
    known = tx.services.harnesses
    if config.harness is not None and config.harness not in known:
        raise Refused(routes.harness_unavailable(tx, config.harness))
    return config


def check_own_folder(tx: Transaction, folder: str) -> None:
    """Only the operator places an agent outside the allowed roots."""
    if not tx.is_operator:
        check_directory(folder, tx.services.roots, tx.actor, tx.services.places.home)


def check_profile(tx: Transaction, wanted: PermissionProfile | None, was: PermissionProfile | None) -> None:
    """Only the operator trusts a program with everything."""
    if wanted is PermissionProfile.TRUSTED and wanted is not was and not tx.is_operator:
        needs = ("the operator's token",)
        raise Refused(Forbidden(action="set the profile trusted", subject="a program", needs=needs))


def _reconfigured(tx: Transaction, agent: Agent, config: AgentConfig) -> Agent:
    """What a repeated registration says about the agent, said again; what it leaves out stays."""
    said = {key: value for key, value in plain(config).items() if value != plain(AgentConfig())[key]}
    merged = checked_config(tx, read_config(said, agent.config), agent.config)
    if merged == agent.config:
        return agent
    return tx.record(AgentUpdated, update_agent(agent, tx.now, config=merged), move="config")


def enter(tx: Transaction, decided: Registration, config: AgentConfig, place: Surroundings | None) -> Agent:
    """Store a new agent under the names that were decided."""
    spelling = decided.spelling
    assert spelling is not None  # a decision without an existing agent spells a new one
    born = spelling.birth_branch
    if born and place and tx.ledger.one(Agent, "agent_born", root=place.project_root, branch=born):
        born = None  # a retired agent keeps its birth branch
    agent = new_agent(
        tx.mint("agt"),
        spelling.path,
        tx.now,
        node=tx.services.node,
        by=tx.sender,
        definition_id=spelling.address.definition_id,
        workspace=spelling.address.workspace_qualifier,
        profile=spelling.address.profile,
        birth_branch=born,
        project_root=place.project_root if place else None,
        working_dir=place.project_root if place else None,
        tool_role=decided.tool_role,
        config=config,
    )
    tx.record(AgentRegistered, agent, move="register")
    break_alias_named(tx, agent)
    return agent


def enter_at(tx: Transaction, path: AgentPath, config: AgentConfig) -> Agent:
    """Store a new agent by its path; an agent path gives it its name as a handle, if that is free."""
    parent = tx.everybody.at_path(path.parent) if path.parent else None
    if path.parent is not None and parent is None:
        raise tx.missing("agent", str(path.parent))
    if parent is not None:
        _take_index(tx, parent, path)
    agent = new_agent(
        tx.mint("agt"),
        path,
        tx.now,
        node=tx.services.node,
        by=tx.sender,
        parent_id=parent.id if parent else None,
        definition_id=_free_name(tx, path),
        config=config,
    )
    tx.record(AgentRegistered, agent, move="register")
    break_alias_named(tx, agent)
    return agent


def _free_name(tx: Transaction, path: AgentPath) -> str | None:
    """The handle that a path of this machine's user spells, unless it is reserved or taken."""
    name = str(path).rpartition("/")[2]
    foreign = path.user != tx.services.operator
    if foreign or path.kind is not Kind.AGENT or fold(name) != name or name in RESERVED:
        return None
    wanted = Wanted(definition_id=name, exact=True, node=tx.services.node)
    return None if tx.everybody.find(wanted, 1) else name


def _take_index(tx: Transaction, parent: Agent, path: AgentPath) -> None:
    """Numbered children come in their order: the number of a new one is the parent's next."""
    take = {Kind.SUB: take_sub_index, Kind.SEARCH: take_search_index}.get(path.kind)
    if take is None:
        return
    counted, index = take(parent, tx.now)
    *above, given = str(path).split("/")
    if given != str(index):
        problem = f"the next one is {'/'.join((*above, str(index)))}"
        raise Refused(BadRequest(problem=problem, field="to"))
    tx.record(AgentUpdated, counted, move="child")


def break_alias_named(tx: Transaction, agent: Agent) -> None:
    """An alias never shadows a definition: one that was there first is refused until a person repairs it."""
    alias = tx.ledger.one(Alias, "alias_named", owner=agent.owner, name=agent.definition_id)
    if alias is not None and alias.state is AliasState.ACTIVE:
        reason = f"an agent is now called {agent.definition_id}"
        tx.record(AliasBrokenEvent, break_alias(alias, reason, tx.now), move="break", reason=reason)


def _registered(
    tx: Transaction, agent: Agent, elsewhere: Agent | None, *, created: bool, token: str | None = None
) -> Registered:
    view = agent_view(tx, agent)
    notes = (_second_clone(tx, agent, elsewhere),) if elsewhere is not None else ()
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


def _second_clone(tx: Transaction, agent: Agent, elsewhere: Agent) -> str:
    """Why the agent has a longer name than was asked for, and how to get a shorter one."""
    own, other = tx.address(agent.id), tx.address(elsewhere.id)
    return (
        f"{other} is the agent of {elsewhere.project_root}, so the agent of this folder is {own}; "
        f"for a shorter name: scout alias set my-{agent.definition_id} {own}"
    )


def base_agent(tx: Transaction, place: Surroundings) -> Agent:
    """The agent of a project directory; made now if there is none yet."""
    found = tx.everybody.of_project(place.directory) or tx.everybody.of_project(place.project_root)
    if found is not None:
        return found
    owner = tx.actor.user or tx.services.operator

    def taken(name: str) -> bool:
        wanted = Wanted(definition_id=name, workspace=place.workspace, exact=True, node=tx.services.node)
        holders = tx.everybody.find(wanted, 1)
        return bool(holders) and holders[0].project_root != place.project_root

    definition = directory_definition(place.definition, place.parent_folder, place.configured_name, taken)
    branch = place.branch or "main"
    wish = RegistrationWish(
        owner=owner,
        definition=definition,
        workspace=place.workspace,
        node=tx.services.node,
        project_root=place.project_root,
        branch=branch,
        root_branch=None if place.workspace else check_ref(branch),
    )
    decided = decide_registration(wish, tx.everybody)
    if decided.existing is not None:
        return decided.existing
    config = AgentConfig(harness=place.harness, model=place.model)
    return enter(tx, decided, config, place)
