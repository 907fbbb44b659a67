"""What is the same for every request: the rules, the ports, and whose machine this is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from scout.base.time import Time
from scout.model.node import Pause
from scout.policy.limits import Rules
from scout.ports import Blobs, Clock, Harness, Ids, KeptRuns, Places, Probe, Snapshots
from scout.protocol.overview import Status


@dataclass(frozen=True)
class LiveSettings:
    """Settings as their file has them now. `changed`: the keys that were different until now.

    `needs_restart`: the keys that have been changed since the daemon started, and need another start.
    """

    rules: Rules
    roots: tuple[str, ...]
    default_harness: str | None
    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


@dataclass
class Services:
    """`node`, `operator` and the agents of this machine are known once the broker has started.

    `ready` is what the last look at each harness found; without `runs` nothing is seen of processes.
    `paused`: nothing is started now. `line`: what a queued flight says of its place, by its id.
    """

    rules: Rules
    roots: tuple[str, ...]
    default_harness: str | None
    clock: Clock
    ids: Ids
    places: Places
    blobs: Blobs
    harnesses: Mapping[str, Harness]
    version: str
    read_settings: Callable[[], LiveSettings]
    snapshots: Snapshots | None = None
    runs: KeptRuns | None = None
    node: str = ""
    operator: str = ""
    operator_agent: str = ""
    system_agent: str = ""
    sweeper_agent: str = ""
    status: Status = field(
        default_factory=lambda: Status(url="", socket="", pid=0, version="", node="", home="")
    )
    ready: dict[str, Probe] = field(default_factory=dict[str, Probe])
    paused: Pause | None = None
    line: dict[str, str] = field(default_factory=dict[str, str])
    # What a turn that is asked for now would have to say before it starts; nothing when it starts at once.
    forecast: Callable[[bool], str] = lambda _: ""
    # When the log was last told that an endpoint is still there, and nothing else of it.
    heard: dict[str, Time] = field(default_factory=dict[str, Time])
    # Whether somebody waits for a record to change at this very moment.
    is_awaited: Callable[[str], bool] = lambda _: False

    def reload(self) -> LiveSettings:
        """Read the settings file again, and use what it has now."""
        fresh = self.read_settings()
        self.rules, self.roots, self.default_harness = fresh.rules, fresh.roots, fresh.default_harness
        return fresh

    @property
    def own_agents(self) -> tuple[str, str]:
        """In whose names Scout itself acts: nobody reads what is said to them."""
        return self.system_agent, self.sweeper_agent
