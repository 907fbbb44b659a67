"""Problems of this machine, from facts that cost nothing to read: its store, disk, harnesses, connectors."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.model.problems.session import Missing
from scout.policy.sentences import describe_node_state, format_since

LOW_SPACE = 256 * 1024 * 1024  # bytes
_WORKING = ("running", "starting")
_CONNECTOR_STATES = {
    "retrying": "the platform does not answer",
    "credentials": "the platform refuses the credentials",
    "failed": "it cannot be loaded",
}


class MachinePart(StrEnum):
    """What a problem is about."""

    STORE = "store"
    DISK = "disk"
    VERSION = "version"
    HARNESS = "harness"
    CONNECTOR = "connector"
    HISTORY = "history"
    MESH = "mesh"


class MachineProblem(Record, omit_defaults=True):
    """Something wrong with this machine, and the commands that help. A `hint` stops nothing."""

    part: MachinePart
    says: str
    hint: bool = False
    remedies: tuple[Remedy, ...] = ()


class HarnessFact(Record):
    """The last check of a harness."""

    ready: bool
    missing: Missing | None = None
    hint: str = ""


class MachineFacts(Record):
    """What is known of this machine without asking any program.

    `damage`: what SQLite said about the file, if anything. `free`: bytes left where the store is.
    `installed`: the version on disk, which differs from `running` after an upgrade. `connectors`: the state
    of each one. `history`: events that the history has read, and all events, while it is being built.
    `unreachable`: machines of the mesh that do not answer, and since when.
    """

    damage: str = ""
    free: int | None = None
    running: str = ""
    installed: str = ""
    default_harness: str | None = None
    harnesses: Mapping[str, HarnessFact] = {}
    connectors: Mapping[str, str] = {}
    history: tuple[int, int] | None = None
    unreachable: Mapping[str, Time | None] = {}


def list_machine_problems(facts: MachineFacts) -> tuple[MachineProblem, ...]:
    """Return what is wrong, the worst first; hints are last."""
    found = [
        *_check_store(facts),
        *_check_disk(facts),
        *_check_version(facts),
        *_check_harnesses(facts),
        *_check_connectors(facts),
        *_check_history(facts),
        *_check_mesh(facts),
    ]
    return tuple(sorted(found, key=lambda one: one.hint))


def _check_store(facts: MachineFacts) -> Iterator[MachineProblem]:
    if facts.damage:
        verify = Remedy(operation="verify", parameters={}, why="see what can be read and what is lost")
        says = f"The store is damaged: {facts.damage}"
        yield MachineProblem(part=MachinePart.STORE, says=says, remedies=(verify,))


def _check_disk(facts: MachineFacts) -> Iterator[MachineProblem]:
    if facts.free is not None and facts.free < LOW_SPACE:
        says = f"{facts.free // 1024**2} MiB are free on the disk. Scout stores nothing on a full disk."
        explain = Remedy(operation="explain", parameters={"code": "store_full"}, why="what to do")
        yield MachineProblem(part=MachinePart.DISK, says=says, remedies=(explain,))


def _check_version(facts: MachineFacts) -> Iterator[MachineProblem]:
    if facts.installed and facts.installed != facts.running:
        says = f"Scout {facts.installed} is installed, and the daemon still runs {facts.running}."
        restart = Remedy(operation="restart", parameters={}, why="running sessions keep running")
        yield MachineProblem(part=MachinePart.VERSION, says=says, remedies=(restart,))


def _check_harnesses(facts: MachineFacts) -> Iterator[MachineProblem]:
    """The default harness has to be ready. Another one that is installed may lack a login."""
    look = Remedy(operation="runtimes", parameters={}, why="see what each harness needs")
    for name, one in facts.harnesses.items():
        default = name == facts.default_harness
        if one.ready or (not default and one.missing in (None, Missing.BINARY)):
            continue
        lacks = one.hint or f"its {one.missing or Missing.BINARY} is missing"
        says = f"{name}, the default harness, is not ready: {lacks}" if default else f"{name}: {lacks}"
        yield MachineProblem(part=MachinePart.HARNESS, says=says, hint=not default, remedies=(look,))


def _check_connectors(facts: MachineFacts) -> Iterator[MachineProblem]:
    for name, state in facts.connectors.items():
        if state in _WORKING:
            continue
        show = Remedy(operation="connector.show", parameters={"connector": name}, why="see the reason")
        again = Remedy(operation="connector.add", parameters={"connector": name}, why="set it up again")
        remedies = (again, show) if state == "credentials" else (show,)
        says = f"{name} does not work: {_CONNECTOR_STATES.get(state, state)}"
        yield MachineProblem(part=MachinePart.CONNECTOR, says=says, remedies=remedies)


def _check_history(facts: MachineFacts) -> Iterator[MachineProblem]:
    if facts.history is not None:
        indexed, events = facts.history
        says = f"The history is being built: {indexed} of {events} events can be shown as they were."
        yield MachineProblem(part=MachinePart.HISTORY, says=says, hint=True)


def _check_mesh(facts: MachineFacts) -> Iterator[MachineProblem]:
    look = Remedy(operation="mesh.nodes", parameters={}, why="since when, and what waits for it")
    for name, since in facts.unreachable.items():
        says = f"{name} is {describe_node_state('unreachable', format_since(since))}."
        yield MachineProblem(part=MachinePart.MESH, says=says, remedies=(look,))
