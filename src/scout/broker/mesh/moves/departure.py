"""An agent leaves for another node: what is checked before, what stays here, and what follows it.

The move is one envelope. From its transaction on, the agent lives on the other node, and the record here is a
forward. What arrives for it waits here until the other node has answered: then it follows, or, if the node
refused the agent, it is delivered here as before. The envelope does not expire, because nobody could tell
whether the other node has the agent. It ends with that node's answer, or when the node leaves the mesh.
"""

from collections.abc import Iterator
from typing import NamedTuple

from scout.base.codec import encode
from scout.base.refusal import BadRequest, Candidate, Refused, Remedy
from scout.broker.effects import flight_state, held_flights, reservations, session_end
from scout.broker.mesh import members
from scout.broker.mesh.outbox_rows import queue_entry
from scout.broker.operations.agents import find
from scout.broker.routing import routes
from scout.broker.routing.remote import build_node_unreachable, find_delivery_entry, list_entries
from scout.broker.transaction import admission
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.identity.path import Kind
from scout.model.agent import Agent, Lifecycle, leave_for_node, return_from_move
from scout.model.alias import Alias, AliasState
from scout.model.delivery import DELIVERY, Delivery, DeliveryMove, DeliveryState, hand_over, nack
from scout.model.endpoint import ENDPOINT, EndpointMove, EndpointState
from scout.model.events.presence import AgentMoved
from scout.model.flight import FLIGHT, Flight, FlightError
from scout.model.mesh.envelope import ENVELOPE_LIMIT, EnvelopeKind, MovePayload
from scout.model.mesh.outbox import OutboxEntry
from scout.model.node import NODE, Node, NodeState
from scout.model.problems.mesh import AgentBusy
from scout.model.problems.request import Forbidden, NotFound, TooLarge
from scout.model.problems.target import NameTaken, RemoteTarget
from scout.model.question import Question
from scout.model.remote_agent import build_entry
from scout.model.session import SESSION, Session
from scout.model.status import AgentStatus
from scout.model.work_item import WorkItem
from scout.policy.directory import Wanted
from scout.policy.nearest import rank_names
from scout.policy.permit import Deed
from scout.protocol.agents import MoveAgent
from scout.store.ledger import LAST

_WORKING = frozenset({EndpointState.ATTACHING, EndpointState.WAKING, EndpointState.WORKING})
_MANY = 1000
_FEW = 3
_ROOM = 50_000  # bytes of an envelope beside its payload


class Departure(NamedTuple):
    """A move that has begun. `sessions` stay behind. `unread`: messages that follow the agent."""

    agent_id: str
    node: Node
    sessions: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    work_items: int = 0
    questions: int = 0
    unread: int = 0


def start_move(tx: Transaction, request: MoveAgent) -> Departure:
    """Let an agent leave for another node; for one that lives there already, nothing changes."""
    agent = find(tx, request.address)
    tx.permit(Deed.ADMINISTER, build_subject(agent))
    node = _require_node(tx, request.to)
    if agent.is_remote:
        if agent.home_id != node.id:
            raise Refused(RemoteTarget(address=tx.address(agent.id), node=agent.node, node_id=agent.home_id))
        return Departure(agent.id, node)
    _check_agent(tx, agent, node)
    payload = build_move(tx, agent)
    _check_size(payload)
    departure = Departure(
        agent.id,
        node,
        sessions=_end_sessions(tx, agent, node),
        aliases=tuple(one.name for one in payload.aliases),
        work_items=len(payload.work_items),
        questions=len(payload.questions),
        unread=sum(1 for _ in _list_mail(tx, agent.id)),
    )
    _leave(tx, agent, node)
    return departure


# -- checks ------------------------------------------------------------------------------------------


def _require_node(tx: Transaction, name: str) -> Node:
    """Return another node of the operator that answers now."""
    known = [one for one in members.list_nodes(tx) if one.state not in NODE.settled]
    node = next((one for one in known if name in (one.name, one.id)), None)
    if node is None:
        near = rank_names(name, [one.name for one in known], _FEW)
        look = Remedy(operation="mesh.nodes", parameters={}, why="list the nodes")
        found = tuple(Candidate(address=one) for one in near)
        raise Refused(NotFound(noun="node", id=name[:60], candidates=found, remedies=(look,)))
    if node.guest_key is not None:
        needs = ("a node of the same operator",)
        raise Refused(Forbidden(action="move an agent to", subject=f"node {node.name}", needs=needs))
    return node


def _check_agent(tx: Transaction, agent: Agent, node: Node) -> None:
    address = tx.address(agent.id)
    if node.local:
        raise Refused(BadRequest(problem=f"{address} lives on {node.name} already", field="to"))
    if agent.kind is not Kind.AGENT or agent.owner != tx.services.operator or agent.parent_id is not None:
        problem = f"{address} belongs to this machine: only agents of the operator without a parent move"
        raise Refused(BadRequest(problem=problem, field="address"))
    if node.state is not NodeState.ONLINE:
        raise Refused(build_node_unreachable(node))
    _check_name(tx, agent, node)
    _check_idle(tx, agent, node)


def _check_name(tx: Transaction, agent: Agent, node: Node) -> None:
    """Refuse if an agent of the other node has the name, as far as this node knows."""
    if agent.definition_id is None:
        return
    wanted = Wanted(
        definition_id=agent.definition_id,
        workspace=agent.workspace,
        profile=agent.profile,
        node=node.name,
        exact=True,
    )
    for holder in tx.everybody.find(wanted, 1):
        look = Remedy(operation="show", parameters={"address": tx.address(holder.id)}, why="look at it")
        raise Refused(
            NameTaken(
                noun="agent",
                name=f"{tx.address(agent.id)} on {node.name}",
                holder_id=holder.id,
                holder_state=str(holder.lifecycle),
                remedies=(look,),
            )
        )


def _check_idle(tx: Transaction, agent: Agent, node: Node) -> None:
    """Refuse while something about the agent is under way: its end could not find the agent."""
    found = {"agent": agent.id, "before": LAST, "limit": _FEW}
    flights = tx.ledger.many(Flight, "flights_open_to", **found)
    flights += tx.ledger.many(Flight, "flights_open_for", **found)
    address = tx.address(agent.id)
    same = {"address": address, "to": node.name}
    again = Remedy(operation="agent.move", parameters=same, why="then move it")
    if flights:
        first = {"flightId": flights[0].id}
        wait = Remedy(operation="flight.get", parameters={**first, "wait": 60}, why="wait for its end")
        cancel = Remedy(operation="flight.cancel", parameters=first, why="or cancel it")
        reason = f"flight {flights[0].id} is {flights[0].state}"
        raise Refused(AgentBusy(address=address, reason=reason, remedies=(wait, cancel, again)))
    if any(one.state in _WORKING for one in tx.endpoints(agent.id)):
        look = Remedy(operation="show", parameters={"address": address}, why="see whether it still works")
        reason = "its program is working on a message"
        raise Refused(AgentBusy(address=address, reason=reason, remedies=(look, again)))
    children = tx.ledger.many(Agent, "children_live", parent=agent.id)
    if children:
        listed = Remedy(operation="tree", parameters={}, why="show its children")
        reason = f"it has {len(children)} children with folders on this machine; finish them first"
        raise Refused(AgentBusy(address=address, reason=reason, remedies=(listed, again)))
    waiting = [one for one in list_unconfirmed(tx) if one.sender == agent.id]
    if waiting:
        nodes = sorted({members.name_node(tx, one.node_id) for one in waiting})
        reason = f"node {', '.join(nodes)} has not confirmed what it said"
        look = Remedy(operation="mesh.nodes", parameters={}, why="list the nodes")
        raise Refused(AgentBusy(address=address, reason=reason, remedies=(look, again)))


def list_unconfirmed(tx: Transaction) -> list[OutboxEntry]:
    """Return the envelopes that no node has confirmed yet."""
    return tx.ledger.many(OutboxEntry, "outbox_open", limit=_MANY * 10)


def _check_size(payload: MovePayload) -> None:
    size = len(encode(payload)) + _ROOM
    if size > ENVELOPE_LIMIT:
        raise Refused(TooLarge(what="agent with its open work", size=size, limit=ENVELOPE_LIMIT))


# -- what moves --------------------------------------------------------------------------------------


def build_move(tx: Transaction, agent: Agent) -> MovePayload:
    """Return what moves with an agent; the same for each attempt, because nothing of it changes meanwhile."""
    found = {"agent": agent.id, "before": LAST, "limit": _MANY}
    aliases = tx.ledger.many(Alias, "aliases_for", agent=agent.id, owner=tx.services.operator, limit=_MANY)
    questions = tx.ledger.many(Question, "questions_asked_open", **found)
    questions += tx.ledger.many(Question, "questions_owed", **found)
    return MovePayload(
        agent=agent,
        aliases=tuple(one for one in aliases if one.state is AliasState.ACTIVE),
        work_items=tuple(tx.ledger.many(WorkItem, "work_of_open", **found)),
        questions=tuple({one.id: one for one in questions}.values()),
    )


def _end_sessions(tx: Transaction, agent: Agent, node: Node) -> tuple[str, ...]:
    """End the sessions, which belong to this machine; return those that stay behind."""
    reason = f"its agent moved to node {node.name}"
    sessions = tx.ledger.many(Session, "sessions_of", agent=agent.id, before=LAST, limit=_MANY)
    for session in sessions:
        if session.state not in SESSION.settled:
            session_end.record_session_end(tx, session, reason)
    for endpoint in tx.endpoints(agent.id):
        if endpoint.state not in ENDPOINT.terminal:
            routes.record_endpoint_move(tx, endpoint, EndpointMove.STOP, reason)
    reservations.release_for_agent(tx, agent.id, reason)
    admission.revoke_agent_tokens(tx, agent, reason)
    for delivery in _list_mail(tx, agent.id):
        if delivery.state is DeliveryState.LEASED:
            _give_back(tx, delivery, reason)
    return tuple(one.id for one in sessions)


def _list_mail(tx: Transaction, agent_id: str) -> Iterator[Delivery]:
    after = ""
    while some := tx.ledger.many(Delivery, "inbox", agent=agent_id, after=after, limit=_MANY):
        yield from some
        after = some[-1].id


def _give_back(tx: Transaction, delivery: Delivery, reason: str) -> None:
    """Make a delivery due again, for whoever delivers it next."""
    if delivery.state is DeliveryState.PENDING:
        delivery = hand_over(delivery, "", tx.now)
    holder, rule = delivery.leased_by or "", tx.rules.back_off
    after = nack(delivery, holder, tx.now, problem=reason, retry_after=0, rule=rule)
    flight_state.record_delivery(tx, delivery, after, DeliveryMove.NACK)


def _leave(tx: Transaction, agent: Agent, node: Node) -> None:
    """Leave a forward, list the agent as one of the other node, and queue the envelope."""
    forward = leave_for_node(agent, node.id, node.name, tx.now)
    reason = f"to node {node.name}"
    tx.record(AgentMoved, forward, move="leave", reason=reason)
    within = tx.rules.periods.online_within
    entry = build_entry(
        agent, (), AgentStatus.OFFLINE, node_id=node.id, revision=0, now=tx.now, within=within
    )
    tx.services.meshed = True
    tx.services.leaving.add(agent.id)
    tx.ledger.list_sender(entry, tx.services.operator)
    tx.cache.forget_mirror()
    queue_entry(tx, node.id, EnvelopeKind.MOVE, agent.id)


def find_move(tx: Transaction, agent_id: str) -> OutboxEntry | None:
    """Return the envelope of an agent's last move from here."""
    moves = [one for one in list_entries(tx, agent_id) if one.kind is EnvelopeKind.MOVE]
    return moves[-1] if moves else None


# -- the answer of the other node --------------------------------------------------------------------


def confirm_move(tx: Transaction, entry: OutboxEntry) -> None:
    """Let everything that waits for the agent follow it: the other node has it."""
    forward = tx.ledger.own_agent(entry.subject)
    if forward is None or forward.moved_to != entry.node_id:
        return
    reason = f"node {members.name_node(tx, entry.node_id)} has it"
    tx.record(AgentMoved, forward, move="confirm", reason=reason)
    for delivery in _list_mail(tx, forward.id):
        _send_after(tx, delivery, entry.node_id)


def _send_after(tx: Transaction, delivery: Delivery, node_id: str) -> None:
    """Queue mail for the node of its agent. A node speaks only for its own agents: others' mail is copied."""
    if delivery.message_id is None or find_delivery_entry(tx, delivery.id):
        return
    sender = tx.agent(delivery.sender)
    if sender is None or sender.is_remote:
        queue_entry(tx, node_id, EnvelopeKind.MAIL, delivery.message_id, delivery_id=delivery.id)
        return
    asked = delivery.flight_id
    queue_entry(
        tx,
        node_id,
        EnvelopeKind.ASK if asked else EnvelopeKind.MESSAGE,
        asked or delivery.message_id,
        sender=sender.id,
        conversation_id=delivery.conversation_id,
        delivery_id=delivery.id,
        wake=delivery.wake or delivery.delegates,
    )


def take_back(tx: Transaction, entry: OutboxEntry, error: FlightError) -> None:
    """Bring an agent back that the other node refused; what waited for it is delivered here."""
    forward = tx.ledger.own_agent(entry.subject)
    if forward is None or forward.moved_to != entry.node_id or forward.lifecycle is not Lifecycle.RETIRED:
        return
    tx.ledger.drop_remote_agent(forward.id)
    here = return_from_move(forward, tx.services.node, tx.now)
    tx.record(AgentMoved, here, move="return", reason=error.message)
    tx.cache.forget_mirror()
    for delivery in _list_mail(tx, here.id):
        deliver_here(tx, delivery, error.message)


def deliver_here(tx: Transaction, delivery: Delivery, reason: str) -> None:
    """Deliver on this node what was on its way to another one: its target lives here now."""
    if delivery.state in DELIVERY.terminal:
        return
    _give_back(tx, delivery, reason)
    flight = tx.get(Flight, delivery.flight_id)
    if flight is not None:
        held_flights.reroute_flight(tx, flight, reason)


# -- envelopes of this node to an agent that moved -----------------------------------------------------


def follow_target(tx: Transaction, entry: OutboxEntry, moved_to: str) -> bool:
    """Send an envelope after its target; the node that refused it says where that is. False: it ends here."""
    agent = _find_target(tx, entry)
    if agent is None:
        return False
    if agent.is_remote and agent.home_id == entry.node_id:
        tx.ledger.hand_over_agent(agent.id, moved_to)
        tx.cache.forget_mirror()
        agent = tx.agent(agent.id) or agent
    if not agent.is_remote:
        return _deliver_here(tx, entry)
    if agent.home_id == entry.node_id or _has_ended(tx, entry):
        return False
    queue_entry(
        tx,
        agent.home_id,
        entry.kind,
        entry.subject,
        sender=entry.sender,
        conversation_id=entry.conversation_id,
        delivery_id=entry.delivery_id,
        seq=entry.seq,
        wake=entry.wake,
    )
    return True


def _find_target(tx: Transaction, entry: OutboxEntry) -> Agent | None:
    delivery, flight = tx.get(Delivery, entry.delivery_id), tx.get(Flight, entry.subject)
    if delivery is not None or flight is not None:
        return tx.agent(delivery.target if delivery else flight.target if flight else None)
    question = tx.get(Question, entry.subject)
    if question is None:
        return None
    other = question.responder_id if entry.sender == question.asker_id else question.asker_id
    return tx.agent(other)


def _has_ended(tx: Transaction, entry: OutboxEntry) -> bool:
    flight = tx.get(Flight, entry.subject)
    return flight is not None and flight.state in FLIGHT.terminal


def _deliver_here(tx: Transaction, entry: OutboxEntry) -> bool:
    delivery = tx.get(Delivery, entry.delivery_id)
    if delivery is None:
        return False
    deliver_here(tx, delivery, "its target lives on this node now")
    return True
