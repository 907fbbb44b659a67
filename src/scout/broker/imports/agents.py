"""Imported agents and aliases, and the names they get."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from msgspec.structs import replace

from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.visible import make_visible
from scout.broker.imports.part import ImportPart
from scout.broker.routing import users
from scout.broker.routing.registration import break_alias_named, choose_free_handle, find_root_agent
from scout.identity.address import Address
from scout.identity.branch import check_ref
from scout.identity.legacy import CONFIG_KEYS
from scout.identity.path import AgentPath, Kind
from scout.identity.spelling import Spelling, list_import_names, name_registered
from scout.model.agent import (
    Agent,
    AgentConfig,
    Lifecycle,
    ToolRole,
    create_agent,
    read_config,
    take_search_index,
    take_sub_index,
)
from scout.model.alias import Alias, AliasTarget
from scout.model.conversation import make_storable
from scout.model.events.directory import AliasCreated
from scout.model.events.presence import AgentRegistered, AgentUpdated
from scout.model.imported import derive_imported_id
from scout.policy.directory import Wanted
from scout.policy.registration import check_alias
from scout.protocol.imports.records import ImportedAgent, ImportedAlias
from scout.protocol.imports.requests import ImportOutcome

_LONGEST = 4096  # characters of a folder
_COUNTED = {Kind.SUB: take_sub_index, Kind.SEARCH: take_search_index}
# One user has one agent for each of these: the same path is the same agent.
_SINGLE = frozenset({Kind.CONNECTOR, Kind.MEMORY})


class Naming(Record):
    """The names of a new agent. `existing`: it is an agent that Scout has already."""

    path: AgentPath
    address: Address | None = None
    birth_branch: str | None = None
    reason: str = ""
    parent: Agent | None = None
    existing: Agent | None = None


# -- agents ------------------------------------------------------------------------------------------


def take_agent(part: ImportPart, record: ImportedAgent) -> ImportOutcome:
    """Store an agent, asleep, under its own name or the next free one."""
    ident = derive_imported_id("agt", part.get_origin(record))
    known = part.tx.get(Agent, ident)
    if known is not None:
        return part.find(record, known.id, _name_agent(part, known))
    if record.path is not None and AgentPath.parse(record.path).is_person:
        return _take_person(part, record, AgentPath.parse(record.path), ident)
    naming = _choose_naming(part, record)
    if naming.existing is not None:
        found = naming.existing
        return part.find(record, found.id, _name_agent(part, found), naming.reason)
    config, dropped = _read_config(part, record)
    if not part.dry:
        _store_agent(part, record, ident, naming, config)
    reasons = "; ".join(reason for reason in (naming.reason, dropped) if reason)
    return part.take(record, ident, _format_name(naming), reasons)


def _take_person(part: ImportPart, record: ImportedAgent, path: AgentPath, ident: str) -> ImportOutcome:
    """Create a user; a user of the same name is the same person."""
    there = part.tx.everybody.at_path(path)
    if there is not None:
        return part.find(record, there.id, str(path))
    if part.dry:
        return part.take(record, ident, str(path))
    users.ensure_user(part.tx, path.user)
    made = part.tx.everybody.at_path(path)
    assert made is not None  # it is created with its user
    return part.take(record, made.id, str(path))


def _store_agent(
    part: ImportPart, record: ImportedAgent, ident: str, naming: Naming, config: AgentConfig
) -> None:
    tx, root = part.tx, read_folder(record.project_root)
    users.ensure_user(tx, naming.path.user)
    if naming.parent is not None:
        _count_child(part, naming.parent, naming.path)
    address = naming.address
    asleep = not record.retired
    agent = create_agent(
        ident,
        naming.path,
        tx.now,
        node=tx.services.node,
        by=tx.sender,
        parent_id=naming.parent.id if naming.parent is not None else None,
        definition_id=address.definition_id if address else choose_free_handle(tx, naming.path),
        workspace=address.workspace_qualifier if address else None,
        profile=address.profile if address else None,
        birth_branch=naming.birth_branch,
        project_root=root,
        working_dir=read_folder(record.working_dir) or root,
        tool_role=_read_role(record),
        config=config,
        lifecycle=Lifecycle.SLEEPING if asleep else Lifecycle.RETIRED,
        sleeping_since=tx.now if asleep else None,
        imported_from=part.get_origin(record),
    )
    tx.record(AgentRegistered, replace(agent, created_at=record.created_at or tx.now), move="import")
    break_alias_named(tx, agent)


def _count_child(part: ImportPart, parent: Agent, path: AgentPath) -> None:
    take = _COUNTED.get(path.kind)
    if take is not None:
        part.tx.record(AgentUpdated, take(parent, part.tx.now)[0], move="child")


def _read_role(record: ImportedAgent) -> ToolRole:
    return ToolRole(record.tool_role) if record.tool_role in set(ToolRole) else ToolRole.DEV


def _read_config(part: ImportPart, record: ImportedAgent) -> tuple[AgentConfig, str]:
    """Return an agent's settings, and what is left out. Commands and rights are never imported."""
    harness = record.harness if record.harness in part.tx.services.harnesses else None
    dropped = "" if harness == record.harness else f"Scout has no harness {record.harness:.40}"
    given = {key: make_storable(text) for key, text in record.config.items() if key in CONFIG_KEYS}
    if "workspaceDir" in given and read_folder(given["workspaceDir"]) is None:
        del given["workspaceDir"]
    return replace(read_config(given), harness=harness, model=record.model if harness else None), dropped


def read_folder(text: str | None) -> str | None:
    """Return a folder as it is stored, or None for a text that names none."""
    if text is None or len(text) > _LONGEST or make_visible(text) != text:
        return None
    path = PurePosixPath(text)
    return str(path) if path.is_absolute() and ".." not in path.parts else None


# -- names of agents ---------------------------------------------------------------------------------


def _choose_naming(part: ImportPart, record: ImportedAgent) -> Naming:
    parent = part.resolve_agent(record.parent) if record.parent is not None else None
    if record.path is not None:
        return _choose_path(part, record, AgentPath.parse(record.path), parent)
    if parent is not None:
        return _choose_child(part, record, parent)
    return _choose_handle(part, record)


def _choose_handle(part: ImportPart, record: ImportedAgent) -> Naming:
    """Return the names of an agent of the operator: its own, or the next free ones."""
    tx, root = part.tx, read_folder(record.project_root)
    born = check_ref(record.birth_branch) if record.birth_branch and root else None
    if born and root and (there := find_root_agent(tx, root, born) or tx.everybody.of_project(root)):
        return Naming(path=there.path, existing=there, reason="it is the agent of this project already")
    wanted = ""
    for name in list_import_names(record.name or record.id, part.system, record.id):
        try:
            spelling = name_registered(tx.services.operator, name, record.workspace, record.profile, born)
        except Refused as refusal:
            wanted = wanted or refusal.diagnostic.message
            continue
        same = _find_same(part, spelling, root)
        if same is not None:
            return Naming(path=same.path, existing=same, reason="it has the same name and project")
        if _is_free(part, spelling):
            path, address = spelling.path, spelling.address
            return Naming(path=path, address=address, birth_branch=born, reason=wanted)
        wanted = wanted or f"{spelling.address.canonical} was taken"
    raise Refused(BadRequest(problem=wanted or "it has no usable name", field="name"))


def _find_same(part: ImportPart, spelling: Spelling, root: str | None) -> Agent | None:
    holder = next(iter(part.tx.everybody.find(_want(part, spelling.address), 1)), None)
    return holder if holder is not None and root is not None and holder.project_root == root else None


def _is_free(part: ImportPart, spelling: Spelling) -> bool:
    tx, address = part.tx, spelling.address
    if tx.everybody.at_path(spelling.path) is not None or _is_handle_taken(part, address):
        return False
    owner, name = tx.services.operator, address.definition_id
    return tx.ledger.one(Alias, "alias_named", owner=owner, name=name) is None


def _is_handle_taken(part: ImportPart, address: Address) -> bool:
    return bool(part.tx.everybody.find(_want(part, address), 1))


def _want(part: ImportPart, address: Address) -> Wanted:
    return Wanted(
        definition_id=address.definition_id,
        workspace=address.workspace_qualifier,
        profile=address.profile,
        node=part.tx.services.node,
        exact=True,
    )


def _choose_child(part: ImportPart, record: ImportedAgent, parent_id: str) -> Naming:
    """Return the names of a child with its own branch, or of a worker on its parent's branch."""
    tx, root = part.tx, read_folder(record.project_root)
    born = record.birth_branch
    there = tx.ledger.one(Agent, "agent_born", root=root, branch=born) if root and born else None
    if there is not None:
        return Naming(path=there.path, existing=there, reason=f"it was born on {born} too")
    parent = tx.agent(parent_id)
    address, number = _name_child(part, record, parent), parent.next_sub_index if parent is not None else 0
    above = parent.path if parent is not None else AgentPath.root(tx.services.operator, "agent", part.system)
    born = check_ref(born) if born else None
    return Naming(path=above.sub(number), address=address, birth_branch=born, parent=parent)


def _name_child(part: ImportPart, record: ImportedAgent, parent: Agent | None) -> Address:
    """Return the handle of a child: its parent's name with its branch below the root, or with its own name.

    In a dry run its parent may not be stored yet.
    """
    definition = parent.definition_id if parent is not None else None
    root = record.root_branch or ""
    below = (record.birth_branch or "").removeprefix(f"{root}.") or record.name or record.id
    for name in list_import_names(below, part.system, record.id):
        address = Address(definition_id=definition or part.system, workspace_qualifier=name)
        if not _is_handle_taken(part, address):
            return address
    raise Refused(BadRequest(problem=f"{below:.60} is taken", field="birthBranch"))


def _choose_path(part: ImportPart, record: ImportedAgent, path: AgentPath, parent_id: str | None) -> Naming:
    """Return the path that an agent gets: its own, with its parent's next number, or the next free one."""
    parent = part.tx.agent(parent_id)
    if parent is not None:
        path = _move_below(parent, path)
    holder = part.tx.everybody.at_path(path)
    if holder is None:
        return Naming(path=path, parent=parent)
    if path.kind in _SINGLE:
        return Naming(path=holder.path, existing=holder, reason="it has the same path")
    for other in _list_other_paths(part, record, path):
        if part.tx.everybody.at_path(other) is None:
            return Naming(path=other, reason=f"{path} was taken")
    raise Refused(BadRequest(problem=f"{path} is taken", field="path"))


def _move_below(parent: Agent, path: AgentPath) -> AgentPath:
    match path.kind:
        case Kind.SUB:
            return parent.path.sub(parent.next_sub_index)
        case Kind.SEARCH:
            return parent.path.search(parent.next_search_index)
        case _:
            return parent.path.memory()


def _list_other_paths(part: ImportPart, record: ImportedAgent, path: AgentPath) -> Iterator[AgentPath]:
    above, _, last = path.rpartition("/")
    for name in list_import_names(last, part.system, record.id)[1:]:
        yield AgentPath.parse(f"{above}/{name}")


# -- how names are told ------------------------------------------------------------------------------


def _name_agent(part: ImportPart, agent: Agent) -> str:
    return part.tx.address(agent.id)


def _format_name(naming: Naming) -> str:
    return naming.address.canonical if naming.address else str(naming.path)


# -- aliases -----------------------------------------------------------------------------------------


def take_alias(part: ImportPart, record: ImportedAlias) -> ImportOutcome:
    """Store an alias of the operator, under its own name or the next free one."""
    tx, origin = part.tx, part.get_origin(record)
    known = tx.get(Alias, derive_imported_id("als", origin))
    if known is not None:
        return part.find(record, known.id, f"@{known.name}")
    target = AliasTarget(agent_id=part.resolve_agent(record.target))
    name, reason = _choose_alias(part, record)
    ident = derive_imported_id("als", origin)
    if not part.dry:
        alias = Alias(
            id=ident,
            created_at=record.created_at or tx.now,
            updated_at=tx.now,
            owner=tx.services.operator,
            name=name,
            target=target,
            created_by=tx.sender,
            imported_from=origin,
        )
        tx.record(AliasCreated, alias, move="import")
    return part.take(record, ident, f"@{name}", reason)


def _choose_alias(part: ImportPart, record: ImportedAlias) -> tuple[str, str]:
    """Return a free name, and why it is not the alias's own."""
    wanted = ""
    for name in list_import_names(record.name, part.system, record.id):
        try:
            check_alias(name, part.tx.everybody)
        except Refused as refusal:
            wanted = wanted or refusal.diagnostic.message
            continue
        if part.tx.ledger.one(Alias, "alias_named", owner=part.tx.services.operator, name=name) is None:
            return name, wanted
        wanted = wanted or f"@{name} was taken"
    raise Refused(BadRequest(problem=wanted, field="name"))
