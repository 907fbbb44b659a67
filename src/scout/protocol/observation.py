"""Read-only requests about topology, transcripts and work trees."""

from typing import Annotated, ClassVar

import msgspec

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.model.session import ProcessLoad
from scout.protocol.parameters import Seconds, Words, describe
from scout.protocol.request import Request

_Few = Annotated[int, msgspec.Meta(ge=1, le=200)]
_NotBefore = Annotated[int, msgspec.Meta(ge=0)]


class Sighting(Record, omit_defaults=True):
    """A session or sub-agent that a harness exposes on this machine. It is not an agent.

    `source` is where it was seen, `limits` what cannot be seen there. `session_id` is Scout's id,
    if Scout knows the session; otherwise `attach` is how to attach it. `load`: what its processes use now.
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
    load: ProcessLoad | None = None


class HarnessObservation(Record, omit_defaults=True):
    """What one harness exposes: how many were found and shown, and any problem."""

    harness: str
    found: int
    shown: int
    problem: str = ""


class Topology(Record):
    """What harnesses expose on this machine, the newest of each."""

    items: tuple[Sighting, ...]
    harnesses: tuple[HarnessObservation, ...]


class ShowTopology(Request[Topology]):
    """Show the sessions and sub-agents that harnesses expose on this machine. Read-only."""

    operation: ClassVar[str] = "topology"
    route: ClassVar[str] = "GET /v1/topology"
    permission: ClassVar[str] = "the operator, and agents of the same user"

    harness: Annotated[Words | None, describe("only this harness")] = None
    live: Annotated[bool, describe("only running programs")] = False
    limit: Annotated[_Few, describe("number of entries per harness, maximum 200")] = 20


class TailEntry(Record, omit_defaults=True):
    """One transcript entry; `who` is `user`, `assistant`, `tool` or `system`."""

    who: str
    text: str
    at: Time | None = None


class Tail(Record, omit_defaults=True):
    """Part of a session's transcript. Pass `next` to continue. `source` is the harness's own file.

    `context_tokens`: how many tokens its context holds; `context_window`: how many it can hold. They come
    with the last lines, where the harness tells them.
    """

    session_id: str
    lines: tuple[TailEntry, ...]
    next: int
    source: str
    context_tokens: int | None = None
    context_window: int | None = None


class TailSession(Request[Tail]):
    """Read a session's transcript. Scout stores nothing of it."""

    operation: ClassVar[str] = "session.tail"
    route: ClassVar[str] = "GET /v1/sessions/{sessionId}/tail"
    words: ClassVar[tuple[str, ...]] = ("sessionId",)
    permission: ClassVar[str] = "callers who may read its agent"

    session_id: Annotated[Words, describe("the session's id")]
    after: Annotated[
        _NotBefore | None, describe("the `next` value of the previous response; default: the last lines")
    ] = None
    limit: Annotated[_Few, describe("number of lines, maximum 200")] = 50
    wait: Annotated[Seconds, describe("wait up to this many seconds for new lines, maximum 60")] = 0


class Diff(Record):
    """Changes in a flight's work tree. `base` and `head` are git trees kept by Scout.

    `running`: the turn still runs, so the diff is against the current tree. `cut`: the patch is
    longer than shown.
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
    """Show what changed in the work tree during a flight, including changes by others."""

    operation: ClassVar[str] = "flight.diff"
    route: ClassVar[str] = "GET /v1/flights/{flightId}/diff"
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "the asker, the target, or callers who may read them"

    flight_id: Annotated[Words, describe("a flight's or ask's id")]
    stat: Annotated[bool, describe("only file names and line counts")] = False
