"""Requests that only look: at what harnesses show here, at a session's transcript, at a work tree."""

from typing import Annotated, ClassVar

import msgspec

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.protocol.parameters import Seconds, Words, says
from scout.protocol.request import Request

__all__ = [
    "Diff",
    "HarnessObservation",
    "ShowDiff",
    "ShowTopology",
    "Sighting",
    "Tail",
    "TailEntry",
    "TailSession",
    "Topology",
]

_Few = Annotated[int, msgspec.Meta(ge=1, le=200)]
_NotBefore = Annotated[int, msgspec.Meta(ge=0)]


class Sighting(Record, omit_defaults=True):
    """A session, or a part of one, that a harness shows on this machine. It is no agent by that.

    `source` is where it was seen, `limits` what cannot be seen there. `session_id`: what Scout calls it,
    when it knows it; `attach`: how it would be taken up, when it does not.
    """

    harness: str
    native_id: str
    kind: str
    cwd: str | None = None
    title: str = ""
    state: str = ""
    live: bool = False
    pid: int | None = None
    parent: str | None = None
    updated_at: Time | None = None
    source: str
    limits: str = ""
    session_id: str | None = None
    agent: str | None = None
    attach: Remedy | None = None


class HarnessObservation(Record, omit_defaults=True):
    """How a look at one harness went: how much it shows, and why not more."""

    harness: str
    found: int
    shown: int
    problem: str = ""


class Topology(Record):
    """What harnesses show on this machine; of each the newest."""

    items: tuple[Sighting, ...]
    harnesses: tuple[HarnessObservation, ...]


class ShowTopology(Request[Topology]):
    """Show the sessions and sub-agents that harnesses expose on this machine, only looked at."""

    operation: ClassVar[str] = "topology"
    route: ClassVar[str] = "GET /v1/topology"
    permission: ClassVar[str] = "the operator, and agents of the same user"

    harness: Annotated[Words | None, says("only of this harness")] = None
    live: Annotated[bool, says("only those whose program runs")] = False
    limit: Annotated[_Few, says("of each harness the newest so many, at most 200")] = 20


class TailEntry(Record, omit_defaults=True):
    """One thing of a transcript: who (`user`, `assistant`, `tool`, `system`) and what."""

    who: str
    text: str
    at: Time | None = None


class Tail(Record):
    """Some of a session's transcript; `next` is where to go on. `source` is the harness's own file."""

    session_id: str
    lines: tuple[TailEntry, ...]
    next: int
    source: str


class TailSession(Request[Tail]):
    """Read a session's own transcript; nothing of it is stored."""

    operation: ClassVar[str] = "session.tail"
    route: ClassVar[str] = "GET /v1/sessions/{sessionId}/tail"
    words: ClassVar[tuple[str, ...]] = ("sessionId",)
    permission: ClassVar[str] = "who may read its agent"

    session_id: Annotated[Words, says("the session's id")]
    after: Annotated[_NotBefore | None, says("`next` of the answer before; the last lines unless said")] = (
        None
    )
    limit: Annotated[_Few, says("about so many lines, at most 200")] = 50
    wait: Annotated[Seconds, says("wait this long for something new, at most 60")] = 0


class Diff(Record):
    """What changed in the work tree of a flight. `base` and `head` are trees of git, kept by Scout.

    `running`: the turn is not over, so that it is compared with the tree as it is now. `cut`: the patch is
    longer than what is shown.
    """

    flight_id: str
    directory: str
    base: str
    head: str
    running: bool
    stat: str
    patch: str
    cut: bool = False


class ShowDiff(Request[Diff]):
    """Show what changed in the work tree during a flight, by whomever."""

    operation: ClassVar[str] = "flight.diff"
    route: ClassVar[str] = "GET /v1/flights/{flightId}/diff"
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "asker, target, or who may read them"

    flight_id: Annotated[Words, says("the flight's id, or its ask's")]
    stat: Annotated[bool, says("only which files changed, and how much")] = False
