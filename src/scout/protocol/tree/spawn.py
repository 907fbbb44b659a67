"""Requests about agent trees: spawn agents with work trees, and the settings of projects."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar

import msgspec

from scout.base.record import Record
from scout.policy.tree.projects import ProjectRules
from scout.protocol.agents import AgentView
from scout.protocol.parameters import Words, describe
from scout.protocol.request import Page, Request, Write

Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class SpawnRole(StrEnum):
    """The roles of spawned agents. `tl` and `dev` get a branch and a work tree; a worker gets neither."""

    TL = "tl"
    DEV = "dev"
    WORKER = "worker"


class SetupRun(Record):
    """A run of the project's setup command. `output` is its last part."""

    command: str
    seconds: float
    output: str = ""


class SpawnedAgent(Record):
    """A spawned agent. `created` is False if a live child of this name existed.

    `base` is the commit that its branch starts from. `copied`: the untracked files that it got.
    """

    slug: str
    agent: AgentView
    address: str
    path: str
    birth_branch: str | None = None
    working_dir: str | None = None
    created: bool = True
    base: str | None = None
    flight_id: str | None = None
    copied: tuple[str, ...] = ()
    setup: SetupRun | None = None
    notes: tuple[str, ...] = ()


class FailedSpawn(Record):
    """An agent that was not spawned. `error` is the refusal."""

    slug: str
    error: dict[str, Any]


class Spawned(Record):
    """The agents that were spawned, and those that could not be. Each is whole or not there at all."""

    parent: str
    agents: tuple[SpawnedAgent, ...]
    failed: tuple[FailedSpawn, ...] = ()
    notes: tuple[str, ...] = ()


class SpawnAgents(Write[Spawned]):
    """Create child agents, each on a separate branch in its work tree; a worker shares its parent's."""

    operation: ClassVar[str] = "spawn"
    route: ClassVar[str] = "POST /v1/spawn"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("slugs",)
    flags: ClassVar[dict[str, str]] = {"projectPath": "project"}
    permission: ClassVar[str] = "the operator, and agents below themselves"
    folder_field: ClassVar[str] = "project_path"

    slugs: Annotated[
        tuple[Words, ...],
        msgspec.Meta(min_length=1, max_length=1000, description="short names: a-z, 0-9 and -"),
    ]
    from_: Annotated[
        Words | None, describe("the parent; default: you, or for a person the root agent of the project")
    ] = msgspec.field(name="from", default=None)
    role: Annotated[SpawnRole, describe("tl, dev or worker; default dev")] = SpawnRole.DEV
    harness: Annotated[Words | None, describe("the program that runs the agents")] = None
    model: Annotated[Words | None, describe("the model to use")] = None
    count: Annotated[Count | None, describe("spawn SLUG-1 to SLUG-N")] = None
    task: Annotated[str | None, describe("ask each of them this at once")] = None
    base: Annotated[
        Words | None, describe("branch, tag or commit to start from; default: the parent's branch")
    ] = None
    allow_dirty: Annotated[bool, describe("ignore uncommitted changes; the agents do not get them")] = False
    no_setup: Annotated[bool, describe("do not run the project's setup command")] = False
    project_path: Annotated[Words | None, describe("project directory; default: the current directory")] = (
        None
    )
    within: Annotated[Words | None, describe("the flight you are working on")] = None


# -- settings of projects ------------------------------------------------------------------------------


class ProjectView(Record):
    """A known project and its settings. `missing`: the directory does not exist now."""

    root: str
    settings: ProjectRules = ProjectRules()
    missing: bool = False


class ListProjects(Request[Page[ProjectView]]):
    """List the known projects and their settings."""

    operation: ClassVar[str] = "project.list"
    route: ClassVar[str] = "GET /v1/projects"
    permission: ClassVar[str] = "the operator"


class SetProject(Write[ProjectView]):
    """Change a setting of a project, such as the setup command of new work trees."""

    operation: ClassVar[str] = "project.set"
    route: ClassVar[str] = "POST /v1/projects/set"
    words: ClassVar[tuple[str, ...]] = ("setting", "value")
    flags: ClassVar[dict[str, str]] = {"projectPath": "project"}
    permission: ClassVar[str] = "the operator"
    folder_field: ClassVar[str] = "project_path"

    setting: Annotated[
        Words,
        describe(
            "worktree.setup, worktree.copy, worktree.check, worktree.setupSeconds or worktree.checkSeconds"
        ),
    ]
    value: Annotated[Words, describe("the new value; `none` restores the default")]
    project_path: Annotated[Words | None, describe("project directory; default: the current directory")] = (
        None
    )
