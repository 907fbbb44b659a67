"""Shared by all requests: the rules, the ports, and the identity of this machine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from scout.base.time import Time
from scout.model.node import Pause
from scout.model.trace import TelemetryStatus
from scout.policy.limits import Rules
from scout.policy.tree.projects import ProjectRules
from scout.ports import (
    Blobs,
    Clock,
    Harness,
    Ids,
    Installation,
    KeptRuns,
    Places,
    Probe,
    Snapshots,
    TimeZones,
    TreePorts,
)
from scout.protocol.overview import Status

CONNECTORS = ("telegram", "whatsapp", "matrix", "slack")


@dataclass(frozen=True)
class LiveSettings:
    """The settings as their file has them now. `changed`: the keys that differ from before.

    `needs_restart`: the keys changed since the daemon started that need a restart.
    """

    rules: Rules
    roots: tuple[str, ...]
    default_harness: str | None
    projects: Mapping[str, ProjectRules] = field(default_factory=dict[str, ProjectRules])
    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


@dataclass
class Services:
    """`node`, `operator` and the agents of this machine are known once the broker has started.

    `ready`: the result of the last check of each harness; without `runs`, processes are not inspected.
    `projects`: the settings of each known project, by its directory. Without `trees`, no agents are spawned.
    `paused`: nothing is started now. `line`: the place of each queued flight as text, by its id.
    """

    rules: Rules
    roots: tuple[str, ...]
    default_harness: str | None
    clock: Clock
    ids: Ids
    places: Places
    blobs: Blobs
    zones: TimeZones
    harnesses: Mapping[str, Harness]
    version: str
    read_settings: Callable[[], LiveSettings]
    # Writes one setting of a project to the settings file: directory, key, value.
    set_project: Callable[[str, str, str], None]
    # Adds a project to the settings file, so that it is known without the database.
    add_project: Callable[[str], None]
    projects: Mapping[str, ProjectRules] = field(default_factory=dict[str, ProjectRules])
    snapshots: Snapshots | None = None
    runs: KeptRuns | None = None
    trees: TreePorts | None = None
    installation: Installation | None = None
    # What SQLite said about a damaged file; empty while it is sound.
    read_damage: Callable[[], str] = lambda: ""
    node: str = ""
    node_id: str = ""
    operator: str = ""
    operator_agent: str = ""
    system_agent: str = ""
    sweeper_agent: str = ""
    file_token: str = ""  # the id of the token in the operator's token file
    page_url: str = ""  # the address of the web page
    # The agents that Scout itself acts as: messages to them are not read.
    own_agents: tuple[str, ...] = ()
    status: Status = field(
        default_factory=lambda: Status(url="", socket="", pid=0, version="", node="", home="")
    )
    ready: dict[str, Probe] = field(default_factory=dict[str, Probe])
    # The connectors that this Scout could run.
    connectors: tuple[str, ...] = CONNECTORS
    # The state of each connector that is set up.
    connector_states: dict[str, str] = field(default_factory=dict[str, str])
    paused: Pause | None = None
    # Whether traces are exported, and how that goes.
    traced: bool = False
    read_telemetry: Callable[[], TelemetryStatus | None] = lambda: None
    # Whether the operator's items of this node are shown on the operator's other nodes.
    shares_attention: bool = False
    # Whether this machine belongs to a mesh.
    in_mesh: bool = False
    # Whether agents of other nodes are known, and when each node was last heard.
    meshed: bool = False
    nodes_heard: dict[str, Time] = field(default_factory=dict[str, Time])
    # Which envelopes each node can read, and envelopes that were published and whose rows do not say so yet.
    node_formats: dict[str, int] = field(default_factory=dict[str, int])
    published: set[str] = field(default_factory=set[str])
    # Agents that may be on their way to another node, which has not answered yet.
    leaving: set[str] = field(default_factory=set[str])
    # The place of each waiting flight, among the turns that run at once, or behind its target (None).
    line: dict[str, tuple[int, int | None]] = field(default_factory=dict[str, tuple[int, int | None]])
    # The reason that a turn requested now would wait; empty if it starts at once.
    forecast: Callable[[bool], str] = lambda _: ""
    # When the last sign of life of each endpoint was logged.
    heard: dict[str, Time] = field(default_factory=dict[str, Time])
    # The files that a session announced to edit, by its id.
    announced: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    # Whether a long poll waits for a record now.
    is_awaited: Callable[[str], bool] = lambda _: False

    def reload(self) -> LiveSettings:
        """Read the settings file again and apply it."""
        fresh = self.read_settings()
        self.rules, self.roots, self.default_harness = fresh.rules, fresh.roots, fresh.default_harness
        self.projects = fresh.projects
        return fresh
