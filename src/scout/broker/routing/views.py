"""Views: records with fields derived from other records."""

from typing import Any, TypeVar

from msgspec.structs import asdict, replace

from scout.base.record import Record
from scout.broker.routing import routes
from scout.broker.routing.remote import describe_move, describe_node, find_mesh_receipt, find_node_name
from scout.broker.routing.unread import count_unread
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.ask import Ask
from scout.model.attention import Attention
from scout.model.conversation import Message
from scout.model.delivery import Delivery
from scout.model.endpoint import Endpoint, choose_program_state, get_program_state
from scout.model.flight import Flight, FlightPhase, FlightState
from scout.model.question import Question
from scout.model.reservation import Reservation, is_active_reservation
from scout.model.session import Session
from scout.model.status import AgentStatus, get_status
from scout.model.work_item import WorkItem
from scout.policy.directory import Instance
from scout.policy.permit import may_read_attention
from scout.policy.queue import describe_place, describe_place_behind_target
from scout.protocol.agents import AgentDetail, AgentView
from scout.protocol.asks import FlightView
from scout.protocol.questions import QuestionView
from scout.protocol.work import WorkView
from scout.store.ledger import LAST

T = TypeVar("T", bound=Record)
W = TypeVar("W", Flight, WorkItem)
_FEW = 20


def extend_record(kind: type[T], record: Record, **more: object) -> T:
    """Return a record as a view type with additional fields."""
    return kind(**asdict(record), **more)


def build_agent_view(tx: Transaction, agent: Agent, endpoints: list[Endpoint] | None = None) -> AgentView:
    """Return an agent with its status and names."""
    return extend_record(AgentView, agent, **_build_agent_fields(tx, agent, endpoints))


def _describe_place(tx: Transaction, agent: Agent) -> tuple[str, ...]:
    """Return notes about the folder of an agent, or about the node to which it moved."""
    return describe_move(tx, agent) if agent.is_remote else routes.describe_folder(tx, agent)


def build_agent_detail(tx: Transaction, agent: Agent) -> AgentDetail:
    """Return an agent with its endpoints, sessions, aliases and counts."""
    ledger, user = tx.ledger, tx.actor.user
    endpoints = tx.endpoints(agent.id)
    aliases = ledger.many(Alias, "aliases_for", agent=agent.id, owner=user, limit=_FEW)
    most = tx.rules.limits.page_most
    held = ledger.many(Reservation, "reservations_of_agent", agent=agent.id, limit=_FEW)
    return extend_record(
        AgentDetail,
        agent,
        **_build_agent_fields(tx, agent, endpoints),
        endpoints=tuple(endpoints),
        sessions=tuple(ledger.many(Session, "sessions_of", agent=agent.id, before=LAST, limit=_FEW)),
        open_flights=ledger.value("flights_open_count", agent=agent.id, limit=most),
        unread=count_unread(tx, agent.id),
        aliases=tuple(alias.name for alias in aliases),
        notes=(*_describe_place(tx, agent), *describe_node(tx, agent)),
        reservations=tuple(one for one in held if is_active_reservation(one, tx.now)),
    )


def _build_agent_fields(tx: Transaction, agent: Agent, endpoints: list[Endpoint] | None) -> dict[str, object]:
    if endpoints is None:
        endpoints = tx.endpoints(agent.id)
    status = find_agent_status(tx, agent, endpoints)
    if agent.is_person and agent.id == tx.actor.agent_id:
        status = AgentStatus.ONLINE  # a person who asks is online
    states = [get_program_state(one, tx.now, tx.rules.periods.online_within) for one in endpoints]
    return {
        "status": status,
        "program_state": choose_program_state(states) if not agent.is_person else None,
        "address": tx.address(agent.id),
        "alias": tx.alias(agent),
        "canonical": Instance(agent=agent).canonical,
        "minimal": tx.minimal(tx.instance(agent)),
        "label": agent.path.label(agent.config.name, agent.config.username),
        "description": agent.config.description,
    }


def find_agent_status(tx: Transaction, agent: Agent, endpoints: list[Endpoint]) -> AgentStatus:
    """Return the status of an agent; for one of another node, what that node says."""
    remote = tx.remote_agent(agent.id) if agent.is_remote else None
    if remote is not None:
        return remote.status
    flights = tx.ledger.many(Flight, "flights_open_to", agent=agent.id, before=LAST, limit=_FEW)
    waits = tx.ledger.many(Attention, "attention_by_open", agent=agent.id, before=LAST, limit=_FEW)
    needs = [one for one in waits if one.source.id == agent.id]
    within = tx.rules.periods.online_within
    return get_status(agent, endpoints, tx.now, flights=flights, attention=needs, within=within)


def build_flight_view(tx: Transaction, flight: Flight) -> FlightView:
    """Return a flight with its addresses, the ask's body, and its delivery attempts."""
    ledger = tx.ledger
    deliveries = ledger.many(Delivery, "deliveries_of_flight", flight=flight.id)
    newest = deliveries[-1] if deliveries else None
    # The first delivery carries the ask; a later one may carry a person's answer.
    message = ledger.get(Message, deliveries[0].message_id) if deliveries else None
    return extend_record(
        FlightView,
        show_reason(tx, _show_place_in_line(tx, hide_redacted(tx, flight))),
        target_address=tx.address(flight.target),
        requester_address=tx.address(flight.requester_id),
        target_node=find_node_name(tx, flight.target),
        requester_node=find_node_name(tx, flight.requester_id),
        body=message.body if message else "",
        attempts=newest.attempts if newest else 0,
        may_repeat=newest.may_repeat if newest else False,
        remedies=flight.error.remedies if flight.error else (),
        mesh=find_mesh_receipt(tx, newest),
        **describe_runtime(tx, flight, tx.get(Session, flight.session_id)),
    )


def describe_runtime(tx: Transaction, flight: Flight, session: Session | None) -> dict[str, Any]:
    """Return the harness, model and origin that the ask named, and those of the session that runs it."""
    ask = tx.get(Ask, flight.ask_id)
    asked: dict[str, Any] = {}
    if ask is not None:
        asked = {"harness_requested": ask.harness, "model_requested": ask.model, "origin": ask.origin}
    if session is None:
        return asked
    return {
        **asked,
        "harness_observed": session.harness,
        "model_resolved": session.model_requested,
        "model_observed": session.model_observed,
        "effort": session.effort,
    }


def hide_redacted(tx: Transaction, flight: Flight) -> Flight:
    """Return a flight without the text of an answer that was redacted."""
    said = tx.get(Message, flight.output_message_id) if flight.output else None
    return replace(flight, output="") if said is not None and said.redacted_at is not None else flight


def show_reason(tx: Transaction, record: W) -> W:
    """Show the item's title as the reason of a record that waits for it, if the caller may read the item."""
    on = record.waiting_on
    item = tx.get(Attention, on.ref) if on is not None and (on.ref or "").startswith("att_") else None
    if item is None or not may_read_attention(tx.actor, item):
        return record
    return replace(record, reason=f"waiting for an answer to: {item.title}")


def _show_place_in_line(tx: Transaction, flight: Flight) -> Flight:
    """Show a queued flight's current place in line as its reason; the place is not stored."""
    waits = flight.state is FlightState.QUEUED and flight.phase is not FlightPhase.HELD
    found = tx.services.line.get(flight.id) if waits else None
    if found is None:
        return flight
    place, limit = found
    paused = tx.services.paused
    if limit is None:
        return replace(flight, reason=describe_place_behind_target(place))
    return replace(flight, reason=paused.words if paused is not None else describe_place(place, limit))


def build_question_view(tx: Transaction, question: Question, notes: tuple[str, ...] = ()) -> QuestionView:
    """Return a question with its addresses and its work item."""
    return extend_record(
        QuestionView,
        question,
        asker_address=tx.address(question.asker_id),
        responder_address=tx.address(question.responder_id),
        work_item=tx.get(WorkItem, question.work_item_id),
        notes=notes,
    )


def build_work_view(tx: Transaction, item: WorkItem, **more: object) -> WorkView:
    """Return a work item with its addresses."""
    holder = item.next_move_owner_id
    return extend_record(
        WorkView,
        show_reason(tx, item),
        owner_address=tx.address(item.owner_id),
        requester_address=tx.address(item.requester_id),
        next_move_address=tx.address(holder) if holder else None,
        **more,
    )
