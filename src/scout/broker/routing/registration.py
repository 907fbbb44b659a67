"""Create agents: by registration, or for a project that is asked and has none."""

from msgspec.structs import replace

from scout.base.refusal import PLACEHOLDER, BadRequest, Refused, Remedy
from scout.broker.routing import routes, users
from scout.broker.transaction.transaction import Transaction
from scout.identity.address import fold, fold_segment
from scout.identity.branch import check_ref
from scout.identity.path import AgentPath, Kind
from scout.identity.reserved import RESERVED
from scout.identity.spelling import name_directory_agent
from scout.model.agent import (
    Agent,
    AgentConfig,
    Lifecycle,
    PermissionProfile,
    ToolRole,
    create_agent,
    take_search_index,
    take_sub_index,
)
from scout.model.alias import Alias, AliasState, break_alias
from scout.model.events.directory import AliasBrokenEvent
from scout.model.events.presence import AgentRegistered, AgentUpdated
from scout.model.problems.request import Forbidden
from scout.policy.directory import Wanted
from scout.policy.permit import check_directory
from scout.policy.registration import Registration, RegistrationWish, decide_registration
from scout.ports import Surroundings

MAIN_BRANCH = "main"  # the root branch of a project without one


def check_config(tx: Transaction, config: AgentConfig, was: AgentConfig | None = None) -> AgentConfig:
    """Return the config if the caller may set it; only the operator may set a command or a URL."""
    before = was or AgentConfig()
    for name in ("command", "url", "credential_file"):
        if getattr(config, name) != getattr(before, name) and not tx.is_operator:
            needs, what = ("the operator's token",), name.replace("_", " ")
            raise Refused(Forbidden(action=f"set the {what}", subject="an agent's config", needs=needs))
    check_profile(tx, config.permission_profile, was.permission_profile if was else None)
    if config.workspace_dir is not None and config.workspace_dir != (was.workspace_dir if was else None):
        check_own_folder(tx, config.workspace_dir)
    known = tx.services.harnesses
    if config.harness is not None and config.harness not in known:
        raise Refused(routes.build_harness_refusal(tx, config.harness))
    return config


def check_own_folder(tx: Transaction, folder: str) -> None:
    """Refuse a directory outside the allowed roots, unless the caller is the operator."""
    if not tx.is_operator:
        check_directory(folder, tx.services.roots, tx.actor, tx.services.places.home)


def check_profile(tx: Transaction, wanted: PermissionProfile | None, was: PermissionProfile | None) -> None:
    """Refuse the trusted profile, unless the caller is the operator or it is unchanged."""
    if wanted is PermissionProfile.TRUSTED and wanted is not was and not tx.is_operator:
        needs = ("the operator's token",)
        raise Refused(Forbidden(action="set the profile trusted", subject="a program", needs=needs))


def register_agent(
    tx: Transaction, decided: Registration, config: AgentConfig, place: Surroundings | None
) -> Agent:
    """Store a new agent under the decided names."""
    spelling = decided.spelling
    assert spelling is not None  # a decision without an existing agent has a spelling
    born = spelling.birth_branch
    if born and place and tx.ledger.one(Agent, "agent_born", root=place.project_root, branch=born):
        born = None  # a retired agent keeps its birth branch
    agent = create_agent(
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


def register_agent_at(
    tx: Transaction,
    path: AgentPath,
    config: AgentConfig,
    *,
    folder: str | None = None,
    tool_role: ToolRole = ToolRole.DEV,
) -> Agent:
    """Store a new agent at a path; its last segment becomes the handle if that is free.

    `folder`: the project that it works in.
    """
    users.ensure_user(tx, path.user)
    if (made := tx.everybody.at_path(path)) is not None:
        return made  # created with its user
    parent = tx.everybody.at_path(path.parent) if path.parent else None
    if path.parent is not None and parent is None:
        raise tx.missing("agent", str(path.parent))
    if parent is not None:
        _take_index(tx, parent, path)
    agent = create_agent(
        tx.mint("agt"),
        path,
        tx.now,
        node=tx.services.node,
        by=tx.sender,
        parent_id=parent.id if parent else None,
        definition_id=choose_free_handle(tx, path),
        project_root=folder,
        tool_role=tool_role,
        config=config,
    )
    tx.record(AgentRegistered, agent, move="register")
    break_alias_named(tx, agent)
    return agent


def choose_free_handle(tx: Transaction, path: AgentPath) -> str | None:
    """Return the handle for an agent path of the operator, unless it is reserved or taken."""
    name = str(path).rpartition("/")[2]
    foreign = path.user != tx.services.operator
    if foreign or path.kind is not Kind.AGENT or fold(name) != name or name in RESERVED:
        return None
    wanted = Wanted(definition_id=name, exact=True, node=tx.services.node)
    return None if tx.everybody.find(wanted, 1) else name


def _take_index(tx: Transaction, parent: Agent, path: AgentPath) -> None:
    """Take the parent's next child number; refuse a path with any other number."""
    take = {Kind.SUB: take_sub_index, Kind.SEARCH: take_search_index}.get(path.kind)
    if take is None:
        return
    counted, index = take(parent, tx.now)
    *above, given = str(path).split("/")
    if given != str(index):
        following = "/".join((*above, str(index)))
        again = Remedy(operation="ask", parameters={"to": following, "body": PLACEHOLDER})
        problem = f"the next one is {following}"
        raise Refused(BadRequest(problem=problem, field="to", remedies=(again,)))
    tx.record(AgentUpdated, counted, move="child")


def break_alias_named(tx: Transaction, agent: Agent) -> None:
    """Break an alias with the new agent's name: an alias never shadows an agent. A person must repair it."""
    alias = tx.ledger.one(Alias, "alias_named", owner=agent.owner, name=agent.definition_id)
    if alias is not None and alias.state is AliasState.ACTIVE:
        reason = f"an agent is now called {agent.definition_id}"
        tx.record(AliasBrokenEvent, break_alias(alias, reason, tx.now), move="break", reason=reason)


def ensure_base_agent(tx: Transaction, place: Surroundings) -> Agent:
    """Return the agent that the caller's user has in a project directory, created if there is none."""
    folders = (place.directory, place.project_root, place.repository if place.workspace else None)
    own = tx.directory_of(tx.actor.user or tx.services.operator)
    for folder in dict.fromkeys(one for one in folders if one):
        if (found := own.of_project(folder)) is not None:
            return found
    return _register_base_agent(tx, place)


def ensure_root_agent(tx: Transaction, place: Surroundings) -> Agent:
    """Return the agent at the root of a project's tree, created if there is none.

    It may have no birth branch, if it was registered before the project had one.
    """
    found = find_root_agent(tx, place.project_root, place.branch or MAIN_BRANCH)
    return found or _register_base_agent(tx, place)


def find_root_agent(tx: Transaction, root: str | None, branch: str) -> Agent | None:
    """Return the live agent at the root of a project's tree: born on this branch, else on another one."""
    born = tx.ledger.one(Agent, "agent_born", root=root, branch=branch)
    if born is not None and born.parent_id is None and born.lifecycle is not Lifecycle.RETIRED:
        return born
    return tx.ledger.one(Agent, "root_agent", root=root)


def _register_base_agent(tx: Transaction, place: Surroundings) -> Agent:
    """Register the agent of a project under the name of its directory, or return the one that has it."""
    owner = tx.actor.user or tx.services.operator

    def taken(name: str) -> bool:
        wanted = Wanted(definition_id=name, workspace=place.workspace, exact=True, node=tx.services.node)
        holders = tx.everybody.find(wanted, 1)
        return any((one.project_root, one.owner) != (place.project_root, owner) for one in holders)

    definition = name_directory_agent(place.definition, place.parent_folder, place.configured_name, taken)
    branch = place.branch or MAIN_BRANCH
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
    if decided.existing is not None and decided.existing.owner != owner:
        # Another user's agent of the same project has the name.
        own = replace(wish, definition=f"{fold_segment(owner)}-{definition}", root_branch=None)
        decided = decide_registration(own, tx.everybody)
    if decided.existing is not None:
        return decided.existing
    if place.harness is not None and place.harness not in tx.services.harnesses:
        hint = f"it is named in .scout/project.toml of {place.project_root}"
        look = Remedy(operation="runtimes", parameters={}, why="which harnesses are ready")
        raise Refused(routes.build_unknown_harness_refusal(tx.services, place.harness, look, hint=hint))
    config = AgentConfig(harness=place.harness, model=place.model)
    return register_agent(tx, decided, config, place)
