"""Requests about asks and their flights."""

from typing import Annotated, ClassVar

from msgspec import UNSET

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.model.ask import Ask, AskedChild, AskOrigin, AskReceipt, IfUnreachable, ReplyMode, SessionPolicy
from scout.model.flight import Flight, FlightState
from scout.model.mesh_receipt import MeshReceipt
from scout.model.waiting import WaitingKind
from scout.protocol.parameters import At, Body, Cursor, Limit, Revision, Seconds, Words, describe
from scout.protocol.request import Page, PastMoment, Request, Write


class MakeAsk(Write[AskReceipt]):
    """Ask an agent or project to do something and track the result."""

    operation: ClassVar[str] = "ask"
    route: ClassVar[str] = "POST /v1/asks"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("to", "body")
    flags: ClassVar[dict[str, str]] = {
        "projectPath": "project",
        "sessionPolicy": "session",
        "targetSessionId": "session-id",
        "attachments": "attach",
        "conversationId": "conversation",
    }
    permission: ClassVar[str] = "callers who may ask the target"
    folder_field: ClassVar[str] = "project_path"

    to: Annotated[Words | None, describe("the recipient: any address, or a card's id")] = None
    project_path: Annotated[
        Words | None, describe("or a project directory; its agent is created if needed")
    ] = None
    target_session_id: Annotated[Words | None, describe("or an exact session: continue there or fail")] = None
    body: Body
    child: Annotated[
        AskedChild | None, describe("ask its memory, or a new search agent, which read its transcripts")
    ] = None
    harness: Annotated[Words | None, describe("only this harness")] = None
    model: Annotated[Words | None, describe("only this model")] = None
    node: Annotated[Words | None, describe("only this machine")] = None
    session_policy: Annotated[SessionPolicy | None, describe("new, reuse, existing or fork")] = None
    isolated: Annotated[
        bool, describe("use a dedicated session reachable only through a single-use card")
    ] = False
    conversation_id: Annotated[
        Words | None, describe("post in this conversation instead of the direct one")
    ] = None
    reply_to: Annotated[Words | None, describe("where the answer goes; default: you")] = None
    reply_to_session_id: Annotated[Words | None, describe("your live session that receives the answer")] = (
        None
    )
    reply_mode: Annotated[
        ReplyMode, describe("none, inline (you fetch it) or notify (sent to your inbox)")
    ] = ReplyMode.INLINE
    if_unreachable: Annotated[IfUnreachable, describe("refuse, or queue for up to 24 hours")] = (
        IfUnreachable.REFUSE
    )
    within: Annotated[Words | None, describe("the flight you are working on")] = None
    work_item_id: Annotated[Words | None, describe("the work item it belongs to")] = None
    work_item: Annotated[Words | None, describe("or the title of a new one, owned by the target")] = None
    attachments: Annotated[
        tuple[Words, ...], describe("stored files, each as SHA256 or SHA256:NAME; maximum 32")
    ] = ()
    traceparent: Annotated[
        Words | None, describe("the W3C trace context that the ask belongs to; ignored if it is none")
    ] = None
    origin: Annotated[
        AskOrigin | None, describe("your own names for the ask: contextId groups asks, messageId is one")
    ] = None
    wait: Annotated[Seconds, describe("wait up to this many seconds for the result, maximum 60")] = 0


class FlightView(Flight):
    """A flight with its addresses, body, attempts and remedies. Nodes are given where they are other ones.

    Harness and model: `requested` by the ask, `resolved` by the settings, `observed` in the session.
    """

    target_address: str
    requester_address: str
    target_node: str | None = None
    requester_node: str | None = None
    body: str
    attempts: int = 0
    may_repeat: bool = False
    remedies: tuple[Remedy, ...] = ()
    harness_requested: str | None = None
    harness_observed: str | None = None
    model_requested: str | None = None
    model_resolved: str | None = None
    model_observed: str | None = None
    effort: str | None = None
    mesh: MeshReceipt | None = None
    origin: AskOrigin | None = None
    moment: PastMoment = UNSET


class AskView(Record):
    """An ask and its flights, the newest last."""

    ask: Ask
    body: str
    flights: tuple[Flight, ...]


class GetAsk(Request[AskView]):
    """Show an ask and its flights."""

    operation: ClassVar[str] = "ask.show"
    route: ClassVar[str] = "GET /v1/asks/{askId}"
    words: ClassVar[tuple[str, ...]] = ("askId",)
    permission: ClassVar[str] = "the asker, the target, or callers who may read them"

    ask_id: Words


FlightId = Annotated[Words, describe("a flight's or ask's id")]


class ListFlights(Request[Page[FlightView]]):
    """List flights, newest first."""

    operation: ClassVar[str] = "flight.list"
    route: ClassVar[str] = "GET /v1/flights"
    permission: ClassVar[str] = "only what you may read"

    agent: Annotated[Words | None, describe("only flights to this agent")] = None
    mine: Annotated[bool, describe("only flights you asked for")] = False
    open: Annotated[bool, describe("only unfinished flights")] = False
    state: FlightState | None = None
    cursor: Cursor = None
    limit: Limit = None
    at: At = None


class GetFlight(Request[FlightView]):
    """Show a flight, optionally waiting until it finishes."""

    operation: ClassVar[str] = "flight.get"
    route: ClassVar[str] = "GET /v1/flights/{flightId}"
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "the asker, the target, or callers who may read them"

    flight_id: FlightId
    wait: Annotated[
        Seconds, describe("wait up to this many seconds for its end or its question to you, maximum 60")
    ] = 0
    seen: Annotated[int | None, describe("return as soon as the revision differs from this")] = None
    at: At = None


class StartFlight(Write[FlightView]):
    """Mark a flight as running: you work on it now."""

    operation: ClassVar[str] = "flight.start"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/start"
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "the target"

    flight_id: FlightId
    revision: Revision = None


class BlockFlight(Write[FlightView]):
    """Mark a flight as waiting for something else."""

    operation: ClassVar[str] = "flight.block"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/wait"
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "the target"

    flight_id: FlightId
    on: Annotated[WaitingKind, describe("what kind of thing it waits for")]
    ref: Annotated[Words | None, describe("what it waits for: an agent's address or a record's id")] = None
    reason: Annotated[Words, describe("why")] = ""
    revision: Revision = None


class ResumeFlight(Write[FlightView]):
    """Resume a waiting flight."""

    operation: ClassVar[str] = "flight.resume"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/resume"
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "the target"

    flight_id: FlightId
    revision: Revision = None


class CompleteFlight(Write[FlightView]):
    """Complete a flight with its result. The first result wins."""

    operation: ClassVar[str] = "flight.complete"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/complete"
    words: ClassVar[tuple[str, ...]] = ("flightId", "output")
    permission: ClassVar[str] = "the target"

    flight_id: FlightId
    output: Annotated[str, describe("the answer")]
    revision: Revision = None


class FailFlight(Write[FlightView]):
    """Mark a flight as failed, with the reason."""

    operation: ClassVar[str] = "flight.fail"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/fail"
    words: ClassVar[tuple[str, ...]] = ("flightId", "reason")
    permission: ClassVar[str] = "the target"

    flight_id: FlightId
    reason: Annotated[Words, describe("why")]
    code: Annotated[Words, describe("the kind of failure, as one word")] = "failed"
    revision: Revision = None


class CancelFlight(Write[FlightView]):
    """Cancel a flight and interrupt its program."""

    operation: ClassVar[str] = "flight.cancel"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/cancel"
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "the asker, the target, or callers who control it"

    flight_id: FlightId
    reason: Annotated[Words, describe("why")] = ""
    revision: Revision = None


class RetryFlight(Write[AskReceipt]):
    """Retry an ask in a new flight."""

    operation: ClassVar[str] = "flight.retry"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/retry"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "the asker, or callers who control the target"

    flight_id: FlightId
