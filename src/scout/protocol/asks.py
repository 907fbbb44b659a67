"""Requests about asks: do this and track it."""

from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.model.ask import Ask, AskReceipt, IfUnreachable, ReplyMode, SessionPolicy
from scout.model.flight import Flight, FlightState
from scout.model.waiting import WaitingKind
from scout.protocol.parameters import Body, Cursor, Limit, Revision, Seconds, Words, says
from scout.protocol.request import Page, Request, Write

__all__ = [
    "AskView",
    "BlockFlight",
    "CancelFlight",
    "CompleteFlight",
    "FailFlight",
    "FlightView",
    "GetAsk",
    "GetFlight",
    "ListFlights",
    "MakeAsk",
    "ResumeFlight",
    "RetryFlight",
    "StartFlight",
]


class MakeAsk(Write[AskReceipt]):
    """Ask an agent or a project to do something, and track it."""

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
    permission: ClassVar[str] = "who may ask the target"
    folder_field: ClassVar[str] = "project_path"

    to: Annotated[Words | None, says("whom: any address, or a card's id")] = None
    project_path: Annotated[Words | None, says("or a project: its agent is made if there is none")] = None
    target_session_id: Annotated[Words | None, says("or an exact session: continue there or fail")] = None
    body: Body
    harness: Annotated[Words | None, says("only this harness")] = None
    model: Annotated[Words | None, says("only this model")] = None
    node: Annotated[Words | None, says("only this machine")] = None
    session_policy: Annotated[SessionPolicy | None, says("new, reuse, existing or fork")] = None
    isolated: Annotated[bool, says("a worker of its own, behind a card for one use")] = False
    conversation_id: Annotated[Words | None, says("in this conversation instead of the direct one")] = None
    reply_to: Annotated[Words | None, says("where the answer goes, if not to you")] = None
    reply_to_session_id: Annotated[Words | None, says("your live session that wants the answer")] = None
    reply_mode: Annotated[ReplyMode, says("none, inline (you look) or notify (it comes to your inbox)")] = (
        ReplyMode.INLINE
    )
    if_unreachable: Annotated[IfUnreachable, says("refuse, or queue for up to a day")] = IfUnreachable.REFUSE
    within: Annotated[Words | None, says("the flight you are working on, of which this is a part")] = None
    work_item_id: Annotated[Words | None, says("the work item it belongs to")] = None
    work_item: Annotated[Words | None, says("or the title of a new one, which the target owns")] = None
    attachments: Annotated[
        tuple[Words, ...], says("stored files, each as SHA256 or SHA256:NAME; at most 32")
    ] = ()
    wait: Annotated[Seconds, says("answer after the result or this many seconds, at most 60")] = 0


class FlightView(Flight):
    """A flight, how its target is called, and how its delivery fares."""

    target_address: str
    requester_address: str
    body: str
    attempts: int = 0
    may_repeat: bool = False
    remedies: tuple[Remedy, ...] = ()


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
    permission: ClassVar[str] = "asker, target, or who may read them"

    ask_id: Words


FlightId = Annotated[Words, says("the flight's id, or its ask's")]


class ListFlights(Request[Page[FlightView]]):
    """List flights, newest first."""

    operation: ClassVar[str] = "flight.list"
    route: ClassVar[str] = "GET /v1/flights"
    permission: ClassVar[str] = "what you may read"

    agent: Annotated[Words | None, says("only to this agent")] = None
    mine: Annotated[bool, says("only what you asked for")] = False
    open: Annotated[bool, says("only those that are not finished")] = False
    state: FlightState | None = None
    cursor: Cursor = None
    limit: Limit = None


class GetFlight(Request[FlightView]):
    """Show a flight, at once or when it is finished."""

    operation: ClassVar[str] = "flight.get"
    route: ClassVar[str] = "GET /v1/flights/{flightId}"
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "asker, target, or who may read them"

    flight_id: FlightId
    wait: Annotated[Seconds, says("wait this long for its end or its question to you, at most 60")] = 0
    seen: Annotated[int | None, says("answer as soon as the revision is another than this")] = None


class StartFlight(Write[FlightView]):
    """Say that you work on it now."""

    operation: ClassVar[str] = "flight.start"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/start"
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "the target's credential"

    flight_id: FlightId
    revision: Revision = None


class BlockFlight(Write[FlightView]):
    """Say that you cannot go on before something else happens, and whose move that is."""

    operation: ClassVar[str] = "flight.block"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/wait"
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "the target's credential"

    flight_id: FlightId
    on: Annotated[WaitingKind, says("what kind of thing it waits for")]
    ref: Annotated[Words | None, says("which one: an agent's address or a record's id")] = None
    reason: Annotated[Words, says("why")] = ""
    revision: Revision = None


class ResumeFlight(Write[FlightView]):
    """Say that you work on it again."""

    operation: ClassVar[str] = "flight.resume"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/resume"
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "the target's credential"

    flight_id: FlightId
    revision: Revision = None


class CompleteFlight(Write[FlightView]):
    """Finish a flight with its result; the first result wins."""

    operation: ClassVar[str] = "flight.complete"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/complete"
    words: ClassVar[tuple[str, ...]] = ("flightId", "output")
    permission: ClassVar[str] = "the target's credential"

    flight_id: FlightId
    output: Annotated[str, says("the answer")]
    revision: Revision = None


class FailFlight(Write[FlightView]):
    """Say that it did not work out, and why."""

    operation: ClassVar[str] = "flight.fail"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/fail"
    words: ClassVar[tuple[str, ...]] = ("flightId", "reason")
    permission: ClassVar[str] = "the target's credential"

    flight_id: FlightId
    reason: Annotated[Words, says("why")]
    code: Annotated[Words, says("a word for the kind of failure")] = "failed"
    revision: Revision = None


class CancelFlight(Write[FlightView]):
    """Cancel a flight that nobody needs any more; its program is interrupted."""

    operation: ClassVar[str] = "flight.cancel"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/cancel"
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "the asker, the target, or who controls it"

    flight_id: FlightId
    reason: Annotated[Words, says("why")] = ""
    revision: Revision = None


class RetryFlight(Write[AskReceipt]):
    """Try an ask again in a new flight."""

    operation: ClassVar[str] = "flight.retry"
    route: ClassVar[str] = "POST /v1/flights/{flightId}/retry"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("flightId",)
    permission: ClassVar[str] = "the asker, or who controls the target"

    flight_id: FlightId
