"""The transactions of one turn of a program: leased, taken, under way, finished. Each is safe to repeat."""

from msgspec.structs import replace

from scout.base.refusal import Remedy
from scout.broker.delivery import harness_trouble, human_answers
from scout.broker.delivery.opening import Opening, Prepared
from scout.broker.effects import answers, budget, flight_state, session_end
from scout.broker.routing import posts, routes
from scout.broker.transaction.transaction import Turn
from scout.model.conversation import Message, MessageKind
from scout.model.delivery import (
    Delivery,
    DeliveryMove,
    DeliveryState,
    ack,
    dead_letter,
    lease,
    nack,
    renew,
)
from scout.model.endpoint import Endpoint, EndpointMove, EndpointState
from scout.model.events.asks import FLIGHT_EVENTS
from scout.model.events.directory import TokenRevoked
from scout.model.events.envelope import Metadata
from scout.model.events.presence import SessionReady, SessionUpdated
from scout.model.final_text import find_secrets, hide_secrets
from scout.model.flight import (
    FLIGHT,
    CompletedBy,
    Flight,
    FlightMove,
    FlightPhase,
    FlightState,
    error_of,
    fail_flight,
    note_flight,
    retry_remedy,
    wait_flight,
)
from scout.model.problems.session import SessionFailed
from scout.model.session import Session, SessionState, observe_session, ready_session
from scout.model.token import Token, TokenState, revoke_token
from scout.model.usage import UsageSource
from scout.model.waiting import WaitingKind, WaitingOn
from scout.policy.usage import execution
from scout.ports import Accepted, Completed, Failed, Identified, Limited, Spent, Started

__all__ = [
    "HOLDER",
    "accepted",
    "broke",
    "ended",
    "failed",
    "free",
    "identified",
    "over",
    "renewed",
    "returned",
    "run_of",
    "session_ready",
    "session_started",
    "sign_of_life",
    "spent",
    "unprepared",
]

HOLDER = "dispatcher"
_LIMITED = 900  # seconds until a provider is tried again that does not say when


def run_of(delivery: Delivery) -> str:
    """What the harness knows a delivery by: a repeat that was said to be one is another run."""
    if delivery.carried_with is not None:
        return delivery.carried_with
    return f"{delivery.id}.{delivery.attempts}" if delivery.may_repeat else delivery.id


# -- during ------------------------------------------------------------------------------------------


def session_ready(turn: Turn, opening: Opening, started: Started) -> Endpoint:
    """The harness answers: its session is live, and its endpoint is there."""
    session = turn.need(Session, "session", opening.spec.session_id)
    if session.state is SessionState.STARTING:
        ready = ready_session(session, turn.now, native_ids=dict(started.native_ids))
        turn.record(SessionReady, ready, move="ready")
    opening.fresh = False
    endpoint = turn.need(Endpoint, "endpoint", opening.endpoint_id)
    waking = endpoint.state is EndpointState.WAKING
    return routes.move(turn, endpoint, EndpointMove.READY) if waking else endpoint


def session_started(turn: Turn, prepared: Prepared, started: Started) -> None:
    """The same, for a turn that begins with it: its endpoint works for us."""
    endpoint = session_ready(turn, prepared, started)
    if endpoint.state is EndpointState.IDLE:
        routes.move(turn, endpoint, EndpointMove.CLAIM)


def renewed(turn: Turn, prepared: Prepared) -> None:
    """Still being started."""
    for delivery in _carried(turn, prepared):
        longer = renew(delivery, HOLDER, turn.now, seconds=turn.rules.periods.lease)
        flight_state.delivered(turn, delivery, longer, DeliveryMove.RENEW)


def accepted(turn: Turn, prepared: Prepared, took: Accepted | None = None) -> None:
    """The program took the prompt: so it was woken, and the flight runs."""
    for delivery in _carried(turn, prepared):
        if delivery.id == prepared.delivery_id and delivery.wake:
            flight_state.record_wake(turn, delivery, f"{prepared.harness} took it")
        flight_state.delivered(turn, delivery, ack(delivery, HOLDER, turn.now), DeliveryMove.ACK)
    if took is not None and took.pid is not None:
        session = turn.need(Session, "session", prepared.spec.session_id)
        seen = observe_session(session, turn.now, pid=took.pid, pid_started=took.pid_started)
        seen = replace(seen, contract_at=session.contract_at or turn.now)
        turn.record(SessionUpdated, seen, move="observe")


def _carried(turn: Turn, prepared: Prepared) -> list[Delivery]:
    """What is told in a turn and was not taken yet."""
    idents = (prepared.delivery_id, *prepared.also)
    found = [turn.need(Delivery, "delivery", ident) for ident in idents]
    return [one for one in found if one.state is DeliveryState.LEASED]


def sign_of_life(turn: Turn, prepared: Prepared, text: str) -> None:
    """What the program says it is doing, as the reason of its flight."""
    flight = turn.ledger.get(Flight, prepared.flight_id)
    if flight is not None and flight.state not in FLIGHT.terminal and flight.started_at is not None:
        reason = hide_secrets(" ".join(text.split()), find_secrets(text))[:200] or flight.reason
        flight_state.note(turn, note_flight(flight, FlightPhase.WORKING, turn.now, reason=reason))


def spent(turn: Turn, prepared: Prepared, report: Spent) -> None:
    """What it cost."""
    delivery = turn.need(Delivery, "delivery", prepared.delivery_id)
    about = budget.about(delivery, prepared.harness, report.model or prepared.spec.model)
    source = UsageSource.CHAR_HEURISTIC if report.estimated else UsageSource.PROVIDER_EXACT
    usage = execution(
        turn.mint("usg"),
        about,
        turn.now,
        prompt_tokens=report.prompt_tokens,
        completion_tokens=report.completion_tokens,
        source=source,
    )
    budget.reported(turn, usage)


def identified(turn: Turn, prepared: Prepared, seen: Identified) -> None:
    """What the program calls its session, and the model that answers: stored once."""
    session = turn.need(Session, "session", prepared.spec.session_id)
    prepared.spec = replace(prepared.spec, native_ids={**prepared.spec.native_ids, **seen.native_ids})
    known = session.native_ids.items() >= seen.native_ids.items()
    if known and seen.model in (None, session.model_observed):
        return
    told = observe_session(session, turn.now, model=seen.model, native_ids=dict(seen.native_ids))
    turn.record(SessionUpdated, told, move="observe")


# -- after -------------------------------------------------------------------------------------------


def ended(turn: Turn, prepared: Prepared, end: Completed | Limited | Failed) -> None:
    """However a turn ends, nobody is asked anything for it any more."""
    human_answers.over(turn, prepared)
    match end:
        case Completed():
            _completed(turn, prepared, end)
            harness_trouble.over(turn, prepared.harness)
        case Limited():
            _limited(turn, prepared, end)
        case Failed():
            failed(turn, prepared, end)
            harness_trouble.seen(turn, prepared, end)


def _limited(turn: Turn, prepared: Prepared, limit: Limited) -> None:
    """Its provider has a usage limit: the flight waits for that time and then goes on by itself."""
    accepted(turn, prepared)
    until = max(limit.until or turn.now.plus(_LIMITED), turn.now.plus(1))
    delivery = turn.need(Delivery, "delivery", prepared.delivery_id)
    flight = turn.ledger.get(Flight, prepared.flight_id)
    reason = f"a usage limit of {prepared.harness}: {limit.reason}"
    if flight is None:
        flight_state.came_back(turn, delivery, reason)
    elif flight.state is FlightState.RUNNING:
        on = WaitingOn(kind=WaitingKind.QUOTA, ref=prepared.harness, until=until)
        waiting = wait_flight(flight, on, turn.now, reason=reason)
        turn.record(FLIGHT_EVENTS[FlightMove.WAIT], waiting, move=FlightMove.WAIT, reason=reason)
    _released(turn, prepared)


def _completed(turn: Turn, prepared: Prepared, done: Completed) -> None:
    """The final text is the reply, unless somebody answered before."""
    accepted(turn, prepared)
    flight = turn.ledger.get(Flight, prepared.flight_id)
    if flight is None:
        _said(turn, prepared, done)
    elif flight.is_asking:
        _noted(turn, flight, done)  # it goes on with the answer that it waits for
    elif flight.state not in FLIGHT.terminal:
        flight_state.answer(turn, flight, done.text, CompletedBy.FINAL_TEXT, done.attachments)
    elif done.text.strip() and flight.output != done.text:
        _noted(turn, flight, done)
    _released(turn, prepared)


def _said(turn: Turn, prepared: Prepared, done: Completed) -> None:
    """The answer of a turn that a plain message began."""
    delivery = turn.need(Delivery, "delivery", prepared.delivery_id)
    if not done.text.strip() or delivery.conversation_id is None:
        return
    asked = turn.ledger.get(Message, delivery.message_id)
    question = answers.answered_by(turn, asked, delivery.target) if asked else None
    if question is not None:
        answers.answer(turn, question, done.text, sender=delivery.target)
        return
    message = posts.post(
        turn,
        delivery.conversation_id,
        done.text,
        sender=delivery.target,
        kind=MessageKind.FINAL,
        attachments=done.attachments,
        metadata=Metadata(in_reply_to=delivery.message_id, target_agents=(delivery.sender,)),
    )
    if delivery.sender not in turn.world.own_agents:
        posts.deliver(turn, message, delivery.sender, rule="reply", reason="the answer")


def _noted(turn: Turn, flight: Flight, done: Completed) -> None:
    """Text after the end is kept as a note and wakes nobody."""
    said = posts.post(
        turn,
        flight.conversation_id,
        done.text,
        sender=flight.target,
        kind=MessageKind.STATUS,
        attachments=done.attachments,
        ask_id=flight.ask_id,
        flight_id=flight.id,
    )
    flight_state.note_after_end(turn, flight, said)


def failed(turn: Turn, prepared: Prepared, problem: Failed) -> None:
    """Before the program took it: another attempt or none. After: the flight has failed."""
    delivery = turn.need(Delivery, "delivery", prepared.delivery_id)
    if problem.missing is not None and not problem.remedies:
        look = Remedy(
            operation="runtimes.check", parameters={"harness": prepared.harness}, why="see what it lacks"
        )
        problem = replace(problem, remedies=(look,))
    for one in _carried(turn, prepared):
        returned(turn, one, problem)
    if delivery.state is DeliveryState.ACKED:
        broke(turn, delivery, problem)
    _released(turn, prepared, problem.reason)


def broke(turn: Turn, delivery: Delivery, problem: Failed) -> None:
    """A turn that had begun came to nothing: its flight has failed, or the sender of a message is told."""
    flight = turn.ledger.get(Flight, delivery.flight_id)
    told = SessionFailed(
        session_id=delivery.session_id or "",
        layer=problem.layer,
        reason=problem.reason,
        log=problem.log,
        remedies=problem.remedies or ((retry_remedy(flight),) if flight else ()),
    )
    if flight is None:
        flight_state.came_back(turn, delivery, told.message)
    elif flight.state not in FLIGHT.terminal and not flight.is_asking:
        flight_state.finish(turn, flight, fail_flight(flight, error_of(told, problem.log), turn.now))


def unprepared(turn: Turn, ident: str, problem: Failed) -> None:
    """An attempt that came to nothing before it could begin is an attempt, too; a later one may do."""
    delivery = turn.need(Delivery, "delivery", ident)
    if delivery.state is DeliveryState.PENDING:
        leased = lease(delivery, HOLDER, turn.now, seconds=turn.rules.periods.lease)
        flight_state.delivered(turn, delivery, leased, DeliveryMove.LEASE)
        returned(turn, leased, replace(problem, again=True))
    elif delivery.state is DeliveryState.ACKED:
        broke(turn, delivery, problem)


def returned(turn: Turn, delivery: Delivery, problem: Failed) -> None:
    """The program did not take it: there is another attempt, or none."""
    budget.wake_failed(turn, delivery)
    if problem.again:
        after = nack(delivery, HOLDER, turn.now, problem=problem.reason, rule=turn.rules.back_off)
    else:
        after = dead_letter(delivery, problem.reason, turn.now)
    flight_state.delivered(
        turn,
        delivery,
        after,
        DeliveryMove.NACK,
        layer=problem.layer,
        log=problem.log,
        remedies=problem.remedies,
    )


def _released(turn: Turn, prepared: Prepared, reason: str = "it did not start") -> None:
    """The endpoint is free again, and the run's credential is over."""
    free(turn, prepared.endpoint_id, reason)
    token = turn.ledger.get(Token, prepared.token_id)
    if token is not None:
        over(turn, token)


def free(turn: Turn, endpoint_id: str | None, reason: str) -> None:
    """An endpoint without a turn does not work; one that was being started has failed with its session."""
    endpoint = turn.ledger.get(Endpoint, endpoint_id)
    if endpoint is not None and endpoint.state is EndpointState.WORKING:
        routes.move(turn, endpoint, EndpointMove.RELEASE)
    elif endpoint is not None and endpoint.state is EndpointState.WAKING:
        routes.move(turn, endpoint, EndpointMove.FAIL, reason)
        session_end.fail_start(turn, endpoint.session_id, reason)


def over(turn: Turn, token: Token) -> None:
    """A run's credential ends with it."""
    if token.state is TokenState.ACTIVE:
        reason = "its run is over"
        turn.record(TokenRevoked, revoke_token(token, reason, turn.now), move="revoke", reason=reason)
