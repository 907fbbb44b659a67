"""Flights: reading them, and the moves of their target, their asker and others."""

from msgspec.structs import replace

from scout.base.refusal import PLACEHOLDER, BadRequest, Refused, Remedy, WrongRevision
from scout.broker.effects import answers, flight_state, remote_flights
from scout.broker.effects.notices import Noticed
from scout.broker.operations import inbox
from scout.broker.routing import (
    attachments,
    attention_items,
    conversations,
    posts,
    remote,
    routes,
    wake,
)
from scout.broker.routing.views import build_flight_view
from scout.broker.transaction.paging import build_filtered_page, decode_bound
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.model.agent import Agent, Lifecycle
from scout.model.ask import Ask
from scout.model.attention import Attention, AttentionKind, ReturnPath
from scout.model.conversation import Attachment, Conversation, Message, MessageKind, Receipt, check_body
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, lease
from scout.model.events.asks import FLIGHT_EVENTS
from scout.model.events.envelope import Metadata
from scout.model.flight import (
    FLIGHT,
    CompletedBy,
    Flight,
    FlightError,
    FlightMove,
    FlightState,
    cancel_flight,
    fail_flight,
    resume_flight,
    retry_remedy,
    start_flight,
    wait_flight,
)
from scout.model.problems.request import NotFound
from scout.model.question import Question
from scout.model.waiting import WaitingKind, WaitingOn
from scout.policy.directory import Party
from scout.policy.limits import check_open_flights
from scout.policy.permit import Deed
from scout.policy.wake import Cause, Occasion
from scout.protocol.asks import (
    AskView,
    BlockFlight,
    CancelFlight,
    CompleteFlight,
    FailFlight,
    FlightView,
    GetAsk,
    GetFlight,
    ListFlights,
    ResumeFlight,
    StartFlight,
)
from scout.protocol.operations import build_command_line
from scout.protocol.request import Page
from scout.protocol.talk import Reply
from scout.store.ledger import LAST

_MANY = 200


# -- reading -----------------------------------------------------------------------------------------


def find_flight(tx: Transaction, ident: str) -> Flight:
    """Return a flight by its id, or the newest flight of an ask."""
    if ident.startswith("ask_"):
        flights = tx.ledger.many(Flight, "flights_of_ask", ask=ident)
        if flights:
            return flights[-1]
    return tx.need(Flight, "flight", ident)


def _check_readable(tx: Transaction, flight: Flight) -> Flight:
    if tx.sender not in (flight.target, flight.requester_id, flight.next_move_owner_id):
        tx.permit(Deed.READ, build_subject(tx.need(Agent, "agent", flight.target)))
    return flight


def find_readable(tx: Transaction, ident: str) -> Flight:
    """Return a flight, for its asker, its target, and callers that may read the target."""
    return _check_readable(tx, find_flight(tx, ident))


def get(tx: Transaction, request: GetFlight) -> FlightView:
    """Return one flight."""
    return build_flight_view(tx, find_readable(tx, request.flight_id))


def get_ask(tx: Transaction, request: GetAsk) -> AskView:
    """Return one ask and its flights."""
    ask = tx.need(Ask, "ask", request.ask_id)
    flights = tx.ledger.many(Flight, "flights_of_ask", ask=ask.id)
    _check_readable(tx, flights[-1])
    message = tx.get(Message, ask.message_id)
    return AskView(ask=ask, body=message.body if message else "", flights=tuple(flights))


def list_flights(tx: Transaction, request: ListFlights) -> Page[FlightView]:
    """List flights, newest first: default the caller's own; the operator sees all."""
    found = build_filtered_page(
        lambda bound, limit: _read_some(tx, request, bound, limit),
        lambda flight: request.state in (None, flight.state),
        decode_bound(request.cursor),
        request.limit,
        tx.rules.limits,
    )
    return Page(items=tuple(build_flight_view(tx, one) for one in found.items), next=found.next)


def _read_some(tx: Transaction, request: ListFlights, bound: str, limit: int) -> list[Flight]:
    """Return the next rows. Open flights have an index, which skips finished ones."""
    is_open = request.open or (request.state is not None and request.state not in FLIGHT.terminal)
    which = "flights_open" if is_open else "flights"
    page = {"before": bound, "limit": limit}
    if request.agent is not None:
        agent = tx.resolve(request.agent).agent
        if agent.id != tx.sender:
            tx.permit(Deed.READ, build_subject(agent))
        return tx.ledger.many(Flight, f"{which}_to", agent=agent.id, **page)
    if tx.is_operator and not request.mine:
        return tx.ledger.many(Flight, f"{which}_all", **page)
    return tx.ledger.many(Flight, f"{which}_for", agent=tx.sender, **page)


# -- the target's moves ------------------------------------------------------------------------------


def _get_own(tx: Transaction, ident: str) -> Flight:
    """Return a flight whose target is the caller; only the target may report on it."""
    flight = find_flight(tx, ident)
    agent = tx.need(Agent, "agent", flight.target)
    subject = build_subject(agent)
    tx.permit(Deed.COMPLETE_FLIGHT, replace(subject, name=flight.id))
    return flight


def start(tx: Transaction, request: StartFlight) -> FlightView:
    """Start a flight, which also acknowledges its delivery."""
    flight = _get_own(tx, request.flight_id)
    FLIGHT.after(flight.state, FlightMove.START)
    _check_seen(flight, request.revision)
    _take(tx, flight)
    current = tx.need(Flight, "flight", flight.id)
    if current.state is flight.state:
        current = flight_state.record_start(tx, start_flight(current, tx.now))
    return build_flight_view(tx, current)


def take_flight(tx: Transaction, ident: str) -> Flight:
    """Return the caller's own flight, taken first if it is queued."""
    flight = _get_own(tx, ident)
    if flight.state is FlightState.QUEUED:
        _take(tx, flight)
        flight = tx.need(Flight, "flight", flight.id)
    return flight


def _check_seen(flight: Flight, seen: int | None) -> None:
    """Check the revision before the steps of a move, which change it themselves."""
    if seen is not None and seen != flight.revision:
        raise Refused(WrongRevision(noun="flight", id=flight.id, seen=seen, current=flight.revision))


def _take(tx: Transaction, flight: Flight) -> None:
    """Acknowledge the flight's deliveries on behalf of its target."""
    holder = tx.actor.session_id or tx.sender
    for delivery in tx.ledger.many(Delivery, "deliveries_of_flight", flight=flight.id):
        leased = delivery
        if delivery.state is DeliveryState.PENDING:
            leased = lease(delivery, holder, tx.now, seconds=tx.rules.periods.lease)
            flight_state.record_delivery(tx, delivery, leased, DeliveryMove.LEASE)
        if leased.state is DeliveryState.LEASED and leased.leased_by == holder:
            inbox.record_ack(tx, leased)


def block(tx: Transaction, request: BlockFlight) -> FlightView:
    """Record that the flight waits for a dependency."""
    flight = _get_own(tx, request.flight_id)
    owner = _find_next_mover(tx, flight, request)
    on = WaitingOn(kind=request.on, ref=request.ref)
    waiting = wait_flight(
        flight, on, tx.now, seen=request.revision, next_move_owner_id=owner, reason=request.reason
    )
    tx.record(FLIGHT_EVENTS[FlightMove.WAIT], waiting, move=FlightMove.WAIT, reason=waiting.reason)
    _tell_next_mover(tx, waiting, owner)
    return build_flight_view(tx, waiting)


def _tell_next_mover(tx: Transaction, flight: Flight, owner_id: str) -> None:
    """Notify the owner of the next move: an agent by mail, a person by an attention item."""
    owner, address = tx.need(Agent, "agent", owner_id), tx.address(flight.target)
    title = attention_items.shorten_title(f"{address} waits for you: {flight.reason}")
    if owner_id == flight.target:
        return
    if owner.is_person:
        attention_items.open_item(
            tx,
            AttentionKind.WAITING,
            user=owner.owner or tx.services.operator,
            source=flight.id,
            agent_id=flight.target,
            title=title,
            return_path=ReturnPath(flight_id=flight.id, conversation_id=flight.conversation_id),
            dedupe=flight.id,
        )
        return
    answer = Remedy(operation="send", parameters={"to": address, "body": PLACEHOLDER})
    look = Remedy(operation="flight.get", parameters={"flightId": flight.id})
    text = "\n".join([title, *(f"try: {build_command_line(one)}" for one in (answer, look))])
    place = posts.ensure_direct_conversation(tx, flight.target, owner_id)
    occasion = Occasion(
        cause=Cause.MOVE,
        sender=Party(agent_id=flight.target),
        targets=(Party(agent_id=owner_id),),
        place=wake.build_wake_context(tx, place),
    )
    decision = wake.decide_who_is_woken(tx, occasion)
    metadata = Metadata(target_agents=(owner_id,))
    message = posts.post_message(tx, place.id, text, sender=flight.target, metadata=metadata)
    wake.deliver_message(tx, message, owner_id, decision)


def _find_next_mover(tx: Transaction, flight: Flight, request: BlockFlight) -> str:
    """Return the owner of the next move: the agent at the address, or the person for other dependencies."""
    if request.on is WaitingKind.ACTOR:
        if request.ref is None:
            raise Refused(BadRequest(problem="waiting on an actor needs its address", field="ref"))
        return tx.resolve(request.ref).agent.id
    return attention_items.find_person_for(tx, flight.target)


def resume(tx: Transaction, request: ResumeFlight) -> FlightView:
    """Resume a waiting flight."""
    flight = _get_own(tx, request.flight_id)
    resumed = resume_flight(flight, tx.now, seen=request.revision)
    tx.record(FLIGHT_EVENTS[FlightMove.RESUME], resumed, move=FlightMove.RESUME, reason=resumed.reason)
    for item in tx.ledger.many(Attention, "attention_about", dedupe=flight.id):
        attention_items.close_item(tx, item, "the flight was resumed")
    return build_flight_view(tx, resumed)


def complete(tx: Transaction, request: CompleteFlight) -> FlightView:
    """Complete a flight with its result; target only."""
    flight = _get_own(tx, request.flight_id)
    _check_seen(flight, request.revision)
    return build_flight_view(tx, _answer_ask(tx, flight, check_body(request.output), CompletedBy.COMPLETE))


def _answer_ask(
    tx: Transaction, flight: Flight, text: str, by: CompletedBy, attachments: tuple[Attachment, ...] = ()
) -> Flight:
    if flight.state not in FLIGHT.terminal:
        _take(tx, flight)
        flight = tx.need(Flight, "flight", flight.id)
    return flight_state.complete_with_answer(tx, flight, text, by, attachments)


def fail(tx: Transaction, request: FailFlight) -> FlightView:
    """Fail a flight; target only."""
    flight = _get_own(tx, request.flight_id)
    error = FlightError(code=request.code, message=request.reason, remedies=(retry_remedy(flight),))
    failed = fail_flight(flight, error, tx.now, seen=request.revision)
    return build_flight_view(tx, flight_state.finish_flight(tx, flight, failed))


def cancel(tx: Transaction, request: CancelFlight) -> FlightView:
    """Cancel a flight; allowed for its asker, its target, and the target's controller."""
    flight = find_flight(tx, request.flight_id)
    if tx.sender not in (flight.requester_id, flight.target):
        tx.permit(Deed.CONTROL, build_subject(tx.need(Agent, "agent", flight.target)))
    reason = request.reason or f"cancelled by {tx.address(tx.sender)}"
    if remote.has_left(tx, flight):
        return build_flight_view(tx, remote_flights.request_cancel(tx, flight, reason, request.revision))
    cancelled = cancel_flight(flight, reason, tx.now, seen=request.revision)
    return build_flight_view(tx, flight_state.finish_flight(tx, flight, cancelled))


# -- replying ----------------------------------------------------------------------------------------


def reply(tx: Transaction, request: Reply) -> Receipt:
    """Reply in the same conversation; the target's first reply to an ask completes it."""
    body = check_body(request.body)
    message = _find_message_to_answer(tx, request.in_reply_to)
    question = answers.find_answered_question(tx, message, tx.sender)
    if question is not None:
        answered = _find_answer(tx, message, answers.record_answer(tx, question, body))
        return replace(answered, to=tx.address(question.asker_id))
    flight = _find_asked_flight(tx, message)
    if flight is not None and flight.target == tx.sender and flight.state not in FLIGHT.terminal:
        files = attachments.find_attachments(tx, request.attachments)
        done = _answer_ask(tx, flight, body, CompletedBy.REPLY, files)
        said = done.output_message_id or message.id
        deliveries = tx.ledger.many(Delivery, "deliveries_of_message", message=said, limit=10)
        return Receipt(
            conversation_id=message.conversation_id,
            message_id=said,
            to=tx.address(flight.requester_id),
            deliveries=tuple(posts.build_delivery_receipt(tx, one) for one in deliveries),
        )
    ended = flight if flight is not None and flight.target == tx.sender else None
    return _post_reply(tx, request, body, message, ended)


def _find_answer(tx: Transaction, asked: Message, told: Noticed[Question]) -> Receipt:
    """Return the receipt of a reply that answered a question."""
    return Receipt(
        conversation_id=told.message.conversation_id if told.message else asked.conversation_id,
        message_id=told.message.id if told.message else asked.id,
        deliveries=(posts.build_delivery_receipt(tx, told.delivery),) if told.delivery else (),
        notes=told.notes,
    )


def _find_message_to_answer(tx: Transaction, ident: str | None) -> Message:
    """Return the message to reply to: by message, ask, flight or delivery id; else the open ask or latest."""
    if ident is None:
        return _open_ask(tx) or _find_latest_message(tx)
    if ident.startswith(("ask_", "flt_")):
        ask = tx.need(Ask, "ask", find_flight(tx, ident).ask_id)
        ident = ask.message_id
    elif ident.startswith("dlv_"):
        ident = tx.need(Delivery, "delivery", ident).message_id or ident
    message = tx.need(Message, "message", ident)
    conversation = tx.need(Conversation, "conversation", message.conversation_id)
    conversations.require_readable(tx, conversation)
    return message


def _open_ask(tx: Transaction) -> Message | None:
    """Return the ask of the calling session, else an ask of its agent that no other session has."""
    mine = tx.actor.session_id
    found = tx.ledger.many(Flight, "flights_open_to", agent=tx.sender, before=LAST, limit=_MANY)
    taken = [one for one in found if one.started_at is not None]
    own = [one for one in taken if mine is not None and one.session_id == mine]
    free = [one for one in (*taken, *found) if one.session_id is None or mine is None]
    for flight in (*own, *free):
        return tx.need(Message, "message", tx.need(Ask, "ask", flight.ask_id).message_id)
    return None


def _find_latest_message(tx: Transaction) -> Message:
    """Return the latest received message that is no ask; a reply to a finished ask must name it."""
    came = tx.ledger.many(Delivery, "deliveries_to", agent=tx.sender, before=LAST, limit=_MANY)
    for delivery in came:
        if delivery.flight_id is None and delivery.message_id is not None:
            return tx.need(Message, "message", delivery.message_id)
    look = Remedy(operation="inbox", parameters={"all": True}, why="list all messages, including read ones")
    raise Refused(NotFound(noun="message to you", id="latest", remedies=(look,)))


def _find_asked_flight(tx: Transaction, message: Message) -> Flight | None:
    ask = tx.ledger.one(Ask, "ask_of_message", message=message.id)
    return find_flight(tx, ask.id) if ask else None


def _post_reply(
    tx: Transaction, request: Reply, body: str, message: Message, ended: Flight | None
) -> Receipt:
    """Post a reply to a plain message; a reply to a finished ask becomes a note that wakes no agent."""
    late = ended is not None
    target = tx.need(Agent, "agent", message.reply_to or message.sender)
    heard = not late and target.id not in (tx.sender, *tx.services.own_agents)
    if heard:
        _check_reply_is_read(tx, message, target)
    said = posts.post_message(
        tx,
        message.conversation_id,
        body,
        kind=MessageKind.STATUS if late else MessageKind.ANSWER,
        attachments=attachments.find_attachments(tx, request.attachments),
        ask_id=message.ask_id if late else None,
        flight_id=message.flight_id if late else None,
        metadata=Metadata(in_reply_to=message.id, target_agents=(target.id,) if heard else ()),
    )
    receipts = ()
    if heard:
        delivery = posts.create_delivery(tx, said, target.id, rule="reply", reason="an answer")
        receipts = (posts.build_delivery_receipt(tx, delivery),)
    notes = _note_unheard(tx, target)
    if ended is not None:
        noted = flight_state.note_after_end(tx, ended, said)
        receipts = (posts.build_delivery_receipt(tx, noted),) if noted else ()
        told = "; its asker finds it in the inbox" if noted else ""
        notes = (f"the ask is {ended.state}: kept as a note{told}",)
    return Receipt(
        conversation_id=said.conversation_id,
        message_id=said.id,
        to=tx.address(target.id) if receipts else "",
        deliveries=receipts,
        notes=notes,
    )


def _check_reply_is_read(tx: Transaction, message: Message, target: Agent) -> None:
    """Require that the caller is a member of the conversation or may address the recipient."""
    if target.lifecycle is Lifecycle.RETIRED:
        raise Refused(routes.build_retired_refusal(tx, target))
    members = tuple(one.agent_id for one in conversations.list_members(tx, message.conversation_id))
    if tx.sender not in members:
        tx.permit(Deed.ADDRESS, build_subject(target))


def _note_unheard(tx: Transaction, target: Agent) -> tuple[str, ...]:
    return ("the broker reads no answers: kept as a note",) if target.id in tx.services.own_agents else ()


# -- the flight that the caller works on -------------------------------------------------------------


def find_enclosing_flight(tx: Transaction, within: str | None) -> Flight | None:
    """Return the flight the caller works on: the named one, else its session's, else its only running one."""
    if within is not None:
        flight = find_flight(tx, within)
        if flight.target != tx.sender:
            raise tx.missing("flight of yours", within)
        return flight
    if not _open_flights(tx, tx.sender):
        return None
    open_flights = tx.ledger.many(Flight, "flights_open_to", agent=tx.sender, before=LAST, limit=50)
    running = [one for one in open_flights if one.started_at is not None]
    mine = [one for one in running if tx.actor.session_id and one.session_id == tx.actor.session_id]
    candidates = mine or running
    return candidates[0] if len(candidates) == 1 else None


def check_room(tx: Transaction, ask: Ask) -> None:
    """Enforce the target's limit of open flights."""
    limits = tx.rules.limits
    check_open_flights(ask.resolved or ask.target, len(_open_flights(tx, ask.target)), limits)


def _open_flights(tx: Transaction, agent_id: str) -> set[str]:
    def load() -> list[str]:
        return [ident for (ident,) in tx.ledger.rows("flights_open_ids", agent=agent_id)]

    return tx.cache.open_flights(agent_id, load)
