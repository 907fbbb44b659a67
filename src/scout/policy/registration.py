"""Deciding a registration: an existing agent, a second clone, a new agent, or a refusal."""

from msgspec.structs import replace

from scout.base.record import Record
from scout.base.refusal import Refused, Remedy
from scout.identity.address import fold_segment
from scout.identity.path import AgentPath
from scout.identity.reserved import check_name
from scout.identity.spelling import Spelling, name_clone_workspace, name_registered
from scout.model.agent import Agent, Lifecycle, ToolRole
from scout.model.problems.target import AliasShadows, NameTaken
from scout.policy.directory import Directory, Wanted


class RegistrationWish(Record):
    """The agent to register. `root_branch` is given for a project's root agent.

    Without a project it is standalone, such as a bot, and the name alone identifies it.
    """

    owner: str
    definition: str
    workspace: str | None = None
    profile: str | None = None
    node: str
    project_root: str | None
    branch: str = "main"
    root_branch: str | None = None
    tool_role: ToolRole | None = None


class Registration(Record):
    """The existing agent, or the spellings and role of the agent to create.

    `elsewhere`: the agent of another folder that holds the plain name.
    """

    rule: str
    existing: Agent | None = None
    spelling: Spelling | None = None
    tool_role: ToolRole = ToolRole.DEV
    elsewhere: Agent | None = None


def decide_registration(wish: RegistrationWish, directory: Directory) -> Registration:
    """Match the same identity in the same project to one record; treat another folder as a second clone."""
    spelling = _build_spelling(wish)
    holder = _find_holder(wish, spelling, directory)
    project, elsewhere = wish.project_root, None
    if holder is not None and project is not None and holder.project_root != project:
        elsewhere = holder
        clone = name_clone_workspace(wish.definition, wish.branch, project)
        wish = replace(wish, workspace=clone, root_branch=None)
        spelling = _build_spelling(wish)
        holder = _find_holder(wish, spelling, directory)
    if holder is not None:
        role = holder.tool_role
        return Registration(rule="same identity", existing=holder, tool_role=role, elsewhere=elsewhere)
    _check_path(spelling.path, directory)
    if spelling.birth_branch and project and directory.at_branch(project, spelling.birth_branch):
        spelling = replace(spelling, birth_branch=None)  # the project already has a root agent
    role = wish.tool_role or (ToolRole.TL if spelling.birth_branch else ToolRole.DEV)
    return Registration(rule="new", spelling=spelling, tool_role=role, elsewhere=elsewhere)


def check_alias(name: object, directory: Directory) -> str:
    """Return the folded name of a new alias; refuse reserved words and the names of live definitions."""
    folded = check_name(fold_segment(name))
    if directory.find(Wanted(definition_id=folded, own=True), 1):
        other = Remedy(operation="alias.set", parameters={"name": f"my-{folded}", "target": f"@{folded}"})
        raise Refused(AliasShadows(alias=folded, definition=folded, remedies=(other,)))
    return folded


def _build_spelling(wish: RegistrationWish) -> Spelling:
    return name_registered(wish.owner, wish.definition, wish.workspace, wish.profile, wish.root_branch)


def _find_holder(wish: RegistrationWish, spelling: Spelling, directory: Directory) -> Agent | None:
    address = spelling.address
    wanted = Wanted(
        definition_id=address.definition_id,
        workspace=address.workspace_qualifier,
        profile=address.profile,
        node=wish.node,
        exact=True,
    )
    return next(iter(directory.find(wanted, 1)), None)


def _check_path(path: AgentPath, directory: Directory) -> None:
    """Refuse a path that a live or retired agent holds: a retired agent is revived, never replaced."""
    holder = directory.at_path(path)
    if holder is None:
        return
    retired = holder.lifecycle is Lifecycle.RETIRED
    revive = Remedy(operation="agent.revive", parameters={"address": str(path)})
    look = Remedy(operation="show", parameters={"address": str(path)})
    raise Refused(
        NameTaken(
            noun="agent",
            name=str(path),
            holder_id=holder.id,
            holder_state=str(holder.lifecycle),
            remedies=(revive,) if retired else (look,),
        )
    )
