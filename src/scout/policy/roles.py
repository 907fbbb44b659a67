"""Model roles: which harness, model and effort run an agent, by what the agent is for."""

from typing import Annotated

import msgspec

from scout.base.record import Record
from scout.identity.path import ModelRole
from scout.model.agent import AgentConfig

RoleText = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[^/\s]+(/[^/\s]+|/[^/\s]*/[^/\s]+)?$",
        description="HARNESS, HARNESS/MODEL or HARNESS/MODEL/EFFORT, such as claude/sonnet/high",
    ),
]


class Roles(Record):
    """The harness, model and effort of agents by their model role: `harness[/model[/effort]]`."""

    user: RoleText | None = None
    subagent: RoleText | None = None
    memory: RoleText | None = None
    memory_search: RoleText | None = None
    task: RoleText | None = None


class HarnessModel(Record):
    """A harness, and the model and effort in it; None: what the harness chooses."""

    harness: str
    model: str | None = None
    effort: str | None = None


_FIELDS = {
    ModelRole.USER: "user",
    ModelRole.SUBAGENT: "subagent",
    ModelRole.MEMORY: "memory",
    ModelRole.MEMORY_SEARCH: "memory_search",
    ModelRole.TASK: "task",
}


def read_role(text: str) -> HarnessModel:
    """Return what the text of a role names."""
    harness, model, effort = (*text.split("/"), "", "")[:3]
    return HarnessModel(harness=harness, model=model or None, effort=effort or None)


def find_runtime(roles: Roles, role: ModelRole | None) -> HarnessModel | None:
    """Return what is set for a role; None if nothing is, or if the agent has no role."""
    text = getattr(roles, _FIELDS[role]) if role is not None else None
    return read_role(text) if text is not None else None


def choose_runtime(config: AgentConfig, role: HarnessModel | None, harness: str) -> HarnessModel:
    """Return the model and effort of an agent in a harness: its own, else its role's for that harness."""
    own = HarnessModel(harness=harness, model=config.model, effort=config.effort)
    if role is None or role.harness != harness:
        return own
    return HarnessModel(harness=harness, model=own.model or role.model, effort=own.effort or role.effort)
