"""The transactions of one turn: leased, accepted, running, finished. Each is safe to repeat."""

from msgspec.structs import replace

from scout.base.refusal import Remedy
from scout.broker.delivery import human_answers
from scout.broker.delivery.session_records import PreparedTurn, SessionOpening
from scout.broker.effects import answers, budget, exit_check, flight_state, session_end
from scout.broker.effects.exit_check import NO_FILES, UncommittedFiles
from scout.broker.routing import attention_items, posts, routes
from scout.broker.transaction.transaction import Transaction
from scout.model.access.token import Token, TokenState, find_secrets, hide_secrets, revoke_token
from scout.model.attention import Attention, AttentionKind
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
from scout.model.flight import (
    FLIGHT,
    CompletedBy,
    Flight,
    FlightMove,
    FlightPhase,
    FlightState,
    build_error,
    fail_flight,
    note_flight,
    retry_remedy,
    wait_flight,
)
from scout.model.problems.session import Missing, SessionFailed
from scout.model.session import Session, SessionState, mark_ready, observe_session
from scout.model.usage import UsageSource
from scout.model.waiting import WaitingKind, WaitingOn
from scout.policy.usage import report_execution
from scout.ports import Accepted, Completed, Failed, Identified, Limited, Started, TurnUsage

HOLDER = "dispatcher"
_LIMITED = 900  # default seconds until a limited provider is tried again


def build_run_id(delivery: Delivery) -> str:
    """Return the id under which the harness knows a delivery; a declared repeat is a new run."""
    if delivery.carried_with is not None:
        return delivery.carried_with
    return f"{delivery.id}.{delivery.attempts}" if delivery.may_repeat else delivery.id


# -- during a turn-------------------------------------------------------------------------------------


def record_session_ready(tx: Transaction, opening: SessionOpening, started: Started) -> Endpoint:
    """Record that the harness answered: the session is live and its endpoint usable."""
    session = tx.need(Session, "session", opening.spec.session_id)
    if session.state is SessionState.STARTING:
        ready = mark_ready(session, tx.now, native_ids=dict(started.native_ids))
        tx.record(SessionReady, ready, move="ready")
    opening.fresh = False
    endpoint = tx.need(Endpoint, "endpoint", opening.endpoint_id)
    waking = endpoint.state is EndpointState.WAKING
    return routes.record_endpoint_move(tx, endpoint, EndpointMove.READY) if waking else endpoint


def record_session_started(tx: Transaction, prepared: PreparedTurn, started: Started) -> None:
    """Record the same for a session started for a turn: its endpoint is working."""
    endpoint = record_session_ready(tx, prepared, started)
    if endpoint.state is EndpointState.IDLE:
        routes.record_endpoint_move(tx, endpoint, EndpointMove.CLAIM)


def renew_lease(tx: Transaction, prepared: PreparedTurn) -> None:
    """Renew the lease while the session is being started."""
    for delivery in _get_leased_deliveries(tx, prepared):
        longer = renew(delivery, HOLDER, tx.now, seconds=tx.rules.periods.lease)
        flight_state.record_delivery(tx, delivery, longer, DeliveryMove.RENEW)


def record_acceptance(tx: Transaction, prepared: PreparedTurn, took: Accepted | None = None) -> None:
    """Record that the program took the prompt: it was woken, and the flight runs."""
    for delivery in _get_leased_deliveries(tx, prepared):
        if delivery.id == prepared.delivery_id and delivery.wake:
            flight_state.record_wake(tx, delivery, f"{prepared.harness} took it")
        flight_state.record_delivery(tx, delivery, ack(delivery, HOLDER, tx.now), DeliveryMove.ACK)
    if took is not None and took.pid is not None:
        session = tx.need(Session, "session", prepared.spec.session_id)
        seen = observe_session(session, tx.now, pid=took.pid, pid_started=took.pid_started)
        seen = replace(seen, contract_at=session.contract_at or tx.now)
        tx.record(SessionUpdated, seen, move="observe")


def _get_leased_deliveries(tx: Transaction, prepared: PreparedTurn) -> list[Delivery]:
    """Return the deliveries of a turn that the program has not taken yet."""
    idents = (prepared.delivery_id, *prepared.also)
    found = [tx.need(Delivery, "delivery", ident) for ident in idents]
    return [one for one in found if one.state is DeliveryState.LEASED]


def record_sign_of_life(
    tx: Transaction, prepared: PreparedTurn, text: str, *, move: str | None = None
) -> None:
    """Record what the program is doing as the reason of its flight; `move` says what kind it is."""
    flight = tx.get(Flight, prepared.flight_id)
    if flight is not None and flight.state not in FLIGHT.terminal and flight.started_at is not None:
        reason = hide_secrets(" ".join(text.split()), find_secrets(text))[:200] or flight.reason
        flight_state.record_note(tx, note_flight(flight, FlightPhase.WORKING, tx.now, reason=reason), move)


def record_usage(tx: Transaction, prepared: PreparedTurn, report: TurnUsage) -> None:
    """Record the tokens of a turn."""
    delivery = tx.need(Delivery, "delivery", prepared.delivery_id)
    about = budget.build_usage_subject(delivery, prepared.harness, report.model or prepared.spec.model)
    source = UsageSource.CHAR_HEURISTIC if report.estimated else UsageSource.PROVIDER_EXACT
    usage = report_execution(
        tx.mint("usg"),
        about,
        tx.now,
        prompt_tokens=report.prompt_tokens,
        completion_tokens=report.completion_tokens,
        source=source,
    )
    budget.record_usage(tx, usage)


def record_native_id(tx: Transaction, prepared: PreparedTurn, seen: Identified) -> None:
    """Record the program's name for its session and the model that answers, if they are new."""
    session = tx.need(Session, "session", prepared.spec.session_id)
    prepared.spec = replace(prepared.spec, native_ids={**prepared.spec.native_ids, **seen.native_ids})
    known = session.native_ids.items() >= seen.native_ids.items()
    if known and seen.model in (None, session.model_observed):
        return
    told = observe_session(session, tx.now, model=seen.model, native_ids=dict(seen.native_ids))
    tx.record(SessionUpdated, told, move="observe")


# -- after a turn-------------------------------------------------------------------------------------


def record_end(
    tx: Transaction,
    prepared: PreparedTurn,
    end: Completed | Limited | Failed,
    spent: TurnUsage | None = None,
    files: UncommittedFiles = NO_FILES,
) -> None:
    """Record the end of a turn and what it cost, and close the requests that its program made.

    `files`: the uncommitted files of a spawned agent after the turn.
    """
    if spent is not None:
        record_usage(tx, prepared, spent)
    can = tx.services.harnesses[prepared.harness].capabilities
    if can.permissions:
        human_answers.withdraw_all_requests(tx, prepared)
    match end:
        case Completed():
            _record_completion(tx, prepared, end)
            clear_trouble(tx, prepared.harness)
            if not can.plain_body:  # another turn would run such a program again
                exit_check.tell_after_turn(tx, prepared.spec.session_id, files)
        case Limited():
            _wait_for_quota(tx, prepared, end)
        case Failed():
            record_failure(tx, prepared, end)
            raise_trouble(tx, prepared, end)


def _wait_for_quota(tx: Transaction, prepared: PreparedTurn, limit: Limited) -> None:
    """Let the flight wait out the provider's usage limit; it resumes by itself."""
    record_acceptance(tx, prepared)
    until = max(limit.until or tx.now.plus(_LIMITED), tx.now.plus(1))
    delivery = tx.need(Delivery, "delivery", prepared.delivery_id)
    flight = tx.get(Flight, prepared.flight_id)
    reason = f"a usage limit of {prepared.harness}: {limit.reason}"
    if flight is None:
        flight_state.report_failure(tx, delivery, reason)
    elif flight.state is FlightState.RUNNING:
        on = WaitingOn(kind=WaitingKind.QUOTA, ref=prepared.harness, until=until)
        waiting = wait_flight(flight, on, tx.now, reason=reason)
        tx.record(FLIGHT_EVENTS[FlightMove.WAIT], waiting, move=FlightMove.WAIT, reason=reason)
    _release_run(tx, prepared)


def _record_completion(tx: Transaction, prepared: PreparedTurn, done: Completed) -> None:
    """Use the final text as the reply, unless there was an answer before."""
    record_acceptance(tx, prepared)
    flight = tx.get(Flight, prepared.flight_id)
    if flight is None:
        _post_reply(tx, prepared, done)
    elif flight.is_asking or _has_answer_coming(tx, flight, prepared):
        _post_note(tx, flight, done)  # it resumes with the answer it waits for
    elif flight.state not in FLIGHT.terminal:
        flight_state.complete_with_answer(tx, flight, done.text, CompletedBy.FINAL_TEXT, done.attachments)
    elif done.text.strip() and flight.output != done.text:
        _post_note(tx, flight, done)
    _release_run(tx, prepared)


def _has_answer_coming(tx: Transaction, flight: Flight, prepared: PreparedTurn) -> bool:
    """Whether an answer to the flight arrived during its turn, too late for the program to take it."""
    own = (prepared.delivery_id, *prepared.also)
    others = tx.ledger.many(Delivery, "deliveries_of_flight", flight=flight.id)
    return flight.state not in FLIGHT.terminal and any(
        one.state in (DeliveryState.PENDING, DeliveryState.LEASED) for one in others if one.id not in own
    )


def _post_reply(tx: Transaction, prepared: PreparedTurn, done: Completed) -> None:
    """Post the answer to a turn that a plain message started."""
    delivery = tx.need(Delivery, "delivery", prepared.delivery_id)
    if not done.text.strip() or delivery.conversation_id is None:
        return
    asked = tx.get(Message, delivery.message_id)
    question = answers.find_answered_question(tx, asked, delivery.target) if asked else None
    if question is not None:
        answers.record_answer(tx, question, done.text, sender=delivery.target)
        return
    message = posts.post_message(
        tx,
        delivery.conversation_id,
        done.text,
        sender=delivery.target,
        kind=MessageKind.FINAL,
        attachments=done.attachments,
        metadata=Metadata(in_reply_to=delivery.message_id, target_agents=(delivery.sender,)),
    )
    if delivery.sender not in tx.services.own_agents:
        posts.create_delivery(tx, message, delivery.sender, rule="reply", reason="the answer")


def _post_note(tx: Transaction, flight: Flight, done: Completed) -> None:
    """Post text that came after the end as a note, without waking anything."""
    said = posts.post_message(
        tx,
        flight.conversation_id,
        done.text,
        sender=flight.target,
        kind=MessageKind.STATUS,
        attachments=done.attachments,
        ask_id=flight.ask_id,
        flight_id=flight.id,
    )
    flight_state.note_after_end(tx, flight, said)


def record_failure(tx: Transaction, prepared: PreparedTurn, problem: Failed) -> None:
    """Retry or give up if the program had not taken the prompt; otherwise fail the flight."""
    delivery = tx.need(Delivery, "delivery", prepared.delivery_id)
    if problem.missing is not None and not problem.remedies:
        look = Remedy(
            operation="runtimes.check", parameters={"harness": prepared.harness}, why="see what it lacks"
        )
        problem = replace(problem, remedies=(look,))
    for one in _get_leased_deliveries(tx, prepared):
        retry_or_give_up(tx, one, problem)
    if delivery.state is DeliveryState.ACKED:
        fail_begun_turn(tx, delivery, problem)
    _release_run(tx, prepared, problem.reason)


def fail_begun_turn(tx: Transaction, delivery: Delivery, problem: Failed) -> None:
    """Fail the flight of a turn that had begun, or notify the sender of a plain message."""
    flight = tx.get(Flight, delivery.flight_id)
    told = SessionFailed(
        session_id=delivery.session_id or "",
        layer=problem.layer,
        reason=problem.reason,
        log=problem.log,
        remedies=problem.remedies or ((retry_remedy(flight),) if flight else ()),
    )
    if flight is None:
        flight_state.report_failure(tx, delivery, told.message)
    elif flight.state not in FLIGHT.terminal and not flight.is_asking:
        flight_state.finish_flight(tx, flight, fail_flight(flight, build_error(told, problem.log), tx.now))


def record_failed_preparation(tx: Transaction, ident: str, problem: Failed) -> None:
    """Count a failure before the turn could begin as an attempt; a later one may succeed."""
    delivery = tx.need(Delivery, "delivery", ident)
    if delivery.state is DeliveryState.PENDING:
        leased = lease(delivery, HOLDER, tx.now, seconds=tx.rules.periods.lease)
        flight_state.record_delivery(tx, delivery, leased, DeliveryMove.LEASE)
        retry_or_give_up(tx, leased, replace(problem, again=True))
    elif delivery.state is DeliveryState.ACKED:
        fail_begun_turn(tx, delivery, problem)


def retry_or_give_up(tx: Transaction, delivery: Delivery, problem: Failed) -> None:
    """Schedule another attempt of a delivery that the program did not take, or give up."""
    budget.count_failed_wake(tx, delivery)
    if problem.again:
        after = nack(delivery, HOLDER, tx.now, problem=problem.reason, rule=tx.rules.back_off)
    else:
        after = dead_letter(delivery, problem.reason, tx.now)
    flight_state.record_delivery(
        tx,
        delivery,
        after,
        DeliveryMove.NACK,
        layer=problem.layer,
        log=problem.log,
        remedies=problem.remedies,
    )


def _release_run(tx: Transaction, prepared: PreparedTurn, reason: str = "it did not start") -> None:
    """Free the endpoint and revoke the run's credential."""
    free_endpoint(tx, prepared.endpoint_id, reason)
    token = tx.get(Token, prepared.token_id)
    if token is not None:
        revoke_run_token(tx, token)


def free_endpoint(tx: Transaction, endpoint_id: str | None, reason: str) -> None:
    """Free a working endpoint; one that was starting fails together with its session."""
    endpoint = tx.get(Endpoint, endpoint_id)
    if endpoint is not None and endpoint.state is EndpointState.WORKING:
        routes.record_endpoint_move(tx, endpoint, EndpointMove.RELEASE)
    elif endpoint is not None and endpoint.state is EndpointState.WAKING:
        routes.record_endpoint_move(tx, endpoint, EndpointMove.FAIL, reason)
        session_end.fail_start(tx, endpoint.session_id, reason)


def revoke_run_token(tx: Transaction, token: Token) -> None:
    """Revoke the credential of a finished run."""
    if token.state is TokenState.ACTIVE:
        reason = "its run has ended"
        tx.record(TokenRevoked, revoke_token(token, reason, tx.now), move="revoke", reason=reason)


def raise_trouble(tx: Transaction, prepared: PreparedTurn, problem: Failed) -> None:
    """Open an attention item if a turn failed because a login or a program is missing."""
    if problem.missing is not None:
        attention_items.open_item(
            tx,
            AttentionKind.SETUP,
            user=tx.services.operator,
            source=tx.services.system_agent,
            agent_id=prepared.spec.agent_id,
            title=f"{prepared.harness}: its {problem.missing} is missing",
            body=problem.reason,
            dedupe=_build_trouble_key(prepared.harness, problem.missing),
        )


def clear_trouble(tx: Transaction, harness: str) -> None:
    """Close the attention items about a harness that works again."""
    if not tx.services.harnesses[harness].capabilities.keeps_process or not tx.has_any("items"):
        return
    for missing in Missing:
        for item in tx.ledger.many(Attention, "attention_about", dedupe=_build_trouble_key(harness, missing)):
            attention_items.close_item(tx, item, f"{harness} works again")


def _build_trouble_key(harness: str, missing: Missing) -> str:
    return f"{missing}:{harness}"
