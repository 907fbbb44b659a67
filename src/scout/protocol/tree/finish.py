"""Requests that finish spawned agents: their work is merged, kept or discarded."""

from enum import StrEnum
from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.policy.tree.finish import FinishChoice
from scout.protocol.parameters import Address, Seconds, Words, describe
from scout.protocol.request import Write

_BELOW = "the operator, or an agent above the finished one"


class FinishState(StrEnum):
    """Where a finish stands. `running`: it waits for other merges, or its check command runs."""

    PREVIEW = "preview"
    RUNNING = "running"
    CONFLICT = "conflict"
    FINISHED = "finished"


class FinishOption(Record, omit_defaults=True):
    """One choice: what it does, its command, and why it is refused now."""

    choice: FinishChoice
    does: str
    command: str
    problem: str = ""


class FinishReport(Record):
    """An agent's work tree, and what a finish did or would do with it.

    `uncommitted`: changed and new files. `unmerged`: commits that `into` does not have. `unpushed`: how
    many commits no other branch and no remote has. `conflicts`: files that cannot be merged; `flight_id` is
    the ask to resolve them. `merged`: the commit that `into` is at now. `saved`: the commit that holds
    discarded files. `undo`: commands that take it back, as long as git keeps the commits.
    """

    address: str
    agent_id: str
    state: FinishState
    choice: FinishChoice | None = None
    branch: str | None = None
    into: str | None = None
    folder: str | None = None
    commit: str | None = None
    uncommitted: tuple[str, ...] = ()
    more_uncommitted: int = 0
    unmerged: tuple[str, ...] = ()
    unpushed: int = 0
    ahead: int = 0
    behind: int = 0
    operation: str | None = None
    conflicts: tuple[str, ...] = ()
    flights: tuple[str, ...] = ()
    work: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    merged: str | None = None
    saved: str | None = None
    flight_id: str | None = None
    resolver: str | None = None
    reason: str = ""
    undo: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    options: tuple[FinishOption, ...] = ()


class FinishAgent(Write[FinishReport]):
    """Finish a spawned agent: merge, keep or discard its work. Without a choice, only show what it has.

    A merge waits for earlier merges into the same branch, so it can take longer than `wait`. The answer is
    `running` then: repeat the request with the same key.
    """

    operation: ClassVar[str] = "finish"
    route: ClassVar[str] = "POST /v1/agents/{address}/finish"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = _BELOW

    address: Address
    merge: Annotated[
        bool, describe("merge its branch into its parent's, retire it, and remove its work tree")
    ] = False
    keep: Annotated[bool, describe("retire it; its work tree and branch stay")] = False
    discard: Annotated[
        bool, describe("retire it, remove its work tree and delete its branch, whatever they hold")
    ] = False
    reason: Annotated[Words, describe("why; required to discard")] = ""
    resolver: Annotated[
        Words | None, describe("the agent that resolves conflicts; default: the finished one")
    ] = None
    ask: Annotated[bool | None, describe("send conflicts to the resolver; default: yes")] = None
    wait: Annotated[Seconds, describe("wait up to this many seconds for the end, maximum 60")] = 60


class LeftAgent(Record):
    """An agent that was not finished, and why."""

    address: str
    agent_id: str
    code: str
    reason: str
    remedies: tuple[Remedy, ...] = ()


class FinishedTrees(Record):
    """The agents that were finished, leaves first, and those that were left."""

    state: FinishState
    items: tuple[FinishReport, ...] = ()
    left: tuple[LeftAgent, ...] = ()


class FinishDone(Write[FinishedTrees]):
    """Merge and finish every agent below an address that is done, leaves first.

    An agent is done if it has worked, has no open flight, question or work item, and no uncommitted files.
    """

    operation: ClassVar[str] = "finish.done"
    typed: ClassVar[tuple[str, ...]] = ("finish",)
    route: ClassVar[str] = "POST /v1/tree/finish-done"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = _BELOW

    address: Annotated[
        Words | None, describe("the agent to begin below; default: you, or the root agent here")
    ] = None
    all_done: Annotated[bool, describe("always true: the flag of the command")] = True
    resolver: Annotated[
        Words | None, describe("the agent that resolves conflicts; default: the finished one")
    ] = None
    ask: Annotated[bool | None, describe("send conflicts to the resolver; default: yes")] = None
    wait: Annotated[Seconds, describe("wait up to this many seconds for the end, maximum 60")] = 60
