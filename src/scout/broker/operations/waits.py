"""Long polls: requests with `wait` seconds answer when the record they show has changed, or after that time.

Each function first performs the request, then listens. While it listens, the record counts as awaited by
the caller, so that its answer is not delivered a second time as mail.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from scout.broker.operations import inbox
from scout.broker.routing import unread
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.streams import Listener
from scout.broker.transaction.transaction import Transaction
from scout.model.access.token import Token, TokenKind, is_valid, require_valid
from scout.model.attention import ATTENTION, Attention
from scout.model.delivery import Delivery
from scout.model.flight import FLIGHT, Flight
from scout.model.question import Question, QuestionState
from scout.model.ref import Ref
from scout.model.session import Session
from scout.protocol.asks import AskReceipt, FlightView, GetFlight, MakeAsk
from scout.protocol.attention import AttentionView, GetAttention
from scout.protocol.inbox import AckInbox, Claimed, ClaimInbox
from scout.protocol.people.tasks import CreateTask
from scout.protocol.questions import GetQuestion, QuestionView

_PAGE = 500
_SOON = 0.05  # seconds, minimum time between two inbox checks
_CREDENTIAL_CHECK = 60.0  # seconds between two credential checks, because expiry causes no event


# -- flights -----------------------------------------------------------------------------------------


async def wait_for_flight(call: CallContext[CallBroker], request: GetFlight) -> FlightView:
    """Show a flight once it is finished, asks the caller, or differs from the revision in `seen`."""
    view = await call.perform(request)
    if _is_pending(call, request, view):
        await _wait_until_settled(call, request, view.id)
        view = await call.perform(GetFlight(flight_id=view.id))
    await _mark_answer_read(call, view)
    return view


async def wait_for_result(call: CallContext[CallBroker], request: MakeAsk | CreateTask) -> AskReceipt:
    """Make an ask and return its receipt with the result, if the flight ends in time."""
    receipt = await call.perform(request)
    poll = GetFlight(flight_id=receipt.flight_id, wait=request.wait)
    flight = await _wait_until_settled(call, poll, receipt.flight_id, fresh=request.idempotency_key is None)
    if isinstance(request, MakeAsk) and request.reply_to is not None:
        await _mark_answer_read(call, flight)
    session = call.broker.glance().get(Session, flight.session_id) if flight.session_id else None
    return replace(
        receipt,
        state=flight.state,
        phase=flight.phase,
        reason=flight.reason,
        output=flight.output,
        session_id=flight.session_id or receipt.session_id,
        harness_observed=session.harness if session else None,
        model_observed=session.model_observed if session else None,
    )


async def _wait_until_settled(
    call: CallContext[CallBroker], request: GetFlight, flight_id: str, *, fresh: bool = False
) -> Flight:
    """Wait until the flight is no longer pending. `fresh`: it was made just now, so do not look first."""
    end = _set_deadline(call, request.wait)
    news = Ref.to(flight_id) if request.seen is not None else f"end of {flight_id}"
    with _listen(call, news, f"{flight_id} {call.agent_id}") as listener:
        if fresh:
            await listener.wait(_get_seconds_left(call, end))
            _require_credential(call)
        while True:
            flight: Flight | None = listener.record or call.broker.glance().get(Flight, flight_id)
            assert flight is not None  # it was read before
            if not _is_pending(call, request, flight) or not await listener.wait(
                _get_seconds_left(call, end)
            ):
                return flight
            _require_credential(call)


def _is_pending(call: CallContext[CallBroker], request: GetFlight, flight: Flight) -> bool:
    """Whether to wait; a flight that asks the caller would make it wait for itself."""
    if request.seen is not None:
        return flight.state not in FLIGHT.terminal and request.seen == flight.revision
    asks_caller = flight.is_asking and flight.next_move_owner_id == call.agent_id
    return flight.state not in FLIGHT.terminal and not asks_caller


async def _mark_answer_read(call: CallContext[CallBroker], flight: Flight) -> None:
    """Acknowledge the answer in the operator's inbox: a person who waited for it has read it."""
    if call.who.actor.kind is not TokenKind.OPERATOR or flight.state not in FLIGHT.terminal:
        return
    mail = await call.read(lambda tx: inbox.find_answers(tx, flight.id))
    if mail:
        await call.perform(AckInbox(delivery_ids=mail))


# -- attention and questions -------------------------------------------------------------------------


async def wait_for_decision(call: CallContext[CallBroker], request: Any) -> AttentionView:
    """Open or show an attention item, and wait for its decision."""
    item: AttentionView = await call.perform(request)

    def is_open() -> bool:
        found = call.broker.glance().get(Attention, item.id)
        return found is not None and found.state not in ATTENTION.terminal

    await _listen_while(call, is_open, item.id, request.wait)
    return await call.perform(GetAttention(attention_id=item.id))


async def wait_for_answer(call: CallContext[CallBroker], request: Any) -> QuestionView:
    """Ask or show a question, and wait for its answer."""
    question: QuestionView = await call.perform(request)

    def is_open() -> bool:
        found = call.broker.glance().get(Question, question.id)
        return found is not None and found.state is QuestionState.OPEN

    await _listen_while(call, is_open, question.id, request.wait)
    return await call.perform(GetQuestion(question_id=question.id))


async def _listen_while(
    call: CallContext[CallBroker], is_open: Callable[[], bool], record_id: str, seconds: float
) -> None:
    """Listen for changes of a record while it is open, for at most this many seconds."""
    end = _set_deadline(call, seconds)
    with _listen(call, Ref.to(record_id), f"{record_id} {call.agent_id}") as listener:
        while is_open() and await listener.wait(_get_seconds_left(call, end)):
            _require_credential(call)


# -- the inbox ---------------------------------------------------------------------------------------


async def wait_for_mail(call: CallContext[CallBroker], request: ClaimInbox) -> Claimed:
    """Claim from the inbox as soon as there is something to claim."""
    end = _set_deadline(call, request.wait)
    while True:
        # Listening begins before the places are read, so that a new one is not missed.
        with _listen(call, f"inbox {call.agent_id}") as listener:
            places = await call.read(lambda tx: tuple(unread.list_followed_ids(tx, tx.sender)))
            listener.add(*map(Ref.to, places))
            _require_credential(call)
            claimed = await call.perform(request)
            left = _get_seconds_left(call, end)
            if claimed.items or left <= 0:
                return claimed
            await listener.wait(min(left, await call.read(_get_seconds_until_due)))


def _get_seconds_until_due(tx: Transaction) -> float:
    """Return the seconds until a delivery in the caller's inbox is due, which no event announces."""
    waiting = tx.ledger.many(Delivery, "inbox", agent=tx.sender, after="", limit=_PAGE)
    moments = [one.leased_until or one.next_attempt_at for one in waiting if not one.wake]
    return max(min(moments, default=tx.now.plus(_PAGE)).since(tx.now), _SOON)


# -- time and credentials ----------------------------------------------------------------------------


def _set_deadline(call: CallContext[CallBroker], seconds: float) -> float:
    return call.services.clock.monotonic() + min(seconds, call.services.rules.periods.long_poll)


def _get_seconds_left(call: CallContext[CallBroker], end: float) -> float:
    return end - call.services.clock.monotonic()


def _listen(call: CallContext[CallBroker], *keys: str) -> Listener:
    """Listen to changes of these keys and of the caller's credential."""
    own = (Ref.to(call.token_id),) if call.token_id else ()
    return call.broker.waiters.listening(*keys, *own)


async def wait_for_credential_end(call: CallContext[CallBroker]) -> None:
    """Return when the caller's credential is revoked or expires."""
    with _listen(call) as listener:
        while _find_ended_credential(call) is None:
            await listener.wait(_CREDENTIAL_CHECK)


def _require_credential(call: CallContext[CallBroker]) -> None:
    """Refuse to continue for a caller whose credential has ended since the request began."""
    ended = _find_ended_credential(call)
    if ended is not None:
        require_valid(ended, call.services.clock.now())


def _find_ended_credential(call: CallContext[CallBroker]) -> Token | None:
    """Return the caller's token if it has ended; the broker itself has none."""
    token = call.broker.glance().get(Token, call.token_id) if call.token_id else None
    return token if token is not None and not is_valid(token, call.services.clock.now()) else None
